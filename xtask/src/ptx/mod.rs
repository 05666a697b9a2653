//! `cargo xtask ptx`: compiles the OpenCL kernels that ship for compute capability 9.0 by clang, assembles them by ptxas, and prints a
//! table of registers, spills and local memory. No GPU is needed. The kernels by `mma.m8n8k4` are assembled for compute capability 8.0.
//!
//! The command needs clang with the target NVPTX, the builtin functions of OpenCL for this target (libclc), and ptxas. The environment
//! variables `CLANG`, `LIBCLC` and `PTXAS` hold their paths.

mod assembly;
mod limits;

use std::path::{Path, PathBuf};
use std::process::Command;

use assembly::{Kernel, kernels, with_group_size, without_static_limit};
use limits::{Multiprocessor, groups};

use crate::Result;
use crate::runner::{Invocation, on_all_processors};
use crate::workspace::Workspace;

/// Path of the builtin functions of OpenCL in Debian.
const LIBCLC: &str = "/usr/lib/clc/nvptx64--nvidiacl.bc";

/// The paths of the programs that compile and assemble, and of the builtin functions.
struct Tools {
    clang: String,
    libclc: String,
    ptxas: String,
}

/// A file with the text of a program in OpenCL C.
struct Text {
    path: PathBuf,
    /// Number of work-items of a work-group in two dimensions.
    local: [usize; 2],
}

