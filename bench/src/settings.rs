//! What the command line asks for.

use std::path::PathBuf;

use lapidary::DType;
use lapidary::core::Routine;

use crate::choice::ROUTINES;

/// Every group; the last five only where they are named.
pub const GROUPS: [&str; 10] = ["gemm", "getrf", "trsm", "small", "outofcore", "opencl", "wgpu", "default", "batched", "rest"];

/// What the command line asks for.
pub struct Settings {
    /// The groups to run.
    pub groups: Vec<String>,
    /// The peers; whatever is there if `None`.
    pub peers: Option<Vec<String>>,
    /// Sizes in place of a group's own.
    sizes: Option<Vec<usize>>,
    /// Repetitions in place of as many as fit the time.
    pub reps: Option<usize>,
    /// Calls right before each timed one: 0 to time calls after a rest, a few to time calls in a row.
    pub before: usize,
    /// Seconds for the repetitions of one case.
    pub seconds: f64,
    /// The element type of the groups `default` and `rest`; both if `None`.
    pub dtype: Option<DType>,
    /// The routines of the group `default`; all if `None`.
    pub routines: Option<Vec<Routine>>,
    /// Where the figures go.
    pub json: Option<PathBuf>,
}

impl Settings {
    /// Reads the arguments; `--bench` is what cargo adds.
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

    /// The sizes of a group.
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
    let timed = |routine: &Routine| routine.name() == text;
    ROUTINES
        .into_iter()
        .find(timed)
        .ok_or_else(|| format!("`{text}` is not timed; there is {}", ROUTINES.map(Routine::name).join(", ")))
}

fn dtype(text: &str) -> Result<DType, String> {
    [DType::F32, DType::F64]
        .into_iter()
        .find(|dtype| dtype.to_string() == text)
        .ok_or_else(|| format!("`{text}` is not f32 or f64"))
}
