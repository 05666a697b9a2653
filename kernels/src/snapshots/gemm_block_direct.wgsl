alias real = f32;
const MIN_POSITIVE: real = 1.17549435e-38f;
alias vec = vec2<real>;
alias size = u32;
alias stride = i32;
const MWG = 32u;
const NWG = 16u;
const KWG = 2u;
const MR = 4u;
const NR = 2u;
const KR = 2u;
const MEMORY = 0u;
const STAGES = 1u;
const PAD = 0u;
const VW = 2u;
const ORDER = 0u;
const INDEXING = 0u;
const INLINE = 0u;
const RASTER = 1u;
const SPLIT = 1u;
const SWIZZLE = 0u;
const TRANS_A = 0u;
const TRANS_B = 0u;

struct Args {
    m: u32,
    n: u32,
    k: u32,
    alpha: real,
    a_at: u32,
    a_ld: u32,
    b_at: u32,
    b_ld: u32,
    beta: real,
    c_at: u32,
    c_ld: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> a: array<real>;
@group(0) @binding(2) var<storage, read> b: array<real>;
@group(0) @binding(3) var<storage, read_write> c: array<real>;

// C <- alpha·op(A)·op(B) + beta·C. A workgroup computes a tile of MWG x NWG elements, and each invocation MR x NR elements of it.
//
// Invocation (ti, tj) of the tile at (i0, j0) computes rows row_x, row_x + 1, ... in column col_y for each x < 2 and y < 2:
//     start_x = i0 + (ti + 8·x)·2,  row_x = min(start_x, m - 2),  col_y = min(j0 + tj + 8·y, n - 1)
// A vector or a column beyond the edge thus repeats elements inside the matrices. The kernel does not store its results.
//     op(A)(i, p) = a[a_at + i + p·a_ld],  op(B)(p, j) = b[b_at + p + j·b_ld]
//
// Invocations read each term of both operands from global memory right before they multiply it.
// If beta = 0, the kernel does not read C.

@compute @workgroup_size(8, 8)
fn gemm_block(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) own: vec3<u32>) {
    let ti: u32 = own.x;
    let tj: u32 = own.y;
    let i0: u32 = group.x * MWG;
    let j0: u32 = group.y * NWG;
    let row_0: u32 = min(i0 + ti * 2u, args.m - 2u);
    let from_a_0: size = args.a_at + row_0;
    let row_1: u32 = min(i0 + (ti + 8u) * 2u, args.m - 2u);
    let from_a_1: size = args.a_at + row_1;
    let col_0: u32 = min(j0 + tj, args.n - 1u);
    let from_b_0: size = args.b_at + col_0 * args.b_ld;
    let col_1: u32 = min(j0 + tj + 8u, args.n - 1u);
    let from_b_1: size = args.b_at + col_1 * args.b_ld;
    var sum_0_0: vec;
    var sum_1_0: vec;
    var sum_0_1: vec;
    var sum_1_1: vec;

    var p: u32 = 0u;
    for (; p + KR <= args.k; p += KR) {
        let at_a_0: size = p * args.a_ld;
        let at_b_0: size = p;
        let at_a_1: size = (p + 1u) * args.a_ld;
        let at_b_1: size = (p + 1u);
        let b_0_0: real = b[from_b_0 + at_b_0];
        let b_0_1: real = b[from_b_1 + at_b_0];
        let a_0_0: vec = vec(a[from_a_0 + at_a_0], a[from_a_0 + at_a_0 + 1u]);
        sum_0_0 = fma(a_0_0, vec(b_0_0), sum_0_0);
        sum_0_1 = fma(a_0_0, vec(b_0_1), sum_0_1);
        let a_0_1: vec = vec(a[from_a_1 + at_a_0], a[from_a_1 + at_a_0 + 1u]);
        sum_1_0 = fma(a_0_1, vec(b_0_0), sum_1_0);
        sum_1_1 = fma(a_0_1, vec(b_0_1), sum_1_1);
        let b_1_0: real = b[from_b_0 + at_b_1];
        let b_1_1: real = b[from_b_1 + at_b_1];
        let a_1_0: vec = vec(a[from_a_0 + at_a_1], a[from_a_0 + at_a_1 + 1u]);
        sum_0_0 = fma(a_1_0, vec(b_1_0), sum_0_0);
        sum_0_1 = fma(a_1_0, vec(b_1_1), sum_0_1);
        let a_1_1: vec = vec(a[from_a_1 + at_a_1], a[from_a_1 + at_a_1 + 1u]);
        sum_1_0 = fma(a_1_1, vec(b_1_0), sum_1_0);
        sum_1_1 = fma(a_1_1, vec(b_1_1), sum_1_1);
    }
    for (; p < args.k; p++) {
        let at_a_0: size = p * args.a_ld;
        let at_b_0: size = p;
        let b_0_0: real = b[from_b_0 + at_b_0];
        let b_0_1: real = b[from_b_1 + at_b_0];
        let a_0_0: vec = vec(a[from_a_0 + at_a_0], a[from_a_0 + at_a_0 + 1u]);
        sum_0_0 = fma(a_0_0, vec(b_0_0), sum_0_0);
        sum_0_1 = fma(a_0_0, vec(b_0_1), sum_0_1);
        let a_0_1: vec = vec(a[from_a_1 + at_a_0], a[from_a_1 + at_a_0 + 1u]);
        sum_1_0 = fma(a_0_1, vec(b_0_0), sum_1_0);
        sum_1_1 = fma(a_0_1, vec(b_0_1), sum_1_1);
    }
    // Several old elements are read before the first of them is replaced. Otherwise each read would wait for the read before, because the compiler
    // keeps the order of reads and writes.
    let old_0_0: vec = old(i0 + ti * 2u, j0 + tj);
    let old_1_0: vec = old(i0 + (ti + 8u) * 2u, j0 + tj);
    let old_0_1: vec = old(i0 + ti * 2u, j0 + tj + 8u);
    let old_1_1: vec = old(i0 + (ti + 8u) * 2u, j0 + tj + 8u);
    store(i0 + ti * 2u, j0 + tj, sum_0_0, old_0_0);
    store(i0 + (ti + 8u) * 2u, j0 + tj, sum_1_0, old_1_0);
    store(i0 + ti * 2u, j0 + tj + 8u, sum_0_1, old_0_1);
    store(i0 + (ti + 8u) * 2u, j0 + tj + 8u, sum_1_1, old_1_1);
}

// Reads column j of C in the vector of rows that begins at `start`. Elements above `start` or outside C are zero, and all elements are zero if
// beta = 0.
fn old(start: u32, j: u32) -> vec {
    var elements: vec;
    if (args.beta == real(0) || j >= args.n) { return elements; }
    let row: u32 = min(start, args.m - 2u);
    let at: size = args.c_at + row + j * args.c_ld;
    if (row >= start) { elements.x = c[at]; }
    if (row + 1u >= start) { elements.y = c[at + 1u]; }
    return elements;
}

// Computes column j of C in the vector of rows that begins at `start`, and stores the elements at `start` and below it.
fn store(start: u32, j: u32, sum: vec, old: vec) {
    if (j >= args.n) { return; }
    let row: u32 = min(start, args.m - 2u);
    let at: size = args.c_at + row + j * args.c_ld;
    var elements: vec = args.alpha * sum;
    if (args.beta != real(0)) { elements = elements + args.beta * old; }
    // the rows above `start` belong to another vector
    if (row >= start) { c[at] = elements.x; }
    if (row + 1u >= start) { c[at + 1u] = elements.y; }
}