//! Tests of cache folders that contain other files or that cannot be used.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Sandbox, outcome};

/// Waits at most a minute for the end of a process. Returns whether the process ended.
fn ends(mut child: Child) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

#[test]
fn what_is_no_file_is_neither_listed_nor_removed() {
    let s = Sandbox::new();
    let folder = s.path().join("cache");
    std::fs::create_dir(&folder).unwrap();
    let name = |digit: &str| folder.join(digit.repeat(32) + ".program");
    assert!(Command::new("mkfifo").arg(name("a")).status().unwrap().success());
    std::fs::create_dir(name("b")).unwrap();
    std::fs::write(name("c"), "damaged").unwrap();
    for action in ["list", "clear"] {
        let child = s.command(&["cache", action]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert!(ends(child), "cache {action} hangs");
    }
    assert!(name("a").exists() && name("b").is_dir() && !name("c").exists());
    assert_eq!(s.run(&["cache", "clear"]).stdout, "0 files removed\n");
    std::fs::write(name("c"), "damaged").unwrap();
    assert_eq!(s.run(&["cache", "clear"]).stdout, "1 file removed\n");
}

/// The name of the cache folder need not be valid UTF-8.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_may_have_any_name() {
    use std::os::unix::ffi::OsStrExt;
    let s = Sandbox::new();
    let folder = s.path().join(std::ffi::OsStr::from_bytes(b"ca\xffche"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("c".repeat(32) + ".program"), "damaged").unwrap();
    for args in [&["cache", "list"][..], &["cache", "list", "--json"], &["hpl", "--n", "4"]] {
        let output = s.command(args).env("LAPIDARY_CACHE_DIR", &folder).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Runs `hpl` on the first OpenCL device with the cache in `folder`. Returns the program's standard error, or `None` if there
/// is no OpenCL device.
fn solve_with_cache(s: &Sandbox, folder: &std::path::Path) -> Option<String> {
    let there = s.run(&["devices", "--device", "opencl:0"]).status == 0;
    assert!(there || std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "there is no OpenCL device");
    let args = ["hpl", "--n", "300", "--device", "opencl:0"];
    there.then(|| {
        let run = s.run_with(&args, &[("LAPIDARY_CACHE_DIR", folder.to_str().unwrap())]);
        outcome(&run, 0);
        run.stderr
    })
}

#[test]
fn a_folder_that_cannot_be_used_is_noted_once() {
    let s = Sandbox::new();
    s.text("file", "");
    let Some(told) = solve_with_cache(&s, &s.path().join("file").join("programs")) else { return };
    assert_eq!(told.matches("compiled programs are not kept").count(), 1, "{told}");
    assert!(!solve_with_cache(&s, &s.path().join("cache")).unwrap().contains("compiled programs"));
    // The test replaces the program files by pipes. Lapidary must replace the pipes and must not read them, since a read of a pipe
    // would hang.
    for file in std::fs::read_dir(s.path().join("cache")).unwrap() {
        let path = file.unwrap().path();
        std::fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    let child = s.command(&["hpl", "--n", "300", "--device", "opencl:0"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    assert!(ends(child.unwrap()), "a pipe is read");
}
