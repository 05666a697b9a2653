//! Tests of products whose kernel reads the operands from images. The tests do not run in oclgrind, which reports elements in f64 from
//! images as uninitialised although they were written.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use std::sync::Arc;

use lapidary_backend_opencl::{OpenClDevice, list};
use lapidary_core::{
    BufferRect, DType, Device, DeviceBuffer, ErrorKind, HostRect, Instruction, Memory, Op, Operand, ProgramCache, Result, Scalar,
    Value,
};

/// Kernel for products by vector loads, with tiles that a compiler for a CPU unrolls in seconds.
const NARROW: &str = "gemm_vector mwg=32 nwg=32 kwg=4 mr=4 nr=8 lanes_n=4";
/// Number of elements before an operand in its buffer, and between its columns. A vector has at most four elements.
const OFFSET: usize = 12;
const GAP: usize = 4;

/// Opens all OpenCL devices that read buffers as images. At least one device must do so where OpenCL is required.
fn devices() -> Vec<OpenClDevice> {
    let listing = list();
    let numbers = (0..listing.devices.len()).filter(|&at| listing.devices[at].facts.limits.image_pixels > 0);
    let open = |at| OpenClDevice::open(at, None, Arc::new(ProgramCache::new(None))).unwrap();
    let devices: Vec<OpenClDevice> = numbers.map(open).collect();
    if devices.is_empty() {
        assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no device reads images: {:?}", listing.notes);
        eprintln!("not run: no OpenCL device reads images");
    }
    devices
}

/// A matrix in a buffer of its own, `OFFSET` elements after its beginning.
struct Matrix {
    buffer: DeviceBuffer,
    shape: [usize; 2],
    ld: usize,
}

impl Matrix {
    fn new<T: Scalar>(device: &OpenClDevice, shape @ [rows, cols]: [usize; 2], ld: usize, seed: usize) -> Self {
        let element = |at: usize| T::from_f64(((at + seed) * 7919 % 1009) as f64 / 1009.0 - 0.4);
        let mut data: Vec<T> = (0..OFFSET + cols * ld).map(element).collect();
        assert!(rows <= ld);
        let buffer = device.alloc(size_of_val(&data[..])).unwrap();
        let count = data.len();
        // SAFETY: the buffer is new and has the size of `data`.
        unsafe { device.write(HostRect::packed(&mut data, count), BufferRect::packed(&buffer, count)).unwrap() };
        Matrix { buffer, shape, ld }
    }

    fn operand<T: Scalar>(&self) -> Operand<'_> {
        let [rows, cols] = self.shape;
        Operand { memory: Memory::Buffer(&self.buffer), offset: OFFSET, rows, cols, ld: self.ld, dtype: T::DTYPE }
    }

    /// Returns all elements of the buffer.
    fn elements<T: Scalar>(&self, device: &OpenClDevice) -> Vec<f64> {
        let mut data = vec![T::from_f64(0.0); OFFSET + self.shape[1] * self.ld];
        let count = data.len();
        // SAFETY: `data` has the size of the buffer, which no other command uses.
        unsafe { device.read(BufferRect::packed(&self.buffer, count), HostRect::packed(&mut data, count)).unwrap() };
        data.into_iter().map(Scalar::to_f64).collect()
    }
}

/// Computes C ← ½·A·op(B) - 2·C with the kernel `entry` only, and returns the elements of C.
fn product<T: Scalar>(device: &OpenClDevice, entry: &str, op_b: Op, [m, n, k]: [usize; 3], gap: usize) -> Result<Vec<f64>> {
    device.prefer_kernels(&format!("{entry}\nstop gemm")).expect("the device has kernels").unwrap();
    let (rows_b, cols_b) = op_b.shape((k, n));
    let matrix = |[rows, cols]: [usize; 2], seed| Matrix::new::<T>(device, [rows, cols], rows + gap, seed);
    let [a, b, c] = [matrix([m, k], 1), matrix([rows_b, cols_b], 2), matrix([m, n], 3)];
    let [alpha, beta] = [0.5, -2.0].map(|number| Value::new(T::DTYPE, number));
    let [a_operand, b_operand, c_operand] = [&a, &b, &c].map(Matrix::operand::<T>);
    let product = Instruction::Gemm { alpha, op_a: Op::NoTrans, a: a_operand, op_b, b: b_operand, beta, c: c_operand };
    // SAFETY: the operands lie in their buffers, which no other command uses.
    unsafe { device.launch(&product)? };
    Ok(c.elements::<T>(device))
}

