//! The arguments of the benchmark program's command line.

use std::num::NonZero;
use std::path::PathBuf;

use lapidary::{DType, Routine};

use crate::gpu::Mode;
use crate::gpu::problem::Case;

/// The routines that the groups `default` and `host` time.
pub const ROUTINES: [Routine; 4] = [Routine::Gemm, Routine::Trsm, Routine::Getrf, Routine::Gesv];

/// Names of all benchmark groups. The last seven groups run only if the command line names them.
pub const GROUPS: [&str; 12] =
    ["gemm", "getrf", "trsm", "small", "outofcore", "opencl", "wgpu", "default", "batched", "rest", "streams", "host"];

/// The parsed arguments of the command line.
pub struct Settings {
    /// Names of the benchmark groups that run.
    pub groups: Vec<String>,
    /// Names of the peer libraries. `None` selects all libraries that are found.
    pub peers: Option<Vec<String>>,
    /// Orders or sizes of the matrices. `None` selects the default sizes of each benchmark group (see [`GROUPS`]).
    sizes: Option<Vec<usize>>,
    /// Number of repetitions. If it is `None`, the program repeats a call until the time limit `seconds`. The groups `opencl` and `wgpu`
    /// then take the number of repetitions from the [`Mode`].
    pub reps: Option<usize>,
    /// Number of untimed calls directly before each timed call. With 0 the program times calls after a pause, and with a few it
    /// times successive calls.
    pub before: usize,
    /// Time limit for the repetitions of one case, in seconds.
    pub seconds: f64,
    /// Element type in the benchmark groups `default`, `host`, `opencl`, `rest`, `streams` and `wgpu`. `None` selects `f32` and `f64`, and
    /// in group `host` only `f64`.
    pub dtype: Option<DType>,
    /// Routines in the benchmark groups `default`, `host`, `opencl` and `wgpu`. `None` selects all routines of the group.
    routines: Option<Vec<Routine>>,
    /// Mode in the benchmark groups `opencl` and `wgpu`. `None` selects both modes.
    mode: Option<Mode>,
    /// Peak of products in `f64` in TFLOP/s, of which the groups `opencl` and `wgpu` print a share.
    pub peak: Option<f64>,
    /// Path of the JSON file that receives the figures.
    pub json: Option<PathBuf>,
    /// Path of the SVG picture of the groups `opencl` and `wgpu`.
    pub svg: Option<PathBuf>,
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
            mode: None,
            peak: None,
            json: None,
            svg: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--bench" => {}
                "--peer" => settings.peers = Some(list(&value()?)?),
                "--n" => settings.sizes = Some(list::<NonZero<usize>>(&value()?)?.into_iter().map(NonZero::get).collect()),
                "--reps" => settings.reps = Some(number(&value()?)?),
                "--before" => settings.before = number(&value()?)?,
                "--seconds" => settings.seconds = number(&value()?)?,
                "--dtype" => settings.dtype = Some(dtype(&value()?)?),
                "--routine" => settings.routines = Some(value()?.split(',').map(routine).collect::<Result<_, _>>()?),
                "--mode" => settings.mode = Some(mode(&value()?)?),
                "--peak" => settings.peak = Some(peak(&value()?)?),
                "--json" => settings.json = Some(value()?.into()),
                "--svg" => settings.svg = Some(value()?.into()),
                group if GROUPS.contains(&group) => settings.groups.push(arg),
                other => {
                    return Err(format!(
                        "what is `{other}`? There is {}, --peer, --n, --reps, --before, --seconds, --dtype, --routine, --mode, \
                         --peak, --json, --svg",
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

    /// The orders that the command line names.
    pub fn orders(&self) -> Option<&[usize]> {
        self.sizes.as_deref()
    }

    /// Whether the options `--dtype` and `--routine` select the case.
    pub fn selects(&self, case: &Case) -> bool {
        self.dtype.is_none_or(|dtype| dtype == case.dtype) && self.times(case.problem.routine())
    }

    /// Whether the option `--routine` selects the routine.
    pub fn times(&self, routine: Routine) -> bool {
        self.routines.as_ref().is_none_or(|routines| routines.contains(&routine))
    }

    /// Whether the option `--peer` selects the library.
    pub fn wants(&self, peer: &str) -> bool {
        self.peers.as_ref().is_none_or(|list| list.iter().any(|name| name == peer))
    }

    /// The modes that the option `--mode` selects.
    pub fn modes(&self) -> impl Iterator<Item = Mode> {
        let only = self.mode;
        Mode::ALL.into_iter().filter(move |mode| only.is_none_or(|only| only == *mode))
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

fn mode(text: &str) -> Result<Mode, String> {
    Mode::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| format!("`{text}` is not burst or sustained"))
}

fn peak(text: &str) -> Result<f64, String> {
    number(text)
        .ok()
        .filter(|peak: &f64| *peak > 0.0 && peak.is_finite())
        .ok_or_else(|| format!("`{text}` is not a number of TFLOP/s"))
}

fn dtype(text: &str) -> Result<DType, String> {
    [DType::F32, DType::F64]
        .into_iter()
        .find(|dtype| dtype.to_string() == text)
        .ok_or_else(|| format!("`{text}` is not f32 or f64"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::problem::of_orders;

    fn parse(line: &str) -> Result<Settings, String> {
        Settings::from_args(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_select_cases_modes_and_peers() {
        let settings = parse("opencl --dtype f64 --routine trsm --mode sustained --peer cublas --peak 66.9").unwrap();
        let selected: Vec<String> =
            of_orders(&[256]).iter().filter(|case| settings.selects(case)).map(|case| case.problem.size()).collect();
        assert_eq!(selected, ["n=256 nrhs=128", "n=256 nrhs=256"]);
        assert_eq!(settings.modes().collect::<Vec<_>>(), [Mode::Sustained]);
        assert!(settings.wants("cublas") && !settings.wants("clblast"));
        assert_eq!(settings.peak, Some(66.9));
        assert_eq!(parse("opencl --n 0").err(), Some("`0` is not understood".to_owned()));
        assert_eq!(parse("opencl").unwrap().modes().collect::<Vec<_>>(), Mode::ALL);
    }

    #[test]
    fn unusable_values_are_refused() {
        for line in ["--mode slow", "--peak 0", "--peak NaN", "--peak", "--n x", "--dtype f16", "nowhere"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
