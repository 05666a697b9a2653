//! Tests of the controls of the window, and of the solutions that the device computes while the window draws frames. The tests need no
//! display.

use std::time::{Duration, Instant};

use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use lapidary::Select;
use lapidary_window::{App, LIMIT};

/// Time in which a window must do what is expected.
const PATIENCE: Duration = Duration::from_secs(120);

fn window(devices: &str, order: usize) -> Harness<'static, App> {
    let app = App::new(devices.parse::<Select>().unwrap(), order);
    Harness::builder().with_size([720.0, 320.0]).build_ui_state(|ui, app: &mut App| app.show(ui), app)
}

/// Draws frames until the window is as expected.
fn draw_until(window: &mut Harness<App>, expected: impl Fn(&App) -> bool) {
    let start = Instant::now();
    while !expected(window.state()) {
        assert!(start.elapsed() < PATIENCE, "error: {:?}, {} solved", window.state().error(), window.state().solved());
        std::thread::sleep(Duration::from_millis(5));
        window.step();
    }
}

#[test]
fn systems_are_solved_between_frames_until_they_are_stopped() {
    for devices in ["cpu", "wgpu:0"] {
        let mut window = window(devices, 256);
        draw_until(&mut window, |app| app.solved() >= 3);
        assert!(window.state().last().is_some_and(|last| last.residual < LIMIT), "{:?}", window.state().last());
        assert!(window.state().frames().count() > 0);
        window.get_by_label_contains("scaled residual");

        window.get_by_label("Stop").click();
        window.run_steps(2);
        // the window still receives the solutions that it has enqueued
        draw_until(&mut window, |app| !app.is_waiting());
        let solved = window.state().solved();
        window.run_steps(10);
        assert_eq!(window.state().solved(), solved, "{devices}");
        window.get_by_label("Solve").click();
        draw_until(&mut window, |app| app.solved() > solved);
    }
}

#[test]
fn another_order_opens_another_system() {
    let mut window = window("cpu", 256);
    draw_until(&mut window, |app| app.solved() >= 1);
    window.get_by_label("unknowns").click();
    window.run_steps(2);
    window.get_by_label("1024").click();
    draw_until(&mut window, |app| app.order() == Some(1024) && app.solved() >= 1);
    assert!(window.state().last().is_some_and(|last| last.residual < LIMIT));
}

#[test]
fn the_window_says_why_there_is_no_device() {
    let mut window = window("wgpu:99", 256);
    draw_until(&mut window, |app| app.error().is_some());
    window.step();
    window.get_by_label_contains("wgpu:99");
    window.get_by_label("Try again").click();
    // the error disappears while the thread looks for the device again
    draw_until(&mut window, |app| app.error().is_none());
    draw_until(&mut window, |app| app.error().is_some());
}
