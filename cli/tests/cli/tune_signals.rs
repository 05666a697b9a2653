//! Tests of the command `tune` when a signal ends the program or its worker process.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Sandbox, outcome};
use crate::tune::{SHORT, candidates, journal, journals, sandbox};

/// Starts a run of a minute. The command `env` resets all signals to their default actions, since a shell that runs the tests in the
/// background may have set some signals to be ignored.
fn start(s: &Sandbox) -> Child {
    let run = s.command(&[&SHORT[..], &["--strategy", "random", "--budget", "60"]].concat());
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(run.get_program()).args(run.get_args()).current_dir(s.path());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until `count` candidates have an outcome.
fn measured(s: &Sandbox, child: &mut Child, count: usize) {
    let begun = Instant::now();
    while journals(s).is_empty() || candidates(s, "end").len() < count {
        assert!(child.try_wait().unwrap().is_none(), "the program has ended before");
        assert!(begun.elapsed() < Duration::from_secs(50), "nothing is measured");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(signal: &str, id: u32) {
    assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
}

#[test]
fn an_interrupted_run_ends_with_what_it_knows() {
    let Some(s) = sandbox() else { return };
    let mut child = start(&s);
    measured(&s, &mut child, 5);
    send("-INT", child.id());
    let begun = Instant::now();
    let output = child.wait_with_output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.code() == Some(130) && begun.elapsed() < Duration::from_secs(30), "{:?} {stderr}", output.status);
    assert!(stdout.contains("gemm f64 m=128 n=128 k=128: ") && stdout.contains("gemm_panel mv="), "{stdout}");
    assert!(stderr.contains("interrupted; the same command continues"), "{stderr}");
    assert_eq!(s.files(), ["cache", "kernels"]);
    let files: Vec<_> = std::fs::read_dir(s.path().join("kernels")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(files.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{files:?}");
    // Each candidate has an outcome, so that the next run names no culprit.
    let text = std::fs::read_to_string(journal(&s)).unwrap();
    assert!(text.lines().next_back().unwrap().starts_with("end ") && candidates(&s, "failed").is_empty(), "{text}");
    let run = s.run(&[&SHORT[..], &["--strategy", "random", "--budget", "0.2"]].concat());
    outcome(&run, 0);
    assert!(!run.stderr.contains("is skipped"), "{}", run.stderr);
}

/// The process that `parent` has started.
#[cfg(target_os = "linux")]
fn child_of(parent: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_child = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The name of the program stands in parentheses, and may contain spaces.
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)).is_some_and(|id| id == parent.to_string())
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_child)
}

#[cfg(target_os = "linux")]
#[test]
fn a_candidate_that_ends_the_worker_process_has_failed_and_the_run_goes_on() {
    let Some(s) = sandbox() else { return };
    let mut child = start(&s);
    measured(&s, &mut child, 3);
    let worker = child_of(child.id()).expect("there is a worker process");
    send("-KILL", worker);
    let known = candidates(&s, "end").len();
    measured(&s, &mut child, known + 5);
    assert_ne!(child_of(child.id()), Some(worker));
    send("-INT", child.id());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    let text = std::fs::read_to_string(journal(&s)).unwrap();
    let failed: Vec<&str> = text.lines().filter(|line| line.starts_with("failed ")).collect();
    assert!(failed.len() == 1 && failed[0].contains("the candidate ends the process (signal: 9"), "{text}");
}
