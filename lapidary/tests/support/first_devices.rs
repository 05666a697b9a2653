//! The first device of each backend.

use lapidary::{Backend, Machine, Select};

/// Opens the first device of each backend of this build. A backend without a device is left out, unless the environment requires one.
pub fn machines() -> Vec<Machine> {
    let open = |backend: Backend| match Machine::open(&Select::of(backend, 0)) {
        Ok(machine) => Some(machine),
        Err(error) => {
            let required = ["LAPIDARY_REQUIRE_OPENCL", "LAPIDARY_REQUIRE_WGPU"].map(std::env::var_os);
            assert!(required == [None, None], "{error}");
            eprintln!("not run: {error}");
            None
        }
    };
    Backend::of_this_build().filter_map(open).collect()
}
