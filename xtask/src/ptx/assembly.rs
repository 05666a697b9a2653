//! Edits texts in PTX, and reads the messages of ptxas.

/// The resources of a kernel that `ptxas -v` reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// Name of the kernel.
    pub name: String,
    /// Registers of a work-item.
    pub registers: usize,
    /// Bytes that a work-item writes to spilled registers.
    pub spill_stores: usize,
    /// Bytes that a work-item reads from spilled registers.
    pub spill_loads: usize,
    /// Bytes of private arrays and spilled registers.
    pub stack_bytes: usize,
    /// Bytes of local memory of a work-group.
    pub local_bytes: usize,
}

/// Sets the instruction set of a PTX text, and the size of the work-groups of its kernels. The text in OpenCL C requires this size, but clang
/// does not write it to the PTX text.
pub fn with_group_size(ptx: &str, architecture: &str, [x, y]: [usize; 2]) -> String {
    let (mut text, mut in_head) = (String::new(), false);
    for line in ptx.lines() {
        in_head |= line.contains(".entry ");
        // version 8.0 of PTX is that of CUDA 12.0; compute capability 9.0 needs at least version 7.8
        let edited = match line.split_once(' ').map_or(line, |(word, _)| word) {
            ".version" => ".version 8.0".to_owned(),
            ".target" => format!(".target {architecture}"),
            "{" if in_head => {
                in_head = false;
                format!(".reqntid {x}, {y}, 1\n{{")
            }
            _ => line.to_owned(),
        };
        text += &edited;
        text.push('\n');
    }
    text
}

/// Maximum number of bytes of static local memory that ptxas accepts.
const MAX_STATIC_BYTES: usize = 48 << 10;

/// Turns the static arrays in local memory into dynamic arrays if ptxas does not accept their size. Returns the text, and the number of bytes
/// of these arrays. (Dynamic arrays overlap, so that the kernel would not run; its registers are the same.)
pub fn without_static_limit(ptx: &str) -> (String, usize) {
    let array = |line: &str| -> Option<(String, usize)> {
        let (array, size) = line.trim_start().strip_prefix(".shared ")?.split_once('[')?;
        Some((array.to_owned(), size.trim_end_matches("];").parse().ok()?))
    };
    let bytes = ptx.lines().filter_map(array).map(|(_, size)| size).sum();
    if bytes <= MAX_STATIC_BYTES {
        return (ptx.to_owned(), 0);
    }
    let arrays: String = ptx.lines().filter_map(array).map(|(array, _)| format!(".extern .shared {array}[];\n")).collect();
    let body: String = ptx.lines().filter(|line| array(line).is_none()).map(|line| format!("{line}\n")).collect();
    (body.replacen(".address_size 64\n", &format!(".address_size 64\n{arrays}"), 1), bytes)
}

/// Parses the messages of `ptxas -v`. Returns `None` if the messages do not state the number of registers of each kernel.
pub fn kernels(log: &str) -> Option<Vec<Kernel>> {
    let (mut all, mut names) = (Vec::new(), 0);
    let mut kernel = Kernel::default();
    let mut function = "";
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = Kernel { name: rest.split('\'').next()?.to_owned(), ..Kernel::default() };
            names += 1;
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            function = name.trim();
        } else if line.contains("bytes stack frame") {
            // ptxas also reports the resources of functions that kernels call
            if function == kernel.name {
                [kernel.stack_bytes, kernel.spill_stores, kernel.spill_loads] =
                    ["bytes stack frame", "bytes spill stores", "bytes spill loads"].map(|what| number(line, what).unwrap_or(0));
            }
        } else if line.contains("Used ") {
            kernel.registers = number(line, "registers")?;
            kernel.local_bytes = number(line, "bytes smem").unwrap_or(0);
            all.push(std::mem::take(&mut kernel));
        }
    }
    (names > 0 && names == all.len()).then_some(all)
}

/// Returns the number that stands before the words `what`.
fn number(line: &str, what: &str) -> Option<usize> {
    line.split_once(what)?.0.trim_end().rsplit([' ', ',']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 7.5
.target sm_80, texmode_independent
.address_size 64

.func f()
{
	ret;
}
.entry k(
	.param .u64 k_param_0
)
{
	.shared .align 4 .b8 k_$_small[49152];
	.shared .align 128 .b8 k_$_slices[49153];
{ // callseq
}
}
";

    #[test]
    fn kernels_have_the_size_of_their_groups() {
        let text = with_group_size(PTX, "sm_90", [16, 2]);
        assert!(text.starts_with(".version 8.0\n.target sm_90\n.address_size 64\n"), "{text}");
        assert!(text.contains("k_param_0\n)\n.reqntid 16, 2, 1\n{\n") && text.matches("reqntid").count() == 1, "{text}");
    }

    #[test]
    fn arrays_beyond_the_static_limit_are_dynamic() {
        let small = PTX.replace("[49153]", "[0]");
        assert_eq!(without_static_limit(&small), (small.clone(), 0));
        let (text, bytes) = without_static_limit(PTX);
        assert_eq!(bytes, 49_152 + 49_153);
        assert!(text.contains("[];\n.extern .shared .align 128 .b8 k_$_slices[];\n"), "{text}");
        assert!(text.contains("k_$_small[];") && !text.contains("[49153]"), "{text}");
    }

    #[test]
    fn messages_of_the_assembler_are_read() {
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    64 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 254 registers, used 1 barriers, 128 bytes cumulative stack size, 36864 bytes smem
ptxas info    : Compile time = 1.0 ms
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for called
    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers
";
        let a =
            Kernel { name: "a".to_owned(), registers: 254, spill_stores: 8, spill_loads: 16, stack_bytes: 64, local_bytes: 36_864 };
        let b = Kernel { name: "b".to_owned(), registers: 32, ..Kernel::default() };
        assert_eq!(kernels(log), Some(vec![a, b]));
        assert_eq!([kernels(""), kernels("Compiling entry function 'a' for 'sm_90'")], [None, None]);
    }
}
