//! Translates a kernel text from WGSL to OpenCL C.
//!
//! The texts in `shared/` are WGSL in which each declaration states its type. They use only what both languages write alike,
//! declarations and functions aside: scalar and vector arithmetic, `if`, `for`, `while`, `min`, `select`, `fma` and barriers. Names that OpenCL C
//! lacks are macros and types of [`PRELUDE`].

use std::fmt::Write;

use lapidary_core::DType;

use crate::program::Program;
use crate::signature::{Takes, signature};

/// Definitions of the names of WGSL that the texts use. The types `size`, for positions and leading dimensions, and `stride`, for signed
/// distances, have 64 bits in OpenCL C, because a matrix may have more than 2^31 elements.
const PRELUDE: &str = "\
typedef uint u32;
typedef ulong size;
typedef long stride;
#define u32(x) ((u32)(x))
#define real(x) ((real)(x))
#define stride(x) ((stride)(x))
#define abs fabs
#undef min
#define min(x, y) ((x) < (y) ? (x) : (y))
#undef max
#define max(x, y) ((x) > (y) ? (x) : (y))
#undef select
#define select(no, yes, condition) ((condition) ? (yes) : (no))
#define workgroupBarrier() barrier(CLK_LOCAL_MEM_FENCE)
#define storageBarrier() barrier(CLK_GLOBAL_MEM_FENCE)
";

/// `fma` for `float`, which OpenCL does not require to be fast.
const SINGLE_FMA: &str = "#ifndef FP_FAST_FMAF\n#define fma(x, y, z) ((x) * (y) + (z))\n#endif\n";

/// Translates the text of a kernel of `program`, without the declarations of its operands, which this function writes.
pub(crate) fn to_opencl(program: &Program, kernel: &str, text: &str) -> String {
    let signature = signature(kernel);
    let operands: Vec<String> = signature.iter().filter_map(|&(name, takes)| operand(program, name, takes)).collect();
    let values: Vec<(&str, &str)> = signature.iter().filter_map(|&(name, takes)| Some((value_type(takes)?, name))).collect();
    let mut out = PRELUDE.to_owned();
    if program.dtype() == DType::F32 {
        out += SINGLE_FMA;
    }
    let fields = values.iter().map(|(of, name)| format!("{of} {name};")).collect::<Vec<_>>().join(" ");
    let _ = writeln!(out, "struct Args {{ {fields} }};\n");

    // the operands and the arguments, which WGSL declares outside of functions, are parameters of each function
    let names: Vec<&str> = signature.iter().filter(|(_, takes)| takes.is_memory()).map(|&(name, _)| name).collect();
    let passed = format!("{}, args, ", names.join(", "));
    let taken = format!("{}, const struct Args args, ", operands.join(", "));
    let helpers: Vec<Helper<'_>> = text.lines().filter_map(helper).collect();
    for Helper { name, parameters, result } in &helpers {
        let _ = writeln!(out, "{result} {name}({taken}{});", swapped(parameters));
    }
    let shared: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("var<workgroup> ")).collect();
    let [x, y] = program.local();
    for line in text.lines() {
        let code = line.trim();
        if code.starts_with("var<workgroup> ") || code.starts_with("@compute") {
            continue;
        }
        if let Some(Helper { name, parameters, result }) = helper(line) {
            let _ = writeln!(out, "{result} {name}({taken}{}) {{", swapped(parameters));
        } else if let Some(built_in) = code.strip_prefix(&format!("fn {kernel}(")) {
            let parameters = signature.iter().map(|&(name, takes)| {
                operand(program, name, takes).unwrap_or_else(|| format!("const {} {name}", value_type(takes).unwrap_or_default()))
            });
            let parameters = parameters.collect::<Vec<_>>().join(", ");
            let arguments = values.iter().map(|&(_, name)| name).collect::<Vec<_>>().join(", ");
            let _ = writeln!(out, "__kernel __attribute__((reqd_work_group_size({x}, {y}, 1)))\nvoid {kernel}({parameters}) {{");
            let _ = writeln!(out, "    const struct Args args = {{ {arguments} }};");
            shared.iter().for_each(|array| out += &format!("    {}\n", local_array(array)));
            built_in.split("@builtin(").skip(1).for_each(|one| out += &format!("    {}\n", position(one)));
        } else {
            let mut line = declarations(line);
            for Helper { name, .. } in &helpers {
                line = with_operands(&line, name, &passed);
            }
            out += &line;
            out.push('\n');
        }
    }
    debug_assert!(
        out.lines().all(|line| !["let ", "var ", "fn ", "->"].iter().any(|word| line.trim_start().starts_with(word))),
        "{kernel} has a statement that is not translated:\n{out}"
    );
    out
}

/// Returns the parameter of an operand in memory; `None` for a value.
fn operand(program: &Program, name: &str, takes: Takes) -> Option<String> {
    let element = if takes.is_elements() { program.element(name) } else { "int" };
    let access = if takes.is_written() { "" } else { "const " };
    takes.is_memory().then(|| match takes {
        Takes::In if program.reads_images() => format!("__read_only image1d_buffer_t {name}"),
        _ => format!("__global {access}{element} *restrict {name}"),
    })
}

/// Returns the type of an argument that is no operand in memory.
fn value_type(takes: Takes) -> Option<&'static str> {
    match takes {
        Takes::Size => Some("size"),
        Takes::Stride => Some("stride"),
        Takes::Real => Some("real"),
        Takes::In | Takes::Out | Takes::Indices | Takes::IndicesOut | Takes::Synchronisation => None,
    }
}

