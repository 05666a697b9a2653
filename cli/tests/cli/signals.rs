//! Tests that no unfinished result stays in the folder if a signal ends the program, and what the program says then.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
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
    for (signal, code, number) in [("-INT", Some(130), None), ("-TERM", None, Some(15)), ("-HUP", None, Some(1))] {
        let mut child = after(&s, "").spawn().unwrap();
        writing(&s, &mut child);
        send(signal, &child);
        let status = child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (code, number), "{signal}");
        assert_eq!(s.files(), ["a.csv", "b.npy"], "{signal}");
    }
}

#[test]
fn an_interrupt_of_a_long_command_is_told_and_leaves_the_files_as_they_were() {
    let s = Sandbox::new();
    s.text("old.json", "old");
    let commands: [&[&str]; 4] = [
        &["hpl", "--n", "8000", "--device", "cpu", "--json", "old.json"],
        &["hpl", "--n", "6000", "--device", "cpu:0", "--mxp", "--trace", "new.json"],
        &["bench", "gemm", "--n", "512", "--reps", "1000000", "--device", "cpu", "--json", "old.json"],
        &["conformance", "--device", "cpu:0", "--json", "new.json"],
    ];
    for args in commands {
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(env!("CARGO_BIN_EXE_lapidary")).args(args).current_dir(s.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // the first text comes after the devices are open, and the work begins with it
        let (told, first) = channel();
        let readers = [told.clone(), told].into_iter().zip([boxed(child.stdout.take()), boxed(child.stderr.take())]);
        let texts: Vec<_> = readers.map(|(told, stream)| std::thread::spawn(move || collect(stream, &told))).collect();
        first.recv_timeout(Duration::from_secs(120)).unwrap_or_else(|_| panic!("{args:?} prints nothing"));
        std::thread::sleep(Duration::from_millis(300));
        send("-INT", &child);
        let begun = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{args:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{args:?}");
        let texts: Vec<String> = texts.into_iter().map(|text| text.join().unwrap()).collect();
        assert_eq!(texts[1].matches("lapidary: interrupted\n").count(), 1, "{args:?}: {}", texts[1]);
        // the suite writes its report again and again, so that another run can continue
        let mut files = s.files();
        files.retain(|name| args[0] != "conformance" || name != "new.json");
        assert_eq!(files, ["old.json"], "{args:?}");
        assert_eq!(s.read("old.json"), "old");
    }
}

/// A pipe from the program.
fn boxed(stream: Option<impl Read + Send + 'static>) -> Box<dyn Read + Send> {
    Box::new(stream.unwrap())
}

/// Reads all text of a pipe. Tells when the first text has come.
fn collect(mut stream: Box<dyn Read + Send>, told: &Sender<()>) -> String {
    let (mut text, mut part) = (Vec::new(), [0; 1 << 12]);
    while let Some(read) = stream.read(&mut part).ok().filter(|&read| read > 0) {
        text.extend_from_slice(&part[..read]);
        let _ = told.send(());
    }
    String::from_utf8(text).unwrap()
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

#[test]
fn an_interrupt_removes_the_caches_of_a_timed_start() {
    let s = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_lapidary");
    let mut command = Command::new("env");
    command.args(["--default-signal", program, "bench", "startup", "--device", "opencl:0"]);
    command.current_dir(s.path()).env("TMPDIR", s.path()).env("LAPIDARY_PROBE", "0").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while s.files().is_empty() && child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    if child.try_wait().unwrap().is_some_and(|status| !status.success()) {
        return; // there is no OpenCL device
    }
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // the process that was timed may still write to its folder, which is then removed in part
    let left: Vec<String> = s
        .files()
        .iter()
        .flat_map(|name| std::fs::read_dir(s.path().join(name)).unwrap())
        .map(|entry| format!("{entry:?}"))
        .collect();
    assert!(left.iter().all(|name| !name.contains("programs")), "{left:?}");
}
