//! Prints the dependency graph of a schedule in the dot language of Graphviz.

use std::fmt;

use crate::command::Effects;
use crate::schedule::Schedule;

struct Dot<'a>(&'a Schedule);

impl Schedule {
    /// The dependency graph in the dot language of Graphviz. Commands are nodes, and a task is a box around the commands of the
    /// task. An arrow between two nodes is a dependency between commands; an arrow between two boxes is a dependency between
    /// tasks.
    pub fn dot(&self) -> impl fmt::Display + '_ {
        Dot(self)
    }
}

impl fmt::Display for Dot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0.plan();
        writeln!(f, "digraph \"{} {}\" {{", plan.operation(), plan.dtype())?;
        writeln!(f, "  compound=true; rankdir=TB; node [shape=box, fontname=monospace, style=filled, fillcolor=white];")?;
        for (t, task) in plan.tasks().iter().enumerate() {
            writeln!(f, "  subgraph cluster_{t} {{ label=\"{t}: {}\"; style=filled; fillcolor=gray95;", task.label)?;
            for command in task.commands.clone() {
                let queue = plan.commands()[command as usize].queue();
                writeln!(f, "    c{command} [label=\"{}\", tooltip=\"{queue}\"];", plan.describe(command))?;
            }
            writeln!(f, "  }}")?;
        }
        self.command_arrows(f)?;
        self.task_arrows(f)?;
        writeln!(f, "}}")
    }
}

impl Dot<'_> {
    fn command_arrows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for command in (0..).take(self.0.plan().commands().len()) {
            for later in self.0.graph().commands.successors(command) {
                writeln!(f, "  c{command} -> c{later};")?;
            }
        }
        Ok(())
    }

    /// Writes the dependencies between tasks. The dot language has arrows between nodes only, so the arrow from one task to
    /// another runs from the last command of the first task to the first command of the second task.
    fn task_arrows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = self.0.plan().tasks();
        for (t, task) in (0..).zip(tasks) {
            for &later in self.0.graph().tasks.successors(t) {
                let (from, to) = (task.commands.end - 1, tasks[later as usize].commands.start);
                writeln!(f, "  c{from} -> c{to} [ltail=cluster_{t}, lhead=cluster_{later}, penwidth=2];")?;
            }
        }
        Ok(())
    }
}
