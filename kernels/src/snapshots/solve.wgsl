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
// the last unknown and negative strides. The kernel also loads the coefficients above the diagonal and a unit diagonal, but does
// not use them.
//
// A workgroup has WIDTH right-hand sides. Each invocation holds MR unknowns of NR right-hand sides in registers. In each step,
// the invocations with the next MR unknowns compute these unknowns and write them to workgroup memory. After a barrier, the
// invocations with later unknowns eliminate the solved unknowns from their own equations. During a step, all invocations load the
// coefficients of the next step.
//
// An invocation multiplies by the reciprocals of its pivots, because a product takes less time than a division. An invocation divides by
// its pivots if one of them is zero, subnormal or not finite, or has a subnormal reciprocal.
// The first half holds the coefficients of the columns that an even step eliminates, and the second half those of an odd step.
var<workgroup> coefficients: array<vec, 256>;
// The array holds the unknowns that a step computes: first all of one right-hand side, then all of the next one.
var<workgroup> solved: array<vec, 32>;

@compute @workgroup_size(ITEMS)
fn solve(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let last: u32 = args.n - 1u;
    let origin: stride = stride(args.a_at);
    let own: u32 = t / LANES * MR;
    let i_0: u32 = (t + 0u * ITEMS) % 16u * V;
    let k_0: u32 = (t + 0u * ITEMS) / 16u;
    let place_0: u32 = k_0 * 16u + i_0 / V % 4u * 4u + i_0 / MR;
    coefficients[place_0] = vec(a[origin + stride(min(i_0 + 0u, last)) * args.a_i + stride(min(k_0, last)) * args.a_k], a[origin + stride(min(i_0 + 1u, last)) * args.a_i + stride(min(k_0, last)) * args.a_k]);
    let i_1: u32 = (t + 1u * ITEMS) % 16u * V;
    let k_1: u32 = (t + 1u * ITEMS) / 16u;
    let place_1: u32 = k_1 * 16u + i_1 / V % 4u * 4u + i_1 / MR;
    coefficients[place_1] = vec(a[origin + stride(min(i_1 + 0u, last)) * args.a_i + stride(min(k_1, last)) * args.a_k], a[origin + stride(min(i_1 + 1u, last)) * args.a_i + stride(min(k_1, last)) * args.a_k]);
    let i_2: u32 = (t + 2u * ITEMS) % 16u * V;
    let k_2: u32 = (t + 2u * ITEMS) / 16u;
    let place_2: u32 = k_2 * 16u + i_2 / V % 4u * 4u + i_2 / MR;
    coefficients[place_2] = vec(a[origin + stride(min(i_2 + 0u, last)) * args.a_i + stride(min(k_2, last)) * args.a_k], a[origin + stride(min(i_2 + 1u, last)) * args.a_i + stride(min(k_2, last)) * args.a_k]);
    let i_3: u32 = (t + 3u * ITEMS) % 16u * V;
    let k_3: u32 = (t + 3u * ITEMS) / 16u;
    let place_3: u32 = k_3 * 16u + i_3 / V % 4u * 4u + i_3 / MR;
    coefficients[place_3] = vec(a[origin + stride(min(i_3 + 0u, last)) * args.a_i + stride(min(k_3, last)) * args.a_k], a[origin + stride(min(i_3 + 1u, last)) * args.a_i + stride(min(k_3, last)) * args.a_k]);
    let i_4: u32 = (t + 4u * ITEMS) % 16u * V;
    let k_4: u32 = (t + 4u * ITEMS) / 16u;
    let place_4: u32 = k_4 * 16u + i_4 / V % 4u * 4u + i_4 / MR;
    coefficients[place_4] = vec(a[origin + stride(min(i_4 + 0u, last)) * args.a_i + stride(min(k_4, last)) * args.a_k], a[origin + stride(min(i_4 + 1u, last)) * args.a_i + stride(min(k_4, last)) * args.a_k]);
    let i_5: u32 = (t + 5u * ITEMS) % 16u * V;
    let k_5: u32 = (t + 5u * ITEMS) / 16u;
    let place_5: u32 = k_5 * 16u + i_5 / V % 4u * 4u + i_5 / MR;
    coefficients[place_5] = vec(a[origin + stride(min(i_5 + 0u, last)) * args.a_i + stride(min(k_5, last)) * args.a_k], a[origin + stride(min(i_5 + 1u, last)) * args.a_i + stride(min(k_5, last)) * args.a_k]);
    let i_6: u32 = (t + 6u * ITEMS) % 16u * V;
    let k_6: u32 = (t + 6u * ITEMS) / 16u;
    let place_6: u32 = k_6 * 16u + i_6 / V % 4u * 4u + i_6 / MR;
    coefficients[place_6] = vec(a[origin + stride(min(i_6 + 0u, last)) * args.a_i + stride(min(k_6, last)) * args.a_k], a[origin + stride(min(i_6 + 1u, last)) * args.a_i + stride(min(k_6, last)) * args.a_k]);
    let i_7: u32 = (t + 7u * ITEMS) % 16u * V;
    let k_7: u32 = (t + 7u * ITEMS) / 16u;
    let place_7: u32 = k_7 * 16u + i_7 / V % 4u * 4u + i_7 / MR;
    coefficients[place_7] = vec(a[origin + stride(min(i_7 + 0u, last)) * args.a_i + stride(min(k_7, last)) * args.a_k], a[origin + stride(min(i_7 + 1u, last)) * args.a_i + stride(min(k_7, last)) * args.a_k]);
    // a factor is the reciprocal of a pivot if the invocation multiplies, and the pivot itself if the invocation divides
    let pivot_0: real = a[origin + stride(min(own + 0u, last)) * args.a_i + stride(min(own + 0u, last)) * args.a_k];
    var factor_0: real = real(1) / pivot_0;
    let pivot_1: real = a[origin + stride(min(own + 1u, last)) * args.a_i + stride(min(own + 1u, last)) * args.a_k];
    var factor_1: real = real(1) / pivot_1;
    let pivot_2: real = a[origin + stride(min(own + 2u, last)) * args.a_i + stride(min(own + 2u, last)) * args.a_k];
    var factor_2: real = real(1) / pivot_2;
    let pivot_3: real = a[origin + stride(min(own + 3u, last)) * args.a_i + stride(min(own + 3u, last)) * args.a_k];
    var factor_3: real = real(1) / pivot_3;
    let pivot_4: real = a[origin + stride(min(own + 4u, last)) * args.a_i + stride(min(own + 4u, last)) * args.a_k];
    var factor_4: real = real(1) / pivot_4;
    let pivot_5: real = a[origin + stride(min(own + 5u, last)) * args.a_i + stride(min(own + 5u, last)) * args.a_k];
    var factor_5: real = real(1) / pivot_5;
    let pivot_6: real = a[origin + stride(min(own + 6u, last)) * args.a_i + stride(min(own + 6u, last)) * args.a_k];
    var factor_6: real = real(1) / pivot_6;
    let pivot_7: real = a[origin + stride(min(own + 7u, last)) * args.a_i + stride(min(own + 7u, last)) * args.a_k];
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
    let row_0: stride = stride(args.b_at) + stride(min(own + 0u, last)) * args.b_i;
    let row_1: stride = stride(args.b_at) + stride(min(own + 1u, last)) * args.b_i;
    let row_2: stride = stride(args.b_at) + stride(min(own + 2u, last)) * args.b_i;
    let row_3: stride = stride(args.b_at) + stride(min(own + 3u, last)) * args.b_i;
    let row_4: stride = stride(args.b_at) + stride(min(own + 4u, last)) * args.b_i;
    let row_5: stride = stride(args.b_at) + stride(min(own + 5u, last)) * args.b_i;
    let row_6: stride = stride(args.b_at) + stride(min(own + 6u, last)) * args.b_i;
    let row_7: stride = stride(args.b_at) + stride(min(own + 7u, last)) * args.b_i;
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
    workgroupBarrier();
    for (var k: u32 = 0u; k < args.n; k += MR) {
        let at: u32 = k / MR % 2u * 128u;
        let next_0: vec = vec(a[origin + stride(min(max(i_0, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_0, last)) * args.a_k], a[origin + stride(min(max(i_0, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_0, last)) * args.a_k]);
        let next_1: vec = vec(a[origin + stride(min(max(i_1, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_1, last)) * args.a_k], a[origin + stride(min(max(i_1, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_1, last)) * args.a_k]);
        let next_2: vec = vec(a[origin + stride(min(max(i_2, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_2, last)) * args.a_k], a[origin + stride(min(max(i_2, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_2, last)) * args.a_k]);
        let next_3: vec = vec(a[origin + stride(min(max(i_3, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_3, last)) * args.a_k], a[origin + stride(min(max(i_3, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_3, last)) * args.a_k]);
        let next_4: vec = vec(a[origin + stride(min(max(i_4, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_4, last)) * args.a_k], a[origin + stride(min(max(i_4, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_4, last)) * args.a_k]);
        let next_5: vec = vec(a[origin + stride(min(max(i_5, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_5, last)) * args.a_k], a[origin + stride(min(max(i_5, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_5, last)) * args.a_k]);
        let next_6: vec = vec(a[origin + stride(min(max(i_6, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_6, last)) * args.a_k], a[origin + stride(min(max(i_6, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_6, last)) * args.a_k]);
        let next_7: vec = vec(a[origin + stride(min(max(i_7, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_7, last)) * args.a_k], a[origin + stride(min(max(i_7, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_7, last)) * args.a_k]);
        if (own == k) {
            if (args.unit == 0u) {
                if (multiplies) {
                    x_0_0.x *= factor_0;
                    x_0_1.x *= factor_0;
                } else {
                    x_0_0.x /= factor_0;
                    x_0_1.x /= factor_0;
                }
            }
            let d_0_0: vec = coefficients[at + 0u + own / MR];
            let d_0_1: vec = coefficients[at + 4u + own / MR];
            let d_0_2: vec = coefficients[at + 8u + own / MR];
            let d_0_3: vec = coefficients[at + 12u + own / MR];
            x_0_0.y = fma(-d_0_0.y, x_0_0.x, x_0_0.y);
            x_0_1.y = fma(-d_0_0.y, x_0_1.x, x_0_1.y);
            x_1_0.x = fma(-d_0_1.x, x_0_0.x, x_1_0.x);
            x_1_1.x = fma(-d_0_1.x, x_0_1.x, x_1_1.x);
            x_1_0.y = fma(-d_0_1.y, x_0_0.x, x_1_0.y);
            x_1_1.y = fma(-d_0_1.y, x_0_1.x, x_1_1.y);
            x_2_0.x = fma(-d_0_2.x, x_0_0.x, x_2_0.x);
            x_2_1.x = fma(-d_0_2.x, x_0_1.x, x_2_1.x);
            x_2_0.y = fma(-d_0_2.y, x_0_0.x, x_2_0.y);
            x_2_1.y = fma(-d_0_2.y, x_0_1.x, x_2_1.y);
            x_3_0.x = fma(-d_0_3.x, x_0_0.x, x_3_0.x);
            x_3_1.x = fma(-d_0_3.x, x_0_1.x, x_3_1.x);
            x_3_0.y = fma(-d_0_3.y, x_0_0.x, x_3_0.y);
            x_3_1.y = fma(-d_0_3.y, x_0_1.x, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_0_0.y *= factor_1;
                    x_0_1.y *= factor_1;
                } else {
                    x_0_0.y /= factor_1;
                    x_0_1.y /= factor_1;
                }
            }
            let d_1_1: vec = coefficients[at + 20u + own / MR];
            let d_1_2: vec = coefficients[at + 24u + own / MR];
            let d_1_3: vec = coefficients[at + 28u + own / MR];
            x_1_0.x = fma(-d_1_1.x, x_0_0.y, x_1_0.x);
            x_1_1.x = fma(-d_1_1.x, x_0_1.y, x_1_1.x);
            x_1_0.y = fma(-d_1_1.y, x_0_0.y, x_1_0.y);
            x_1_1.y = fma(-d_1_1.y, x_0_1.y, x_1_1.y);
            x_2_0.x = fma(-d_1_2.x, x_0_0.y, x_2_0.x);
            x_2_1.x = fma(-d_1_2.x, x_0_1.y, x_2_1.x);
            x_2_0.y = fma(-d_1_2.y, x_0_0.y, x_2_0.y);
            x_2_1.y = fma(-d_1_2.y, x_0_1.y, x_2_1.y);
            x_3_0.x = fma(-d_1_3.x, x_0_0.y, x_3_0.x);
            x_3_1.x = fma(-d_1_3.x, x_0_1.y, x_3_1.x);
            x_3_0.y = fma(-d_1_3.y, x_0_0.y, x_3_0.y);
            x_3_1.y = fma(-d_1_3.y, x_0_1.y, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_1_0.x *= factor_2;
                    x_1_1.x *= factor_2;
                } else {
                    x_1_0.x /= factor_2;
                    x_1_1.x /= factor_2;
                }
            }
            let d_2_1: vec = coefficients[at + 36u + own / MR];
            let d_2_2: vec = coefficients[at + 40u + own / MR];
            let d_2_3: vec = coefficients[at + 44u + own / MR];
            x_1_0.y = fma(-d_2_1.y, x_1_0.x, x_1_0.y);
            x_1_1.y = fma(-d_2_1.y, x_1_1.x, x_1_1.y);
            x_2_0.x = fma(-d_2_2.x, x_1_0.x, x_2_0.x);
            x_2_1.x = fma(-d_2_2.x, x_1_1.x, x_2_1.x);
            x_2_0.y = fma(-d_2_2.y, x_1_0.x, x_2_0.y);
            x_2_1.y = fma(-d_2_2.y, x_1_1.x, x_2_1.y);
            x_3_0.x = fma(-d_2_3.x, x_1_0.x, x_3_0.x);
            x_3_1.x = fma(-d_2_3.x, x_1_1.x, x_3_1.x);
            x_3_0.y = fma(-d_2_3.y, x_1_0.x, x_3_0.y);
            x_3_1.y = fma(-d_2_3.y, x_1_1.x, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_1_0.y *= factor_3;
                    x_1_1.y *= factor_3;
                } else {
                    x_1_0.y /= factor_3;
                    x_1_1.y /= factor_3;
                }
            }
            let d_3_2: vec = coefficients[at + 56u + own / MR];
            let d_3_3: vec = coefficients[at + 60u + own / MR];
            x_2_0.x = fma(-d_3_2.x, x_1_0.y, x_2_0.x);
            x_2_1.x = fma(-d_3_2.x, x_1_1.y, x_2_1.x);
            x_2_0.y = fma(-d_3_2.y, x_1_0.y, x_2_0.y);
            x_2_1.y = fma(-d_3_2.y, x_1_1.y, x_2_1.y);
            x_3_0.x = fma(-d_3_3.x, x_1_0.y, x_3_0.x);
            x_3_1.x = fma(-d_3_3.x, x_1_1.y, x_3_1.x);
            x_3_0.y = fma(-d_3_3.y, x_1_0.y, x_3_0.y);
            x_3_1.y = fma(-d_3_3.y, x_1_1.y, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_2_0.x *= factor_4;
                    x_2_1.x *= factor_4;
                } else {
                    x_2_0.x /= factor_4;
                    x_2_1.x /= factor_4;
                }
            }
            let d_4_2: vec = coefficients[at + 72u + own / MR];
            let d_4_3: vec = coefficients[at + 76u + own / MR];
            x_2_0.y = fma(-d_4_2.y, x_2_0.x, x_2_0.y);
            x_2_1.y = fma(-d_4_2.y, x_2_1.x, x_2_1.y);
            x_3_0.x = fma(-d_4_3.x, x_2_0.x, x_3_0.x);
            x_3_1.x = fma(-d_4_3.x, x_2_1.x, x_3_1.x);
            x_3_0.y = fma(-d_4_3.y, x_2_0.x, x_3_0.y);
            x_3_1.y = fma(-d_4_3.y, x_2_1.x, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_2_0.y *= factor_5;
                    x_2_1.y *= factor_5;
                } else {
                    x_2_0.y /= factor_5;
                    x_2_1.y /= factor_5;
                }
            }
            let d_5_3: vec = coefficients[at + 92u + own / MR];
            x_3_0.x = fma(-d_5_3.x, x_2_0.y, x_3_0.x);
            x_3_1.x = fma(-d_5_3.x, x_2_1.y, x_3_1.x);
            x_3_0.y = fma(-d_5_3.y, x_2_0.y, x_3_0.y);
            x_3_1.y = fma(-d_5_3.y, x_2_1.y, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_3_0.x *= factor_6;
                    x_3_1.x *= factor_6;
                } else {
                    x_3_0.x /= factor_6;
                    x_3_1.x /= factor_6;
                }
            }
            let d_6_3: vec = coefficients[at + 108u + own / MR];
            x_3_0.y = fma(-d_6_3.y, x_3_0.x, x_3_0.y);
            x_3_1.y = fma(-d_6_3.y, x_3_1.x, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_3_0.y *= factor_7;
                    x_3_1.y *= factor_7;
                } else {
                    x_3_0.y /= factor_7;
                    x_3_1.y /= factor_7;
                }
            }
            solved[(0u * LANES + t % LANES) * 4u + 0u] = x_0_0;
            solved[(0u * LANES + t % LANES) * 4u + 1u] = x_1_0;
            solved[(0u * LANES + t % LANES) * 4u + 2u] = x_2_0;
            solved[(0u * LANES + t % LANES) * 4u + 3u] = x_3_0;
            solved[(1u * LANES + t % LANES) * 4u + 0u] = x_0_1;
            solved[(1u * LANES + t % LANES) * 4u + 1u] = x_1_1;
            solved[(1u * LANES + t % LANES) * 4u + 2u] = x_2_1;
            solved[(1u * LANES + t % LANES) * 4u + 3u] = x_3_1;
        }
        workgroupBarrier();
        if (own > k) {
            let u_0_0: vec = solved[(0u * LANES + t % LANES) * 4u + 0u];
            let u_0_1: vec = solved[(1u * LANES + t % LANES) * 4u + 0u];
            let l_0_0: vec = coefficients[at + 0u + own / MR];
            x_0_0 = fma(l_0_0, vec(-u_0_0.x), x_0_0);
            x_0_1 = fma(l_0_0, vec(-u_0_1.x), x_0_1);
            let l_0_1: vec = coefficients[at + 4u + own / MR];
            x_1_0 = fma(l_0_1, vec(-u_0_0.x), x_1_0);
            x_1_1 = fma(l_0_1, vec(-u_0_1.x), x_1_1);
            let l_0_2: vec = coefficients[at + 8u + own / MR];
            x_2_0 = fma(l_0_2, vec(-u_0_0.x), x_2_0);
            x_2_1 = fma(l_0_2, vec(-u_0_1.x), x_2_1);
            let l_0_3: vec = coefficients[at + 12u + own / MR];
            x_3_0 = fma(l_0_3, vec(-u_0_0.x), x_3_0);
            x_3_1 = fma(l_0_3, vec(-u_0_1.x), x_3_1);
            let l_1_0: vec = coefficients[at + 16u + own / MR];
            x_0_0 = fma(l_1_0, vec(-u_0_0.y), x_0_0);
            x_0_1 = fma(l_1_0, vec(-u_0_1.y), x_0_1);
            let l_1_1: vec = coefficients[at + 20u + own / MR];
            x_1_0 = fma(l_1_1, vec(-u_0_0.y), x_1_0);
            x_1_1 = fma(l_1_1, vec(-u_0_1.y), x_1_1);
            let l_1_2: vec = coefficients[at + 24u + own / MR];
            x_2_0 = fma(l_1_2, vec(-u_0_0.y), x_2_0);
            x_2_1 = fma(l_1_2, vec(-u_0_1.y), x_2_1);
            let l_1_3: vec = coefficients[at + 28u + own / MR];
            x_3_0 = fma(l_1_3, vec(-u_0_0.y), x_3_0);
            x_3_1 = fma(l_1_3, vec(-u_0_1.y), x_3_1);
            let u_1_0: vec = solved[(0u * LANES + t % LANES) * 4u + 1u];
            let u_1_1: vec = solved[(1u * LANES + t % LANES) * 4u + 1u];
            let l_2_0: vec = coefficients[at + 32u + own / MR];
            x_0_0 = fma(l_2_0, vec(-u_1_0.x), x_0_0);
            x_0_1 = fma(l_2_0, vec(-u_1_1.x), x_0_1);
            let l_2_1: vec = coefficients[at + 36u + own / MR];
            x_1_0 = fma(l_2_1, vec(-u_1_0.x), x_1_0);
            x_1_1 = fma(l_2_1, vec(-u_1_1.x), x_1_1);
            let l_2_2: vec = coefficients[at + 40u + own / MR];
            x_2_0 = fma(l_2_2, vec(-u_1_0.x), x_2_0);
            x_2_1 = fma(l_2_2, vec(-u_1_1.x), x_2_1);
            let l_2_3: vec = coefficients[at + 44u + own / MR];
            x_3_0 = fma(l_2_3, vec(-u_1_0.x), x_3_0);
            x_3_1 = fma(l_2_3, vec(-u_1_1.x), x_3_1);
            let l_3_0: vec = coefficients[at + 48u + own / MR];
            x_0_0 = fma(l_3_0, vec(-u_1_0.y), x_0_0);
            x_0_1 = fma(l_3_0, vec(-u_1_1.y), x_0_1);
            let l_3_1: vec = coefficients[at + 52u + own / MR];
            x_1_0 = fma(l_3_1, vec(-u_1_0.y), x_1_0);
            x_1_1 = fma(l_3_1, vec(-u_1_1.y), x_1_1);
            let l_3_2: vec = coefficients[at + 56u + own / MR];
            x_2_0 = fma(l_3_2, vec(-u_1_0.y), x_2_0);
            x_2_1 = fma(l_3_2, vec(-u_1_1.y), x_2_1);
            let l_3_3: vec = coefficients[at + 60u + own / MR];
            x_3_0 = fma(l_3_3, vec(-u_1_0.y), x_3_0);
            x_3_1 = fma(l_3_3, vec(-u_1_1.y), x_3_1);
            let u_2_0: vec = solved[(0u * LANES + t % LANES) * 4u + 2u];
            let u_2_1: vec = solved[(1u * LANES + t % LANES) * 4u + 2u];
            let l_4_0: vec = coefficients[at + 64u + own / MR];
            x_0_0 = fma(l_4_0, vec(-u_2_0.x), x_0_0);
            x_0_1 = fma(l_4_0, vec(-u_2_1.x), x_0_1);
            let l_4_1: vec = coefficients[at + 68u + own / MR];
            x_1_0 = fma(l_4_1, vec(-u_2_0.x), x_1_0);
            x_1_1 = fma(l_4_1, vec(-u_2_1.x), x_1_1);
            let l_4_2: vec = coefficients[at + 72u + own / MR];
            x_2_0 = fma(l_4_2, vec(-u_2_0.x), x_2_0);
            x_2_1 = fma(l_4_2, vec(-u_2_1.x), x_2_1);
            let l_4_3: vec = coefficients[at + 76u + own / MR];
            x_3_0 = fma(l_4_3, vec(-u_2_0.x), x_3_0);
            x_3_1 = fma(l_4_3, vec(-u_2_1.x), x_3_1);
            let l_5_0: vec = coefficients[at + 80u + own / MR];
            x_0_0 = fma(l_5_0, vec(-u_2_0.y), x_0_0);
            x_0_1 = fma(l_5_0, vec(-u_2_1.y), x_0_1);
            let l_5_1: vec = coefficients[at + 84u + own / MR];
            x_1_0 = fma(l_5_1, vec(-u_2_0.y), x_1_0);
            x_1_1 = fma(l_5_1, vec(-u_2_1.y), x_1_1);
            let l_5_2: vec = coefficients[at + 88u + own / MR];
            x_2_0 = fma(l_5_2, vec(-u_2_0.y), x_2_0);
            x_2_1 = fma(l_5_2, vec(-u_2_1.y), x_2_1);
            let l_5_3: vec = coefficients[at + 92u + own / MR];
            x_3_0 = fma(l_5_3, vec(-u_2_0.y), x_3_0);
            x_3_1 = fma(l_5_3, vec(-u_2_1.y), x_3_1);
            let u_3_0: vec = solved[(0u * LANES + t % LANES) * 4u + 3u];
            let u_3_1: vec = solved[(1u * LANES + t % LANES) * 4u + 3u];
            let l_6_0: vec = coefficients[at + 96u + own / MR];
            x_0_0 = fma(l_6_0, vec(-u_3_0.x), x_0_0);
            x_0_1 = fma(l_6_0, vec(-u_3_1.x), x_0_1);
            let l_6_1: vec = coefficients[at + 100u + own / MR];
            x_1_0 = fma(l_6_1, vec(-u_3_0.x), x_1_0);
            x_1_1 = fma(l_6_1, vec(-u_3_1.x), x_1_1);
            let l_6_2: vec = coefficients[at + 104u + own / MR];
            x_2_0 = fma(l_6_2, vec(-u_3_0.x), x_2_0);
            x_2_1 = fma(l_6_2, vec(-u_3_1.x), x_2_1);
            let l_6_3: vec = coefficients[at + 108u + own / MR];
            x_3_0 = fma(l_6_3, vec(-u_3_0.x), x_3_0);
            x_3_1 = fma(l_6_3, vec(-u_3_1.x), x_3_1);
            let l_7_0: vec = coefficients[at + 112u + own / MR];
            x_0_0 = fma(l_7_0, vec(-u_3_0.y), x_0_0);
            x_0_1 = fma(l_7_0, vec(-u_3_1.y), x_0_1);
            let l_7_1: vec = coefficients[at + 116u + own / MR];
            x_1_0 = fma(l_7_1, vec(-u_3_0.y), x_1_0);
            x_1_1 = fma(l_7_1, vec(-u_3_1.y), x_1_1);
            let l_7_2: vec = coefficients[at + 120u + own / MR];
            x_2_0 = fma(l_7_2, vec(-u_3_0.y), x_2_0);
            x_2_1 = fma(l_7_2, vec(-u_3_1.y), x_2_1);
            let l_7_3: vec = coefficients[at + 124u + own / MR];
            x_3_0 = fma(l_7_3, vec(-u_3_0.y), x_3_0);
            x_3_1 = fma(l_7_3, vec(-u_3_1.y), x_3_1);
        }
        coefficients[128u - at + place_0] = next_0;
        coefficients[128u - at + place_1] = next_1;
        coefficients[128u - at + place_2] = next_2;
        coefficients[128u - at + place_3] = next_3;
        coefficients[128u - at + place_4] = next_4;
        coefficients[128u - at + place_5] = next_5;
        coefficients[128u - at + place_6] = next_6;
        coefficients[128u - at + place_7] = next_7;
        workgroupBarrier();
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