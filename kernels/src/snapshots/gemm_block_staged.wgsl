alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
alias vec = vec4<real>;
alias size = u32;
alias stride = i32;
const MWG = 32u;
const NWG = 16u;
const KWG = 8u;
const MR = 4u;
const NR = 2u;
const KR = 2u;
const MEMORY = 4u;
const STAGES = 2u;
const PAD = 1u;
const VW = 4u;
const ORDER = 0u;
const INDEXING = 1u;
const INLINE = 1u;
const RASTER = 4u;
const SPLIT = 1u;
const SWIZZLE = 0u;
const TRANS_A = 0u;
const TRANS_B = 1u;
const M = 37u;
const N = 29u;
const K = 53u;

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
// Invocation (ti, tj) of the tile at (i0, j0) computes rows row_x, row_x + 1, ... in column col_y for each x < 1 and y < 2:
//     start_x = i0 + (ti + 8·x)·4,  row_x = min(start_x, m - 4),  col_y = min(j0 + tj + 8·y, n - 1)
// A vector or a column beyond the edge thus repeats elements inside the matrices. The kernel does not store its results.
//     op(A)(i, p) = a[a_at + i + p·a_ld],  op(B)(p, j) = b[b_at + j + p·b_ld]
//     slice_a[p·9 + v] = vector v of the tile's rows of op(A) in term p of a slice, v < 8
//     slice_b[p·17 + j] = op(B)(p, j0 + j) in term p of a slice, j < 16
//
// Both operands pass through workgroup memory in slices of KWG terms. Invocations load the next slice into registers
// while they use a slice, and read KR terms of a slice into registers before they multiply them.
// Workgroup memory holds two slices of an operand: some invocations fill one slice while others still use the other slice.
// If beta = 0, the kernel does not read C.
var<workgroup> slice_a: array<vec, 144>;
var<workgroup> slice_b: array<real, 272>;

