//! Runs the program for the tests. Each test has a folder of its own.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Outcome of one run of the program.
pub struct Run {
    /// Exit status of the program.
    pub status: i32,
    /// Text on standard output.
    pub stdout: String,
    /// Text on standard error.
    pub stderr: String,
}

/// A folder that is empty at first, and that is removed at the end of the test.
pub struct Sandbox(TempDir);

impl Sandbox {
    /// Creates an empty folder.
    pub fn new() -> Self {
        Sandbox(tempfile::tempdir().unwrap())
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a text file.
    pub fn text(&self, name: &str, text: &str) {
        self.bytes(name, text.as_bytes());
    }

    /// Writes a file of bytes.
    pub fn bytes(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.path().join(name), bytes).unwrap();
    }

    /// Reads a text file.
    pub fn read(&self, name: &str) -> String {
        String::from_utf8(self.read_bytes(name)).unwrap()
    }

    /// Reads a file of bytes.
    pub fn read_bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Reads a JSON file.
    pub fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Names of all files in the folder in sorted order, including hidden files.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the program in the folder with the arguments `args`.
    pub fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, &[])
    }

    /// Runs the program in the folder with the arguments `args` and the environment variables `variables`.
    pub fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Run {
        let output = self.command(args).envs(variables.iter().copied()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Starts the program in the folder and discards its output.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// A command that runs the program in the folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lapidary"));
        command.env_remove("LAPIDARY_DEVICE").env_remove("LAPIDARY_MEMORY_LIMIT").env_remove("LAPIDARY_NB");
        // Each test has its own cache folder, so no test uses the compiled programs of another test.
        command.env("LAPIDARY_CACHE_DIR", self.0.path().join("cache"));
        // No test uses tuned kernels of the user. The folder is missing until a test tunes a kernel.
        command.env("LAPIDARY_KERNELS_DIR", self.0.path().join("kernels"));
        // The variable switches off the probe of drivers, which `drivers.rs` tests.
        command.env("LAPIDARY_PROBE", "0");
        command.current_dir(self.0.path()).args(args);
        command
    }
}

/// Asserts the exit status. A failed assertion shows the output of the program.
pub fn outcome(run: &Run, status: i32) {
    assert_eq!(run.status, status, "{}{}", run.stdout, run.stderr);
}

/// The bytes of a .npy file of version 1.0.
pub fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

/// Asserts that the program refuses the arguments: the exit status is 2, the message contains all `words`, and no file was written.
pub fn refused(s: &Sandbox, args: &[&str], words: &[&str]) {
    let before = s.files();
    let Run { status, stdout, stderr } = s.run(args);
    assert_eq!((status, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
    assert!(words.iter().all(|word| stderr.contains(word)), "{args:?}: {words:?} are not all in {stderr:?}");
    assert_eq!(s.files(), before, "{args:?} wrote something");
}

/// Converts `f64` numbers to little-endian bytes.
pub fn le64(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Converts `f32` numbers to little-endian bytes.
pub fn le32(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