/// The first line of a function that is no kernel.
#[derive(Debug, PartialEq)]
struct Helper<'a> {
    name: &'a str,
    parameters: &'a str,
    /// Type of the returned value.
    result: &'a str,
}

/// Returns the parts of the first line of a function that is no kernel, if `line` is such a line.
fn helper(line: &str) -> Option<Helper<'_>> {
    let (name, rest) = line.strip_prefix("fn ")?.split_once('(')?;
    let (parameters, rest) = rest.split_once(')').filter(|_| !rest.starts_with('@'))?;
    let result = rest.trim_start_matches(" -> ").trim_end_matches('{').trim();
    Some(Helper { name, parameters, result: if result.is_empty() { "void" } else { result } })
}

/// Passes the operands and the arguments of the kernel to each call of the function `name` in a line.
fn with_operands(line: &str, name: &str, passed: &str) -> String {
    let call = format!("{name}(");
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(&call) {
        let (before, after) = rest.split_at(at + call.len());
        out += before;
        if !ends_in_word(&before[..at]) {
            out += passed;
        }
        rest = after;
    }
    out + rest
}

/// Whether the last character of a text is a letter, a digit or `_`, so that a name after the text would be part of a longer name.
fn ends_in_word(text: &str) -> bool {
    text.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Translates a list of parameters: `i: u32, sum: vec` becomes `u32 i, vec sum`.
fn swapped(parameters: &str) -> String {
    let swap = |parameter: &str| parameter.split_once(": ").map_or_else(String::new, |(name, of)| format!("{of} {}", name.trim()));
    parameters.split(',').map(swap).collect::<Vec<_>>().join(", ")
}

/// Translates the declaration of an array in workgroup memory: `slices: array<vec, 64>;` becomes `__local vec slices[64];`.
fn local_array(array: &str) -> String {
    let (name, of) = array.split_once(": array<").unwrap_or_default();
    let (element, count) = of.trim_end_matches(">;").split_once(", ").unwrap_or_default();
    format!("__local {element} {name}[{count}];")
}

/// Translates a position that a kernel takes as a parameter: `workgroup_id) group: vec3<u32>, ` or the index in the workgroup.
fn position(parameter: &str) -> String {
    let (which, rest) = parameter.split_once(") ").unwrap_or_default();
    let name = rest.split(':').next().unwrap_or_default();
    match which {
        "workgroup_id" => format!("const uint2 {name} = (uint2)(get_group_id(0), get_group_id(1));"),
        "num_workgroups" => format!("const uint2 {name} = (uint2)(get_num_groups(0), get_num_groups(1));"),
        "local_invocation_id" => format!("const uint2 {name} = (uint2)(get_local_id(0), get_local_id(1));"),
        "global_invocation_id" => format!("const uint2 {name} = (uint2)(get_global_id(0), get_global_id(1));"),
        "local_invocation_index" => format!("const u32 {name} = get_local_id(0) + get_local_id(1) * get_local_size(0);"),
        other => unreachable!("no shared text takes `{other}`"),
    }
}

/// Translates the declarations of a line: `let x: u32 = 1u;` becomes `const u32 x = 1u;`, and `var x: vec;` becomes `vec x;`.
fn declarations(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    let next = |rest: &str| ["let ", "var "].iter().filter_map(|word| Some((rest.find(word)?, *word))).min();
    while let Some((at, word)) = next(rest) {
        let is_word = !ends_in_word(&rest[..at]);
        let declared = rest[at + word.len()..].split_once(": ").filter(|_| is_word);
        let end = |of: &str| of.find([' ', ';', ')']);
        let Some((name, of, length)) = declared.and_then(|(name, of)| Some((name, of, end(of)?))) else {
            out += &rest[..at + word.len()];
            rest = &rest[at + word.len()..];
            continue;
        };
        let constant = if word == "let " { "const " } else { "" };
        let of_type = &of[..length];
        out += &format!("{}{constant}{of_type} {name}", &rest[..at]);
        rest = &of[length..];
        if rest.starts_with(';') {
            // WGSL initialises such a variable with zero
            out += &format!(" = ({of_type})(0)");
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::{Helper, declarations, helper, local_array, position, swapped, with_operands};

    #[test]
    fn functions_without_a_result_are_void() {
        let of = |result| Helper { name: "f", parameters: "i: u32", result };
        assert_eq!(["fn f(i: u32) {", "fn f(i: u32) -> vec {"].map(helper), [Some(of("void")), Some(of("vec"))]);
        assert_eq!(["fn kernel(@builtin(workgroup_id) group: vec3<u32>) {", "    f(i);"].map(helper), [None, None]);
    }

    #[test]
    fn calls_of_functions_get_the_operands() {
        assert_eq!(with_operands("return(turn(row_of(e), turn(i)));", "turn", "a, "), "return(turn(a, row_of(e), turn(a, i)));");
    }

    #[test]
    fn declarations_name_the_type_first() {
        assert_eq!(declarations("    let x: u32 = y * 2u; // let it be"), "    const u32 x = y * 2u; // let it be");
        assert_eq!(declarations("var sum: vec;"), "vec sum = (vec)(0);");
        assert_eq!(
            declarations("for (var e: u32 = t; e < 8u; e += 2u) { let l: size = e; }"),
            "for (u32 e = t; e < 8u; e += 2u) { const size l = e; }"
        );
        assert_eq!(swapped("tile: u32, sum: vec"), "u32 tile, vec sum");
        assert_eq!(local_array("slices: array<vec, 64>;"), "__local vec slices[64];");
        assert!(position("local_invocation_index) t: u32").starts_with("const u32 t = "));
    }
}
