//! Renders the templates of kernel texts.

use minijinja::{Environment, UndefinedBehavior, Value};

use crate::program::Program;
use crate::tuning::Dialect;

/// Renders a template with the parameters of a program and the names of a kernel's operands in the text.
///
/// Templates for both languages use these names, which differ between the languages: `VEC` is the prefix that makes a vector of
/// its elements, `read_vec(operand, index)` reads a vector of an operand from its buffer or image, `part(q)` selects element `q` of a vector, `set_part(array, index, q)` names element `q` of a vector in workgroup
/// memory, where `q` may vary at run time, and `load_vec(array, index, count)` reads a vector from `count` elements of memory, which
/// need not be aligned.
pub(crate) fn render<'a>(
    template: &str,
    program: &Program,
    kernel: &str,
    operands: impl Iterator<Item = (&'a str, &'a str)>,
    dialect: Dialect,
) -> String {
    let operands = operands.map(|(name, in_text)| (name.to_owned(), Value::from(in_text)));
    let (_, parameters) = program.heading();
    let parameters = parameters.into_iter().map(|(key, value)| (key.to_uppercase(), Value::from(value)));
    let vec = match dialect {
        Dialect::Wgsl => "vec",
        Dialect::OpenClC => "(vec)",
    };
    let context: Value = operands
        .chain(parameters)
        .chain([("kernel".to_owned(), Value::from(kernel)), ("VEC".to_owned(), Value::from(vec))])
        .collect();
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_function("xor", |x: usize, y: usize| x ^ y);
    // returns x / 2, x / 4, ..., 1 for a power of two x
    environment.add_function("halves", |x: usize| (0..x.ilog2()).rev().map(|power| 1 << power).collect::<Vec<usize>>());
    // returns the number that permutes line p of a slice, whose `line` elements have `width` parts of the element type
    let (block, size) = (program.block(), program.dtype().size());
    environment.add_function("swizzle_of", move |p: &str, line: usize, width: usize| {
        block.map_or(String::new(), |params| params.permutation(line, width * size).of_line(p))
    });
    let reads_images = program.reads_images();
    environment.add_function("read_vec", move |operand: &str, index: &str| match (reads_images, dialect) {
        (false, _) => format!("{operand}[{index}]"),
        (true, Dialect::OpenClC) => format!("as_vec(read_imageui({operand}, (int)({index})))"),
        (true, Dialect::Wgsl) => unreachable!("`check` refuses images in WGSL, which has no images of buffers"),
    });
    environment.add_function("part", |q: usize| [".x", ".y", ".z", ".w"][q]);
    environment.add_function("set_part", move |array: &str, index: &str, q: &str| match dialect {
        Dialect::Wgsl => format!("{array}[{index}][{q}]"),
        Dialect::OpenClC => format!("((__local real *)&{array}[{index}])[{q}]"),
    });
    environment.add_function("load_vec", move |array: &str, index: &str, count: usize| match dialect {
        // WGSL has no vector loads from arrays of scalars
        Dialect::Wgsl => {
            let element = |q: usize| format!("{array}[{index}{}]", if q == 0 { String::new() } else { format!(" + {q}u") });
            format!("vec({})", (0..count).map(element).collect::<Vec<_>>().join(", "))
        }
        Dialect::OpenClC => format!("vload{count}(0, {array} + {index})"),
    });
    environment.render_str(template, context).expect("the templates of this crate are tested")
}
