alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
alias vec = real;
alias size = u32;
alias stride = i32;
const ITEMS = 64u;
const SIDE = 32u;

struct Args {
    n: u32,
    order: u32,
    upper: u32,
    unit: u32,
    weighted: u32,
    a_at: u32,
    a_i: u32,
    a_k: u32,
    weights_at: u32,
    sums_at: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> a: array<real>;
@group(0) @binding(2) var<storage, read_write> sums: array<real>;

// Sums the magnitudes of the columns of the blocks on the diagonal of a triangle: sums[sums_at + k] <- Σ w_i·|element (i, k)|. Row i and
// column k belong to the same block, and w_i is sums[weights_at + i], or one if weighted is zero. Element (i, k) is a[a_at + i·a_i +
// k·a_k]. The kernel reads neither elements outside of the triangle nor a unit diagonal.
//
// A workgroup sums SIDE columns. Neighbouring invocations read neighbouring elements, whether a column or a row is contiguous. Each
// invocation sums some of the elements of a column; one invocation for each column then adds these partial sums.
var<workgroup> parts: array<real, 1056>;

@compute @workgroup_size(ITEMS)
fn sum_blocks(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    // `order` is a multiple of SIDE, so that the columns of a workgroup lie in the same block
    let first: size = group.x * SIDE;
    let begin: size = first / args.order * args.order;
    let end: size = min(begin + args.order, args.n);
    let along: bool = args.a_i == 1u;
    let near: u32 = t % SIDE;
    let far: u32 = t / SIDE;
    let k_first: u32 = select(near, far, along);
    let k_step: u32 = select(SIDE, 2u, along);
    let i_first: u32 = select(far, near, along);
    let i_step: u32 = select(2u, SIDE, along);
    for (var column: u32 = k_first; column < SIDE; column += k_step) {
        let k: size = first + column;
        var sum: real;
        if (k < end) {
            let lower: bool = args.upper == 0u;
            let stop: size = select(k + 1u, end, lower);
            for (var i: size = select(begin, k, lower) + i_first; i < stop; i += i_step) {
                var x: real = real(1);
                if (args.unit == 0u || i != k) { x = abs(a[args.a_at + i * args.a_i + k * args.a_k]); }
                if (args.weighted != 0u) { x *= sums[args.weights_at + i]; }
                sum += x;
            }
        }
        parts[column * (SIDE + 1u) + i_first] = sum;
    }
    workgroupBarrier();
    if (t < SIDE && first + t < args.n) {
        var total: real;
        for (var p: u32 = 0u; p < i_step; p++) {
            total += parts[t * (SIDE + 1u) + p];
        }
        sums[args.sums_at + first + t] = total;
    }
}