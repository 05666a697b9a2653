alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
alias vec = vec2<real>;
alias size = u32;
alias stride = i32;
const ITEMS = 16u;
const LANES = 4u;
const MR = 8u;
const NR = 2u;
const V = 2u;

struct Args {
    n: u32,
    nrhs: u32,
    unit: u32,
    a_at: u32,
    a_i: i32,
    a_k: i32,
    b_at: u32,
    b_i: i32,
    b_r: i32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> a: array<real>;
@group(0) @binding(2) var<storage, read_write> b: array<real>;

// Solves triangular systems of at most ORDER unknowns by forward substitution. Coefficient k of equation i is a[a_at + i·a_i +
// k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. For backward substitution, the caller passes the position of
// the last unknown and negative strides. The kernel loads a unit diagonal, but does not use it.
//
// A workgroup has WIDTH right-hand sides. Each invocation holds MR unknowns of NR right-hand sides and the coefficients among these
// unknowns in registers. In each step, the invocations with the next MR unknowns compute these unknowns and write them to workgroup
// memory. After a barrier, the invocations with later unknowns eliminate the solved unknowns from their own equations. All invocations
// load the coefficients of the unknowns that a step eliminates, one step ahead, and write them to workgroup memory before the barrier of
// this step.
//
// An invocation multiplies by the reciprocals of its pivots, because a product takes less time than a division. An invocation divides by
// its pivots if one of them is zero, subnormal or not finite, or has a subnormal reciprocal.
// Even steps use the first half of each array, and odd steps the second half. Some invocations already write for the next step while others
// still read for this one.
// The coefficients of the unknowns that a step eliminates:
var<workgroup> coefficients: array<vec, 384>;
// The unknowns that a step computes:
var<workgroup> solved: array<vec, 64>;

@compute @workgroup_size(ITEMS)
fn solve(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    // An invocation whose unknowns lie beyond the last one loads the coefficients of the last unknown, which exist, and does not use them.
    let last: u32 = args.n - 1u;
    let origin: stride = stride(args.a_at);
    // the first of the V equations, and the column of a step, whose coefficients this invocation loads
    let i: u32 = t % 16u * V;
    let column: u32 = t / 16u;
    let row: u32 = min(i, last);
    let place: u32 = column * 24u + i / V % 4u * 6u + i / MR;
    var from_0: stride = origin + stride(min(i + 0u, last)) * args.a_i + stride(column) * args.a_k;
    var from_1: stride = origin + stride(min(i + 1u, last)) * args.a_i + stride(column) * args.a_k;
    var next_0: vec;
    var next_1: vec;
    var next_2: vec;
    var next_3: vec;
    var next_4: vec;
    var next_5: vec;
    var next_6: vec;
    var next_7: vec;
    if (row >= 0u + MR) {
        next_0 = vec(a[from_0 + stride(0) * args.a_k], a[from_1 + stride(0) * args.a_k]);
        next_1 = vec(a[from_0 + stride(1) * args.a_k], a[from_1 + stride(1) * args.a_k]);
        next_2 = vec(a[from_0 + stride(2) * args.a_k], a[from_1 + stride(2) * args.a_k]);
        next_3 = vec(a[from_0 + stride(3) * args.a_k], a[from_1 + stride(3) * args.a_k]);
        next_4 = vec(a[from_0 + stride(4) * args.a_k], a[from_1 + stride(4) * args.a_k]);
        next_5 = vec(a[from_0 + stride(5) * args.a_k], a[from_1 + stride(5) * args.a_k]);
        next_6 = vec(a[from_0 + stride(6) * args.a_k], a[from_1 + stride(6) * args.a_k]);
        next_7 = vec(a[from_0 + stride(7) * args.a_k], a[from_1 + stride(7) * args.a_k]);
    }
    let own: u32 = t / LANES * MR;
    let own_0: stride = stride(min(own + 0u, last));
    let own_1: stride = stride(min(own + 1u, last));
    let own_2: stride = stride(min(own + 2u, last));
    let own_3: stride = stride(min(own + 3u, last));
    let own_4: stride = stride(min(own + 4u, last));
    let own_5: stride = stride(min(own + 5u, last));
    let own_6: stride = stride(min(own + 6u, last));
    let own_7: stride = stride(min(own + 7u, last));
    let d_0_1: real = a[origin + own_1 * args.a_i + own_0 * args.a_k];
    let d_0_2: real = a[origin + own_2 * args.a_i + own_0 * args.a_k];
    let d_0_3: real = a[origin + own_3 * args.a_i + own_0 * args.a_k];
    let d_0_4: real = a[origin + own_4 * args.a_i + own_0 * args.a_k];
    let d_0_5: real = a[origin + own_5 * args.a_i + own_0 * args.a_k];
    let d_0_6: real = a[origin + own_6 * args.a_i + own_0 * args.a_k];
    let d_0_7: real = a[origin + own_7 * args.a_i + own_0 * args.a_k];
    let d_1_2: real = a[origin + own_2 * args.a_i + own_1 * args.a_k];
    let d_1_3: real = a[origin + own_3 * args.a_i + own_1 * args.a_k];
    let d_1_4: real = a[origin + own_4 * args.a_i + own_1 * args.a_k];
    let d_1_5: real = a[origin + own_5 * args.a_i + own_1 * args.a_k];
    let d_1_6: real = a[origin + own_6 * args.a_i + own_1 * args.a_k];
    let d_1_7: real = a[origin + own_7 * args.a_i + own_1 * args.a_k];
    let d_2_3: real = a[origin + own_3 * args.a_i + own_2 * args.a_k];
    let d_2_4: real = a[origin + own_4 * args.a_i + own_2 * args.a_k];
    let d_2_5: real = a[origin + own_5 * args.a_i + own_2 * args.a_k];
    let d_2_6: real = a[origin + own_6 * args.a_i + own_2 * args.a_k];
    let d_2_7: real = a[origin + own_7 * args.a_i + own_2 * args.a_k];
    let d_3_4: real = a[origin + own_4 * args.a_i + own_3 * args.a_k];
    let d_3_5: real = a[origin + own_5 * args.a_i + own_3 * args.a_k];
    let d_3_6: real = a[origin + own_6 * args.a_i + own_3 * args.a_k];
    let d_3_7: real = a[origin + own_7 * args.a_i + own_3 * args.a_k];
    let d_4_5: real = a[origin + own_5 * args.a_i + own_4 * args.a_k];
    let d_4_6: real = a[origin + own_6 * args.a_i + own_4 * args.a_k];
    let d_4_7: real = a[origin + own_7 * args.a_i + own_4 * args.a_k];
    let d_5_6: real = a[origin + own_6 * args.a_i + own_5 * args.a_k];
    let d_5_7: real = a[origin + own_7 * args.a_i + own_5 * args.a_k];
    let d_6_7: real = a[origin + own_7 * args.a_i + own_6 * args.a_k];
    // a factor is the reciprocal of a pivot if the invocation multiplies, and the pivot itself if the invocation divides
    let pivot_0: real = a[origin + own_0 * args.a_i + own_0 * args.a_k];
    var factor_0: real = real(1) / pivot_0;
    let pivot_1: real = a[origin + own_1 * args.a_i + own_1 * args.a_k];
    var factor_1: real = real(1) / pivot_1;
    let pivot_2: real = a[origin + own_2 * args.a_i + own_2 * args.a_k];
    var factor_2: real = real(1) / pivot_2;
    let pivot_3: real = a[origin + own_3 * args.a_i + own_3 * args.a_k];
    var factor_3: real = real(1) / pivot_3;
    let pivot_4: real = a[origin + own_4 * args.a_i + own_4 * args.a_k];
    var factor_4: real = real(1) / pivot_4;
    let pivot_5: real = a[origin + own_5 * args.a_i + own_5 * args.a_k];
    var factor_5: real = real(1) / pivot_5;
    let pivot_6: real = a[origin + own_6 * args.a_i + own_6 * args.a_k];
    var factor_6: real = real(1) / pivot_6;
    let pivot_7: real = a[origin + own_7 * args.a_i + own_7 * args.a_k];
    var factor_7: real = real(1) / pivot_7;
    let multiplies: bool = min(abs(pivot_0), abs(factor_0)) >= MIN_POSITIVE && min(abs(pivot_1), abs(factor_1)) >= MIN_POSITIVE && min(abs(pivot_2), abs(factor_2)) >= MIN_POSITIVE && min(abs(pivot_3), abs(factor_3)) >= MIN_POSITIVE && min(abs(pivot_4), abs(factor_4)) >= MIN_POSITIVE && min(abs(pivot_5), abs(factor_5)) >= MIN_POSITIVE && min(abs(pivot_6), abs(factor_6)) >= MIN_POSITIVE && min(abs(pivot_7), abs(factor_7)) >= MIN_POSITIVE;
    if (!multiplies) {
        factor_0 = pivot_0;
        factor_1 = pivot_1;
        factor_2 = pivot_2;
        factor_3 = pivot_3;
        factor_4 = pivot_4;
        factor_5 = pivot_5;
        factor_6 = pivot_6;
        factor_7 = pivot_7;
    }
    // unknowns and right-hand sides beyond the last ones are copies of the last ones
    let row_0: stride = stride(args.b_at) + own_0 * args.b_i;
    let row_1: stride = stride(args.b_at) + own_1 * args.b_i;
    let row_2: stride = stride(args.b_at) + own_2 * args.b_i;
    let row_3: stride = stride(args.b_at) + own_3 * args.b_i;
    let row_4: stride = stride(args.b_at) + own_4 * args.b_i;
    let row_5: stride = stride(args.b_at) + own_5 * args.b_i;
    let row_6: stride = stride(args.b_at) + own_6 * args.b_i;
    let row_7: stride = stride(args.b_at) + own_7 * args.b_i;
    let last_side: u32 = args.nrhs - 1u;
    let r_0: u32 = group.x * 8u + 0u * LANES + t % LANES;
    let col_0: stride = stride(min(r_0, last_side)) * args.b_r;
    var x_0_0: vec = vec(b[row_0 + col_0], b[row_1 + col_0]);
    var x_1_0: vec = vec(b[row_2 + col_0], b[row_3 + col_0]);
    var x_2_0: vec = vec(b[row_4 + col_0], b[row_5 + col_0]);
    var x_3_0: vec = vec(b[row_6 + col_0], b[row_7 + col_0]);
    let r_1: u32 = group.x * 8u + 1u * LANES + t % LANES;
    let col_1: stride = stride(min(r_1, last_side)) * args.b_r;
    var x_0_1: vec = vec(b[row_0 + col_1], b[row_1 + col_1]);
    var x_1_1: vec = vec(b[row_2 + col_1], b[row_3 + col_1]);
    var x_2_1: vec = vec(b[row_4 + col_1], b[row_5 + col_1]);
    var x_3_1: vec = vec(b[row_6 + col_1], b[row_7 + col_1]);
    // other invocations have also loaded elements of b that this invocation stores
    storageBarrier();
    for (var k: u32 = 0u; k < args.n; k += MR) {
        let parity: u32 = k / MR % 2u;
        if (own == k) {
            if (args.unit != 0u) {
                x_0_0.y = fma(-d_0_1, x_0_0.x, x_0_0.y);
                x_0_1.y = fma(-d_0_1, x_0_1.x, x_0_1.y);
                x_1_0.x = fma(-d_0_2, x_0_0.x, x_1_0.x);
                x_1_1.x = fma(-d_0_2, x_0_1.x, x_1_1.x);
                x_1_0.y = fma(-d_0_3, x_0_0.x, x_1_0.y);
                x_1_1.y = fma(-d_0_3, x_0_1.x, x_1_1.y);
                x_2_0.x = fma(-d_0_4, x_0_0.x, x_2_0.x);
                x_2_1.x = fma(-d_0_4, x_0_1.x, x_2_1.x);
                x_2_0.y = fma(-d_0_5, x_0_0.x, x_2_0.y);
                x_2_1.y = fma(-d_0_5, x_0_1.x, x_2_1.y);
                x_3_0.x = fma(-d_0_6, x_0_0.x, x_3_0.x);
                x_3_1.x = fma(-d_0_6, x_0_1.x, x_3_1.x);
                x_3_0.y = fma(-d_0_7, x_0_0.x, x_3_0.y);
                x_3_1.y = fma(-d_0_7, x_0_1.x, x_3_1.y);
                x_1_0.x = fma(-d_1_2, x_0_0.y, x_1_0.x);
                x_1_1.x = fma(-d_1_2, x_0_1.y, x_1_1.x);
                x_1_0.y = fma(-d_1_3, x_0_0.y, x_1_0.y);
                x_1_1.y = fma(-d_1_3, x_0_1.y, x_1_1.y);
                x_2_0.x = fma(-d_1_4, x_0_0.y, x_2_0.x);
                x_2_1.x = fma(-d_1_4, x_0_1.y, x_2_1.x);
                x_2_0.y = fma(-d_1_5, x_0_0.y, x_2_0.y);
                x_2_1.y = fma(-d_1_5, x_0_1.y, x_2_1.y);
                x_3_0.x = fma(-d_1_6, x_0_0.y, x_3_0.x);
                x_3_1.x = fma(-d_1_6, x_0_1.y, x_3_1.x);
                x_3_0.y = fma(-d_1_7, x_0_0.y, x_3_0.y);
                x_3_1.y = fma(-d_1_7, x_0_1.y, x_3_1.y);
                x_1_0.y = fma(-d_2_3, x_1_0.x, x_1_0.y);
                x_1_1.y = fma(-d_2_3, x_1_1.x, x_1_1.y);
                x_2_0.x = fma(-d_2_4, x_1_0.x, x_2_0.x);
                x_2_1.x = fma(-d_2_4, x_1_1.x, x_2_1.x);
                x_2_0.y = fma(-d_2_5, x_1_0.x, x_2_0.y);
                x_2_1.y = fma(-d_2_5, x_1_1.x, x_2_1.y);
                x_3_0.x = fma(-d_2_6, x_1_0.x, x_3_0.x);
                x_3_1.x = fma(-d_2_6, x_1_1.x, x_3_1.x);
                x_3_0.y = fma(-d_2_7, x_1_0.x, x_3_0.y);
                x_3_1.y = fma(-d_2_7, x_1_1.x, x_3_1.y);
                x_2_0.x = fma(-d_3_4, x_1_0.y, x_2_0.x);
                x_2_1.x = fma(-d_3_4, x_1_1.y, x_2_1.x);
                x_2_0.y = fma(-d_3_5, x_1_0.y, x_2_0.y);
                x_2_1.y = fma(-d_3_5, x_1_1.y, x_2_1.y);
                x_3_0.x = fma(-d_3_6, x_1_0.y, x_3_0.x);
                x_3_1.x = fma(-d_3_6, x_1_1.y, x_3_1.x);
                x_3_0.y = fma(-d_3_7, x_1_0.y, x_3_0.y);
                x_3_1.y = fma(-d_3_7, x_1_1.y, x_3_1.y);
                x_2_0.y = fma(-d_4_5, x_2_0.x, x_2_0.y);
                x_2_1.y = fma(-d_4_5, x_2_1.x, x_2_1.y);
                x_3_0.x = fma(-d_4_6, x_2_0.x, x_3_0.x);
                x_3_1.x = fma(-d_4_6, x_2_1.x, x_3_1.x);
                x_3_0.y = fma(-d_4_7, x_2_0.x, x_3_0.y);
                x_3_1.y = fma(-d_4_7, x_2_1.x, x_3_1.y);
                x_3_0.x = fma(-d_5_6, x_2_0.y, x_3_0.x);
                x_3_1.x = fma(-d_5_6, x_2_1.y, x_3_1.x);
                x_3_0.y = fma(-d_5_7, x_2_0.y, x_3_0.y);
                x_3_1.y = fma(-d_5_7, x_2_1.y, x_3_1.y);
                x_3_0.y = fma(-d_6_7, x_3_0.x, x_3_0.y);
                x_3_1.y = fma(-d_6_7, x_3_1.x, x_3_1.y);
            } else if (multiplies) {
                x_0_0.x *= factor_0;
                x_0_1.x *= factor_0;
                x_0_0.y = fma(-d_0_1, x_0_0.x, x_0_0.y);
                x_0_1.y = fma(-d_0_1, x_0_1.x, x_0_1.y);
                x_1_0.x = fma(-d_0_2, x_0_0.x, x_1_0.x);
                x_1_1.x = fma(-d_0_2, x_0_1.x, x_1_1.x);
                x_1_0.y = fma(-d_0_3, x_0_0.x, x_1_0.y);
                x_1_1.y = fma(-d_0_3, x_0_1.x, x_1_1.y);
                x_2_0.x = fma(-d_0_4, x_0_0.x, x_2_0.x);
                x_2_1.x = fma(-d_0_4, x_0_1.x, x_2_1.x);
                x_2_0.y = fma(-d_0_5, x_0_0.x, x_2_0.y);
                x_2_1.y = fma(-d_0_5, x_0_1.x, x_2_1.y);
                x_3_0.x = fma(-d_0_6, x_0_0.x, x_3_0.x);
                x_3_1.x = fma(-d_0_6, x_0_1.x, x_3_1.x);
                x_3_0.y = fma(-d_0_7, x_0_0.x, x_3_0.y);
                x_3_1.y = fma(-d_0_7, x_0_1.x, x_3_1.y);
                x_0_0.y *= factor_1;
                x_0_1.y *= factor_1;
                x_1_0.x = fma(-d_1_2, x_0_0.y, x_1_0.x);
                x_1_1.x = fma(-d_1_2, x_0_1.y, x_1_1.x);
                x_1_0.y = fma(-d_1_3, x_0_0.y, x_1_0.y);
                x_1_1.y = fma(-d_1_3, x_0_1.y, x_1_1.y);
                x_2_0.x = fma(-d_1_4, x_0_0.y, x_2_0.x);
                x_2_1.x = fma(-d_1_4, x_0_1.y, x_2_1.x);
                x_2_0.y = fma(-d_1_5, x_0_0.y, x_2_0.y);
                x_2_1.y = fma(-d_1_5, x_0_1.y, x_2_1.y);
                x_3_0.x = fma(-d_1_6, x_0_0.y, x_3_0.x);
                x_3_1.x = fma(-d_1_6, x_0_1.y, x_3_1.x);
                x_3_0.y = fma(-d_1_7, x_0_0.y, x_3_0.y);
                x_3_1.y = fma(-d_1_7, x_0_1.y, x_3_1.y);
                x_1_0.x *= factor_2;
                x_1_1.x *= factor_2;
                x_1_0.y = fma(-d_2_3, x_1_0.x, x_1_0.y);
                x_1_1.y = fma(-d_2_3, x_1_1.x, x_1_1.y);
                x_2_0.x = fma(-d_2_4, x_1_0.x, x_2_0.x);
                x_2_1.x = fma(-d_2_4, x_1_1.x, x_2_1.x);
                x_2_0.y = fma(-d_2_5, x_1_0.x, x_2_0.y);
                x_2_1.y = fma(-d_2_5, x_1_1.x, x_2_1.y);
                x_3_0.x = fma(-d_2_6, x_1_0.x, x_3_0.x);
                x_3_1.x = fma(-d_2_6, x_1_1.x, x_3_1.x);
                x_3_0.y = fma(-d_2_7, x_1_0.x, x_3_0.y);
                x_3_1.y = fma(-d_2_7, x_1_1.x, x_3_1.y);
                x_1_0.y *= factor_3;
                x_1_1.y *= factor_3;
                x_2_0.x = fma(-d_3_4, x_1_0.y, x_2_0.x);
                x_2_1.x = fma(-d_3_4, x_1_1.y, x_2_1.x);
                x_2_0.y = fma(-d_3_5, x_1_0.y, x_2_0.y);
                x_2_1.y = fma(-d_3_5, x_1_1.y, x_2_1.y);
                x_3_0.x = fma(-d_3_6, x_1_0.y, x_3_0.x);
                x_3_1.x = fma(-d_3_6, x_1_1.y, x_3_1.x);
                x_3_0.y = fma(-d_3_7, x_1_0.y, x_3_0.y);
                x_3_1.y = fma(-d_3_7, x_1_1.y, x_3_1.y);
                x_2_0.x *= factor_4;
                x_2_1.x *= factor_4;
                x_2_0.y = fma(-d_4_5, x_2_0.x, x_2_0.y);
                x_2_1.y = fma(-d_4_5, x_2_1.x, x_2_1.y);
                x_3_0.x = fma(-d_4_6, x_2_0.x, x_3_0.x);
                x_3_1.x = fma(-d_4_6, x_2_1.x, x_3_1.x);
                x_3_0.y = fma(-d_4_7, x_2_0.x, x_3_0.y);
                x_3_1.y = fma(-d_4_7, x_2_1.x, x_3_1.y);
                x_2_0.y *= factor_5;
                x_2_1.y *= factor_5;
                x_3_0.x = fma(-d_5_6, x_2_0.y, x_3_0.x);
                x_3_1.x = fma(-d_5_6, x_2_1.y, x_3_1.x);
                x_3_0.y = fma(-d_5_7, x_2_0.y, x_3_0.y);
                x_3_1.y = fma(-d_5_7, x_2_1.y, x_3_1.y);
                x_3_0.x *= factor_6;
                x_3_1.x *= factor_6;
                x_3_0.y = fma(-d_6_7, x_3_0.x, x_3_0.y);
                x_3_1.y = fma(-d_6_7, x_3_1.x, x_3_1.y);
                x_3_0.y *= factor_7;
                x_3_1.y *= factor_7;
            } else {
                x_0_0.x /= factor_0;
                x_0_1.x /= factor_0;
                x_0_0.y = fma(-d_0_1, x_0_0.x, x_0_0.y);
                x_0_1.y = fma(-d_0_1, x_0_1.x, x_0_1.y);
                x_1_0.x = fma(-d_0_2, x_0_0.x, x_1_0.x);
                x_1_1.x = fma(-d_0_2, x_0_1.x, x_1_1.x);
                x_1_0.y = fma(-d_0_3, x_0_0.x, x_1_0.y);
                x_1_1.y = fma(-d_0_3, x_0_1.x, x_1_1.y);
                x_2_0.x = fma(-d_0_4, x_0_0.x, x_2_0.x);
                x_2_1.x = fma(-d_0_4, x_0_1.x, x_2_1.x);
                x_2_0.y = fma(-d_0_5, x_0_0.x, x_2_0.y);
                x_2_1.y = fma(-d_0_5, x_0_1.x, x_2_1.y);
                x_3_0.x = fma(-d_0_6, x_0_0.x, x_3_0.x);
                x_3_1.x = fma(-d_0_6, x_0_1.x, x_3_1.x);
                x_3_0.y = fma(-d_0_7, x_0_0.x, x_3_0.y);
                x_3_1.y = fma(-d_0_7, x_0_1.x, x_3_1.y);
                x_0_0.y /= factor_1;
                x_0_1.y /= factor_1;
                x_1_0.x = fma(-d_1_2, x_0_0.y, x_1_0.x);
                x_1_1.x = fma(-d_1_2, x_0_1.y, x_1_1.x);
                x_1_0.y = fma(-d_1_3, x_0_0.y, x_1_0.y);
                x_1_1.y = fma(-d_1_3, x_0_1.y, x_1_1.y);
                x_2_0.x = fma(-d_1_4, x_0_0.y, x_2_0.x);
                x_2_1.x = fma(-d_1_4, x_0_1.y, x_2_1.x);
                x_2_0.y = fma(-d_1_5, x_0_0.y, x_2_0.y);
                x_2_1.y = fma(-d_1_5, x_0_1.y, x_2_1.y);
                x_3_0.x = fma(-d_1_6, x_0_0.y, x_3_0.x);
                x_3_1.x = fma(-d_1_6, x_0_1.y, x_3_1.x);
                x_3_0.y = fma(-d_1_7, x_0_0.y, x_3_0.y);
                x_3_1.y = fma(-d_1_7, x_0_1.y, x_3_1.y);
                x_1_0.x /= factor_2;
                x_1_1.x /= factor_2;
                x_1_0.y = fma(-d_2_3, x_1_0.x, x_1_0.y);
                x_1_1.y = fma(-d_2_3, x_1_1.x, x_1_1.y);
                x_2_0.x = fma(-d_2_4, x_1_0.x, x_2_0.x);
                x_2_1.x = fma(-d_2_4, x_1_1.x, x_2_1.x);
                x_2_0.y = fma(-d_2_5, x_1_0.x, x_2_0.y);
                x_2_1.y = fma(-d_2_5, x_1_1.x, x_2_1.y);
                x_3_0.x = fma(-d_2_6, x_1_0.x, x_3_0.x);
                x_3_1.x = fma(-d_2_6, x_1_1.x, x_3_1.x);
                x_3_0.y = fma(-d_2_7, x_1_0.x, x_3_0.y);
                x_3_1.y = fma(-d_2_7, x_1_1.x, x_3_1.y);
                x_1_0.y /= factor_3;
                x_1_1.y /= factor_3;
                x_2_0.x = fma(-d_3_4, x_1_0.y, x_2_0.x);
                x_2_1.x = fma(-d_3_4, x_1_1.y, x_2_1.x);
                x_2_0.y = fma(-d_3_5, x_1_0.y, x_2_0.y);
                x_2_1.y = fma(-d_3_5, x_1_1.y, x_2_1.y);
                x_3_0.x = fma(-d_3_6, x_1_0.y, x_3_0.x);
                x_3_1.x = fma(-d_3_6, x_1_1.y, x_3_1.x);
                x_3_0.y = fma(-d_3_7, x_1_0.y, x_3_0.y);
                x_3_1.y = fma(-d_3_7, x_1_1.y, x_3_1.y);
                x_2_0.x /= factor_4;
                x_2_1.x /= factor_4;
                x_2_0.y = fma(-d_4_5, x_2_0.x, x_2_0.y);
                x_2_1.y = fma(-d_4_5, x_2_1.x, x_2_1.y);
                x_3_0.x = fma(-d_4_6, x_2_0.x, x_3_0.x);
                x_3_1.x = fma(-d_4_6, x_2_1.x, x_3_1.x);
                x_3_0.y = fma(-d_4_7, x_2_0.x, x_3_0.y);
                x_3_1.y = fma(-d_4_7, x_2_1.x, x_3_1.y);
                x_2_0.y /= factor_5;
                x_2_1.y /= factor_5;
                x_3_0.x = fma(-d_5_6, x_2_0.y, x_3_0.x);
                x_3_1.x = fma(-d_5_6, x_2_1.y, x_3_1.x);
                x_3_0.y = fma(-d_5_7, x_2_0.y, x_3_0.y);
                x_3_1.y = fma(-d_5_7, x_2_1.y, x_3_1.y);
                x_3_0.x /= factor_6;
                x_3_1.x /= factor_6;
                x_3_0.y = fma(-d_6_7, x_3_0.x, x_3_0.y);
                x_3_1.y = fma(-d_6_7, x_3_1.x, x_3_1.y);
                x_3_0.y /= factor_7;
                x_3_1.y /= factor_7;
            }
            solved[parity * 32u + 0u + t % LANES] = x_0_0;
            solved[parity * 32u + 8u + t % LANES] = x_1_0;
            solved[parity * 32u + 16u + t % LANES] = x_2_0;
            solved[parity * 32u + 24u + t % LANES] = x_3_0;
            solved[parity * 32u + 4u + t % LANES] = x_0_1;
            solved[parity * 32u + 12u + t % LANES] = x_1_1;
            solved[parity * 32u + 20u + t % LANES] = x_2_1;
            solved[parity * 32u + 28u + t % LANES] = x_3_1;
        }
        if (row >= k + MR) {
            coefficients[parity * 192u + 0u + place] = next_0;
            coefficients[parity * 192u + 24u + place] = next_1;
            coefficients[parity * 192u + 48u + place] = next_2;
            coefficients[parity * 192u + 72u + place] = next_3;
            coefficients[parity * 192u + 96u + place] = next_4;
            coefficients[parity * 192u + 120u + place] = next_5;
            coefficients[parity * 192u + 144u + place] = next_6;
            coefficients[parity * 192u + 168u + place] = next_7;
        }
        workgroupBarrier();
        from_0 += stride(MR) * args.a_k;
        from_1 += stride(MR) * args.a_k;
        if (row >= k + MR + MR) {
            next_0 = vec(a[from_0 + stride(0) * args.a_k], a[from_1 + stride(0) * args.a_k]);
            next_1 = vec(a[from_0 + stride(1) * args.a_k], a[from_1 + stride(1) * args.a_k]);
            next_2 = vec(a[from_0 + stride(2) * args.a_k], a[from_1 + stride(2) * args.a_k]);
            next_3 = vec(a[from_0 + stride(3) * args.a_k], a[from_1 + stride(3) * args.a_k]);
            next_4 = vec(a[from_0 + stride(4) * args.a_k], a[from_1 + stride(4) * args.a_k]);
            next_5 = vec(a[from_0 + stride(5) * args.a_k], a[from_1 + stride(5) * args.a_k]);
            next_6 = vec(a[from_0 + stride(6) * args.a_k], a[from_1 + stride(6) * args.a_k]);
            next_7 = vec(a[from_0 + stride(7) * args.a_k], a[from_1 + stride(7) * args.a_k]);
        }
        // for equations beyond the last one, no invocation has written coefficients
        if (own > k && own < args.n) {
            let u_0_0: vec = solved[parity * 32u + 0u + t % LANES];
            let u_0_1: vec = solved[parity * 32u + 4u + t % LANES];
            let l_0_0: vec = coefficients[parity * 192u + 0u + own / MR];
            x_0_0 = fma(l_0_0, vec(-u_0_0.x), x_0_0);
            x_0_1 = fma(l_0_0, vec(-u_0_1.x), x_0_1);
            let l_0_1: vec = coefficients[parity * 192u + 6u + own / MR];
            x_1_0 = fma(l_0_1, vec(-u_0_0.x), x_1_0);
            x_1_1 = fma(l_0_1, vec(-u_0_1.x), x_1_1);
            let l_0_2: vec = coefficients[parity * 192u + 12u + own / MR];
            x_2_0 = fma(l_0_2, vec(-u_0_0.x), x_2_0);
            x_2_1 = fma(l_0_2, vec(-u_0_1.x), x_2_1);
            let l_0_3: vec = coefficients[parity * 192u + 18u + own / MR];
            x_3_0 = fma(l_0_3, vec(-u_0_0.x), x_3_0);
            x_3_1 = fma(l_0_3, vec(-u_0_1.x), x_3_1);
            let l_1_0: vec = coefficients[parity * 192u + 24u + own / MR];
            x_0_0 = fma(l_1_0, vec(-u_0_0.y), x_0_0);
            x_0_1 = fma(l_1_0, vec(-u_0_1.y), x_0_1);
            let l_1_1: vec = coefficients[parity * 192u + 30u + own / MR];
            x_1_0 = fma(l_1_1, vec(-u_0_0.y), x_1_0);
            x_1_1 = fma(l_1_1, vec(-u_0_1.y), x_1_1);
            let l_1_2: vec = coefficients[parity * 192u + 36u + own / MR];
            x_2_0 = fma(l_1_2, vec(-u_0_0.y), x_2_0);
            x_2_1 = fma(l_1_2, vec(-u_0_1.y), x_2_1);
            let l_1_3: vec = coefficients[parity * 192u + 42u + own / MR];
            x_3_0 = fma(l_1_3, vec(-u_0_0.y), x_3_0);
            x_3_1 = fma(l_1_3, vec(-u_0_1.y), x_3_1);
            let u_1_0: vec = solved[parity * 32u + 8u + t % LANES];
            let u_1_1: vec = solved[parity * 32u + 12u + t % LANES];
            let l_2_0: vec = coefficients[parity * 192u + 48u + own / MR];
            x_0_0 = fma(l_2_0, vec(-u_1_0.x), x_0_0);
            x_0_1 = fma(l_2_0, vec(-u_1_1.x), x_0_1);
            let l_2_1: vec = coefficients[parity * 192u + 54u + own / MR];
            x_1_0 = fma(l_2_1, vec(-u_1_0.x), x_1_0);
            x_1_1 = fma(l_2_1, vec(-u_1_1.x), x_1_1);
            let l_2_2: vec = coefficients[parity * 192u + 60u + own / MR];
            x_2_0 = fma(l_2_2, vec(-u_1_0.x), x_2_0);
            x_2_1 = fma(l_2_2, vec(-u_1_1.x), x_2_1);
            let l_2_3: vec = coefficients[parity * 192u + 66u + own / MR];
            x_3_0 = fma(l_2_3, vec(-u_1_0.x), x_3_0);
            x_3_1 = fma(l_2_3, vec(-u_1_1.x), x_3_1);
            let l_3_0: vec = coefficients[parity * 192u + 72u + own / MR];
            x_0_0 = fma(l_3_0, vec(-u_1_0.y), x_0_0);
            x_0_1 = fma(l_3_0, vec(-u_1_1.y), x_0_1);
            let l_3_1: vec = coefficients[parity * 192u + 78u + own / MR];
            x_1_0 = fma(l_3_1, vec(-u_1_0.y), x_1_0);
            x_1_1 = fma(l_3_1, vec(-u_1_1.y), x_1_1);
            let l_3_2: vec = coefficients[parity * 192u + 84u + own / MR];
            x_2_0 = fma(l_3_2, vec(-u_1_0.y), x_2_0);
            x_2_1 = fma(l_3_2, vec(-u_1_1.y), x_2_1);
            let l_3_3: vec = coefficients[parity * 192u + 90u + own / MR];
            x_3_0 = fma(l_3_3, vec(-u_1_0.y), x_3_0);
            x_3_1 = fma(l_3_3, vec(-u_1_1.y), x_3_1);
            let u_2_0: vec = solved[parity * 32u + 16u + t % LANES];
            let u_2_1: vec = solved[parity * 32u + 20u + t % LANES];
            let l_4_0: vec = coefficients[parity * 192u + 96u + own / MR];
            x_0_0 = fma(l_4_0, vec(-u_2_0.x), x_0_0);
            x_0_1 = fma(l_4_0, vec(-u_2_1.x), x_0_1);
            let l_4_1: vec = coefficients[parity * 192u + 102u + own / MR];
            x_1_0 = fma(l_4_1, vec(-u_2_0.x), x_1_0);
            x_1_1 = fma(l_4_1, vec(-u_2_1.x), x_1_1);
            let l_4_2: vec = coefficients[parity * 192u + 108u + own / MR];
            x_2_0 = fma(l_4_2, vec(-u_2_0.x), x_2_0);
            x_2_1 = fma(l_4_2, vec(-u_2_1.x), x_2_1);
            let l_4_3: vec = coefficients[parity * 192u + 114u + own / MR];
            x_3_0 = fma(l_4_3, vec(-u_2_0.x), x_3_0);
            x_3_1 = fma(l_4_3, vec(-u_2_1.x), x_3_1);
            let l_5_0: vec = coefficients[parity * 192u + 120u + own / MR];
            x_0_0 = fma(l_5_0, vec(-u_2_0.y), x_0_0);
            x_0_1 = fma(l_5_0, vec(-u_2_1.y), x_0_1);
            let l_5_1: vec = coefficients[parity * 192u + 126u + own / MR];
            x_1_0 = fma(l_5_1, vec(-u_2_0.y), x_1_0);
            x_1_1 = fma(l_5_1, vec(-u_2_1.y), x_1_1);
            let l_5_2: vec = coefficients[parity * 192u + 132u + own / MR];
            x_2_0 = fma(l_5_2, vec(-u_2_0.y), x_2_0);
            x_2_1 = fma(l_5_2, vec(-u_2_1.y), x_2_1);
            let l_5_3: vec = coefficients[parity * 192u + 138u + own / MR];
            x_3_0 = fma(l_5_3, vec(-u_2_0.y), x_3_0);
            x_3_1 = fma(l_5_3, vec(-u_2_1.y), x_3_1);
            let u_3_0: vec = solved[parity * 32u + 24u + t % LANES];
            let u_3_1: vec = solved[parity * 32u + 28u + t % LANES];
            let l_6_0: vec = coefficients[parity * 192u + 144u + own / MR];
            x_0_0 = fma(l_6_0, vec(-u_3_0.x), x_0_0);
            x_0_1 = fma(l_6_0, vec(-u_3_1.x), x_0_1);
            let l_6_1: vec = coefficients[parity * 192u + 150u + own / MR];
            x_1_0 = fma(l_6_1, vec(-u_3_0.x), x_1_0);
            x_1_1 = fma(l_6_1, vec(-u_3_1.x), x_1_1);
            let l_6_2: vec = coefficients[parity * 192u + 156u + own / MR];
            x_2_0 = fma(l_6_2, vec(-u_3_0.x), x_2_0);
            x_2_1 = fma(l_6_2, vec(-u_3_1.x), x_2_1);
            let l_6_3: vec = coefficients[parity * 192u + 162u + own / MR];
            x_3_0 = fma(l_6_3, vec(-u_3_0.x), x_3_0);
            x_3_1 = fma(l_6_3, vec(-u_3_1.x), x_3_1);
            let l_7_0: vec = coefficients[parity * 192u + 168u + own / MR];
            x_0_0 = fma(l_7_0, vec(-u_3_0.y), x_0_0);
            x_0_1 = fma(l_7_0, vec(-u_3_1.y), x_0_1);
            let l_7_1: vec = coefficients[parity * 192u + 174u + own / MR];
            x_1_0 = fma(l_7_1, vec(-u_3_0.y), x_1_0);
            x_1_1 = fma(l_7_1, vec(-u_3_1.y), x_1_1);
            let l_7_2: vec = coefficients[parity * 192u + 180u + own / MR];
            x_2_0 = fma(l_7_2, vec(-u_3_0.y), x_2_0);
            x_2_1 = fma(l_7_2, vec(-u_3_1.y), x_2_1);
            let l_7_3: vec = coefficients[parity * 192u + 186u + own / MR];
            x_3_0 = fma(l_7_3, vec(-u_3_0.y), x_3_0);
            x_3_1 = fma(l_7_3, vec(-u_3_1.y), x_3_1);
        }
    }
    if (own + 0u < args.n) {
        if (r_0 < args.nrhs) { b[row_0 + col_0] = x_0_0.x; }
        if (r_1 < args.nrhs) { b[row_0 + col_1] = x_0_1.x; }
    }
    if (own + 1u < args.n) {
        if (r_0 < args.nrhs) { b[row_1 + col_0] = x_0_0.y; }
        if (r_1 < args.nrhs) { b[row_1 + col_1] = x_0_1.y; }
    }
    if (own + 2u < args.n) {
        if (r_0 < args.nrhs) { b[row_2 + col_0] = x_1_0.x; }
        if (r_1 < args.nrhs) { b[row_2 + col_1] = x_1_1.x; }
    }
    if (own + 3u < args.n) {
        if (r_0 < args.nrhs) { b[row_3 + col_0] = x_1_0.y; }
        if (r_1 < args.nrhs) { b[row_3 + col_1] = x_1_1.y; }
    }
    if (own + 4u < args.n) {
        if (r_0 < args.nrhs) { b[row_4 + col_0] = x_2_0.x; }
        if (r_1 < args.nrhs) { b[row_4 + col_1] = x_2_1.x; }
    }
    if (own + 5u < args.n) {
        if (r_0 < args.nrhs) { b[row_5 + col_0] = x_2_0.y; }
        if (r_1 < args.nrhs) { b[row_5 + col_1] = x_2_1.y; }
    }
    if (own + 6u < args.n) {
        if (r_0 < args.nrhs) { b[row_6 + col_0] = x_3_0.x; }
        if (r_1 < args.nrhs) { b[row_6 + col_1] = x_3_1.x; }
    }
    if (own + 7u < args.n) {
        if (r_0 < args.nrhs) { b[row_7 + col_0] = x_3_0.y; }
        if (r_1 < args.nrhs) { b[row_7 + col_1] = x_3_1.y; }
    }
}