//! The arguments of the benchmark program's command line.

use std::path::PathBuf;

use lapidary::DType;
use lapidary::core::Routine;

/// The routines that the group `default` times.
pub const ROUTINES: [Routine; 4] = [Routine::Gemm, Routine::Trsm, Routine::Getrf, Routine::Gesv];

/// Names of all benchmark groups. The last five groups run only if the command line names them.
pub const GROUPS: [&str; 10] = ["gemm", "getrf", "trsm", "small", "outofcore", "opencl", "wgpu", "default", "batched", "rest"];

/// The parsed arguments of the command line.
pub struct Settings {
    /// Names of the benchmark groups that run.
    pub groups: Vec<String>,
    /// Names of the peer libraries. `None` selects all libraries that are found.
    pub peers: Option<Vec<String>>,
    /// Orders or sizes of the matrices. `None` selects the default sizes of each benchmark group (see [`GROUPS`]).
    sizes: Option<Vec<usize>>,
    /// Number of repetitions. `None` selects as many repetitions as fit into the time limit `seconds`.
    pub reps: Option<usize>,
    /// Number of untimed calls directly before each timed call. With 0 the program times calls after a pause, and with a few it
    /// times successive calls.
    pub before: usize,
    /// Time limit for the repetitions of one case, in seconds.
    pub seconds: f64,
    /// Element type in the benchmark groups `default` and `rest`. `None` selects `f32` and `f64`.
    pub dtype: Option<DType>,
    /// Routines in the benchmark group `default`. `None` selects all four routines.
    pub routines: Option<Vec<Routine>>,
    /// Path of the JSON file that receives the figures.
    pub json: Option<PathBuf>,
}

impl Settings {
    /// Parses the arguments. The argument `--bench`, which cargo adds, is ignored.
    pub fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut settings = Settings {
            groups: Vec::new(),
            peers: None,
            sizes: None,
            reps: None,
            before: 0,
            seconds: 20.0,
            dtype: None,
            routines: None,
            json: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--bench" => {}
                "--peer" => settings.peers = Some(list(&value()?)?),
                "--n" => settings.sizes = Some(list(&value()?)?),
                "--reps" => settings.reps = Some(number(&value()?)?),
                "--before" => settings.before = number(&value()?)?,
                "--seconds" => settings.seconds = number(&value()?)?,
                "--dtype" => settings.dtype = Some(dtype(&value()?)?),
                "--routine" => settings.routines = Some(value()?.split(',').map(routine).collect::<Result<_, _>>()?),
                "--json" => settings.json = Some(value()?.into()),
                group if GROUPS.contains(&group) => settings.groups.push(arg),
                other => {
                    return Err(format!(
                        "what is `{other}`? There is {}, --peer, --n, --reps, --before, --seconds, --dtype, --routine, --json",
                        GROUPS.join(", ")
                    ));
                }
            }
        }
        if settings.groups.is_empty() {
            settings.groups = GROUPS[..5].iter().map(|&group| group.to_owned()).collect();
        }
        Ok(settings)
    }

    /// The sizes from the command line. If there are none, the default sizes `own` of a benchmark group.
    pub fn sizes(&self, own: &[usize]) -> Vec<usize> {
        self.sizes.clone().unwrap_or_else(|| own.to_vec())
    }
}

fn list<T: std::str::FromStr>(text: &str) -> Result<Vec<T>, String> {
    text.split(',').map(number).collect()
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not understood"))
}

fn routine(text: &str) -> Result<Routine, String> {
    let timed = Routine::named(text).filter(|routine| ROUTINES.contains(routine));
    timed.ok_or_else(|| format!("`{text}` is not timed; there is {}", ROUTINES.map(Routine::name).join(", ")))
}

fn dtype(text: &str) -> Result<DType, String> {
    [DType::F32, DType::F64]
        .into_iter()
        .find(|dtype| dtype.to_string() == text)
        .ok_or_else(|| format!("`{text}` is not f32 or f64"))
}
