//! OpenCL programs, which come from memory, from the cache on disk, or from the compiler.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use cl3::info_type::InfoType;
use cl3::kernel::{CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_WORK_GROUP_SIZE, create_kernel, get_kernel_work_group_info};
use cl3::program::{
    CL_PROGRAM_BINARIES, CL_PROGRAM_BUILD_LOG, build_program, create_program_with_binary, create_program_with_source,
    get_program_build_data, get_program_info,
};
use lapidary_core::{DType, Error, ErrorKind, ProgramCache, Result};
use lapidary_kernels::{GENERATOR, Program, Source, opencl, takes_ptx};

use crate::buffer::{BuiltProgram, Context, Kernel};
use crate::conv::failed;
use crate::platform::Found;

/// The compiled programs and the kernels of one device.
#[derive(Debug)]
pub(crate) struct Programs {
    cache: Arc<ProgramCache>,
    built: HashMap<Program, BuiltProgram>,
    /// The created kernels. The key has a program and a kernel name, because a program may hold several kernels.
    kernels: HashMap<(Program, &'static str), Kernel>,
    /// Programs that the compiler has refused, with the compiler's message. A refused program is not compiled again.
    refused: HashMap<Program, String>,
}

impl Programs {
    pub fn new(cache: Arc<ProgramCache>) -> Self {
        Programs { cache, built: HashMap::new(), kernels: HashMap::new(), refused: HashMap::new() }
    }

    /// A kernel of a program. The kernel is created when it is first requested, and then kept.
    pub fn kernel(&mut self, context: &Context, found: &Found, program: &Program, name: &'static str) -> Result<&Kernel> {
        let key = (*program, name);
        if !self.kernels.contains_key(&key) {
            let kernel = create(self.program(context, found, program)?, name)?;
            self.kernels.insert(key, kernel);
        }
        Ok(&self.kernels[&key])
    }

    /// Checks that a kernel can be created and can run in work-groups of the size that its program sets. Some drivers report a
    /// smaller maximum size than the kernel can use, so callers use this check only where they can choose another kernel.
    pub fn try_kernel(&mut self, context: &Context, found: &Found, program: &Program, name: &'static str) -> Result<()> {
        let kernel = self.kernel(context, found, program, name)?;
        fits(kernel, found, program).map_err(|error| error.with("kernel", name))
    }

    /// A program, which is compiled or loaded when it is first requested, and then kept.
    pub fn program(&mut self, context: &Context, found: &Found, program: &Program) -> Result<&BuiltProgram> {
        if !self.built.contains_key(program) {
            program.check(&found.facts.limits).map_err(|reason| Error::new(ErrorKind::Unsupported, "compile", reason))?;
            if let Some(words) = self.refused.get(program) {
                return Err(Error::new(ErrorKind::DeviceFailed, "compile", format!("refused before: {words}")));
            }
            let built = build_or_load(&self.cache, context, found, &opencl::source(program), program.dtype());
            let built = built.inspect_err(|error| {
                if error.kind() == ErrorKind::DeviceFailed {
                    self.refused.insert(*program, error.to_string());
                }
            })?;
            self.built.insert(*program, built);
        }
        Ok(&self.built[program])
    }

