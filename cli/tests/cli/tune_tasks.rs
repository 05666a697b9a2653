//! Tests of the command `tune` for tasks besides products, for the CPU backend, and of its files.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Sandbox, outcome, refused};
use crate::tune::{SHORT, journals, sandbox};

/// The results of tasks that a family of kernels computes.
#[test]
fn every_task_finds_a_kernel_that_later_calls_use() {
    let Some(s) = sandbox() else { return };
    for (task, kernel, more) in [
        ("gemm_batched", "batched", &["--n", "7", "--count", "50"][..]),
        ("getrf_batched", "batched", &["--n", "7", "--count", "50"]),
        ("trsm", "triangle", &["--m", "40", "--n", "9"]),
        ("trtri", "triangle", &["--m", "70", "--n", "9"]),
        ("scale", "elements", &["--m", "70", "--n", "33"]),
    ] {
        let args = [&["tune", task, "--device", "opencl:0", "--dtype", "f64", "--kernel", kernel, "--budget", "1"], more].concat();
        let run = s.run(&args);
        outcome(&run, 0);
        let found = format!("{kernel} items=");
        assert!(
            run.stdout.contains(&found) || run.stdout.contains("no candidate tried is faster than the kernels in use"),
            "{task}: {}",
            run.stdout
        );
        let text = journals(&s).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect::<String>();
        assert!(text.contains("\nend ") && !text.contains("the result is wrong"), "{task}: {text}");
        std::fs::remove_dir_all(s.path().join("kernels")).unwrap();
    }
    // an entry in the user's folder is used by later calls
    std::fs::create_dir(s.path().join("kernels")).unwrap();
    s.text("kernels/mine.txt", "[kind cpu]\ntriangle items=16\n[kind gpu]\nstop solve\ntriangle items=16\n");
    let shown = s.run(&["kernel", "trsm", "--n", "64", "--device", "opencl:0", "--list"]);
    assert!(shown.stderr.contains("each of 16 work-items"), "{}", shown.stderr);
}

