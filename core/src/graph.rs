//! The dependencies of a plan, which are found from the rectangles that its commands read and write.
//!
//! Two commands conflict when they access overlapping rectangles of the same register or matrix and at least one of them writes
//! (RAW, WAR, WAW). Of two conflicting commands, the later one in plan order waits for the earlier one. Between two conflicting
//! commands of the same task, the graph has an edge from command to command. Between two conflicting commands of different tasks,
//! the graph has an edge from task to task, since devices take whole tasks.

use crate::command::{Bar, Command, CommandId, Effects, Mark, Queue, Space, distinct_registers};
use crate::instruction::{Access, Reg, Region};
use crate::plan::{MatrixInfo, Plan, Registers, Task};
use crate::ranges::AccessMap;

/// The edges of a graph as adjacency lists in compressed rows: for each node, the nodes that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjacency {
    starts: Vec<u32>,
    targets: Vec<u32>,
    /// For each node, the number of nodes for which this node waits.
    predecessor_counts: Vec<u32>,
}

impl Adjacency {
    /// Builds the adjacency lists of `nodes` nodes from edges `(earlier, later)`, which are sorted by `later`.
    fn new(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let mut starts = vec![0; nodes + 1];
        let mut predecessor_counts = vec![0; nodes];
        for &(from, to) in edges {
            starts[from as usize + 1] += 1;
            predecessor_counts[to as usize] += 1;
        }
        for i in 0..nodes {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; edges.len()];
        for &(from, to) in edges {
            let slot = &mut next[from as usize];
            targets[*slot as usize] = to;
            *slot += 1;
        }
        Adjacency { starts, targets, predecessor_counts }
    }

    /// Returns the nodes that wait for `node`.
    #[must_use]
    pub fn successors(&self, node: u32) -> &[u32] {
        &self.targets[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// For each node, the number of nodes for which this node waits.
    #[must_use]
    pub fn predecessor_counts(&self) -> &[u32] {
        &self.predecessor_counts
    }

    fn bytes(&self) -> usize {
        4 * (self.starts.len() + self.targets.len() + self.predecessor_counts.len())
    }
}

/// The range of commands during which a register needs memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveRange {
    /// The first command that uses the register; 0 if the register has memory from the start of the run on.
    pub first: CommandId,
    /// The last command that uses the register.
    pub last: CommandId,
    /// Number of commands that use the register.
    pub uses: u32,
}

/// The dependencies between the commands and between the tasks of a plan.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The edges between commands of the same task.
    pub commands: Adjacency,
    /// The edges between tasks.
    pub tasks: Adjacency,
    /// For each register, the range of commands during which the register needs memory.
    pub live_ranges: Vec<LiveRange>,
    /// The registers of all tasks, task by task, and within each task in the order of their first use.
    pub registers_by_first_use: Vec<Reg>,
}

impl Graph {
    /// Finds all dependencies of a plan, in time linear in the number of its commands.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let mut search = Search::new(plan.matrices(), plan.registers());
        for (index, task) in plan.tasks().iter().enumerate() {
            search.task(index, task, plan.commands(), plan.registers());
        }
        let live_ranges = live_ranges(plan);
        Graph {
            commands: Adjacency::new(plan.commands().len(), &search.command_edges),
            tasks: Adjacency::new(plan.tasks().len(), &search.task_edges),
            registers_by_first_use: registers_by_first_use(plan.tasks(), &live_ranges),
            live_ranges,
        }
    }

    /// Number of bytes of memory that the graph occupies.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.commands.bytes()
            + self.tasks.bytes()
            + size_of_val(self.live_ranges.as_slice())
            + size_of_val(self.registers_by_first_use.as_slice())
    }
}

fn live_ranges(plan: &Plan) -> Vec<LiveRange> {
    let mut live_ranges = vec![LiveRange { first: CommandId::MAX, last: 0, uses: 0 }; plan.registers().len()];
    for (id, command) in (0..).zip(plan.commands()) {
        distinct_registers(command, |reg| {
            let life = &mut live_ranges[reg.0 as usize];
            life.first = life.first.min(id);
            life.last = id;
            life.uses += 1;
        });
    }
    for reg in plan.registers().held().filter(|&reg| plan.registers()[reg].from_start) {
        live_ranges[reg.0 as usize].first = 0;
    }
    live_ranges
}

fn registers_by_first_use(tasks: &[Task], live_ranges: &[LiveRange]) -> Vec<Reg> {
    let mut registers_by_first_use: Vec<Reg> = (0..).map(Reg).take(live_ranges.len()).collect();
    for task in tasks {
        let range = task.registers.start as usize..task.registers.end as usize;
        registers_by_first_use[range].sort_by_key(|reg| live_ranges[reg.0 as usize].first);
    }
    registers_by_first_use
}

