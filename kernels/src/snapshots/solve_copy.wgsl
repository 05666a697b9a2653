alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
alias vec = real;
alias size = u32;
alias stride = i32;
const ITEMS = 16u;
const EACH = 2u;
const NR = 4u;

struct Args {
    n: u32,
    nrhs: u32,
    unit: u32,
    flag_at: u32,
    a_at: u32,
    a_i: i32,
    a_k: i32,
    b_at: u32,
    b_i: i32,
    b_r: i32,
    c_at: u32,
    c_i: i32,
    c_r: i32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> flags: array<real>;
@group(0) @binding(2) var<storage, read> a: array<real>;
@group(0) @binding(3) var<storage, read> b: array<real>;
@group(0) @binding(4) var<storage, read_write> c: array<real>;

// Copies the right-hand sides of a triangular system of at most 32 unknowns. If flags[flag_at] is not zero, the kernel solves the
// system by forward substitution, and writes the unknowns in place of the copy. Coefficient k of equation i is a[a_at + i·a_i + k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]
// and is written to c[c_at + i·c_i + r·c_r]. For backward substitution, the caller passes the positions of the last unknown and negative
// strides. The kernel reads neither coefficients above the diagonal nor a unit diagonal.
//
// A workgroup has NR right-hand sides. An invocation holds every unknown with an index t + p·ITEMS, for p below EACH. In each step, the
// invocation with the next unknown divides by its pivot and writes the unknown to workgroup memory. The other invocations eliminate the
// unknown from later equations. Two steps use different halves of workgroup memory, so that a step needs one barrier.
var<workgroup> solved: array<real, 8>;

@compute @workgroup_size(ITEMS)
fn solve_copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let origin: stride = stride(args.a_at);
    let r_0: size = group.x * NR + 0u;
    let from_0: stride = stride(args.b_at) + stride(min(r_0, args.nrhs - 1u)) * args.b_r;
    let r_1: size = group.x * NR + 1u;
    let from_1: stride = stride(args.b_at) + stride(min(r_1, args.nrhs - 1u)) * args.b_r;
    let r_2: size = group.x * NR + 2u;
    let from_2: stride = stride(args.b_at) + stride(min(r_2, args.nrhs - 1u)) * args.b_r;
    let r_3: size = group.x * NR + 3u;
    let from_3: stride = stride(args.b_at) + stride(min(r_3, args.nrhs - 1u)) * args.b_r;
    let i_0: u32 = t + 0u * ITEMS;
    var x_0_0: real;
    var x_0_1: real;
    var x_0_2: real;
    var x_0_3: real;
    if (i_0 < args.n) {
        x_0_0 = b[from_0 + stride(i_0) * args.b_i];
        x_0_1 = b[from_1 + stride(i_0) * args.b_i];
        x_0_2 = b[from_2 + stride(i_0) * args.b_i];
        x_0_3 = b[from_3 + stride(i_0) * args.b_i];
    }
    let i_1: u32 = t + 1u * ITEMS;
    var x_1_0: real;
    var x_1_1: real;
    var x_1_2: real;
    var x_1_3: real;
    if (i_1 < args.n) {
        x_1_0 = b[from_0 + stride(i_1) * args.b_i];
        x_1_1 = b[from_1 + stride(i_1) * args.b_i];
        x_1_2 = b[from_2 + stride(i_1) * args.b_i];
        x_1_3 = b[from_3 + stride(i_1) * args.b_i];
    }
    // a loop without steps takes the place of an `if`, because some compilers refuse a barrier in a branch
    let steps: u32 = select(0u, args.n, flags[args.flag_at] != real(0));
    for (var k: u32 = 0u * ITEMS; k < min(1u * ITEMS, steps); k++) {
        let at: u32 = k % 2u * NR;
        var l_0: real;
        if (i_0 > k && i_0 < args.n) { l_0 = a[origin + stride(i_0) * args.a_i + stride(k) * args.a_k]; }
        var l_1: real;
        if (i_1 > k && i_1 < args.n) { l_1 = a[origin + stride(i_1) * args.a_i + stride(k) * args.a_k]; }
        if (i_0 == k) {
            if (args.unit == 0u) {
                let pivot: real = a[origin + stride(k) * (args.a_i + args.a_k)];
                x_0_0 /= pivot;
                x_0_1 /= pivot;
                x_0_2 /= pivot;
                x_0_3 /= pivot;
            }
            solved[at + 0u] = x_0_0;
            solved[at + 1u] = x_0_1;
            solved[at + 2u] = x_0_2;
            solved[at + 3u] = x_0_3;
        }
        workgroupBarrier();
        if (i_0 > k) {
            x_0_0 = fma(-l_0, solved[at + 0u], x_0_0);
            x_0_1 = fma(-l_0, solved[at + 1u], x_0_1);
            x_0_2 = fma(-l_0, solved[at + 2u], x_0_2);
            x_0_3 = fma(-l_0, solved[at + 3u], x_0_3);
        }
        if (i_1 > k) {
            x_1_0 = fma(-l_1, solved[at + 0u], x_1_0);
            x_1_1 = fma(-l_1, solved[at + 1u], x_1_1);
            x_1_2 = fma(-l_1, solved[at + 2u], x_1_2);
            x_1_3 = fma(-l_1, solved[at + 3u], x_1_3);
        }
    }
    for (var k: u32 = 1u * ITEMS; k < min(2u * ITEMS, steps); k++) {
        let at: u32 = k % 2u * NR;
        var l_1: real;
        if (i_1 > k && i_1 < args.n) { l_1 = a[origin + stride(i_1) * args.a_i + stride(k) * args.a_k]; }
        if (i_1 == k) {
            if (args.unit == 0u) {
                let pivot: real = a[origin + stride(k) * (args.a_i + args.a_k)];
                x_1_0 /= pivot;
                x_1_1 /= pivot;
                x_1_2 /= pivot;
                x_1_3 /= pivot;
            }
            solved[at + 0u] = x_1_0;
            solved[at + 1u] = x_1_1;
            solved[at + 2u] = x_1_2;
            solved[at + 3u] = x_1_3;
        }
        workgroupBarrier();
        if (i_1 > k) {
            x_1_0 = fma(-l_1, solved[at + 0u], x_1_0);
            x_1_1 = fma(-l_1, solved[at + 1u], x_1_1);
            x_1_2 = fma(-l_1, solved[at + 2u], x_1_2);
            x_1_3 = fma(-l_1, solved[at + 3u], x_1_3);
        }
    }
    if (i_0 < args.n) {
        if (r_0 < args.nrhs) {
            c[stride(args.c_at) + stride(i_0) * args.c_i + stride(r_0) * args.c_r] = x_0_0;
        }
        if (r_1 < args.nrhs) {
            c[stride(args.c_at) + stride(i_0) * args.c_i + stride(r_1) * args.c_r] = x_0_1;
        }
        if (r_2 < args.nrhs) {
            c[stride(args.c_at) + stride(i_0) * args.c_i + stride(r_2) * args.c_r] = x_0_2;
        }
        if (r_3 < args.nrhs) {
            c[stride(args.c_at) + stride(i_0) * args.c_i + stride(r_3) * args.c_r] = x_0_3;
        }
    }
    if (i_1 < args.n) {
        if (r_0 < args.nrhs) {
            c[stride(args.c_at) + stride(i_1) * args.c_i + stride(r_0) * args.c_r] = x_1_0;
        }
        if (r_1 < args.nrhs) {
            c[stride(args.c_at) + stride(i_1) * args.c_i + stride(r_1) * args.c_r] = x_1_1;
        }
        if (r_2 < args.nrhs) {
            c[stride(args.c_at) + stride(i_1) * args.c_i + stride(r_2) * args.c_r] = x_1_2;
        }
        if (r_3 < args.nrhs) {
            c[stride(args.c_at) + stride(i_1) * args.c_i + stride(r_3) * args.c_r] = x_1_3;
        }
    }
}