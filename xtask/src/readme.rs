//! The README's first command must do what the README says.

use crate::Result;
use crate::workspace::Workspace;

/// Runs the first command and looks for the number that the README promises.
pub fn check(ws: &Workspace) -> Result<String> {
    let promise = Promise::read(&ws.read("README.md")?)
        .ok_or("no promise in README.md: a command in a block of sh, then a number as `0.66`")?;
    let mut words = promise.command.split_whitespace();
    if words.next() != Some("cargo") {
        return Err(format!("the first command is no cargo command: {}", promise.command));
    }
    let output = ws.cargo(&words.collect::<Vec<_>>()).tee()?;
    if promise.is_kept(&output) {
        Ok(format!("prints {}", promise.number))
    } else {
        Err(format!("no {} in the output of {}", promise.number, promise.command))
    }
}

/// A command and the beginning of a number that it prints.
#[derive(Debug, PartialEq)]
struct Promise {
    command: String,
    number: String,
}

impl Promise {
    /// The first command in a block of `sh`, and the first number set as code after it.
    fn read(readme: &str) -> Option<Self> {
        let (_, rest) = readme.split_once("```sh\n")?;
        let (block, text) = rest.split_once("```")?;
        let command = block.lines().find(|line| !line.is_empty() && !line.starts_with('#'))?;
        let number = text.split('`').skip(1).step_by(2).find(|code| code.parse::<f64>().is_ok())?;
        Some(Promise { command: command.to_owned(), number: number.to_owned() })
    }

    /// Whether the output has a number that begins so.
    fn is_kept(&self, output: &str) -> bool {
        output.split_whitespace().any(|word| word.starts_with(&self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_a_command_and_a_number() {
        let promise = Promise::read("# T\n```sh\n# solves\ncargo run -- solve\n```\nwith `x` = `0.66`, not `7`\n").unwrap();
        assert_eq!(promise, Promise { command: "cargo run -- solve".into(), number: "0.66".into() });
        assert!(promise.is_kept("sum of x  0.6607\n") && !promise.is_kept("sum of x  1.66\n"));
        assert_eq!(Promise::read("no block"), None);
    }
}
