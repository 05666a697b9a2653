//! Tests of the command `tune` with the first OpenCL device and small products.

use std::path::PathBuf;

use crate::support::{Run, Sandbox, outcome, refused};

/// A folder for a test. `None` if the system has no OpenCL device.
pub fn sandbox() -> Option<Sandbox> {
    let s = Sandbox::new();
    let there = s.run(&["devices", "--device", "opencl:0"]).status == 0;
    assert!(there || std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "there is no OpenCL device");
    there.then_some(s)
}

/// The arguments of a short run, which tries only the kernel that every device compiles in little time.
pub const SHORT: [&str; 10] = ["tune", "gemm", "--device", "opencl:0", "--dtype", "f64", "--n", "128", "--kernel", "gemm_panel"];

fn tune(s: &Sandbox, more: &[&str]) -> Run {
    s.run(&[&SHORT[..], more].concat())
}

/// Text files of the folder `kernels` that the program has written.
fn results(s: &Sandbox) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(s.path().join("kernels")) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("gemm-opencl-")).collect()
}

/// The path of the only journal.
pub fn journal(s: &Sandbox) -> PathBuf {
    let [journal] = &journals(s)[..] else { panic!("{:?}", journals(s)) };
    journal.clone()
}

/// The paths of all journals of candidates.
pub fn journals(s: &Sandbox) -> Vec<PathBuf> {
    let files = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let all = files(s.path().join("kernels/journals")).flat_map(files);
    all.filter(|path| path.extension().is_some_and(|extension| extension == "journal")).collect()
}

/// Values of the candidates of those lines of the journal that begin with `word`.
pub fn candidates(s: &Sandbox, word: &str) -> Vec<String> {
    let text = std::fs::read_to_string(journal(s)).unwrap();
    let values = |line: &str| Some(line.strip_prefix(word)?.split(' ').skip(1).take(7).collect::<Vec<_>>().join(" "));
    text.lines().filter_map(values).collect()
}

/// Puts a slow kernel into use, so that a short run finds a faster one.
fn use_slow_kernel(s: &Sandbox) {
    std::fs::create_dir(s.path().join("kernels")).unwrap();
    let kinds =
        ["cpu", "gpu", "other"].map(|kind| format!("[kind {kind}]\ngemm_panel mv=1 vw=2 nr=2 group=1 kc=128 mc=96 nc=96\n"));
    s.text("kernels/slow.txt", &kinds.concat());
}

#[test]
fn the_fastest_kernel_is_written_and_used() {
    let Some(s) = sandbox() else { return };
    use_slow_kernel(&s);
    let run = tune(&s, &["--budget", "3", "--record", "times.tsv", "--plot", "times.svg"]);
    outcome(&run, 0);
    let [file] = &results(&s)[..] else { panic!("{:?} {}", results(&s), run.stdout) };
    let text = s.read(&format!("kernels/{file}"));
    let entry = text.lines().find(|line| line.starts_with("gemm_panel f64 opencl groups>=")).expect(&text);
    let params = &entry[entry.find("mv=").expect(entry)..entry.find("  # gflops=").expect(entry)];
    assert!(run.stdout.contains(&format!("GFLOP/s  gemm_panel {params}  (")) && run.stdout.contains(file), "{}", run.stdout);
    assert!(entry.contains(" m=128 n=128 k=128 kernels=") && entry.contains(" driver="), "{entry}");

    let shown = s.run(&["kernel", "gemm", "--n", "128", "--device", "opencl:0"]);
    outcome(&shown, 0);
    assert!(shown.stderr.contains(file) && shown.stderr.contains(&format!("  gemm_panel {params}\n  from ")), "{}", shown.stderr);
    let macros = params.split(' ').take(4).map(|param| format!("#define {}\n", param.to_uppercase().replace('=', " ")));
    assert!(macros.into_iter().all(|line| shown.stdout.contains(&line)), "{params}: {}", shown.stdout);

    let measured = candidates(&s, "end");
    let recorded = s.read("times.tsv");
    let heading = "mv\tvw\tnr\tgroup\tkc\tmc\tnc\tsetup_seconds\trun_seconds\tfailure";
    assert!(recorded.starts_with("# gemm_panel for gemm f64") && recorded.lines().nth(1) == Some(heading), "{recorded}");
    assert!(measured.iter().all(|values| recorded.contains(&format!("\n{}\t", values.replace(' ', "\t")))), "{recorded}");
    assert!(s.read("times.svg").contains("<svg") && s.read("times.svg").contains("gemm_panel for gemm f64 m=128 n=128 k=128"));

    // The file can be shared: it has the same effect in the folder of another user.
    outcome(&s.run(&["tune", "--export", "shared.txt"]), 0);
    std::fs::create_dir(s.path().join("other")).unwrap();
    std::fs::rename(s.path().join("shared.txt"), s.path().join("other/shared.txt")).unwrap();
    let folder = s.path().join("other");
    let shown = s.run_with(
        &["kernel", "gemm", "--n", "128", "--device", "opencl:0", "--list"],
        &[("LAPIDARY_KERNELS_DIR", folder.to_str().unwrap())],
    );
    assert!(shown.stderr.contains("shared.txt:") && shown.stderr.contains(params), "{}", shown.stderr);
    let printed = s.run(&["tune", "--export", "-"]);
    assert!(printed.stdout.contains(entry) && printed.stdout.contains("mv=1 vw=2"), "{}", printed.stdout);
    assert!(printed.stderr.contains("4 entries"), "{}", printed.stderr);
}

