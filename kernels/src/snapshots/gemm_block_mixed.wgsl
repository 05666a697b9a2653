alias real = f32;
const MIN_POSITIVE: real = 1.17549435e-38f;
alias vec = real;
alias size = u32;
alias stride = i32;
const MWG = 32u;
const NWG = 16u;
const KWG = 8u;
const MR = 4u;
const NR = 2u;
const KR = 2u;
const MEMORY = 2u;
const STAGES = 1u;
const PAD = 1u;
const VW = 1u;
const ORDER = 1u;
const INDEXING = 0u;
const INLINE = 0u;
const RASTER = 1u;
const SPLIT = 1u;
const SWIZZLE = 0u;
const TRANS_A = 1u;
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
// Invocation (ti, tj) of the tile at (i0, j0) computes rows row_x, row_x + 1, ... in column col_y for each x < 4 and y < 2:
//     start_x = i0 + (ti + 8·x)·1,  row_x = min(start_x, m - 1),  col_y = min(j0 + tj + 8·y, n - 1)
// A vector or a column beyond the edge thus repeats elements inside the matrices. The kernel does not store its results.
//     op(A)(i, p) = a[a_at + p + i·a_ld],  op(B)(p, j) = b[b_at + p + j·b_ld]
//     slice_a[p·33 + v] = vector v of the tile's rows of op(A) in term p of a slice, v < 32
//
// A passes through workgroup memory in slices of KWG terms. Invocations read B from global memory.
// If beta = 0, the kernel does not read C.
var<workgroup> slice_a: array<vec, 264>;

