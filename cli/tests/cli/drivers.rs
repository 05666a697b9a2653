//! Tests of drivers that fail. If a driver cannot be loaded, the message is that of the loader. If a driver crashes or hangs, the
//! program leaves it out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use crate::support::{Run, Sandbox, outcome};

#[test]
fn a_library_that_does_not_load_is_told_with_the_reason() {
    let s = Sandbox::new();
    s.text("libOpenCL.so.1", "no library");
    s.text("libvulkan.so.1", "no library");
    for (device, name) in [("opencl", "libOpenCL.so.1"), ("wgpu", "libvulkan.so.1")] {
        let run = s.run_with(&["devices", "--device", device], &[("LD_LIBRARY_PATH", s.path().to_str().unwrap())]);
        outcome(&run, 3);
        assert!(run.stderr.contains(name) && run.stderr.contains("file too short"), "{}", run.stderr);
    }
}

#[test]
fn a_driver_that_does_not_load_is_told_with_the_reason() {
    let s = Sandbox::new();
    s.text("libdriver.so", "no library");
    let library = s.path().join("libdriver.so");
    s.text("driver.icd", library.to_str().unwrap());
    s.text("driver.json", &serde_json::json!({ "ICD": { "library_path": "./libdriver.so", "api_version": "1.2.0" } }).to_string());
    let folder = s.path().to_str().unwrap();
    let manifest = s.path().join("driver.json");
    let cases = [
        ("opencl", "OCL_ICD_VENDORS", folder, "LAPIDARY_REQUIRE_OPENCL", "driver.icd"),
        ("wgpu", "VK_DRIVER_FILES", manifest.to_str().unwrap(), "LAPIDARY_REQUIRE_WGPU", "driver.json"),
    ];
    for (device, variable, value, required, file) in cases {
        let run = s.run_with(&["devices", "--device", device], &[(variable, value), ("VK_ICD_FILENAMES", value)]);
        outcome(&run, 3);
        // If the system has no driver loader, the message names this as the reason.
        let told = [file, "libdriver.so", "file too short"].iter().all(|word| run.stderr.contains(word));
        assert!(told || std::env::var_os(required).is_none() && run.stderr.contains("loader is not there"), "{}", run.stderr);
    }
}

/// Compiles a driver library that crashes, exits or hangs, as the variable `DRIVER_FATE` requests.
fn planted() -> &'static Path {
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libplanted.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/planted_driver.rs");
        let status = Command::new("rustc").args(["--edition=2024", "--crate-type=cdylib", source, "-o"]).arg(&path).status();
        assert!(status.expect("rustc runs").success());
        path
    });
    &PATH
}

/// Creates a folder in which the failing driver is registered as an OpenCL and as a Vulkan driver, beside the OpenCL drivers of the
/// system.
fn with_planted_driver() -> Sandbox {
    let s = Sandbox::new();
    let library = s.path().join("libplanted.so");
    std::fs::copy(planted(), &library).unwrap();
    let usual = std::fs::read_dir("/etc/OpenCL/vendors").into_iter().flatten().flatten();
    usual.for_each(|file| s.bytes(file.file_name().to_str().unwrap(), &std::fs::read(file.path()).unwrap()));
    s.text("planted.icd", library.to_str().unwrap());
    let icd = serde_json::json!({ "library_path": library, "api_version": "1.2.0" });
    s.text("planted.json", &serde_json::json!({ "file_format_version": "1.0.1", "ICD": icd }).to_string());
    s
}

/// Runs `lapidary devices` with the failing driver registered for `backend`.
fn devices(s: &Sandbox, backend: &str, device: &str, failure_mode: &str, probe: &str) -> Run {
    let (folder, manifest) = (s.path().to_str().unwrap(), s.path().join("planted.json"));
    let manifest = manifest.to_str().unwrap();
    let places = match backend {
        "opencl" => [("OCL_ICD_VENDORS", folder), ("VK_DRIVER_FILES", "/dev/null"), ("VK_ICD_FILENAMES", "/dev/null")],
        _ => [("OCL_ICD_VENDORS", "/nonexistent"), ("VK_DRIVER_FILES", manifest), ("VK_ICD_FILENAMES", manifest)],
    };
    let told = [("DRIVER_FATE", failure_mode), ("LAPIDARY_PROBE", probe), ("LD_LIBRARY_PATH", "")];
    s.run_with(&["devices", "--device", device], &[&places[..], &told].concat())
}