#[test]
fn the_next_run_continues_the_journal() {
    let Some(s) = sandbox() else { return };
    let exhaustive = ["--strategy", "exhaustive", "--budget", "1"];
    outcome(&tune(&s, &exhaustive), 0);
    let first = candidates(&s, "begin");
    outcome(&tune(&s, &exhaustive), 0);
    let all = candidates(&s, "begin");
    assert!(all.starts_with(&first) && all.len() > first.len() + 1, "{first:?} {all:?}");
    // The first candidate is measured again, because the device may have another speed now.
    let again = all[first.len()..].iter().filter(|values| **values != first[0] && first.contains(values));
    assert_eq!(again.count(), 0, "{all:?}");
    assert_eq!(candidates(&s, "failed"), Vec::<String>::new());
}

#[test]
fn a_candidate_that_ended_a_run_is_named_and_skipped() {
    let Some(s) = sandbox() else { return };
    let exhaustive = ["--strategy", "exhaustive", "--budget", "0.01"];
    outcome(&tune(&s, &exhaustive), 0);
    let culprit = "1 2 2 1 128 96 96";
    assert!(!candidates(&s, "begin").iter().any(|values| values == culprit));
    let text = std::fs::read_to_string(journal(&s)).unwrap();
    std::fs::write(journal(&s), format!("{text}begin {culprit}\n")).unwrap();
    let run = tune(&s, &["--strategy", "exhaustive", "--budget", "0.5"]);
    outcome(&run, 0);
    let told = "note: gemm_panel mv=1 vw=2 nr=2 group=1 kc=128 mc=96 nc=96 is skipped: it ended an earlier run";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    assert_eq!(
        (candidates(&s, "failed"), candidates(&s, "begin").iter().filter(|values| *values == culprit).count()),
        (vec![culprit.to_owned()], 1)
    );
}

/// The kernel for vectors computes no product of this size, so that each of its candidates fails.
#[test]
fn candidates_that_fail_leave_the_kernel_in_use() {
    let Some(s) = sandbox() else { return };
    let run = s.run(&[
        "tune",
        "--device",
        "opencl:0",
        "--dtype",
        "f64",
        "--n",
        "8",
        "--kernel",
        "gemm_vector",
        "--budget",
        "1",
        "--seed",
        "2",
    ]);
    outcome(&run, 0);
    assert!(run.stdout.contains(", the kernel in use is the fastest: gemm_panel "), "{}", run.stdout);
    let text = std::fs::read_to_string(journal(&s)).unwrap();
    assert!(text.contains("\nfailed ") && !text.contains("\nend "), "{text}");
    // Without an entry for this size, a kernel that is later tuned for another size would be used.
    let [file] = &results(&s)[..] else { panic!("{:?}", results(&s)) };
    assert!(s.read(&format!("kernels/{file}")).contains("gemm_panel f64 opencl groups<="));
}

