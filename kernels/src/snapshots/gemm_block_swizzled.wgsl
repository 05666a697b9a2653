alias real = f32;
const MIN_POSITIVE: real = 1.17549435e-38f;
alias vec = vec2<real>;
alias size = u32;
alias stride = i32;
const MWG = 32u;
const NWG = 16u;
const KWG = 8u;
const MR = 4u;
const NR = 2u;
const KR = 2u;
const MEMORY = 1u;
const STAGES = 2u;
const PAD = 0u;
const VW = 2u;
const ORDER = 0u;
const INDEXING = 0u;
const INLINE = 0u;
const RASTER = 1u;
const SPLIT = 1u;
const SWIZZLE = 1u;
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
// Invocation (ti, tj) of the tile at (i0, j0) computes rows row_x, row_x + 1, ... in column col_y for each x < 2 and y < 2:
//     start_x = i0 + (ti + 8·x)·2,  row_x = min(start_x, m - 2),  col_y = min(j0 + tj + 8·y, n - 1)
// A vector or a column beyond the edge thus repeats elements inside the matrices. The kernel does not store its results.
//     op(A)(i, p) = a[a_at + p + i·a_ld],  op(B)(p, j) = b[b_at + p + j·b_ld]
//     slice_a[p·16 + (v ^ p·2 mod 16)] = vector v of the tile's rows of op(A) in term p of a slice, v < 16
//     slice_b[p·16 + (j ^ p/2·4 mod 16)] = op(B)(p, j0 + j) in term p of a slice, j < 16
//
// Both operands pass through workgroup memory in slices of KWG terms.
// Workgroup memory holds two slices of an operand: some invocations fill one slice while others still use the other slice.
// Invocations store neighbouring terms of A and of B to different lines of a slice.
// The operator ^ (exclusive or) permutes each line so that no two of these stores use the same bank of memory at once.
// If beta = 0, the kernel does not read C.
var<workgroup> slice_a: array<vec, 256>;
var<workgroup> slice_b: array<real, 256>;