    /// Releases all kernels. A kernel that is requested later is created again.
    pub fn forget_kernels(&mut self) {
        self.kernels.clear();
    }
}

fn create(program: &BuiltProgram, name: &'static str) -> Result<Kernel> {
    let entry = CString::new(name).expect("names of kernels hold no zero");
    create_kernel(program.0, &entry).map(Kernel).map_err(|code| failed("clCreateKernel", code).with("kernel", name))
}

/// Checks that a compiled kernel can run in work-groups of the size that its program sets. Because of the resources that the
/// compiled kernel needs, its maximum work-group size may be below the limit of the device. A compiler for PTX makes a kernel fit the size
/// that its text requires, but NVIDIA's driver reports 256 for a kernel that runs with the required 512 work-items.
fn fits(kernel: &Kernel, found: &Found, program: &Program) -> Result<()> {
    let info = |name| get_kernel_work_group_info(kernel.0, found.device, name);
    let wanted = program.local().iter().product::<usize>();
    let required = info(CL_KERNEL_COMPILE_WORK_GROUP_SIZE).map_or(0, |size| size.to_vec_size().iter().product());
    let most = info(CL_KERNEL_WORK_GROUP_SIZE).map_or(usize::MAX, InfoType::to_size);
    if wanted <= most || (wanted == required && takes_ptx(&found.facts)) {
        return Ok(());
    }
    let message = format!("{wanted} work-items are more than the {most} with which the compiled kernel can run");
    Err(Error::new(ErrorKind::Unsupported, "compile", message))
}

/// Bytes with which the cache entry of a program begins that the compiler has refused. The compiler's message follows. No binary of
/// a driver begins with these bytes.
const REFUSED: &[u8] = b"refused by the compiler: ";

/// Builds a program from the binary in the cache, or from the source if the cache has no binary that the driver accepts. A program
/// that this version of the driver has refused before is not compiled again.
fn build_or_load(cache: &ProgramCache, context: &Context, found: &Found, source: &Source, dtype: DType) -> Result<BuiltProgram> {
    cache.announce(&source.name);
    let options = options(found, dtype);
    if !cache.keeps() {
        return from_source(context, found, source, &options);
    }
    let key = key(found, source, &options);
    if let Some(binary) = cache.load(&key) {
        if let Some(message) = binary.strip_prefix(REFUSED) {
            let message = String::from_utf8_lossy(message);
            let again = "the next `lapidary cache clear` lets the driver try again";
            return Err(Error::new(ErrorKind::DeviceFailed, "compile", format!("refused before: {message} ({again})")));
        }
        match from_binary(context, found, &binary, &options) {
            Ok(program) => return Ok(program),
            Err(_) => cache.reject(),
        }
    }
    let program = from_source(context, found, source, &options).inspect_err(|error| {
        // other errors, such as a lack of memory, may pass
        if error.to_string().contains("CL_BUILD_PROGRAM_FAILURE") {
            cache.store(&key, &[REFUSED, error.to_string().as_bytes()].concat());
        }
    })?;
    if let Some(binary) = binary(&program) {
        cache.store(&key, &binary);
    }
    Ok(program)
}

/// The compiler options. No option breaks IEEE arithmetic. Divisions in f32 are correctly rounded if the device supports correct
/// rounding.
fn options(found: &Found, dtype: DType) -> String {
    let divide = if found.rounds_divisions && dtype == DType::F32 { " -cl-fp32-correctly-rounded-divide-sqrt" } else { "" };
    format!("-cl-std=CL1.2{divide}")
}

/// The cache key of a program: all properties on which the binary depends.
fn key(found: &Found, source: &Source, options: &str) -> String {
    let Found { platform_name, versions, compiler_traits, .. } = found;
    let model = &found.facts.identity.model;
    let file = &source.name;
    format!(
        "{file}\ngenerator {GENERATOR}\noptions {options}\nplatform {platform_name}\nversions {versions}\ndevice {model}\n{compiler_traits}\n\n{}",
        source.text
    )
}

fn from_binary(context: &Context, found: &Found, binary: &[u8], options: &str) -> Result<BuiltProgram> {
    // SAFETY: the checksum of the binary is correct and the cache key names this driver, so this driver has produced the binary.
    let program = unsafe { create_program_with_binary(context.0, &[found.device], &[binary]) };
    let program = BuiltProgram(program.map_err(|code| failed("clCreateProgramWithBinary", code))?);
    build(&program, found, options).map_err(|code| failed("clBuildProgram", code))?;
    Ok(program)
}

fn from_source(context: &Context, found: &Found, source: &Source, options: &str) -> Result<BuiltProgram> {
    let program = create_program_with_source(context.0, &[&source.text]);
    let program = BuiltProgram(program.map_err(|code| failed("clCreateProgramWithSource", code))?);
    build(&program, found, options).map_err(|code| refused(&program, found, source, code))?;
    Ok(program)
}

fn build(program: &BuiltProgram, found: &Found, options: &str) -> Result<(), i32> {
    let options = CString::new(options).expect("options hold no zero");
    build_program(program.0, &[found.device], &options, None, std::ptr::null_mut())
}

/// The error for a source that does not compile, with the compiler's log and the path of a file that holds the source.
fn refused(program: &BuiltProgram, found: &Found, source: &Source, code: i32) -> Error {
    let log = get_program_build_data(program.0, found.device, CL_PROGRAM_BUILD_LOG).unwrap_or_default();
    let log = String::from_utf8_lossy(&log).trim_matches(['\0', '\n', ' ']).to_owned();
    let place = source.keep().unwrap_or_else(|_| source.name.clone());
    let failure = failed("clBuildProgram", code);
    Error::new(failure.kind(), "compile", format!("{failure}: {log}"))
        .with("source", place)
        .with("device", &found.facts.identity.model)
}

/// The binary of a compiled program; `None` if the driver does not return it.
fn binary(program: &BuiltProgram) -> Option<Vec<u8>> {
    let binaries = get_program_info(program.0, CL_PROGRAM_BINARIES).ok()?.to_vec_vec_uchar();
    // the context of an application may hold more devices; the program was not built for them, so their binaries are empty
    binaries.into_iter().find(|binary| !binary.is_empty())
}

#[cfg(test)]
pub(crate) mod tests {
    use lapidary_core::CacheCounts;

    use super::*;
    use crate::platform::list;

    /// Returns the numbers of programs that the cache has found, has not found, and has rejected.
    fn numbers(counts: CacheCounts) -> [u64; 3] {
        [counts.hits, counts.misses, counts.rejected]
    }