/// The state of the search for dependencies: which commands last accessed each rectangle.
struct Search<'p> {
    matrices: &'p [MatrixInfo],
    matrix_maps: Vec<AccessMap>,
    /// The access maps of the held registers.
    held_maps: Vec<AccessMap>,
    /// The access maps of the current task's registers. The access maps are reused from task to task.
    register_maps: Vec<AccessMap>,
    command_edges: Vec<(u32, u32)>,
    task_edges: Vec<(u32, u32)>,
    /// For each command visited so far, its task and its queue.
    origin: Vec<(u32, Queue)>,
    /// For each task, the last task that the search found to depend on this task.
    seen_task: Vec<u32>,
    /// For each command, the last command that the search found to depend on this command.
    seen_command: Vec<u32>,
}

impl<'p> Search<'p> {
    fn new(matrices: &'p [MatrixInfo], registers: &Registers) -> Self {
        let matrix_maps = matrices.iter().map(|m| AccessMap::new(m.rows, m.cols)).collect();
        let held_maps = registers.held().map(|reg| AccessMap::new(registers[reg].rows, registers[reg].cols)).collect();
        Search {
            matrices,
            matrix_maps,
            held_maps,
            register_maps: Vec::new(),
            command_edges: Vec::new(),
            task_edges: Vec::new(),
            origin: Vec::new(),
            seen_task: Vec::new(),
            seen_command: Vec::new(),
        }
    }

    fn task(&mut self, index: usize, task: &Task, commands: &[Command], registers: &Registers) {
        self.seen_task.push(u32::MAX);
        self.clear_registers(task, registers);
        for id in task.commands.clone() {
            let command = &commands[id as usize];
            self.origin.push((u32::try_from(index).expect("fewer tasks than commands"), command.queue()));
            self.seen_command.push(u32::MAX);
            command.effects(registers, &mut |space, region, access| self.touch(id, task, space, region, access));
            self.auxiliary(id, task, commands);
        }
    }

    fn clear_registers(&mut self, task: &Task, registers: &Registers) {
        let count = task.registers.len();
        if self.register_maps.len() < count {
            self.register_maps.resize_with(count, || AccessMap::new(0, 0));
        }
        for (map, reg) in self.register_maps.iter_mut().zip(task.registers.clone()) {
            let info = &registers[Reg(reg)];
            map.reset(info.rows, info.cols);
        }
    }

    fn touch(&mut self, id: CommandId, task: &Task, space: Space, region: Region, access: Access) {
        let map = match space {
            Space::Register(reg) if (reg.0 as usize) < self.held_maps.len() => &mut self.held_maps[reg.0 as usize],
            Space::Register(reg) => &mut self.register_maps[(reg.0 - task.registers.start) as usize],
            Space::Matrix(matrix) if self.matrices[matrix.0 as usize].written => &mut self.matrix_maps[matrix.0 as usize],
            Space::Matrix(_) => {
                debug_assert_eq!(access, Access::Read, "a matrix declared as input is only read");
                return;
            }
        };
        let Search { command_edges, task_edges, origin, seen_task, seen_command, .. } = self;
        map.touch(region, access, id, &mut |earlier| {
            let ((from, queue), (to, own)) = (origin[earlier as usize], origin[id as usize]);
            if from != to {
                // the search finds the same edge between two tasks several times in succession, and adds the edge only once
                if std::mem::replace(&mut seen_task[from as usize], to) != to {
                    task_edges.push((from, to));
                }
            } else if !(queue == Queue::Exec && own == Queue::Exec)
                && earlier != id
                && std::mem::replace(&mut seen_command[earlier as usize], id) != id
            {
                // two EXEC commands need no edge, since the EXEC queue of a task runs in order
                command_edges.push((earlier, id));
            }
        });
    }

    /// Adds the edges to a `Mark` or `Bar`. A `Mark` waits for all earlier commands of its queue in the same task, and a `Bar`
    /// waits for all earlier commands of its task. Since a queue stops at a `Mark` or `Bar` until the `Mark` or `Bar` is done, a
    /// new `Mark` needs edges only from the commands since the previous `Mark` of its queue, and a new `Bar` needs edges only from
    /// the commands since the previous `Bar` of its queue.
    fn auxiliary(&mut self, id: CommandId, task: &Task, commands: &[Command]) {
        let earlier = (task.commands.start..id).rev();
        match commands[id as usize] {
            Command::Bar(Bar { queue }) => {
                let is_bar = |c: CommandId| matches!(commands[c as usize], Command::Bar(b) if b.queue == queue);
                let last = earlier.clone().find(|&c| is_bar(c)).unwrap_or(task.commands.start);
                self.command_edges.extend((last..id).map(|c| (c, id)));
            }
            Command::Mark(Mark { queue }) => {
                let own = earlier.filter(|&c| commands[c as usize].queue() == queue);
                let since_last = own.take_while(|&c| !matches!(commands[c as usize], Command::Mark(_)));
                self.command_edges.extend(since_last.map(|c| (c, id)));
            }
            Command::Ld(_) | Command::St(_) | Command::Exec(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