@compute @workgroup_size(8, 8)
fn gemm_block(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) own: vec3<u32>) {
    let ti: u32 = own.x;
    let tj: u32 = own.y;
    let i0: u32 = group.x * MWG;
    let j0: u32 = group.y * NWG;
    let t: u32 = ti + tj * 8u;
    // this invocation brings vector v_a_e of the tile in term p_a_e of each slice to place to_a_e
    let v_a_0: u32 = t / KWG;
    let p_a_0: u32 = t % KWG;
    let row_0: u32 = min(i0 + v_a_0 * 2u, args.m - 2u);
    let from_a_0: size = args.a_at + row_0 * args.a_ld + p_a_0;
    let to_a_0: u32 = p_a_0 * 16u + (v_a_0 ^ (p_a_0 * 2u % 16u));
    let v_a_1: u32 = (t + 64u) / KWG;
    let p_a_1: u32 = (t + 64u) % KWG;
    let row_1: u32 = min(i0 + v_a_1 * 2u, args.m - 2u);
    let from_a_1: size = args.a_at + row_1 * args.a_ld + p_a_1;
    let to_a_1: u32 = p_a_1 * 16u + (v_a_1 ^ (p_a_1 * 2u % 16u));
    // this invocation brings column j_b_e of the tile in term p_b_e of each slice to place to_b_e
    let j_b_0: u32 = t / KWG;
    let p_b_0: u32 = t % KWG;
    let col_0: u32 = min(j0 + j_b_0, args.n - 1u);
    let from_b_0: size = args.b_at + col_0 * args.b_ld + p_b_0;
    let to_b_0: u32 = p_b_0 * 16u + (j_b_0 ^ (p_b_0 / 2u * 4u % 16u));
    let j_b_1: u32 = (t + 64u) / KWG;
    let p_b_1: u32 = (t + 64u) % KWG;
    let col_1: u32 = min(j0 + j_b_1, args.n - 1u);
    let from_b_1: size = args.b_at + col_1 * args.b_ld + p_b_1;
    let to_b_1: u32 = p_b_1 * 16u + (j_b_1 ^ (p_b_1 / 2u * 4u % 16u));
    var sum_0_0: vec;
    var sum_1_0: vec;
    var sum_0_1: vec;
    var sum_1_1: vec;

    var used: u32 = 0u;
    for (var p0: u32 = 0u; p0 < args.k; p0 += KWG) {
        let depth: u32 = min(KWG, args.k - p0);
        let at_a: size = p0;
        let at_b: size = p0;
        if (depth == KWG) {
            slice_a[used * 128u + to_a_0] = vec(a[from_a_0 + at_a], a[from_a_0 + at_a + 1u * args.a_ld]);
            slice_a[used * 128u + to_a_1] = vec(a[from_a_1 + at_a], a[from_a_1 + at_a + 1u * args.a_ld]);
            slice_b[used * 128u + to_b_0] = b[from_b_0 + at_b];
            slice_b[used * 128u + to_b_1] = b[from_b_1 + at_b];
        } else {
            if (p_a_0 < depth) { slice_a[used * 128u + to_a_0] = vec(a[from_a_0 + at_a], a[from_a_0 + at_a + 1u * args.a_ld]); }
            if (p_a_1 < depth) { slice_a[used * 128u + to_a_1] = vec(a[from_a_1 + at_a], a[from_a_1 + at_a + 1u * args.a_ld]); }
            if (p_b_0 < depth) { slice_b[used * 128u + to_b_0] = b[from_b_0 + at_b]; }
            if (p_b_1 < depth) { slice_b[used * 128u + to_b_1] = b[from_b_1 + at_b]; }
        }
        workgroupBarrier();
        if (depth == KWG) {
            for (var p: u32 = 0u; p < KWG; p += KR) {
                let at_a_0: u32 = used * 128u + p * 16u;
                let swizzled_a_0: u32 = ti ^ (p * 2u % 16u);
                let at_b_0: u32 = used * 128u + p * 16u;
                let swizzled_b_0: u32 = tj ^ (p / 2u * 4u % 16u);
                let at_a_1: u32 = used * 128u + (p + 1u) * 16u;
                let swizzled_a_1: u32 = ti ^ ((p + 1u) * 2u % 16u);
                let at_b_1: u32 = used * 128u + (p + 1u) * 16u;
                let swizzled_b_1: u32 = tj ^ ((p + 1u) / 2u * 4u % 16u);
                let b_0_0: real = slice_b[at_b_0 + swizzled_b_0];
                let b_0_1: real = slice_b[at_b_0 + (swizzled_b_0 ^ 8u)];
                let a_0_0: vec = slice_a[at_a_0 + swizzled_a_0];
                sum_0_0 = fma(a_0_0, vec(b_0_0), sum_0_0);
                sum_0_1 = fma(a_0_0, vec(b_0_1), sum_0_1);
                let a_0_1: vec = slice_a[at_a_0 + (swizzled_a_0 ^ 8u)];
                sum_1_0 = fma(a_0_1, vec(b_0_0), sum_1_0);
                sum_1_1 = fma(a_0_1, vec(b_0_1), sum_1_1);
                let b_1_0: real = slice_b[at_b_1 + swizzled_b_1];
                let b_1_1: real = slice_b[at_b_1 + (swizzled_b_1 ^ 8u)];
                let a_1_0: vec = slice_a[at_a_1 + swizzled_a_1];
                sum_0_0 = fma(a_1_0, vec(b_1_0), sum_0_0);
                sum_0_1 = fma(a_1_0, vec(b_1_1), sum_0_1);
                let a_1_1: vec = slice_a[at_a_1 + (swizzled_a_1 ^ 8u)];
                sum_1_0 = fma(a_1_1, vec(b_1_0), sum_1_0);
                sum_1_1 = fma(a_1_1, vec(b_1_1), sum_1_1);
            }
        } else {
            for (var p: u32 = 0u; p < depth; p++) {
                let at_a_0: u32 = used * 128u + p * 16u;
                let swizzled_a_0: u32 = ti ^ (p * 2u % 16u);
                let at_b_0: u32 = used * 128u + p * 16u;
                let swizzled_b_0: u32 = tj ^ (p / 2u * 4u % 16u);
                let b_0_0: real = slice_b[at_b_0 + swizzled_b_0];
                let b_0_1: real = slice_b[at_b_0 + (swizzled_b_0 ^ 8u)];
                let a_0_0: vec = slice_a[at_a_0 + swizzled_a_0];
                sum_0_0 = fma(a_0_0, vec(b_0_0), sum_0_0);
                sum_0_1 = fma(a_0_0, vec(b_0_1), sum_0_1);
                let a_0_1: vec = slice_a[at_a_0 + (swizzled_a_0 ^ 8u)];
                sum_1_0 = fma(a_0_1, vec(b_0_0), sum_1_0);
                sum_1_1 = fma(a_0_1, vec(b_0_1), sum_1_1);
            }
        }
        used = 1u - used;
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