/// Whether the system has the driver loader of the backend.
fn loads(backend: &str) -> bool {
    let loader = if backend == "opencl" { "libOpenCL.so.1" } else { "libvulkan.so.1" };
    let required = if backend == "opencl" { "LAPIDARY_REQUIRE_OPENCL" } else { "LAPIDARY_REQUIRE_WGPU" };
    // SAFETY: the initialisers of the driver loaders have no requirements.
    let is_there = cfg!(target_os = "linux") && unsafe { libloading::Library::new(loader) }.is_ok();
    assert!(is_there || std::env::var_os(required).is_none(), "{loader} is not there");
    is_there
}

#[test]
fn a_driver_that_ends_the_process_is_left_out() {
    // Vulkan's loader does not let a driver call `exit`. The process hangs instead of ending.
    let cases = [("opencl", "abort", "signal: 6"), ("opencl", "exit", "exit status: 0"), ("wgpu", "abort", "signal: 6")];
    for (backend, failure_mode, how) in cases.into_iter().filter(|(backend, ..)| loads(backend)) {
        let s = with_planted_driver();
        let run = devices(&s, backend, "all", failure_mode, "");
        outcome(&run, 0);
        let told = ["opened for the first time", "planted.", "is left out", how];
        assert!(told.iter().all(|words| run.stderr.contains(words)), "{backend} {failure_mode}: {}", run.stderr);
        if backend == "opencl" {
            let others = devices(&s, backend, "opencl", failure_mode, "");
            let places = [("VK_DRIVER_FILES", "/dev/null"), ("VK_ICD_FILENAMES", "/dev/null"), ("LD_LIBRARY_PATH", "")];
            let without = s.run_with(&["devices", "--device", "opencl"], &places);
            assert_eq!((others.status, others.stdout), (without.status, without.stdout), "{}", others.stderr);
        }
        // The program remembers the failing driver and does not open it again.
        let again = devices(&s, backend, "all", failure_mode, "");
        outcome(&again, 0);
        assert!(again.stderr.contains("is left out") && !again.stderr.contains("first time"), "{}", again.stderr);
    }
}

#[test]
fn a_driver_that_hangs_is_left_out_after_the_time_that_the_user_sets() {
    for backend in ["opencl", "wgpu"].into_iter().filter(|backend| loads(backend)) {
        let s = with_planted_driver();
        let run = devices(&s, backend, "all", "hang", "3");
        outcome(&run, 0);
        assert!(run.stderr.contains("does not open within 3 s"), "{}", run.stderr);
        // With a longer time limit the program tries the driver again, since the driver may need more time to open.
        let run = devices(&s, backend, "all", "", "60");
        outcome(&run, 0);
        assert!(!run.stderr.contains("is left out"), "{}", run.stderr);
    }
    let run = Sandbox::new().run_with(&["devices"], &[("LAPIDARY_PROBE", "no")]);
    outcome(&run, 2);
    assert!(run.stderr.contains("LAPIDARY_PROBE = `no`"), "{}", run.stderr);
}

#[test]
fn a_driver_is_opened_again_if_it_is_another_or_if_what_was_kept_is_damaged() {
    if !loads("opencl") {
        return;
    }
    let s = with_planted_driver();
    assert!(devices(&s, "opencl", "all", "abort", "").stderr.contains("is left out"));
    let library = std::fs::File::options().append(true).open(s.path().join("libplanted.so")).unwrap();
    library.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    let run = devices(&s, "opencl", "all", "", "");
    assert!(run.stderr.contains("first time") && !run.stderr.contains("left out"), "{}", run.stderr);
    for file in std::fs::read_dir(s.path().join("cache")).unwrap().flatten().filter(|file| file.path().is_file()) {
        std::fs::write(file.path(), "damaged").unwrap();
    }
    let run = devices(&s, "opencl", "all", "abort", "");
    outcome(&run, 0);
    assert!(run.stderr.contains("first time") && run.stderr.contains("is left out"), "{}", run.stderr);
}

