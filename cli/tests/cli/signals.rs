//! Tests that no unfinished result stays in the folder if a signal ends the program.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Sandbox, le64, npy};

/// Number of right-hand sides. The program takes so long to write the text of X that the test can send a signal before the file is
/// complete.
const MANY: usize = 3_000_000;

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.text("a.csv", "2\n");
    s.bytes("b.npy", &npy("<f8", true, &format!("(1, {MANY})"), &le64(&vec![0.1; MANY])));
    s
}

/// The program, started by a shell that runs `preparation` first. The command `env` resets all signals to their default actions,
/// since a shell that runs the tests in the background may have set some signals to be ignored.
fn after(s: &Sandbox, preparation: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_lapidary");
    let mut command = Command::new("env");
    command.args([
        "--default-signal",
        "sh",
        "-c",
        &format!("{preparation} exec '{program}' solve a.csv b.npy -o x.csv --device cpu:0"),
    ]);
    command.current_dir(s.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Waits until the program has started to write X.
fn writing(s: &Sandbox, child: &mut Child) {
    let begun = Instant::now();
    while !s.files().iter().any(|name| name.starts_with(".lapidary-")) {
        assert!(child.try_wait().unwrap().is_none(), "the program has ended before");
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing is written");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_signal_leaves_no_temporary_file_and_still_ends_the_program() {
    use std::os::unix::process::ExitStatusExt;
    let s = sandbox();
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let mut child = after(&s, "").spawn().unwrap();
        writing(&s, &mut child);
        send(signal, &child);
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert_eq!(s.files(), ["a.csv", "b.npy"], "{signal}");
    }
}

#[test]
fn a_signal_that_is_to_be_ignored_is_ignored() {
    let s = sandbox();
    let mut child = after(&s, "trap '' HUP;").spawn().unwrap();
    writing(&s, &mut child);
    send("-HUP", &child);
    assert!(child.wait().unwrap().success());
    assert_eq!(s.files(), ["a.csv", "b.npy", "x.csv"]);
}

#[test]
fn a_limit_on_the_size_of_files_is_told_and_leaves_no_temporary_file() {
    let s = sandbox();
    let output = after(&s, "ulimit -f 64;").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && text.contains("x.csv: cannot write"), "{:?} {text}", output.status);
    assert_eq!(s.files(), ["a.csv", "b.npy"]);
}