@compute @workgroup_size(8, 8)
fn gemm_block(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) own: vec3<u32>) {
    let ti: u32 = own.x;
    let tj: u32 = own.y;
    let i0: u32 = group.x * MWG;
    let j0: u32 = group.y * NWG;
    let col_0: u32 = min(j0 + tj, args.n - 1u);
    let from_b_0: size = args.b_at + col_0 * args.b_ld;
    let col_1: u32 = min(j0 + tj + 8u, args.n - 1u);
    let from_b_1: size = args.b_at + col_1 * args.b_ld;
    let t: u32 = ti + tj * 8u;
    // this invocation brings vector v_a_e of the tile in term p_a_e of each slice to place to_a_e
    let v_a_0: u32 = t / KWG;
    let p_a_0: u32 = t % KWG;
    let row_0: u32 = min(i0 + v_a_0, args.m - 1u);
    let from_a_0: size = args.a_at + row_0 * args.a_ld + p_a_0;
    let to_a_0: u32 = p_a_0 * 33u + v_a_0;
    let v_a_1: u32 = (t + 64u) / KWG;
    let p_a_1: u32 = (t + 64u) % KWG;
    let row_1: u32 = min(i0 + v_a_1, args.m - 1u);
    let from_a_1: size = args.a_at + row_1 * args.a_ld + p_a_1;
    let to_a_1: u32 = p_a_1 * 33u + v_a_1;
    let v_a_2: u32 = (t + 128u) / KWG;
    let p_a_2: u32 = (t + 128u) % KWG;
    let row_2: u32 = min(i0 + v_a_2, args.m - 1u);
    let from_a_2: size = args.a_at + row_2 * args.a_ld + p_a_2;
    let to_a_2: u32 = p_a_2 * 33u + v_a_2;
    let v_a_3: u32 = (t + 192u) / KWG;
    let p_a_3: u32 = (t + 192u) % KWG;
    let row_3: u32 = min(i0 + v_a_3, args.m - 1u);
    let from_a_3: size = args.a_at + row_3 * args.a_ld + p_a_3;
    let to_a_3: u32 = p_a_3 * 33u + v_a_3;
    var sum_0_0: vec;
    var sum_1_0: vec;
    var sum_2_0: vec;
    var sum_3_0: vec;
    var sum_0_1: vec;
    var sum_1_1: vec;
    var sum_2_1: vec;
    var sum_3_1: vec;

    for (var p0: u32 = 0u; p0 < args.k; p0 += KWG) {
        let depth: u32 = min(KWG, args.k - p0);
        let at_a: size = p0;
        if (depth == KWG) {
            slice_a[to_a_0] = a[from_a_0 + at_a];
            slice_a[to_a_1] = a[from_a_1 + at_a];
            slice_a[to_a_2] = a[from_a_2 + at_a];
            slice_a[to_a_3] = a[from_a_3 + at_a];
        } else {
            if (p_a_0 < depth) { slice_a[to_a_0] = a[from_a_0 + at_a]; }
            if (p_a_1 < depth) { slice_a[to_a_1] = a[from_a_1 + at_a]; }
            if (p_a_2 < depth) { slice_a[to_a_2] = a[from_a_2 + at_a]; }
            if (p_a_3 < depth) { slice_a[to_a_3] = a[from_a_3 + at_a]; }
        }
        workgroupBarrier();
        if (depth == KWG) {
            for (var p: u32 = 0u; p < KWG; p += KR) {
                let at_a_0: u32 = ti + p * 33u;
                let at_b_0: size = (p0 + p);
                let at_a_1: u32 = ti + (p + 1u) * 33u;
                let at_b_1: size = (p0 + p + 1u);
                let a_0_0: vec = slice_a[at_a_0];
                let a_0_1: vec = slice_a[at_a_0 + 8u];
                let a_0_2: vec = slice_a[at_a_0 + 16u];
                let a_0_3: vec = slice_a[at_a_0 + 24u];
                let b_0_0: real = b[from_b_0 + at_b_0];
                sum_0_0 = fma(a_0_0, b_0_0, sum_0_0);
                sum_1_0 = fma(a_0_1, b_0_0, sum_1_0);
                sum_2_0 = fma(a_0_2, b_0_0, sum_2_0);
                sum_3_0 = fma(a_0_3, b_0_0, sum_3_0);
                let b_0_1: real = b[from_b_1 + at_b_0];
                sum_0_1 = fma(a_0_0, b_0_1, sum_0_1);
                sum_1_1 = fma(a_0_1, b_0_1, sum_1_1);
                sum_2_1 = fma(a_0_2, b_0_1, sum_2_1);
                sum_3_1 = fma(a_0_3, b_0_1, sum_3_1);
                let a_1_0: vec = slice_a[at_a_1];
                let a_1_1: vec = slice_a[at_a_1 + 8u];
                let a_1_2: vec = slice_a[at_a_1 + 16u];
                let a_1_3: vec = slice_a[at_a_1 + 24u];
                let b_1_0: real = b[from_b_0 + at_b_1];
                sum_0_0 = fma(a_1_0, b_1_0, sum_0_0);
                sum_1_0 = fma(a_1_1, b_1_0, sum_1_0);
                sum_2_0 = fma(a_1_2, b_1_0, sum_2_0);
                sum_3_0 = fma(a_1_3, b_1_0, sum_3_0);
                let b_1_1: real = b[from_b_1 + at_b_1];
                sum_0_1 = fma(a_1_0, b_1_1, sum_0_1);
                sum_1_1 = fma(a_1_1, b_1_1, sum_1_1);
                sum_2_1 = fma(a_1_2, b_1_1, sum_2_1);
                sum_3_1 = fma(a_1_3, b_1_1, sum_3_1);
            }
        } else {
            for (var p: u32 = 0u; p < depth; p++) {
                let at_a_0: u32 = ti + p * 33u;
                let at_b_0: size = (p0 + p);
                let a_0_0: vec = slice_a[at_a_0];
                let a_0_1: vec = slice_a[at_a_0 + 8u];
                let a_0_2: vec = slice_a[at_a_0 + 16u];
                let a_0_3: vec = slice_a[at_a_0 + 24u];
                let b_0_0: real = b[from_b_0 + at_b_0];
                sum_0_0 = fma(a_0_0, b_0_0, sum_0_0);
                sum_1_0 = fma(a_0_1, b_0_0, sum_1_0);
                sum_2_0 = fma(a_0_2, b_0_0, sum_2_0);
                sum_3_0 = fma(a_0_3, b_0_0, sum_3_0);
                let b_0_1: real = b[from_b_1 + at_b_0];
                sum_0_1 = fma(a_0_0, b_0_1, sum_0_1);
                sum_1_1 = fma(a_0_1, b_0_1, sum_1_1);
                sum_2_1 = fma(a_0_2, b_0_1, sum_2_1);
                sum_3_1 = fma(a_0_3, b_0_1, sum_3_1);
            }
        }
        // all invocations must have used this slice before the next one replaces it
        workgroupBarrier();
    }
    // Several old elements are read before the first of them is replaced. Otherwise each read would wait for the read before, because the compiler
    // keeps the order of reads and writes.
    let old_0_0: vec = old(i0 + ti, j0 + tj);
    let old_1_0: vec = old(i0 + ti + 8u, j0 + tj);
    let old_2_0: vec = old(i0 + ti + 16u, j0 + tj);
    let old_3_0: vec = old(i0 + ti + 24u, j0 + tj);
    let old_0_1: vec = old(i0 + ti, j0 + tj + 8u);
    let old_1_1: vec = old(i0 + ti + 8u, j0 + tj + 8u);
    let old_2_1: vec = old(i0 + ti + 16u, j0 + tj + 8u);
    let old_3_1: vec = old(i0 + ti + 24u, j0 + tj + 8u);
    store(i0 + ti, j0 + tj, sum_0_0, old_0_0);
    store(i0 + ti + 8u, j0 + tj, sum_1_0, old_1_0);
    store(i0 + ti + 16u, j0 + tj, sum_2_0, old_2_0);
    store(i0 + ti + 24u, j0 + tj, sum_3_0, old_3_0);
    store(i0 + ti, j0 + tj + 8u, sum_0_1, old_0_1);
    store(i0 + ti + 8u, j0 + tj + 8u, sum_1_1, old_1_1);
    store(i0 + ti + 16u, j0 + tj + 8u, sum_2_1, old_2_1);
    store(i0 + ti + 24u, j0 + tj + 8u, sum_3_1, old_3_1);
}

// Reads column j of C in the vector of rows that begins at `start`. Elements above `start` or outside C are zero, and all elements are zero if
// beta = 0.
fn old(start: u32, j: u32) -> vec {
    var elements: vec;
    if (args.beta == real(0) || j >= args.n) { return elements; }
    let row: u32 = min(start, args.m - 1u);
    let at: size = args.c_at + row + j * args.c_ld;
    if (row >= start) { elements = c[at]; }
    return elements;
}

// Computes column j of C in the vector of rows that begins at `start`, and stores the elements at `start` and below it.
fn store(start: u32, j: u32, sum: vec, old: vec) {
    if (j >= args.n) { return; }
    let row: u32 = min(start, args.m - 1u);
    let at: size = args.c_at + row + j * args.c_ld;
    var elements: vec = args.alpha * sum;
    if (args.beta != real(0)) { elements = elements + args.beta * old; }
    // the rows above `start` belong to another vector
    if (row >= start) { c[at] = elements; }
}