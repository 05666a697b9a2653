//! Writes the JavaScript through which a page calls the compiled library: `bindings LIBRARY.wasm FOLDER`.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [library, folder] = &arguments[..] else {
        eprintln!("usage: bindings LIBRARY.wasm FOLDER");
        return ExitCode::FAILURE;
    };
    let mut bindings = Bindgen::new();
    bindings.input_path(library).typescript(false).omit_default_module_path(false);
    bindings.remove_name_section(true).remove_producers_section(true);
    let written = bindings.web(true).and_then(|bindings| bindings.generate(folder));
    if let Err(error) = written {
        eprintln!("{library}: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