/// Whether a product from images has the bits of the same product from buffers. `None` if the device refuses a kernel of the product from
/// buffers: a driver may compile the kernel that copies operands for fewer work-items only.
fn has_the_same_bits<T: Scalar>(device: &OpenClDevice, op_b: Op, flags: &str, sizes: [usize; 3], gap: usize) -> Option<bool> {
    let with = |images| product::<T>(device, &format!("{NARROW} {flags} images={images}"), op_b, sizes, gap);
    let buffers = match with(0) {
        Err(error) if error.kind() == ErrorKind::Unsupported => return None,
        elements => elements.unwrap(),
    };
    assert!(buffers.iter().all(|element| element.is_finite()));
    let bits = |elements: &[f64]| elements.iter().map(|element| element.to_bits()).collect::<Vec<_>>();
    Some(bits(&buffers) == bits(&with(1).unwrap()))
}

/// Compares products of matrices of a precision, on all devices. Operands in whole vectors are not copied. Operands of odd sizes are first
/// copied to scratch memory, on some device at least.
fn images_compute_as_buffers<T: Scalar>() {
    let devices: Vec<OpenClDevice> = devices().into_iter().filter(|device| device.facts().computes(T::DTYPE)).collect();
    let mut copied = devices.is_empty();
    for device in &devices {
        for (op_b, flags) in [(Op::NoTrans, "zigzag=1 ahead=0"), (Op::Trans, "zigzag=0 ahead=1")] {
            let name = &device.facts().description;
            assert_eq!(has_the_same_bits::<T>(device, op_b, flags, [64, 48, 40], GAP), Some(true), "{name} {op_b:?}");
            let odd = has_the_same_bits::<T>(device, op_b, flags, [67, 65, 71], 1);
            assert_ne!(odd, Some(false), "{name} {op_b:?}, copied operands");
            copied |= odd == Some(true);
        }
    }
    assert!(copied, "no device copies operands");
}

#[test]
fn products_from_images_have_the_bits_of_products_from_buffers() {
    images_compute_as_buffers::<f32>();
    images_compute_as_buffers::<f64>();
}

/// A kernel must not write the buffer of an image that it reads, so that a product within one buffer uses the next entry.
#[test]
fn a_product_within_one_buffer_reads_no_image() {
    for device in devices() {
        let images = format!("{NARROW} zigzag=1 ahead=0 images=1\nstop gemm");
        device.prefer_kernels(&images).expect("the device has kernels").unwrap();
        let matrix = Matrix::new::<f32>(&device, [64, 192], 64, 1);
        let part = |at: usize| Operand { offset: OFFSET + at * 64 * 64, cols: 64, ..matrix.operand::<f32>() };
        let [alpha, beta] = [1.0, 0.0].map(|number| Value::new(DType::F32, number));
        let [op_a, op_b] = [Op::NoTrans, Op::Trans];
        let product = |c| Instruction::Gemm { alpha, op_a, a: part(0), op_b, b: part(1), beta, c };
        let other = Matrix::new::<f32>(&device, [64, 64], 64, 1);
        // SAFETY: the operands lie in their buffers and do not overlap.
        let [apart, within] = unsafe { [other.operand::<f32>(), part(2)].map(|c| device.launch(&product(c))) };
        assert!(apart.is_ok(), "{apart:?}");
        assert_eq!(within.unwrap_err().kind(), ErrorKind::Unsupported, "no other kernel is listed");
    }
}
