//! Tests that the first command of the README prints the number that the README promises.

use std::fs;
use std::path::Path;

use crate::support::Sandbox;

/// The arguments of the first command in the README, and the first number in code format after it.
fn promise(readme: &str) -> Option<(Vec<&str>, &str)> {
    let (_, rest) = readme.split_once("```sh\n")?;
    let (block, text) = rest.split_once("```")?;
    let args = block.lines().next()?.strip_prefix("cargo run --release -p lapidary-cli -- ")?;
    let number = text.split('`').skip(1).step_by(2).find(|code| code.parse::<f64>().is_ok())?;
    Some((args.split_whitespace().collect(), number))
}

#[test]
fn the_first_command_prints_the_number_that_the_readme_promises() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (args, number) = promise(&readme).expect("the README begins with a command of the program and a number that it prints");
    let output = Sandbox::new().command(&args).current_dir(root).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    assert!(printed.split_whitespace().any(|word| word.starts_with(number)), "no {number} in {printed}");
}
