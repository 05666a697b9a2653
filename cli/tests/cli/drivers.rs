//! Drivers that do not load are told of in the words of the loader.

use crate::support::{Sandbox, outcome};

#[test]
fn a_library_that_does_not_load_is_told_with_the_reason() {
    let s = Sandbox::new();
    s.text("libOpenCL.so.1", "no library");
    s.text("libvulkan.so.1", "no library");
    for (device, name) in [("opencl", "libOpenCL.so.1"), ("wgpu", "libvulkan.so.1")] {
        let run = s.run_with(&["devices", "--device", device], &[("LD_LIBRARY_PATH", s.path().to_str().unwrap())]);
        outcome(&run, 3);
        assert!(run.stderr.contains(name) && run.stderr.contains("file too short"), "{}", run.stderr);
    }
}

#[test]
fn a_driver_that_does_not_load_is_told_with_the_reason() {
    let s = Sandbox::new();
    s.text("libdriver.so", "no library");
    let library = s.path().join("libdriver.so");
    s.text("driver.icd", library.to_str().unwrap());
    s.text("driver.json", &serde_json::json!({ "ICD": { "library_path": "./libdriver.so", "api_version": "1.2.0" } }).to_string());
    let folder = s.path().to_str().unwrap();
    let manifest = s.path().join("driver.json");
    let cases = [
        ("opencl", "OCL_ICD_VENDORS", folder, "LAPIDARY_REQUIRE_OPENCL", "driver.icd"),
        ("wgpu", "VK_DRIVER_FILES", manifest.to_str().unwrap(), "LAPIDARY_REQUIRE_WGPU", "driver.json"),
    ];
    for (device, variable, value, required, file) in cases {
        let run = s.run_with(&["devices", "--device", device], &[(variable, value), ("VK_ICD_FILENAMES", value)]);
        outcome(&run, 3);
        // without the loader there is another reason
        let told = [file, "libdriver.so", "file too short"].iter().all(|word| run.stderr.contains(word));
        assert!(told || std::env::var_os(required).is_none() && run.stderr.contains("loader is not there"), "{}", run.stderr);
    }
}
