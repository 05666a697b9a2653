alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
alias vec = vec2<real>;
alias size = u32;
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
const WIDTH = 8u;
const SLICE = 128u;
const PARTS = 4u;
// the coefficients of this step and of the next one
var<workgroup> coefficients: array<vec, 256>;
// the unknowns that are solved in a step, one right-hand side after the other
var<workgroup> solved: array<vec, 32>;

// Returns coefficient k of equation i. Indices beyond the last unknown are replaced by the last index, so that invocations
// without unknowns load valid elements.
fn coefficient(i: u32, k: u32) -> real {
    let last = args.n - 1u;
    return a[i32(args.a_at) + i32(min(i, last)) * args.a_i + i32(min(k, last)) * args.a_k];
}

// Returns the coefficients i, ..., i + V - 1 of column k.
fn coefficients_of(i: u32, k: u32) -> vec {
    return vec(coefficient(i + 0u, k), coefficient(i + 1u, k), );
}

@compute @workgroup_size(ITEMS)
fn solve(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let own = t / LANES * MR;
    let i_0 = (t + 0u * ITEMS) % 16u * V;
    let k_0 = (t + 0u * ITEMS) / 16u;
    let place_0 = k_0 * 16u + i_0 / V % PARTS * 4u + i_0 / MR;
    coefficients[place_0] = coefficients_of(i_0, k_0);
    let i_1 = (t + 1u * ITEMS) % 16u * V;
    let k_1 = (t + 1u * ITEMS) / 16u;
    let place_1 = k_1 * 16u + i_1 / V % PARTS * 4u + i_1 / MR;
    coefficients[place_1] = coefficients_of(i_1, k_1);
    let i_2 = (t + 2u * ITEMS) % 16u * V;
    let k_2 = (t + 2u * ITEMS) / 16u;
    let place_2 = k_2 * 16u + i_2 / V % PARTS * 4u + i_2 / MR;
    coefficients[place_2] = coefficients_of(i_2, k_2);
    let i_3 = (t + 3u * ITEMS) % 16u * V;
    let k_3 = (t + 3u * ITEMS) / 16u;
    let place_3 = k_3 * 16u + i_3 / V % PARTS * 4u + i_3 / MR;
    coefficients[place_3] = coefficients_of(i_3, k_3);
    let i_4 = (t + 4u * ITEMS) % 16u * V;
    let k_4 = (t + 4u * ITEMS) / 16u;
    let place_4 = k_4 * 16u + i_4 / V % PARTS * 4u + i_4 / MR;
    coefficients[place_4] = coefficients_of(i_4, k_4);
    let i_5 = (t + 5u * ITEMS) % 16u * V;
    let k_5 = (t + 5u * ITEMS) / 16u;
    let place_5 = k_5 * 16u + i_5 / V % PARTS * 4u + i_5 / MR;
    coefficients[place_5] = coefficients_of(i_5, k_5);
    let i_6 = (t + 6u * ITEMS) % 16u * V;
    let k_6 = (t + 6u * ITEMS) / 16u;
    let place_6 = k_6 * 16u + i_6 / V % PARTS * 4u + i_6 / MR;
    coefficients[place_6] = coefficients_of(i_6, k_6);
    let i_7 = (t + 7u * ITEMS) % 16u * V;
    let k_7 = (t + 7u * ITEMS) / 16u;
    let place_7 = k_7 * 16u + i_7 / V % PARTS * 4u + i_7 / MR;
    coefficients[place_7] = coefficients_of(i_7, k_7);
    // unknowns and right-hand sides beyond the last ones are copies of the last ones
    let row_0 = i32(args.b_at) + i32(min(own + 0u, args.n - 1u)) * args.b_i;
    let row_1 = i32(args.b_at) + i32(min(own + 1u, args.n - 1u)) * args.b_i;
    let row_2 = i32(args.b_at) + i32(min(own + 2u, args.n - 1u)) * args.b_i;
    let row_3 = i32(args.b_at) + i32(min(own + 3u, args.n - 1u)) * args.b_i;
    let row_4 = i32(args.b_at) + i32(min(own + 4u, args.n - 1u)) * args.b_i;
    let row_5 = i32(args.b_at) + i32(min(own + 5u, args.n - 1u)) * args.b_i;
    let row_6 = i32(args.b_at) + i32(min(own + 6u, args.n - 1u)) * args.b_i;
    let row_7 = i32(args.b_at) + i32(min(own + 7u, args.n - 1u)) * args.b_i;
    let r_0 = group.x * WIDTH + 0u * LANES + t % LANES;
    let col_0 = i32(min(r_0, args.nrhs - 1u)) * args.b_r;
    var x_0_0 = vec(b[row_0 + col_0], b[row_1 + col_0], );
    var x_1_0 = vec(b[row_2 + col_0], b[row_3 + col_0], );
    var x_2_0 = vec(b[row_4 + col_0], b[row_5 + col_0], );
    var x_3_0 = vec(b[row_6 + col_0], b[row_7 + col_0], );
    let r_1 = group.x * WIDTH + 1u * LANES + t % LANES;
    let col_1 = i32(min(r_1, args.nrhs - 1u)) * args.b_r;
    var x_0_1 = vec(b[row_0 + col_1], b[row_1 + col_1], );
    var x_1_1 = vec(b[row_2 + col_1], b[row_3 + col_1], );
    var x_2_1 = vec(b[row_4 + col_1], b[row_5 + col_1], );
    var x_3_1 = vec(b[row_6 + col_1], b[row_7 + col_1], );
    workgroupBarrier();
    for (var k = 0u; k < args.n; k += MR) {
        let at = k / MR % 2u * SLICE;
        let next_0 = coefficients_of(max(i_0, k + MR), k + MR + k_0);
        let next_1 = coefficients_of(max(i_1, k + MR), k + MR + k_1);
        let next_2 = coefficients_of(max(i_2, k + MR), k + MR + k_2);
        let next_3 = coefficients_of(max(i_3, k + MR), k + MR + k_3);
        let next_4 = coefficients_of(max(i_4, k + MR), k + MR + k_4);
        let next_5 = coefficients_of(max(i_5, k + MR), k + MR + k_5);
        let next_6 = coefficients_of(max(i_6, k + MR), k + MR + k_6);
        let next_7 = coefficients_of(max(i_7, k + MR), k + MR + k_7);
        if (own == k) {
            let d_0_0 = coefficients[at + 0u + own / MR];
            let d_0_1 = coefficients[at + 4u + own / MR];
            let d_0_2 = coefficients[at + 8u + own / MR];
            let d_0_3 = coefficients[at + 12u + own / MR];
            let d_1_0 = coefficients[at + 16u + own / MR];
            let d_1_1 = coefficients[at + 20u + own / MR];
            let d_1_2 = coefficients[at + 24u + own / MR];
            let d_1_3 = coefficients[at + 28u + own / MR];
            let d_2_0 = coefficients[at + 32u + own / MR];
            let d_2_1 = coefficients[at + 36u + own / MR];
            let d_2_2 = coefficients[at + 40u + own / MR];
            let d_2_3 = coefficients[at + 44u + own / MR];
            let d_3_0 = coefficients[at + 48u + own / MR];
            let d_3_1 = coefficients[at + 52u + own / MR];
            let d_3_2 = coefficients[at + 56u + own / MR];
            let d_3_3 = coefficients[at + 60u + own / MR];
            let d_4_0 = coefficients[at + 64u + own / MR];
            let d_4_1 = coefficients[at + 68u + own / MR];
            let d_4_2 = coefficients[at + 72u + own / MR];
            let d_4_3 = coefficients[at + 76u + own / MR];
            let d_5_0 = coefficients[at + 80u + own / MR];
            let d_5_1 = coefficients[at + 84u + own / MR];
            let d_5_2 = coefficients[at + 88u + own / MR];
            let d_5_3 = coefficients[at + 92u + own / MR];
            let d_6_0 = coefficients[at + 96u + own / MR];
            let d_6_1 = coefficients[at + 100u + own / MR];
            let d_6_2 = coefficients[at + 104u + own / MR];
            let d_6_3 = coefficients[at + 108u + own / MR];
            let d_7_0 = coefficients[at + 112u + own / MR];
            let d_7_1 = coefficients[at + 116u + own / MR];
            let d_7_2 = coefficients[at + 120u + own / MR];
            let d_7_3 = coefficients[at + 124u + own / MR];
            if (args.unit == 0u) {
                x_0_0[0] /= d_0_0[0];
                x_0_1[0] /= d_0_0[0];
            }
            x_0_0[1] = fma(-d_0_0[1], x_0_0[0], x_0_0[1]);
            x_0_1[1] = fma(-d_0_0[1], x_0_1[0], x_0_1[1]);
            x_1_0[0] = fma(-d_0_1[0], x_0_0[0], x_1_0[0]);
            x_1_1[0] = fma(-d_0_1[0], x_0_1[0], x_1_1[0]);
            x_1_0[1] = fma(-d_0_1[1], x_0_0[0], x_1_0[1]);
            x_1_1[1] = fma(-d_0_1[1], x_0_1[0], x_1_1[1]);
            x_2_0[0] = fma(-d_0_2[0], x_0_0[0], x_2_0[0]);
            x_2_1[0] = fma(-d_0_2[0], x_0_1[0], x_2_1[0]);
            x_2_0[1] = fma(-d_0_2[1], x_0_0[0], x_2_0[1]);
            x_2_1[1] = fma(-d_0_2[1], x_0_1[0], x_2_1[1]);
            x_3_0[0] = fma(-d_0_3[0], x_0_0[0], x_3_0[0]);
            x_3_1[0] = fma(-d_0_3[0], x_0_1[0], x_3_1[0]);
            x_3_0[1] = fma(-d_0_3[1], x_0_0[0], x_3_0[1]);
            x_3_1[1] = fma(-d_0_3[1], x_0_1[0], x_3_1[1]);
            if (args.unit == 0u) {
                x_0_0[1] /= d_1_0[1];
                x_0_1[1] /= d_1_0[1];
            }
            x_1_0[0] = fma(-d_1_1[0], x_0_0[1], x_1_0[0]);
            x_1_1[0] = fma(-d_1_1[0], x_0_1[1], x_1_1[0]);
            x_1_0[1] = fma(-d_1_1[1], x_0_0[1], x_1_0[1]);
            x_1_1[1] = fma(-d_1_1[1], x_0_1[1], x_1_1[1]);
            x_2_0[0] = fma(-d_1_2[0], x_0_0[1], x_2_0[0]);
            x_2_1[0] = fma(-d_1_2[0], x_0_1[1], x_2_1[0]);
            x_2_0[1] = fma(-d_1_2[1], x_0_0[1], x_2_0[1]);
            x_2_1[1] = fma(-d_1_2[1], x_0_1[1], x_2_1[1]);
            x_3_0[0] = fma(-d_1_3[0], x_0_0[1], x_3_0[0]);
            x_3_1[0] = fma(-d_1_3[0], x_0_1[1], x_3_1[0]);
            x_3_0[1] = fma(-d_1_3[1], x_0_0[1], x_3_0[1]);
            x_3_1[1] = fma(-d_1_3[1], x_0_1[1], x_3_1[1]);
            if (args.unit == 0u) {
                x_1_0[0] /= d_2_1[0];
                x_1_1[0] /= d_2_1[0];
            }
            x_1_0[1] = fma(-d_2_1[1], x_1_0[0], x_1_0[1]);
            x_1_1[1] = fma(-d_2_1[1], x_1_1[0], x_1_1[1]);
            x_2_0[0] = fma(-d_2_2[0], x_1_0[0], x_2_0[0]);
            x_2_1[0] = fma(-d_2_2[0], x_1_1[0], x_2_1[0]);
            x_2_0[1] = fma(-d_2_2[1], x_1_0[0], x_2_0[1]);
            x_2_1[1] = fma(-d_2_2[1], x_1_1[0], x_2_1[1]);
            x_3_0[0] = fma(-d_2_3[0], x_1_0[0], x_3_0[0]);
            x_3_1[0] = fma(-d_2_3[0], x_1_1[0], x_3_1[0]);
            x_3_0[1] = fma(-d_2_3[1], x_1_0[0], x_3_0[1]);
            x_3_1[1] = fma(-d_2_3[1], x_1_1[0], x_3_1[1]);
            if (args.unit == 0u) {
                x_1_0[1] /= d_3_1[1];
                x_1_1[1] /= d_3_1[1];
            }
            x_2_0[0] = fma(-d_3_2[0], x_1_0[1], x_2_0[0]);
            x_2_1[0] = fma(-d_3_2[0], x_1_1[1], x_2_1[0]);
            x_2_0[1] = fma(-d_3_2[1], x_1_0[1], x_2_0[1]);
            x_2_1[1] = fma(-d_3_2[1], x_1_1[1], x_2_1[1]);
            x_3_0[0] = fma(-d_3_3[0], x_1_0[1], x_3_0[0]);
            x_3_1[0] = fma(-d_3_3[0], x_1_1[1], x_3_1[0]);
            x_3_0[1] = fma(-d_3_3[1], x_1_0[1], x_3_0[1]);
            x_3_1[1] = fma(-d_3_3[1], x_1_1[1], x_3_1[1]);
            if (args.unit == 0u) {
                x_2_0[0] /= d_4_2[0];
                x_2_1[0] /= d_4_2[0];
            }
            x_2_0[1] = fma(-d_4_2[1], x_2_0[0], x_2_0[1]);
            x_2_1[1] = fma(-d_4_2[1], x_2_1[0], x_2_1[1]);
            x_3_0[0] = fma(-d_4_3[0], x_2_0[0], x_3_0[0]);
            x_3_1[0] = fma(-d_4_3[0], x_2_1[0], x_3_1[0]);
            x_3_0[1] = fma(-d_4_3[1], x_2_0[0], x_3_0[1]);
            x_3_1[1] = fma(-d_4_3[1], x_2_1[0], x_3_1[1]);
            if (args.unit == 0u) {
                x_2_0[1] /= d_5_2[1];
                x_2_1[1] /= d_5_2[1];
            }
            x_3_0[0] = fma(-d_5_3[0], x_2_0[1], x_3_0[0]);
            x_3_1[0] = fma(-d_5_3[0], x_2_1[1], x_3_1[0]);
            x_3_0[1] = fma(-d_5_3[1], x_2_0[1], x_3_0[1]);
            x_3_1[1] = fma(-d_5_3[1], x_2_1[1], x_3_1[1]);
            if (args.unit == 0u) {
                x_3_0[0] /= d_6_3[0];
                x_3_1[0] /= d_6_3[0];
            }
            x_3_0[1] = fma(-d_6_3[1], x_3_0[0], x_3_0[1]);
            x_3_1[1] = fma(-d_6_3[1], x_3_1[0], x_3_1[1]);
            if (args.unit == 0u) {
                x_3_0[1] /= d_7_3[1];
                x_3_1[1] /= d_7_3[1];
            }
            solved[(0u * LANES + t % LANES) * PARTS + 0u] = x_0_0;
            solved[(0u * LANES + t % LANES) * PARTS + 1u] = x_1_0;
            solved[(0u * LANES + t % LANES) * PARTS + 2u] = x_2_0;
            solved[(0u * LANES + t % LANES) * PARTS + 3u] = x_3_0;
            solved[(1u * LANES + t % LANES) * PARTS + 0u] = x_0_1;
            solved[(1u * LANES + t % LANES) * PARTS + 1u] = x_1_1;
            solved[(1u * LANES + t % LANES) * PARTS + 2u] = x_2_1;
            solved[(1u * LANES + t % LANES) * PARTS + 3u] = x_3_1;
        }
        workgroupBarrier();
        if (own > k) {
            let l_0_0 = coefficients[at + 0u + own / MR];
            let l_0_1 = coefficients[at + 4u + own / MR];
            let l_0_2 = coefficients[at + 8u + own / MR];
            let l_0_3 = coefficients[at + 12u + own / MR];
            let l_1_0 = coefficients[at + 16u + own / MR];
            let l_1_1 = coefficients[at + 20u + own / MR];
            let l_1_2 = coefficients[at + 24u + own / MR];
            let l_1_3 = coefficients[at + 28u + own / MR];
            let u_0_0 = solved[(0u * LANES + t % LANES) * PARTS + 0u];
            x_0_0 = fma(l_0_0, vec(-u_0_0[0]), x_0_0);
            x_1_0 = fma(l_0_1, vec(-u_0_0[0]), x_1_0);
            x_2_0 = fma(l_0_2, vec(-u_0_0[0]), x_2_0);
            x_3_0 = fma(l_0_3, vec(-u_0_0[0]), x_3_0);
            x_0_0 = fma(l_1_0, vec(-u_0_0[1]), x_0_0);
            x_1_0 = fma(l_1_1, vec(-u_0_0[1]), x_1_0);
            x_2_0 = fma(l_1_2, vec(-u_0_0[1]), x_2_0);
            x_3_0 = fma(l_1_3, vec(-u_0_0[1]), x_3_0);
            let u_0_1 = solved[(1u * LANES + t % LANES) * PARTS + 0u];
            x_0_1 = fma(l_0_0, vec(-u_0_1[0]), x_0_1);
            x_1_1 = fma(l_0_1, vec(-u_0_1[0]), x_1_1);
            x_2_1 = fma(l_0_2, vec(-u_0_1[0]), x_2_1);
            x_3_1 = fma(l_0_3, vec(-u_0_1[0]), x_3_1);
            x_0_1 = fma(l_1_0, vec(-u_0_1[1]), x_0_1);
            x_1_1 = fma(l_1_1, vec(-u_0_1[1]), x_1_1);
            x_2_1 = fma(l_1_2, vec(-u_0_1[1]), x_2_1);
            x_3_1 = fma(l_1_3, vec(-u_0_1[1]), x_3_1);
            let l_2_0 = coefficients[at + 32u + own / MR];
            let l_2_1 = coefficients[at + 36u + own / MR];
            let l_2_2 = coefficients[at + 40u + own / MR];
            let l_2_3 = coefficients[at + 44u + own / MR];
            let l_3_0 = coefficients[at + 48u + own / MR];
            let l_3_1 = coefficients[at + 52u + own / MR];
            let l_3_2 = coefficients[at + 56u + own / MR];
            let l_3_3 = coefficients[at + 60u + own / MR];
            let u_1_0 = solved[(0u * LANES + t % LANES) * PARTS + 1u];
            x_0_0 = fma(l_2_0, vec(-u_1_0[0]), x_0_0);
            x_1_0 = fma(l_2_1, vec(-u_1_0[0]), x_1_0);
            x_2_0 = fma(l_2_2, vec(-u_1_0[0]), x_2_0);
            x_3_0 = fma(l_2_3, vec(-u_1_0[0]), x_3_0);
            x_0_0 = fma(l_3_0, vec(-u_1_0[1]), x_0_0);
            x_1_0 = fma(l_3_1, vec(-u_1_0[1]), x_1_0);
            x_2_0 = fma(l_3_2, vec(-u_1_0[1]), x_2_0);
            x_3_0 = fma(l_3_3, vec(-u_1_0[1]), x_3_0);
            let u_1_1 = solved[(1u * LANES + t % LANES) * PARTS + 1u];
            x_0_1 = fma(l_2_0, vec(-u_1_1[0]), x_0_1);
            x_1_1 = fma(l_2_1, vec(-u_1_1[0]), x_1_1);
            x_2_1 = fma(l_2_2, vec(-u_1_1[0]), x_2_1);
            x_3_1 = fma(l_2_3, vec(-u_1_1[0]), x_3_1);
            x_0_1 = fma(l_3_0, vec(-u_1_1[1]), x_0_1);
            x_1_1 = fma(l_3_1, vec(-u_1_1[1]), x_1_1);
            x_2_1 = fma(l_3_2, vec(-u_1_1[1]), x_2_1);
            x_3_1 = fma(l_3_3, vec(-u_1_1[1]), x_3_1);
            let l_4_0 = coefficients[at + 64u + own / MR];
            let l_4_1 = coefficients[at + 68u + own / MR];
            let l_4_2 = coefficients[at + 72u + own / MR];
            let l_4_3 = coefficients[at + 76u + own / MR];
            let l_5_0 = coefficients[at + 80u + own / MR];
            let l_5_1 = coefficients[at + 84u + own / MR];
            let l_5_2 = coefficients[at + 88u + own / MR];
            let l_5_3 = coefficients[at + 92u + own / MR];
            let u_2_0 = solved[(0u * LANES + t % LANES) * PARTS + 2u];
            x_0_0 = fma(l_4_0, vec(-u_2_0[0]), x_0_0);
            x_1_0 = fma(l_4_1, vec(-u_2_0[0]), x_1_0);
            x_2_0 = fma(l_4_2, vec(-u_2_0[0]), x_2_0);
            x_3_0 = fma(l_4_3, vec(-u_2_0[0]), x_3_0);
            x_0_0 = fma(l_5_0, vec(-u_2_0[1]), x_0_0);
            x_1_0 = fma(l_5_1, vec(-u_2_0[1]), x_1_0);
            x_2_0 = fma(l_5_2, vec(-u_2_0[1]), x_2_0);
            x_3_0 = fma(l_5_3, vec(-u_2_0[1]), x_3_0);
            let u_2_1 = solved[(1u * LANES + t % LANES) * PARTS + 2u];
            x_0_1 = fma(l_4_0, vec(-u_2_1[0]), x_0_1);
            x_1_1 = fma(l_4_1, vec(-u_2_1[0]), x_1_1);
            x_2_1 = fma(l_4_2, vec(-u_2_1[0]), x_2_1);
            x_3_1 = fma(l_4_3, vec(-u_2_1[0]), x_3_1);
            x_0_1 = fma(l_5_0, vec(-u_2_1[1]), x_0_1);
            x_1_1 = fma(l_5_1, vec(-u_2_1[1]), x_1_1);
            x_2_1 = fma(l_5_2, vec(-u_2_1[1]), x_2_1);
            x_3_1 = fma(l_5_3, vec(-u_2_1[1]), x_3_1);
            let l_6_0 = coefficients[at + 96u + own / MR];
            let l_6_1 = coefficients[at + 100u + own / MR];
            let l_6_2 = coefficients[at + 104u + own / MR];
            let l_6_3 = coefficients[at + 108u + own / MR];
            let l_7_0 = coefficients[at + 112u + own / MR];
            let l_7_1 = coefficients[at + 116u + own / MR];
            let l_7_2 = coefficients[at + 120u + own / MR];
            let l_7_3 = coefficients[at + 124u + own / MR];
            let u_3_0 = solved[(0u * LANES + t % LANES) * PARTS + 3u];
            x_0_0 = fma(l_6_0, vec(-u_3_0[0]), x_0_0);
            x_1_0 = fma(l_6_1, vec(-u_3_0[0]), x_1_0);
            x_2_0 = fma(l_6_2, vec(-u_3_0[0]), x_2_0);
            x_3_0 = fma(l_6_3, vec(-u_3_0[0]), x_3_0);
            x_0_0 = fma(l_7_0, vec(-u_3_0[1]), x_0_0);
            x_1_0 = fma(l_7_1, vec(-u_3_0[1]), x_1_0);
            x_2_0 = fma(l_7_2, vec(-u_3_0[1]), x_2_0);
            x_3_0 = fma(l_7_3, vec(-u_3_0[1]), x_3_0);
            let u_3_1 = solved[(1u * LANES + t % LANES) * PARTS + 3u];
            x_0_1 = fma(l_6_0, vec(-u_3_1[0]), x_0_1);
            x_1_1 = fma(l_6_1, vec(-u_3_1[0]), x_1_1);
            x_2_1 = fma(l_6_2, vec(-u_3_1[0]), x_2_1);
            x_3_1 = fma(l_6_3, vec(-u_3_1[0]), x_3_1);
            x_0_1 = fma(l_7_0, vec(-u_3_1[1]), x_0_1);
            x_1_1 = fma(l_7_1, vec(-u_3_1[1]), x_1_1);
            x_2_1 = fma(l_7_2, vec(-u_3_1[1]), x_2_1);
            x_3_1 = fma(l_7_3, vec(-u_3_1[1]), x_3_1);
        }
        coefficients[SLICE - at + place_0] = next_0;
        coefficients[SLICE - at + place_1] = next_1;
        coefficients[SLICE - at + place_2] = next_2;
        coefficients[SLICE - at + place_3] = next_3;
        coefficients[SLICE - at + place_4] = next_4;
        coefficients[SLICE - at + place_5] = next_5;
        coefficients[SLICE - at + place_6] = next_6;
        coefficients[SLICE - at + place_7] = next_7;
        workgroupBarrier();
    }
    if (own + 0u < args.n) {
        if (r_0 < args.nrhs) { b[row_0 + col_0] = x_0_0[0]; }
        if (r_1 < args.nrhs) { b[row_0 + col_1] = x_0_1[0]; }
    }
    if (own + 1u < args.n) {
        if (r_0 < args.nrhs) { b[row_1 + col_0] = x_0_0[1]; }
        if (r_1 < args.nrhs) { b[row_1 + col_1] = x_0_1[1]; }
    }
    if (own + 2u < args.n) {
        if (r_0 < args.nrhs) { b[row_2 + col_0] = x_1_0[0]; }
        if (r_1 < args.nrhs) { b[row_2 + col_1] = x_1_1[0]; }
    }
    if (own + 3u < args.n) {
        if (r_0 < args.nrhs) { b[row_3 + col_0] = x_1_0[1]; }
        if (r_1 < args.nrhs) { b[row_3 + col_1] = x_1_1[1]; }
    }
    if (own + 4u < args.n) {
        if (r_0 < args.nrhs) { b[row_4 + col_0] = x_2_0[0]; }
        if (r_1 < args.nrhs) { b[row_4 + col_1] = x_2_1[0]; }
    }
    if (own + 5u < args.n) {
        if (r_0 < args.nrhs) { b[row_5 + col_0] = x_2_0[1]; }
        if (r_1 < args.nrhs) { b[row_5 + col_1] = x_2_1[1]; }
    }
    if (own + 6u < args.n) {
        if (r_0 < args.nrhs) { b[row_6 + col_0] = x_3_0[0]; }
        if (r_1 < args.nrhs) { b[row_6 + col_1] = x_3_1[0]; }
    }
    if (own + 7u < args.n) {
        if (r_0 < args.nrhs) { b[row_7 + col_0] = x_3_0[1]; }
        if (r_1 < args.nrhs) { b[row_7 + col_1] = x_3_1[1]; }
    }
}