/// A threshold's value in use is no improvement on itself, and a threshold on which no launch depends is not searched.
#[test]
fn thresholds_in_use_stay() {
    let Some(s) = sandbox() else { return };
    let args = ["tune", "getrf", "--device", "opencl:0", "--dtype", "f64", "--n", "40", "--budget", "20", "--kernel"];
    let run = s.run(&[&args[..], &["lu_panel", "--values", "columns=16"]].concat());
    outcome(&run, 0);
    assert!(run.stdout.contains("is the fastest: lu_panel columns=16"), "{}", run.stdout);
    let results = std::fs::read_dir(s.path().join("kernels")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(results.filter(|path| path.extension().is_some_and(|extension| extension == "txt")).count(), 0);
    refused(&s, &[&args[..], &["lu_waiting_strips"]].concat(), &["no kernel of getrf f64 m=40 n=40 depends on lu_waiting_strips"]);
    refused(&s, &["tune", "getrf", "--device", "opencl:0", "--n", "9,8"], &["the entries for getrf apply to all sizes"]);
}

#[test]
fn the_blocks_of_the_cpu_are_tuned_and_used() {
    let s = Sandbox::new();
    let args = ["tune", "--device", "cpu:0", "--dtype", "f64", "--n", "60", "--budget"];
    let run = s.run(&[&args[..], &["1"]].concat());
    outcome(&run, 0);
    let file = std::fs::read_dir(s.path().join("kernels")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let file = file.into_iter().find(|name| name.starts_with("cpu-blocks-cpu-")).expect(&run.stdout);
    let text = s.read(&format!("kernels/{file}"));
    assert!(text.contains("\ncpu_blocks f64 kc=") && text.contains(" m=60 n=60 k=60 "), "{text}");
    // a new search begins with the blocks in use, which are those of the entry
    std::fs::remove_dir_all(s.path().join("kernels/journals")).unwrap();
    let scope = text.lines().find(|line| line.starts_with("[device ")).unwrap();
    s.text(&format!("kernels/{file}"), &format!("{scope}\ncpu_blocks f64 kc=384 mc=96 nc=512 team_mc=384 team_nc=512\n"));
    let run = s.run(&[&args[..], &["0.001"]].concat());
    outcome(&run, 0);
    let begun: String = journals(&s).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert_eq!(begun.lines().nth(1), Some("begin 384 96 512 384 512"), "{begun}");
    // results of a product are right with these blocks
    outcome(&s.run(&["bench", "gemm", "--n", "500", "--device", "cpu", "--reps", "1"]), 0);
}

#[test]
fn a_second_run_on_the_same_journals_ends_with_a_sentence() {
    let Some(s) = sandbox() else { return };
    let args = [&SHORT[..], &["--budget", "60"]].concat();
    let mut first = s.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !journals(&s).iter().any(|path| std::fs::read_to_string(path).unwrap().contains("\nend ")) {
        assert!(begun.elapsed() < Duration::from_secs(50) && first.try_wait().unwrap().is_none(), "nothing is measured");
        std::thread::sleep(Duration::from_millis(20));
    }
    refused(&s, &args, &["another run of `lapidary tune`", "wait until it has ended", "--db"]);
    assert!(first.try_wait().unwrap().is_none(), "the second run has ended the first one");
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn candidates_whose_edges_were_not_checked_are_measured_again_with_paranoid() {
    let Some(s) = sandbox() else { return };
    let count = |word: &str| -> Vec<usize> {
        let texts = journals(&s).into_iter().map(|path| std::fs::read_to_string(path).unwrap());
        texts.map(|text| text.lines().filter(|line| line.starts_with(word)).count()).collect()
    };
    let args =
        ["tune", "scale", "--device", "opencl:0", "--dtype", "f32", "--n", "9", "--kernel", "elements", "--strategy", "exhaustive"];
    outcome(&s.run(&args), 0);
    outcome(&s.run(&[&args[..], &["--paranoid"]].concat()), 0);
    assert_eq!((journals(&s).len(), count("end ")), (2, vec![9, 9]));
    // the comparison of the fastest candidates is complete, so that it leaves no file
    let folder = journals(&s)[0].parent().unwrap().to_owned();
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.contains("rounds")), "a comparison is not complete");
}

/// Returns the lines of the file in which an interrupted run keeps the times of the fastest candidates. Empty if there is no such file.
fn rounds(s: &Sandbox) -> Vec<String> {
    let Some(folder) = journals(s).first().map(|path| path.parent().unwrap().to_owned()) else { return Vec::new() };
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let Some(path) = files.find(|path| path.extension().is_some_and(|extension| extension == "rounds")) else { return Vec::new() };
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned).collect()
}

/// Starts a run, and ends it when the comparison has more than `count` times. Returns the lines of the comparison.
fn interrupted_comparison(s: &Sandbox, args: &[&str], count: usize) -> Vec<String> {
    let mut run = s.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    loop {
        let lines = rounds(s);
        if lines.iter().filter(|line| line.starts_with("end ")).count() > count {
            run.kill().unwrap();
            run.wait().unwrap();
            return rounds(s);
        }
        assert!(begun.elapsed() < Duration::from_secs(50) && run.try_wait().unwrap().is_none(), "there is no comparison");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_interrupted_comparison_continues() {
    let args = ["tune", "scale", "--device", "opencl:0", "--dtype", "f32", "--n", "1500", "--kernel", "elements"];
    // the second run measures the first candidate again, so that it may compare other candidates
    let two_runs = || {
        let s = sandbox()?;
        let first = interrupted_comparison(&s, &args, 1);
        let second = interrupted_comparison(&s, &args, first.iter().filter(|line| line.starts_with("end ")).count());
        Some((first, second))
    };
    let mut comparisons = std::iter::repeat_with(two_runs).take(5).map_while(|both| both);
    let Some((first, second)) = comparisons.find(|(first, second)| first[0] == second[0]) else {
        assert!(sandbox().is_none(), "no two runs have compared the same candidates");
        return;
    };
    assert!(second.starts_with(&first), "{first:?} {second:?}");
    let measured = |lines: &[String]| -> Vec<String> {
        let values = |line: &String| line.strip_prefix("end ").map(|rest| rest.split(' ').take(2).collect::<Vec<_>>().join(" "));
        lines.iter().filter_map(values).collect()
    };
    let (mut distinct, all) = (measured(&second), measured(&second).len());
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), all, "a round was repeated: {second:?}");
}