impl Text {
    /// Returns the instruction set for which the text is assembled. It is the name of the folder of the file.
    fn architecture(&self) -> String {
        self.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the name of the file without its extension. The name contains the parameters of the program.
    fn name(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Compiles and assembles the texts, and prints the table of their kernels.
pub fn run(ws: &Workspace) -> Result<()> {
    let named = |variable: &str, usual: &str| std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
    let tools = Tools { clang: named("CLANG", "clang"), libclc: named("LIBCLC", LIBCLC), ptxas: named("PTXAS", "ptxas") };
    let versions = [version(&tools.clang, "version")?, version(&tools.ptxas, "release")?];
    let texts = texts(ws)?;
    let rows = assembled(&tools, &texts)?;
    print!("{}", table(&versions, &rows));
    Ok(())
}

/// Runs the program that writes the texts to files, and returns the files.
fn texts(ws: &Workspace) -> Result<Vec<Text>> {
    let folders = ["sm_90", "sm_80"].map(|architecture| ws.target("ptx").join(architecture));
    let cargo = ws.cargo(&["run", "--quiet", "--package", "lapidary-kernels", "--example", "texts"]);
    let list = folders.iter().fold(cargo, Invocation::arg).output()?;
    let text = |line: &str| {
        let mut words = line.rsplitn(3, ' ');
        let [y, x] = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
        Some(Text { path: words.next()?.into(), local: [x, y] })
    };
    list.lines().map(|line| text(line).ok_or_else(|| format!("`{line}` is no text with its work-items"))).collect()
}

/// Runs a program and returns its output. An error names the environment variables that hold the paths of the programs.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}; CLANG, LIBCLC and PTXAS name the programs"))?;
    let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    if output.status.success() { Ok(text) } else { Err(format!("{name} failed:\n{text}")) }
}

/// Returns the line of the output of `PROGRAM --version` that contains `word`.
fn version(program: &str, word: &str) -> Result<String> {
    let text = output(Command::new(program).arg("--version"))?;
    Ok(text.lines().find(|line| line.contains(word)).unwrap_or_default().trim().to_owned())
}

/// Compiles and assembles the texts. Returns the resources of the kernels of all texts, each with the instruction set and the name of its
/// text and the number of work-items of a work-group.
fn assembled(tools: &Tools, texts: &[Text]) -> Result<Vec<(String, String, usize, Kernel)>> {
    let of_texts = on_all_processors(texts, |text| assemble(tools, text))?;
    let row = |text: &Text, kernel| (text.architecture(), text.name(), text.local.iter().product(), kernel);
    Ok(texts.iter().zip(of_texts).flat_map(|(text, kernels)| kernels.into_iter().map(|kernel| row(text, kernel))).collect())
}

/// Compiles a text to PTX, assembles the PTX, and returns the resources of its kernels.
fn assemble(tools: &Tools, text: &Text) -> Result<Vec<Kernel>> {
    let (ptx, architecture) = (text.path.with_extension("ptx"), text.architecture());
    let mut clang = Command::new(&tools.clang);
    // NVIDIA's compiler accepts `asm`; clang needs `__asm__`
    clang.args(["-x", "cl", "-cl-std=CL1.2", "-Dasm=__asm__", "-O3", "-w", "-S", "--target=nvptx64-nvidia-nvcl", "-march=sm_80"]);
    clang.args(["-Xclang", "-target-feature", "-Xclang", "+ptx75", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", &tools.libclc]);
    output(clang.arg("-o").arg(&ptx).arg(&text.path))?;
    let failed = |error: std::io::Error| format!("{}: {error}", ptx.display());
    let compiled = std::fs::read_to_string(&ptx).map_err(failed)?;
    let (edited, large) = without_static_limit(&with_group_size(&compiled, &architecture, text.local));
    std::fs::write(&ptx, edited).map_err(failed)?;
    let mut ptxas = Command::new(&tools.ptxas);
    let log = output(ptxas.args(["-v", &format!("-arch={architecture}"), "-o"]).arg(ptx.with_extension("cubin")).arg(&ptx))?;
    let mut kernels = kernels(&log).ok_or_else(|| format!("{}: ptxas printed\n{log}", ptx.display()))?;
    kernels.iter_mut().for_each(|kernel| kernel.local_bytes += large);
    Ok(kernels)
}

/// Returns the table of the kernels, with a heading.
fn table(versions: &[String], rows: &[(String, String, usize, Kernel)]) -> String {
    let mut text = format!(
        "\
Registers, spills and local memory of the OpenCL kernels that ship for compute capability 9.0, without a GPU
Command:   cargo xtask ptx
Compiler:  {}, target nvptx64-nvidia-nvcl, -O3, builtin functions of libclc
Assembler: ptxas, {}

NVIDIA's OpenCL compiler is another one, and may allocate registers otherwise. No row was measured on a device.

The texts of sm_90 are those of the calls of kernels/examples/texts.rs: products with each shipped entry for products, and other calls with the first
entry for their sizes. The texts of sm_80 are the products of gemm_mma with unit=4 (mma.m8n8k4), which no shipped entry names: the rows
show that they assemble.

regs    registers of 32 bits per work-item
stores  bytes that a work-item writes to spilled registers
loads   bytes that a work-item reads from spilled registers
stack   bytes of private arrays and spilled registers of a work-item in global memory
local   bytes of local memory of a work-group. ptxas takes at most 48 KiB of static memory; larger arrays are assembled as dynamic memory
items   work-items of a work-group
groups  work-groups that a multiprocessor has room for

",
        versions[0], versions[1]
    );
    let heading = ["arch", "kernel", "regs", "stores", "loads", "stack", "local", "items", "groups", "text"];
    let line = |cells: [&str; 10]| {
        let [arch, kernel, regs, stores, loads, stack, local, items, groups, text] = cells;
        format!("{arch:5} {kernel:15} {regs:>5} {stores:>6} {loads:>6} {stack:>6} {local:>7} {items:>5} {groups:>6}  {text}\n")
    };
    text += &line(heading);
    for (architecture, name, items, kernel) in rows {
        let Kernel { registers, spill_stores, spill_loads, stack_bytes, local_bytes, .. } = *kernel;
        let unit = if architecture == "sm_90" { Multiprocessor::SM_90 } else { Multiprocessor::SM_80 };
        let groups = groups(unit, *items, registers, local_bytes);
        let numbers =
            [registers, spill_stores, spill_loads, stack_bytes, local_bytes, *items, groups].map(|number| number.to_string());
        let [regs, stores, loads, stack, local, items, groups] = &numbers;
        text += &line([architecture, &kernel.name, regs, stores, loads, stack, local, items, groups, name]);
    }
    text
}
