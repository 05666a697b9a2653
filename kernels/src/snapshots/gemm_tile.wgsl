alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
const MWG = 16u;
const NWG = 8u;
const KWG = 4u;
const MR = 4u;
const NR = 2u;
const VWM = 2u;
const STAGES = 2u;
const TRANS_A = 0u;
const TRANS_B = 1u;

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

// C <- alpha·op(A)·op(B) + beta·C. Each workgroup computes a tile of MWG x NWG elements.
//
// Invocation (ti, tj) computes MR x NR elements of the tile: vectors ti + x·WGM, of VWM rows each, in columns tj + y·WGN. The
// factors op(A) and op(B) pass through workgroup memory in slices of KWG terms along k. While the invocations use one slice, they
// load the next slice into registers. If STAGES = 2, workgroup memory has a separate place for the next slice. Slices hold zeros
// beyond the edges of the matrices. If beta = 0, the kernel does not read C.
alias vec = vec2<real>;
// one vector of padding in each line distributes transposed stores over the banks of workgroup memory
var<workgroup> slice_a: array<vec, 72>;
var<workgroup> slice_b: array<real, 72>;

// Returns element (i, p) of op(A), or zero beyond the edges.
fn op_a(i: u32, p: u32) -> real {
    if (i >= args.m || p >= args.k) { return real(); }
    return a[args.a_at + i + p * args.a_ld];
}

// Returns element (p, j) of op(B), or zero beyond the edges.
fn op_b(p: u32, j: u32) -> real {
    if (j >= args.n || p >= args.k) { return real(); }
    return b[args.b_at + j + p * args.b_ld];
}

// Vector s of a slice of A has index a_v(s) along the tile and index a_p(s) along k. Element s of a slice of B has index b_j(s)
// along the tile and index b_p(s) along k. The order of the elements lets neighbouring invocations read neighbouring memory.
fn a_v(s: u32) -> u32 { return s % 8u; }
fn a_p(s: u32) -> u32 { return s / 8u; }
fn b_j(s: u32) -> u32 { return s % NWG; }
fn b_p(s: u32) -> u32 { return s / NWG; }

@compute @workgroup_size(4, 4)
fn gemm_tile(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) own: vec3<u32>) {
    let ti = own.x;
    let tj = own.y;
    let t = ti + tj * 4u;
    let i0 = group.x * MWG;
    let j0 = group.y * NWG;
    var sum_0_0 = vec();
    var sum_1_0 = vec();
    var sum_0_1 = vec();
    var sum_1_1 = vec();
    var next_a_0 = vec();
    var next_a_1 = vec();
    var next_b_0 = real();
    var next_b_1 = real();

    var used = 1u;
    for (var p0 = 0u; p0 < args.k + KWG; p0 += KWG) {
        // the slice at p0 is fetched while the previous slice is multiplied
        if (p0 < args.k) {
            {
                let i = i0 + a_v(t + 0u) * 2u;
                let p = p0 + a_p(t + 0u);
                next_a_0 = vec(op_a(i + 0u, p), op_a(i + 1u, p));
            }
            {
                let i = i0 + a_v(t + 16u) * 2u;
                let p = p0 + a_p(t + 16u);
                next_a_1 = vec(op_a(i + 0u, p), op_a(i + 1u, p));
            }
            next_b_0 = op_b(p0 + b_p(t + 0u), j0 + b_j(t + 0u));
            next_b_1 = op_b(p0 + b_p(t + 16u), j0 + b_j(t + 16u));
        }
        if (p0 > 0u) {
            for (var p = 0u; p < KWG; p++) {
                let line_a = (used * KWG + p) * 9u + ti;
                let line_b = (used * KWG + p) * 9u + tj;
                let a_0 = slice_a[line_a + 0u];
                let a_1 = slice_a[line_a + 4u];
                let b_0 = vec(slice_b[line_b + 0u]);
                sum_0_0 = fma(a_0, b_0, sum_0_0);
                sum_1_0 = fma(a_1, b_0, sum_1_0);
                let b_1 = vec(slice_b[line_b + 4u]);
                sum_0_1 = fma(a_0, b_1, sum_0_1);
                sum_1_1 = fma(a_1, b_1, sum_1_1);
            }
        }
        used = 1u - used;
        if (p0 < args.k) {
            slice_a[(used * KWG + a_p(t + 0u)) * 9u + a_v(t + 0u)] = next_a_0;
            slice_a[(used * KWG + a_p(t + 16u)) * 9u + a_v(t + 16u)] = next_a_1;
            slice_b[(used * KWG + b_p(t + 0u)) * 9u + b_j(t + 0u)] = next_b_0;
            slice_b[(used * KWG + b_p(t + 16u)) * 9u + b_j(t + 16u)] = next_b_1;
            workgroupBarrier();
        }
    }
    
    store(i0 + (ti + 0u) * 2u + 0u, j0 + tj + 0u, sum_0_0[0]);
    store(i0 + (ti + 0u) * 2u + 1u, j0 + tj + 0u, sum_0_0[1]);
    store(i0 + (ti + 4u) * 2u + 0u, j0 + tj + 0u, sum_1_0[0]);
    store(i0 + (ti + 4u) * 2u + 1u, j0 + tj + 0u, sum_1_0[1]);
    store(i0 + (ti + 0u) * 2u + 0u, j0 + tj + 4u, sum_0_1[0]);
    store(i0 + (ti + 0u) * 2u + 1u, j0 + tj + 4u, sum_0_1[1]);
    store(i0 + (ti + 4u) * 2u + 0u, j0 + tj + 4u, sum_1_1[0]);
    store(i0 + (ti + 4u) * 2u + 1u, j0 + tj + 4u, sum_1_1[1]);
}

// Computes element (i, j) of C from the sum of products, and stores the element.
fn store(i: u32, j: u32, sum: real) {
    if (i >= args.m || j >= args.n) { return; }
    let at = args.c_at + i + j * args.c_ld;
    if (args.beta == real()) {
        c[at] = args.alpha * sum;
    } else {
        c[at] = args.alpha * sum + args.beta * c[at];
    }
}