#[test]
fn without_a_budget_the_space_is_counted_and_nothing_is_written() {
    let Some(s) = sandbox() else { return };
    let explain = ["tune", "gemm", "--device", "opencl:0", "--n", "128", "--kernel", "gemm_tile", "--budget", "0", "--explain"];
    let run = s.run(&explain);
    outcome(&run, 0);
    assert!(run.stderr.contains("gemm_tile for gemm f64 m=128 n=128 k=128: "), "{}", run.stderr);
    assert!(run.stderr.contains(" left out: the work-items divide mwg·kwg and nwg·kwg"), "{}", run.stderr);
    assert!(run.stdout.is_empty() && !s.files().contains(&"kernels".to_owned()), "{:?} {}", s.files(), run.stdout);
}

/// With no combination left, the reasons are printed, and the exit status is that of wrong usage.
#[test]
fn the_reasons_are_counted_also_if_no_combination_is_left() {
    let Some(s) = sandbox() else { return };
    let args = ["tune", "gemm", "--device", "opencl:0", "--dtype", "f32", "--n", "128", "--kernel", "gemm_tile", "--budget", "0"];
    let args = [&args[..], &["--values", "mwg=24 nwg=24 kwg=8 mr=7,9 nr=4 vwm=1 stages=1,2"]].concat();
    refused(&s, &args, &["opencl:0 runs none of the 4 combinations of gemm_tile; --explain counts the reasons"]);
    let reason = "gemm_tile for gemm f32 m=128 n=128 k=128: 0 of 4 points\n         4 left out: mr divides mwg and nr divides nwg";
    refused(&s, &[&args[..], &["--explain"]].concat(), &[reason, "opencl:0 runs none of the 4 combinations above"]);
    // kernels that are not searched by default are named with the reason
    let all = ["tune", "--device", "opencl:0", "--dtype", "f32", "--n", "128", "--budget", "0", "--explain"];
    let run = s.run(&all);
    outcome(&run, 0);
    let is_cpu = run.stderr.contains("gemm_tile for gemm f32 m=128 n=128 k=128: not searched, because kernels with barriers take");
    assert!(is_cpu || run.stderr.contains("gemm_tile for gemm f32 m=128 n=128 k=128: "), "{}", run.stderr);
    let solve = s.run(&["tune", "trsm", "--device", "opencl:0", "--dtype", "f32", "--n", "64", "--budget", "0"]);
    if is_cpu {
        let words =
            "no kernel of trsm is worth trying on opencl:0; --kernel searches one of trsv, solve, triangle, trsm_block anyway";
        assert!(solve.status == 2 && solve.stderr.contains(words), "{}", solve.stderr);
    }
}

/// A kernel that a call does not launch is not searched: all candidates would run other kernels, and the fastest would be an accident.
#[test]
fn a_kernel_that_the_call_does_not_launch_is_refused() {
    let Some(s) = sandbox() else { return };
    let args = [
        "tune",
        "trsm",
        "--device",
        "opencl:0",
        "--dtype",
        "f32",
        "--m",
        "96",
        "--budget",
        "0",
        "--explain",
        "--kernel",
        "trsv",
        "--n",
    ];
    refused(&s, &[&args[..], &["65"]].concat(), &["trsm f32 m=96 n=65 does not launch trsv on opencl:0"]);
    let run = s.run(&[&args[..], &["64"]].concat());
    assert!(run.status == 0 && run.stderr.contains("trsv for trsm f32 m=96 n=64: "), "{}", run.stderr);
}

