//! Tests of damaged lines in the entries of the user.

use crate::support::{Sandbox, outcome, refused};
use crate::tune::{SHORT, sandbox};

/// A folder with a file of entries, of which two lines are damaged and one exceeds the limits of every device.
fn damaged() -> Option<Sandbox> {
    let s = sandbox()?;
    std::fs::create_dir(s.path().join("kernels")).unwrap();
    s.text("kernels/mine.txt", "[any]\nexchange items=4 tall\nelements items=1048576  # mine\ngemm_tile mwg=1\nsolve items=16\n");
    Some(s)
}

/// The notes on the damaged lines.
const NOTES: [&str; 2] =
    ["mine.txt:2: `exchange items=4 tall` is skipped: `tall` means", "mine.txt:4: `gemm_tile mwg=1` is skipped: "];

/// Standard error names each damaged line once, also if another process of the program reads the file too.
#[test]
fn every_command_that_opens_devices_names_damaged_lines_once() {
    let Some(s) = damaged() else { return };
    s.text("a.csv", "2,1\n1,3\n");
    s.text("b.csv", "3\n5\n");
    for args in [
        &["devices"][..],
        &["solve", "a.csv", "b.csv"],
        &["bench", "gemm", "--n", "8", "--reps", "1", "--device", "opencl:0"],
        &["hpl", "--n", "20", "--device", "cpu"],
        &["kernel", "gemm", "--n", "8", "--device", "opencl:0", "--list"],
        &[&SHORT[..], &["--budget", "0"]].concat(),
        &[&SHORT[..], &["--budget", "0.01"]].concat(),
        &["conformance", "--device", "cpu:0", "--filter", "f64::laswp"],
    ] {
        let run = s.run(args);
        outcome(&run, 0);
        for note in NOTES {
            let counts = [&run.stderr, &run.stdout].map(|text| text.matches(note).count());
            assert_eq!(counts, [1, 0], "{args:?}: {}{}", run.stdout, run.stderr);
        }
    }
    // a folder that --db names is the only one that the search reads
    let elsewhere = s.run(&[&SHORT[..], &["--budget", "0", "--db", "elsewhere"]].concat());
    assert!(elsewhere.status == 0 && !elsewhere.stderr.contains("is skipped"), "{}", elsewhere.stderr);
    // these commands use no entries
    for args in [&["plan", "gemm", "--n", "8"][..], &["cache", "list"], &["conformance", "--list"]] {
        let run = s.run(args);
        assert!(run.status == 0 && !run.stderr.contains("is skipped"), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn entries_that_the_device_cannot_run_are_named() {
    let Some(s) = damaged() else { return };
    for args in [&["kernel", "gemm", "--n", "8", "--device", "opencl:0", "--list"][..], &[&SHORT[..], &["--budget", "0"]].concat()]
    {
        let run = s.run(args);
        outcome(&run, 0);
        let named = "mine.txt:3: elements items=1048576 is not used: 1048576 work-items are more than";
        assert_eq!(run.stderr.matches(named).count(), 1, "{}", run.stderr);
    }
}

#[test]
fn a_folder_with_damaged_lines_is_not_exported() {
    let Some(s) = damaged() else { return };
    s.text("shared.txt", "as before");
    let words = [&NOTES[..], &["kernels: nothing is exported"]].concat();
    refused(&s, &["tune", "--export", "shared.txt"], &words);
    refused(&s, &["tune", "--export", "-"], &words);
    assert_eq!(s.read("shared.txt"), "as before");
    s.text("kernels/mine.txt", "# no entry\n[any]\n");
    refused(&s, &["tune", "--export", "shared.txt"], &["there are no tuned kernels"]);
    s.text("kernels/mine.txt", "\u{feff}[any]\nelements items=1048576  # mine\nstop strips\n");
    let run = s.run(&["tune", "--export", "shared.txt"]);
    outcome(&run, 0);
    assert!(run.stdout == "2 entries\n" && run.stderr.is_empty(), "{}{}", run.stdout, run.stderr);
    assert_eq!(s.read("shared.txt"), "[any]\n[any]\nelements items=1048576  # mine\nstop strips\n\n");
}

/// A file that cannot be written completely is not written.
#[cfg(target_os = "linux")]
#[test]
fn an_export_to_a_full_disk_is_a_failure() {
    let Some(s) = sandbox() else { return };
    std::fs::create_dir(s.path().join("kernels")).unwrap();
    s.text("kernels/mine.txt", &"solve items=16\n".repeat(1000));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = s.command(&["tune", "--export", "-"]).stdout(full).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && message.contains("standard output: cannot write"), "{message}");
    // the limit on the size of files stands for a full disk: 8 blocks of 512 or 1024 bytes
    let program = env!("CARGO_BIN_EXE_lapidary");
    let script = format!("ulimit -f 8; exec {program} tune --export shared.txt --db kernels");
    s.text("shared.txt", "as before");
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(s.path()).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && message.contains("shared.txt: cannot write"), "{message}");
    assert_eq!((s.read("shared.txt").as_str(), s.files().len()), ("as before", 2), "{:?}", s.files());
}
