alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
const LANES = 8u;
const MICRO = 2u;
const DEPTH = 16u;
const TRANS_A = 0u;
const TRANS_B = 1u;

struct Args {
    m: u32,
    n: u32,
    k: u32,
    alpha: real,
    a_at: u32,
    a_ld: u32,
    a_step: u32,
    b_at: u32,
    b_ld: u32,
    b_step: u32,
    beta: real,
    c_at: u32,
    c_ld: u32,
    c_step: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> a: array<real>;
@group(0) @binding(2) var<storage, read> b: array<real>;
@group(0) @binding(3) var<storage, read_write> c: array<real>;

// C <- alpha·op(A)·op(B) + beta·C for many small matrices. Matrix g of operand x begins g·x_step elements after the first matrix.
//
// A workgroup computes a tile of TILE x TILE elements of one matrix. Each of its LANES x LANES invocations computes MICRO x MICRO
// elements. A and B pass through workgroup memory in slices of DEPTH terms. Slices hold zeros beyond the edges of the matrices,
// and elements beyond the edges of C are not stored. If beta = 0, the kernel does not read C.
const TILE = 16u;
const ITEMS = 64u;
// one element of padding, so that neighbours along k lie in different banks
const LINE = 17u;
var<workgroup> slice_a: array<real, 272>;
var<workgroup> slice_b: array<real, 272>;

@compute @workgroup_size(64)
fn gemm_batched(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let tiles = (args.m + TILE - 1u) / TILE;
    let i0 = group.x % tiles * TILE;
    let j0 = group.x / tiles * TILE;
    let ti = t % LANES;
    let tj = t / LANES;
    let a_at = args.a_at + group.y * args.a_step;
    let b_at = args.b_at + group.y * args.b_step;
    let c_at = args.c_at + group.y * args.c_step;
    var sum_0_0 = real();
    var sum_0_1 = real();
    var sum_1_0 = real();
    var sum_1_1 = real();
    for (var p0 = 0u; p0 < args.k; p0 += DEPTH) {
        // neighbouring invocations read neighbouring memory
        for (var s = t; s < TILE * DEPTH; s += ITEMS) {
            let i = s % TILE;
            let p = s / TILE;
            var left = real();
            if (i0 + i < args.m && p0 + p < args.k) {
                left = a[a_at + i0 + i + (p0 + p) * args.a_ld];
            }
            slice_a[p * LINE + i] = left;
        }
        for (var s = t; s < TILE * DEPTH; s += ITEMS) {
            let j = s % TILE;
            let p = s / TILE;
            var right = real();
            if (j0 + j < args.n && p0 + p < args.k) {
                right = b[b_at + j0 + j + (p0 + p) * args.b_ld];
            }
            slice_b[p * LINE + j] = right;
        }
        workgroupBarrier();
        for (var p = 0u; p < DEPTH; p++) {
            let a_0 = slice_a[p * LINE + ti + 0u];
            let a_1 = slice_a[p * LINE + ti + 8u];
            let b_0 = slice_b[p * LINE + tj + 0u];
            sum_0_0 = fma(a_0, b_0, sum_0_0);
            sum_1_0 = fma(a_1, b_0, sum_1_0);
            let b_1 = slice_b[p * LINE + tj + 8u];
            sum_0_1 = fma(a_0, b_1, sum_0_1);
            sum_1_1 = fma(a_1, b_1, sum_1_1);
        }
        workgroupBarrier();
    }
    store(c_at, i0 + ti + 0u, j0 + tj + 0u, sum_0_0);
    store(c_at, i0 + ti + 8u, j0 + tj + 0u, sum_1_0);
    store(c_at, i0 + ti + 0u, j0 + tj + 8u, sum_0_1);
    store(c_at, i0 + ti + 8u, j0 + tj + 8u, sum_1_1);
}

// Computes element (i, j) of the matrix that begins at c_at from the sum of products, and stores the element.
fn store(c_at: u32, i: u32, j: u32, sum: real) {
    if (i >= args.m || j >= args.n) { return; }
    let at = c_at + i + j * args.c_ld;
    if (args.beta == real()) {
        c[at] = args.alpha * sum;
    } else {
        c[at] = args.alpha * sum + args.beta * c[at];
    }
}