    fn source(text: &str) -> Source {
        Source { name: "lapidary-test-f32.cl".to_owned(), text: text.to_owned() }
    }

    /// The first OpenCL device with a new context; `None` if there is no device.
    pub(crate) fn device() -> Option<(Found, Context)> {
        let found = list().devices.into_iter().next();
        assert!(found.is_some() || std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no OpenCL device");
        let found = found?;
        let properties = std::ptr::null();
        let context = cl3::context::create_context(&[found.device], properties, None, std::ptr::null_mut()).unwrap();
        Some((found, Context(context)))
    }

    #[test]
    fn a_text_that_does_not_compile_is_shown_with_the_log() {
        let Some((found, context)) = device() else { return };
        let cache = ProgramCache::new(None);
        let bad = source("__kernel void f(__global float *x) { x[0] = no_such_name; }");
        let error = build_or_load(&cache, &context, &found, &bad, DType::F32).unwrap_err();
        let (_, file) = error.context().find(|(key, _)| *key == "source").unwrap();
        assert!(error.to_string().contains("no_such_name") && file.ends_with("lapidary-test-f32.cl"), "{error}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), bad.text);
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn programs_are_kept_and_what_a_driver_refuses_is_compiled_again() {
        let Some((found, context)) = device() else { return };
        let folder = tempfile::tempdir().unwrap();
        let good = source("__kernel void f(__global float *x) { x[0] = 1; }");
        let counts = || {
            let cache = ProgramCache::new(Some(folder.path().to_owned()));
            create(&build_or_load(&cache, &context, &found, &good, DType::F32).unwrap(), "f").unwrap();
            numbers(cache.counts())
        };
        assert_eq!(counts(), [0, 1, 0]);
        assert_eq!(counts(), [1, 0, 0]);
        // the checksum of this cache entry is correct, but its content is no program of this driver
        let key = key(&found, &good, &options(&found, DType::F32));
        ProgramCache::new(Some(folder.path().to_owned())).store(&key, b"not a program");
        assert_eq!(counts(), [0, 0, 1]);
        assert_eq!(counts(), [1, 0, 0]);
    }

    #[test]
    fn what_does_not_fit_is_refused_before_a_build_and_after_it() {
        let Some((found, context)) = device() else { return };
        let program = Program::Elements { dtype: DType::F32, group: 8 };
        let mut programs = Programs::new(Arc::new(ProgramCache::new(None)));
        let kernel = programs.kernel(&context, &found, &program, "copy").unwrap();
        let wide = Program::Elements { dtype: DType::F32, group: found.facts.limits.work_group + 1 };
        assert_eq!(fits(kernel, &found, &wide).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(programs.program(&context, &found, &wide).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    /// Compiles the accepted text of each family of kernels. A text that does not compile would otherwise give way to another kernel.
    #[test]
    fn every_accepted_text_compiles() {
        let Some((found, context)) = device() else { return };
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/src/snapshots");
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|extension| extension == "cl")).collect();
        assert!(paths.len() >= 16, "{paths:?}");
        for path in paths {
            let source = Source { name: path.display().to_string(), text: std::fs::read_to_string(&path).unwrap() };
            // only compilers for devices of the kind `sm_…` take instructions of PTX
            if source.text.contains("asm volatile") && !found.facts.identity.architecture.starts_with("sm_") {
                continue;
            }
            let dtype = if source.text.contains("fp64") { DType::F64 } else { DType::F32 };
            if found.facts.computes(dtype) {
                let built = from_source(&context, &found, &source, &options(&found, dtype));
                assert!(built.is_ok(), "{}: {built:?}", source.name);
            }
        }
    }

    #[test]
    fn a_refusal_is_kept_on_disk() {
        let Some((found, context)) = device() else { return };
        let folder = tempfile::tempdir().unwrap();
        let bad = source("__kernel void f(__global float *x) { x[0] = no_such_name; }");
        let refusal = || {
            let cache = ProgramCache::new(Some(folder.path().to_owned()));
            let error = build_or_load(&cache, &context, &found, &bad, DType::F32).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DeviceFailed);
            (error.to_string(), numbers(cache.counts()))
        };
        let (first, counts) = refusal();
        assert_eq!(counts, [0, 1, 0]);
        let (second, counts) = refusal();
        assert_eq!(counts, [1, 0, 0]);
        assert!(
            !first.contains("refused before") && second.contains("refused before") && second.contains("no_such_name"),
            "{second}"
        );
    }

    #[test]
    fn a_refusal_is_remembered() {
        let Some((found, context)) = device() else { return };
        let program = Program::Elements { dtype: DType::F32, group: 8 };
        let mut programs = Programs::new(Arc::new(ProgramCache::new(None)));
        programs.refused.insert(program, "too long".to_owned());
        let error = programs.program(&context, &found, &program).unwrap_err();
        assert!(error.to_string().contains("refused before: too long"), "{error}");
    }
}
