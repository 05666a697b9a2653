//! `cargo xtask predict`: compares the times that `lapidary plan --profile` predicts with measured times.

use serde_json::Value;

use crate::Result;
use crate::workspace::Workspace;

/// Routines that are predicted.
const ROUTINES: [&str; 3] = ["gemm", "trsm", "getrf"];
/// Orders of the matrices, unless `--n` lists others.
const ORDERS: &str = "1000,2000,3000";

/// For each selection of devices, such as `opencl:0` or `opencl:0,1`, profiles the first device while the others are busy,
/// predicts calls on these devices, runs the calls, and prints a table. The devices of a selection must be alike.
pub fn run(ws: &Workspace, args: &[&str]) -> Result<()> {
    let (orders, selections) = match args {
        ["--n", orders, selections @ ..] => (*orders, selections),
        selections => (ORDERS, selections),
    };
    if selections.is_empty() {
        return Err("name devices, such as: cargo xtask predict opencl:0 opencl:0,1".to_owned());
    }
    ws.cargo(&["build", "--release", "--package", "lapidary-cli"]).run()?;
    for selection in selections {
        compare(ws, selection, orders)?;
    }
    Ok(())
}

fn compare(ws: &Workspace, selection: &str, orders: &str) -> Result<()> {
    let profile = ws.target(&format!("profile-{}.json", selection.replace([':', '+', ','], "-")));
    let program = ws.target("release/lapidary");
    let lapidary = |args: &[&str]| {
        let invocation = crate::runner::Invocation::new(&program, &ws.root, args);
        invocation.output().and_then(|text| serde_json::from_str(&text).map_err(|error| format!("{args:?}: {error}")))
    };
    let file = profile.to_string_lossy();
    crate::runner::Invocation::new(
        &program,
        &ws.root,
        &["bench", "profile", "--device", selection, "--dtype", "f64", "--json", &file],
    )
    .run()?;
    let devices = selection.split(['+', ',']).count().to_string();
    println!(
        "{:<20}{:<8}{:>7}{:>14}{:>14}{:>14}{:>22}",
        "devices", "routine", "n", "predicted ms", "least ms", "median ms", "predicted / median"
    );
    for routine in ROUTINES {
        let planned: Value = lapidary(&["plan", routine, "--n", orders, "--devices", &devices, "--profile", &file, "--json", "-"])?;
        let measured: Value = lapidary(&["bench", routine, "--n", orders, "--device", selection, "--reps", "5", "--json", "-"])?;
        for (planned, measured) in list(&planned["predictions"]).iter().zip(list(&measured["results"])) {
            let milliseconds = |value: &Value| value.as_f64().map_or(f64::NAN, |seconds| seconds * 1e3);
            let [predicted, least, median] =
                [&planned["seconds"], &measured["ours"]["min_seconds"], &measured["ours"]["median_seconds"]].map(milliseconds);
            let n = &planned["sizes"]["n"];
            println!("{selection:<20}{routine:<8}{n:>7}{predicted:>14.2}{least:>14.2}{median:>14.2}{:>22.2}", predicted / median);
        }
    }
    Ok(())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