/// If a program cannot change its environment, it leaves out all drivers of the backend, and its message names the driver that
/// failed.
#[test]
fn a_machine_does_not_open_a_driver_that_is_known_to_fail() {
    if !loads("opencl") {
        return;
    }
    let s = with_planted_driver();
    assert!(devices(&s, "opencl", "all", "abort", "").stderr.contains("is left out"));
    // The program cannot create a folder that contains all drivers except the failing one, since the folder in `TMPDIR` does not
    // exist.
    let (places, nowhere) = (s.path().to_str().unwrap(), ("TMPDIR", "/nonexistent"));
    let failure_mode = [("DRIVER_FATE", "abort"), ("LAPIDARY_PROBE", ""), ("LD_LIBRARY_PATH", "")];
    let variables = [&[("OCL_ICD_VENDORS", places), ("VK_DRIVER_FILES", "/dev/null"), nowhere], &failure_mode[..]].concat();
    let run = s.run_with(&["devices"], &variables);
    outcome(&run, 0);
    assert!(
        run.stderr.contains("all opencl devices are left out") && run.stdout.contains("planted.icd is left out"),
        "{}",
        run.stderr
    );
    s.text("A.csv", "4\n");
    s.text("b.csv", "8\n");
    let run = s.run_with(&["solve", "A.csv", "b.csv"], &variables);
    outcome(&run, 0);
    let run = s.run_with(&["solve", "A.csv", "b.csv", "--device", "opencl"], &variables);
    outcome(&run, 3);
    assert!(run.stderr.contains("planted.icd is left out"), "{}", run.stderr);
}

/// A umask that lets the group write, or a folder whose path is not UTF-8, must neither disable drivers nor lose compiled
/// programs.
#[cfg(unix)]
#[test]
fn drivers_are_known_under_any_mask_and_in_any_folder() {
    use std::os::unix::ffi::OsStrExt;
    if !loads("opencl") {
        return;
    }
    let s = with_planted_driver();
    let name = std::ffi::OsStr::from_bytes(b"cache-\xff");
    let devices = || {
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 002; exec \"$0\" devices", env!("CARGO_BIN_EXE_lapidary")]).current_dir(s.path());
        shell.env("LAPIDARY_CACHE_DIR", s.path().join(name)).env("OCL_ICD_VENDORS", s.path()).env("VK_DRIVER_FILES", "/dev/null");
        let output = shell.env_remove("LAPIDARY_PROBE").env_remove("LAPIDARY_DEVICE").output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let told = [devices(), devices()];
    assert!(told[0].contains("first time") && !told[0].contains("left out"), "{told:?}");
    assert!(!told[1].contains("first time") && !told[1].contains("left out"), "{told:?}");
}

/// If the program is killed while a driver hangs, the child process that opened the driver must end too.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_program_leaves_no_process() {
    if !loads("opencl") {
        return;
    }
    let s = with_planted_driver();
    let mut command = s.command(&["devices"]);
    command.env("OCL_ICD_VENDORS", s.path()).env("DRIVER_FATE", "hang").env("LAPIDARY_PROBE", "60");
    let mut program = command.stderr(std::process::Stdio::null()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let children = || {
        let read = |folder: std::fs::DirEntry| std::fs::read(folder.path().join("environ")).ok();
        let cache = s.path().join("cache");
        let mark = [b"LAPIDARY_CACHE_DIR=".as_slice(), cache.as_os_str().as_encoded_bytes()].concat();
        let all = std::fs::read_dir("/proc").unwrap().flatten().filter_map(read);
        all.filter(|text| text.windows(mark.len()).any(|part| part == mark)).count()
    };
    let until = |wanted: fn(usize) -> bool| {
        let end = Instant::now() + Duration::from_secs(30);
        while !wanted(children()) {
            assert!(Instant::now() < end, "{} processes", children());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // While the driver hangs, two processes exist: the program and its child process.
    until(|count| count >= 2);
    program.kill().unwrap();
    program.wait().unwrap();
    until(|count| count == 0);
}

#[test]
fn without_the_probe_a_driver_ends_the_process() {
    if loads("opencl") {
        let s = with_planted_driver();
        let mut command = s.command(&["devices"]);
        let status = command
            .env("OCL_ICD_VENDORS", s.path())
            .env("DRIVER_FATE", "abort")
            .env("LAPIDARY_PROBE", "0")
            .output()
            .unwrap()
            .status;
        assert_eq!(status.code(), None, "{status}");
    }
}
