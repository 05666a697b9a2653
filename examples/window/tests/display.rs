//! Tests of the errors of the program on a computer without a display.
#![cfg(target_os = "linux")]

use std::process::Command;

fn error_without_display(arguments: &[&str]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_lapidary-window"));
    ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().for_each(|name| {
        program.env_remove(name);
    });
    let ended = program.args(arguments).output().unwrap();
    assert!(!ended.status.success());
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn the_error_says_what_to_do_and_names_no_source_file() {
    let text = error_without_display(&["--devices", "cpu", "--unknowns", "8"]);
    assert!(text.starts_with("error: no window: ") && text.contains("`xvfb-run -a`") && !text.contains(".rs"), "{text}");
}

#[test]
fn devices_that_do_not_open_are_reported_first() {
    let text = error_without_display(&["--devices", "wgpu:99", "--unknowns", "8"]);
    assert!(text.contains("wgpu:99") && !text.contains("no window"), "{text}");
}
