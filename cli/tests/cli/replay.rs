//! Tests of `tune --replay`: its table, its files, and recordings that it refuses.

use crate::support::{Sandbox, outcome, refused};

const STRATEGIES: [&str; 5] = ["exhaustive", "random", "nested", "descent", "halving"];

/// A recording of 200 points whose setup takes a second each. The point with the number i, counted from 1, takes 1/i ms.
fn recording(title: &str) -> String {
    let mut text = format!("{title}mwg\tnwg\tstages\tsetup_seconds\trun_seconds\tfailure\n");
    for number in 1..=200 {
        let values = [(number - 1) / 20, (number - 1) / 2 % 10, (number - 1) % 2].map(|value| value.to_string()).join("\t");
        text += &format!("{values}\t1\t{}\t\n", 1e-3 / f64::from(number));
    }
    text
}

#[test]
fn a_replay_compares_the_strategies_without_a_device() {
    let s = Sandbox::new();
    s.text("r.tsv", &recording("# gemm_tile for gemm f64 m=8 n=8 k=8, a device\n"));
    let args = ["tune", "--replay", "r.tsv", "--budget", "50.5", "--plot", "p.svg", "--json", "r.json"];
    // no device has this name, so that a command which opens one fails
    let run = s.run_with(&args, &[("LAPIDARY_DEVICE", "opencl:77")]);
    outcome(&run, 0);
    assert_eq!(run.stderr, "");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "gemm_tile for gemm f64 m=8 n=8 k=8, a device");
    assert_eq!(lines[1], "200 points, 0 failed; best 5.0 µs; 20 seeds of 50.5 s");
    let names: Vec<&str> = lines[3..].iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, STRATEGIES);
    // the exhaustive search measures one point in each second
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[3]), ["exhaustive", "25.0", "%", "25.0", "%", "not", "reached"]);
    assert!(lines[6].contains("100.0 %") && !lines[6].contains("not reached"), "{}", run.stdout);

    let doc = s.json("r.json");
    assert_eq!((&doc["points"], &doc["seeds"], &doc["budget_seconds"]), (&200.into(), &20.into(), &50.5.into()));
    let strategy = |at: usize, key: &str| doc["strategies"][at][key].clone();
    assert!((0..5).all(|at| strategy(at, "strategy") == STRATEGIES[at]), "{doc}");
    assert!((strategy(0, "median_fraction").as_f64().unwrap() - 0.25).abs() < 1e-9, "{doc}");
    assert_eq!(strategy(0, "median_seconds_to_90_percent"), "inf");
    for at in 2..5 {
        let [median, worst, time] =
            ["median_fraction", "worst_fraction", "median_seconds_to_90_percent"].map(|key| strategy(at, key).as_f64().unwrap());
        assert!(worst <= median && median >= 0.9 && time <= 50.5, "{doc}");
    }
    let picture = s.read("p.svg");
    assert!(STRATEGIES.iter().all(|name| picture.contains(name)) && picture.contains("m=8 n=8 k=8"), "{picture}");
}

#[test]
fn a_recording_without_a_title_is_replayed_for_a_minute() {
    let s = Sandbox::new();
    s.text("r.tsv", &recording(""));
    let run = s.run(&["tune", "--replay", "r.tsv"]);
    outcome(&run, 0);
    assert!(run.stderr.contains("the recording names no kernel"), "{}", run.stderr);
    assert!(run.stdout.starts_with("recorded search\n") && run.stdout.contains("20 seeds of 60 s"), "{}", run.stdout);
}

#[test]
fn the_seed_determines_the_searches() {
    let s = Sandbox::new();
    s.text("r.tsv", &recording("# gemm_tile\n"));
    let replay = |seed: &str| s.run(&["tune", "--replay", "r.tsv", "--budget", "9", "--seed", seed]).stdout;
    assert_eq!(replay("3"), replay("3"));
    assert_ne!(replay("3"), replay("4"));
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let s = Sandbox::new();
    let header = "mwg\tsetup_seconds\trun_seconds\tfailure\n";
    s.text("good.tsv", &recording(""));
    s.text("damaged.tsv", &format!("{header}8\t1\t1\t\n8\tsoon\t1\t\n"));
    s.text("failed.tsv", &format!("{header}8\t1\t\tslow\n"));
    let replay = |file: &str, more: &[&str], words: &[&str]| refused(&s, &[&["tune", "--replay", file][..], more].concat(), words);
    replay("absent.tsv", &[], &["absent.tsv", "cannot read"]);
    replay("damaged.tsv", &[], &["damaged.tsv:3", "setup_seconds", "soon"]);
    replay("failed.tsv", &[], &["failed.tsv", "no point of the recording has a time"]);
    replay("good.tsv", &["--budget", "0.5"], &["--budget 0.5", "no strategy measures a point"]);
    replay("good.tsv", &["--plot", "p.png"], &["p.png", ".svg"]);
    replay("good.tsv", &["--json", "good.tsv"], &["--replay", "--json", "the same file"]);
    for (option, value) in [("--device", "cpu"), ("--dtype", "f64"), ("--n", "8"), ("--strategy", "random"), ("--record", "r.tsv")]
    {
        replay("good.tsv", &[option, value], &["--replay", option, "cannot be used with"]);
    }
    refused(&s, &["tune", "--json", "r.json"], &["--replay"]);
}