@compute @workgroup_size(8, 8)
fn gemm_block(@builtin(global_invocation_id) item: vec3<u32>) {
    let ti: u32 = item.x % 8u;
    let tj: u32 = item.y % 8u;
    // workgroups take the tiles in stripes of RASTER columns of tiles, row by row within a stripe
    let tiles_m: size = (M + MWG - 1u) / MWG;
    let tiles_n: size = (N + NWG - 1u) / NWG;
    let number: size = item.x / 8u + item.y / 8u * tiles_m;
    let stripe: size = number / (RASTER * tiles_m);
    let in_stripe: size = number % (RASTER * tiles_m);
    let width: size = min(RASTER, tiles_n - stripe * RASTER);
    let i0: u32 = in_stripe / width * MWG;
    let j0: u32 = (stripe * RASTER + in_stripe % width) * NWG;
    let t: u32 = ti + tj * 8u;
    // this invocation brings vector v_a_e of the tile in term p_a_e of each slice to place to_a_e
    let v_a_0: u32 = t % 8u;
    let p_a_0: u32 = t / 8u;
    let row_0: u32 = min(i0 + v_a_0 * 4u, M - 4u);
    let from_a_0: size = args.a_at + row_0 + p_a_0 * args.a_ld;
    let to_a_0: u32 = p_a_0 * 9u + v_a_0;
    var next_a_0: vec;
    // this invocation brings column j_b_e of the tile in term p_b_e of each slice to place to_b_e
    let j_b_0: u32 = t % NWG;
    let p_b_0: u32 = t / NWG;
    let col_0: u32 = min(j0 + j_b_0, N - 1u);
    let from_b_0: size = args.b_at + col_0 + p_b_0 * args.b_ld;
    let to_b_0: u32 = p_b_0 * 17u + j_b_0;
    var next_b_0: real;
    let j_b_1: u32 = (t + 64u) % NWG;
    let p_b_1: u32 = (t + 64u) / NWG;
    let col_1: u32 = min(j0 + j_b_1, N - 1u);
    let from_b_1: size = args.b_at + col_1 + p_b_1 * args.b_ld;
    let to_b_1: u32 = p_b_1 * 17u + j_b_1;
    var next_b_1: real;
    var sum_0_0: vec;
    var sum_0_1: vec;

    var used: u32 = 0u;
    {
        let depth: u32 = min(KWG, K);
        let at_a: size = 0u * args.a_ld;
        let at_b: size = 0u * args.b_ld;
        if (depth == KWG) {
            next_a_0 = vec(a[from_a_0 + at_a], a[from_a_0 + at_a + 1u], a[from_a_0 + at_a + 2u], a[from_a_0 + at_a + 3u]);
            next_b_0 = b[from_b_0 + at_b];
            next_b_1 = b[from_b_1 + at_b];
        } else {
            if (p_a_0 < depth) { next_a_0 = vec(a[from_a_0 + at_a], a[from_a_0 + at_a + 1u], a[from_a_0 + at_a + 2u], a[from_a_0 + at_a + 3u]); }
            if (p_b_0 < depth) { next_b_0 = b[from_b_0 + at_b]; }
            if (p_b_1 < depth) { next_b_1 = b[from_b_1 + at_b]; }
        }
    }
    for (var p0: u32 = 0u; p0 < K; p0 += KWG) {
        let depth: u32 = min(KWG, K - p0);
        {
            slice_a[used * 72u + to_a_0] = next_a_0;
            slice_b[used * 136u + to_b_0] = next_b_0;
            slice_b[used * 136u + to_b_1] = next_b_1;
        }
        workgroupBarrier();
        if (p0 + KWG < K) {
            let first: u32 = p0 + KWG;
            let depth: u32 = min(KWG, K - first);
            let at_a: size = first * args.a_ld;
            let at_b: size = first * args.b_ld;
            if (depth == KWG) {
                next_a_0 = vec(a[from_a_0 + at_a], a[from_a_0 + at_a + 1u], a[from_a_0 + at_a + 2u], a[from_a_0 + at_a + 3u]);
                next_b_0 = b[from_b_0 + at_b];
                next_b_1 = b[from_b_1 + at_b];
            } else {
                if (p_a_0 < depth) { next_a_0 = vec(a[from_a_0 + at_a], a[from_a_0 + at_a + 1u], a[from_a_0 + at_a + 2u], a[from_a_0 + at_a + 3u]); }
                if (p_b_0 < depth) { next_b_0 = b[from_b_0 + at_b]; }
                if (p_b_1 < depth) { next_b_1 = b[from_b_1 + at_b]; }
            }
        }
        if (depth == KWG) {
            for (var p: u32 = 0u; p < KWG; p += KR) {
                let at_a_0: u32 = used * 72u + ti + p * 9u;
                let at_b_0: u32 = used * 136u + tj + p * 17u;
                let at_a_1: u32 = used * 72u + ti + (p + 1u) * 9u;
                let at_b_1: u32 = used * 136u + tj + (p + 1u) * 17u;
                let a_0_0: vec = slice_a[at_a_0];
                let b_0_0: real = slice_b[at_b_0];
                let b_0_1: real = slice_b[at_b_0 + 8u];
                let a_1_0: vec = slice_a[at_a_1];
                let b_1_0: real = slice_b[at_b_1];
                let b_1_1: real = slice_b[at_b_1 + 8u];
                sum_0_0 = fma(a_0_0, vec(b_0_0), sum_0_0);
                sum_0_1 = fma(a_0_0, vec(b_0_1), sum_0_1);
                sum_0_0 = fma(a_1_0, vec(b_1_0), sum_0_0);
                sum_0_1 = fma(a_1_0, vec(b_1_1), sum_0_1);
            }
        } else {
            for (var p: u32 = 0u; p < depth; p++) {
                let at_a_0: u32 = used * 72u + ti + p * 9u;
                let at_b_0: u32 = used * 136u + tj + p * 17u;
                let a_0_0: vec = slice_a[at_a_0];
                let b_0_0: real = slice_b[at_b_0];
                let b_0_1: real = slice_b[at_b_0 + 8u];
                sum_0_0 = fma(a_0_0, vec(b_0_0), sum_0_0);
                sum_0_1 = fma(a_0_0, vec(b_0_1), sum_0_1);
            }
        }
        used = 1u - used;
    }
    // Several old elements are read before the first of them is replaced. Otherwise each read would wait for the read before, because the compiler
    // keeps the order of reads and writes.
    let old_0_0: vec = old(i0 + ti * 4u, j0 + tj);
    let old_0_1: vec = old(i0 + ti * 4u, j0 + tj + 8u);
    store(i0 + ti * 4u, j0 + tj, sum_0_0, old_0_0);
    store(i0 + ti * 4u, j0 + tj + 8u, sum_0_1, old_0_1);
}

// Reads column j of C in the vector of rows that begins at `start`. Elements above `start` or outside C are zero, and all elements are zero if
// beta = 0.
fn old(start: u32, j: u32) -> vec {
    var elements: vec;
    if (args.beta == real(0) || j >= N) { return elements; }
    let row: u32 = min(start, M - 4u);
    let at: size = args.c_at + row + j * args.c_ld;
    if (row >= start) { elements.x = c[at]; }
    if (row + 1u >= start) { elements.y = c[at + 1u]; }
    if (row + 2u >= start) { elements.z = c[at + 2u]; }
    if (row + 3u >= start) { elements.w = c[at + 3u]; }
    return elements;
}

// Computes column j of C in the vector of rows that begins at `start`, and stores the elements at `start` and below it.
fn store(start: u32, j: u32, sum: vec, old: vec) {
    if (j >= N) { return; }
    let row: u32 = min(start, M - 4u);
    let at: size = args.c_at + row + j * args.c_ld;
    var elements: vec = args.alpha * sum;
    if (args.beta != real(0)) { elements = elements + args.beta * old; }
    // the rows above `start` belong to another vector
    if (row >= start) { c[at] = elements.x; }
    if (row + 1u >= start) { c[at + 1u] = elements.y; }
    if (row + 2u >= start) { c[at + 2u] = elements.z; }
    if (row + 3u >= start) { c[at + 3u] = elements.w; }
}