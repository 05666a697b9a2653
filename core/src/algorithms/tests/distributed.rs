//! Tests of LU of a matrix that several devices hold together.

use super::*;
use crate::plan::Window;

/// The plan of LU of order 80 in sixteen panels, of which two devices hold groups of two in the order 0, 1, 1, 0, ….
fn on_two_devices() -> Plan {
    let place = Place::Distributed { shares: vec![1, 1], group_length: 2 };
    getrf::plan(&factorisation(80, 80, Layout::ColMajor), &Blocking { nb: 5, place, ..blocking(1) })
}

/// The group to which a row or a column belongs.
fn group_of(index: usize) -> usize {
    index / 10
}

/// The device that holds a panel.
fn device_of(panel: usize) -> usize {
    [0, 1, 1, 0][panel / 2 % 4]
}

/// The positions of the tasks called `what` among all tasks, with their devices and regions.
fn tasks(plan: &Plan, what: &str) -> Vec<(usize, usize, Region)> {
    let tasks = plan.tasks().iter().enumerate().filter(|(_, task)| task.label.what == what);
    tasks.map(|(at, task)| (at, task.device.unwrap(), task.label.region)).collect()
}

/// The queue of a device runs transfers in the order of the plan, and another device waits for the panels. The devices store the rows beside group g
/// before the panels of group g+2 are sent, except the device that sends them.
#[test]
fn the_device_of_a_group_sends_its_panels_before_it_stores_rows() {
    let plan = on_two_devices();
    let sends = tasks(&plan, "send");
    let stores = tasks(&plan, "store");
    assert_eq!((sends.len(), stores.len()), (16, 16 * 8));
    for (stored, device, rows) in stores {
        let of_later: Vec<_> = sends.iter().filter(|(_, _, panel)| group_of(panel.col) == group_of(rows.row) + 2).collect();
        for (sent, sender, _) in of_later {
            assert_eq!(sent < &stored, *sender == device, "rows {rows:?} on device {device}");
        }
    }
}

/// A device takes its first task that is ready. The panels of group g+1 come before the updates of the groups beyond it with the panels of group g.
#[test]
fn panels_come_before_updates_for_which_no_panel_waits() {
    let plan = on_two_devices();
    let (panels, updates) = (tasks(&plan, "panel"), tasks(&plan, "update"));
    let mut pairs = 0;
    for (updated, _, columns) in updates.iter().filter(|(_, _, columns)| group_of(columns.col) > group_of(columns.row) + 1) {
        for (factored, _, _) in panels.iter().filter(|(_, _, panel)| group_of(panel.col) == group_of(columns.row) + 1) {
            assert!(factored < updated, "{columns:?}");
            pairs += 1;
        }
    }
    // the panels of group 0 update twelve blocks beyond group 1, and those of groups 1 to 5 update five, four, …, one groups
    assert_eq!(pairs, 2 * 2 * (12 + (1..=5).sum::<usize>()));
}

/// A lane holds two transfers at a time. The updates wait for the pivots and the panel, and only the next panel waits for `info`, which stays on a
/// device while the device factors further panels.
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
    let passes_on = |k: usize| k + 1 == 16 || device_of(k) != device_of(k + 1);
    let moved = |k: usize, info: bool| -> Vec<&str> {
        // no device needs the elements of the last two panels
        let names = [("ipiv", true), ("A", k < 14), ("info", info)];
        names.into_iter().filter_map(|(name, is_moved)| is_moved.then_some(name)).collect()
    };
    let [sent, received] = ["send", "receive"].map(matrices);
    assert_eq!(sent, (0..16).map(|k| moved(k, passes_on(k))).collect::<Vec<_>>());
    assert_eq!(received, (0..16).map(|k| moved(k, passes_on(k) && k < 15)).collect::<Vec<_>>());
}
