//! Tests of LU of a matrix that several devices hold together.

use super::*;
use crate::plan::Window;

/// The plan of LU of order 80 in eight panels, which two devices hold in turn.
fn on_two_devices() -> Plan {
    let place = Place::Distributed { shares: vec![1, 1] };
    getrf::plan(&factorisation(80, 80, Layout::ColMajor), &Blocking { nb: 10, place, ..blocking(1) })
}

/// The queue of a device runs transfers in the order of the plan, and another device waits for the panel.
#[test]
fn a_panel_is_sent_before_the_rows_of_the_step_before_are_stored() {
    let plan = on_two_devices();
    let transfers: Vec<&str> =
        plan.tasks().iter().map(|task| task.label.what).filter(|what| ["send", "store"].contains(what)).collect();
    let of_step = ["send", "store", "store"];
    assert_eq!(transfers, [&["send"][..], &of_step.repeat(7), &["store"; 2]].concat());
}

/// A lane holds two transfers at a time. The updates wait for the pivots and the panel, and only the next panel waits for `info`.
#[test]
fn pivots_and_panel_are_sent_before_info() {
    let plan = on_two_devices();
    let matrices = |what: &str| -> Vec<Vec<&str>> {
        let matrix = |command: CommandId| {
            let (Command::St(crate::command::St { tile }) | Command::Ld(crate::command::Ld { tile })) =
                &plan.commands()[command as usize]
            else {
                return None;
            };
            plan.registers()[tile.reg].window.map(|Window { matrix, .. }| plan.matrices()[matrix.0 as usize].name)
        };
        let tasks = plan.tasks().iter().filter(|task| task.label.what == what);
        tasks.map(|task| task.commands.clone().filter_map(matrix).collect()).collect()
    };
    // no device needs the elements of the last panel
    let [sent, received] = ["send", "receive"].map(matrices);
    assert_eq!(sent, [vec![vec!["ipiv", "A", "info"]; 7], vec![vec!["ipiv", "info"]]].concat());
    assert_eq!(received, [vec![vec!["ipiv", "A", "info"]; 7], vec![vec!["ipiv"]]].concat());
}