/// The recording of a search with given values holds the points of these values only, although the journal holds others.
#[test]
fn all_points_of_given_values_are_measured_and_recorded() {
    let Some(s) = sandbox() else { return };
    let sweep = |values: &str| {
        let run = tune(&s, &["--budget", "60", "--strategy", "exhaustive", "--record", "all.tsv", "--values", values]);
        outcome(&run, 0);
        let text = s.read("all.tsv");
        text.lines().skip(2).map(|row| row.split('\t').take(7).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let all = sweep("mv=1 vw=2 nr=2,3 group=1 kc=64 mc=96 nc=96");
    assert_eq!(all, ["1 2 2 1 64 96 96", "1 2 3 1 64 96 96"]);
    assert_eq!(sweep("mv=1 vw=2 nr=3,4 group=1 kc=64 mc=96 nc=96"), ["1 2 3 1 64 96 96", "1 2 4 1 64 96 96"]);
    // the second run measures its first candidate again
    assert_eq!(candidates(&s, "end").len(), 4);
}

#[test]
fn wrong_usage_is_told() {
    let Some(s) = sandbox() else { return };
    s.text("file", "");
    let on = |more: &[&'static str], words: &[&str]| refused(&s, &[&["tune", "--device", "opencl:0"], more].concat(), words);
    on(&["--kernel", "gemm_best"], &["--kernel gemm_best", "gemm_tile, gemm_vector, gemm_panel"]);
    on(&["--values", "mwg=8"], &["--kernel"]);
    on(&["--kernel", "gemm_tile", "--values", "mwg"], &["`mwg` is not of the form name=value,value"]);
    on(&["--kernel", "gemm_tile", "--n", "64", "--values", "vw=8"], &["--values for gemm_tile: `vw` is no parameter", "mwg, nwg"]);
    on(&["--budget", "-1"], &["--budget -1: must be a number of seconds"]);
    on(&["--budget", "nan"], &["--budget NaN: must be a number of seconds"]);
    on(&["--timeout", "0"], &["--timeout"]);
    on(&["--strategy", "genetic"], &["genetic", "exhaustive, random, nested, descent, halving"]);
    on(&["--plot", "x.png"], &["x.png", ".svg"]);
    on(&["--db", "file"], &["file: is not a folder"]);
    on(&["--record", "nowhere/x"], &["there is no folder nowhere"]);
    on(&["--record", "x.svg", "--plot", "./x.svg"], &["--record and --plot name the same file"]);
    on(&["--budget", "0", "--record", "x"], &["--budget 0 measures nothing"]);
    refused(&s, &["tune", "laswp", "--device", "opencl:0", "--plot", "x.svg"], &["laswp does no floating-point operations"]);
    let advice = ["name one of ", "opencl:0", "with --device, such as --device "];
    let on_cpu = |more: &[&'static str], words: &[&str]| {
        refused(&s, &[&["tune", "--device", "cpu"], more].concat(), &[words, &advice].concat());
    };
    on_cpu(&["trsm"], &["cpu has nothing to tune for trsm"]);
    on_cpu(&["--kernel", "gemm_tile"], &["--kernel gemm_tile: cpu has no such kernel"]);
    refused(&s, &["tune", "--device", "cpu", "--kernel", "gemm_best"], &["the kernels of gemm on cpu are cpu_blocks"]);
    on(
        &["--kernel", "cpu_blocks"],
        &["--kernel cpu_blocks: opencl:0 has no such kernel", "name the CPU backend with --device cpu"],
    );
    refused(
        &s,
        &["tune", "scale", "--device", "opencl:0", "--n", "3", "--k", "3"],
        &["--k means nothing to scale, which takes --m, --n"],
    );
    refused(&s, &["tune", "getrs", "--device", "opencl:0"], &["getrs", "gemm, gemm_batched, getrf_batched, trsm, trtri"]);
    refused(&s, &["tune", "--export", "x"], &["there are no tuned kernels"]);
    refused(&s, &["tune", "--export", "x", "--db", "file"], &["file: is not a folder"]);
    if s.run(&["devices", "--device", "opencl:0,1"]).status == 0 {
        refused(&s, &["tune", "--device", "opencl:0,1"], &["one device is tuned at a time", "opencl:0 or opencl:1"]);
    }
}

#[test]
fn a_damaged_file_of_results_is_named_and_stays() {
    let Some(s) = sandbox() else { return };
    use_slow_kernel(&s);
    outcome(&tune(&s, &["--budget", "2"]), 0);
    let [file] = &results(&s)[..] else { panic!("{:?}", results(&s)) };
    let file = format!("kernels/{file}");
    let damaged = s.read(&file).replace(" mv=", " mv:");
    s.text(&file, &damaged);
    refused(&s, &[&SHORT[..], &["--budget", "2"]].concat(), &[&file, ":4: ", "mend or remove the line"]);
    assert_eq!(s.read(&file), damaged);
}

/// The operands of a call need more memory than there is, so that the search does not begin.
#[test]
fn a_call_that_does_not_fit_is_refused_before_the_search() {
    let Some(s) = sandbox() else { return };
    refused(
        &s,
        &["tune", "--device", "opencl:0", "--dtype", "f64", "--n", "128,2000000", "--kernel", "gemm_panel"],
        &["gemm f64 m=2000000 n=2000000 k=2000000 takes", "choose a smaller size"],
    );
    assert!(!s.files().contains(&"kernels".to_owned()), "{:?}", s.files());
}
