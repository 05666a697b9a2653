alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
alias vec = real;
alias size = u32;
alias stride = i32;
const ITEMS = 32u;

struct Args {
    n: u32,
    order: u32,
    unit: u32,
    limit: real,
    a_at: u32,
    a_step: u32,
    v_at: u32,
    v_ld: u32,
    z_at: u32,
    y_at: u32,
    flags_at: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> a: array<real>;
@group(0) @binding(2) var<storage, read_write> v: array<real>;
@group(0) @binding(3) var<storage, read_write> sums: array<real>;

// Judges the inverses of the blocks on the diagonal of a triangle. A block of V has `order` rows (the last one may have fewer), and begins at
// the same row and column as its block of the triangle. A workgroup judges one block. sums[z_at + k] is the sum of the magnitudes of column k of the block, and
// sums[y_at + k] the sum of column k of the product of the magnitudes of the block and of its inverse.
//
// An inverse is kept if in each of its columns sums[y_at + k] <= limit, the pivot a[a_at + k·a_step] is neither zero nor subnormal, and the
// square of sums[z_at + k] is at most the reciprocal of the smallest normal number. The last condition rejects blocks with very
// large elements, because elements of their inverses may underflow. An inverse that is not kept becomes the identity.
// sums[flags_at + first row of the block] becomes zero if the inverse is kept, and else one. The kernel does not read a unit diagonal.
var<workgroup> counts: array<u32, 32>;

@compute @workgroup_size(ITEMS)
fn judge_blocks(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let begin: size = group.x * args.order;
    let rows: size = min(args.order, args.n - begin);
    // the number of columns that meet the conditions, since comparisons with NaN are false
    var count: u32 = 0u;
    for (var k: size = begin + t; k < begin + rows; k += ITEMS) {
        var pivot: real = real(1);
        if (args.unit == 0u) { pivot = abs(a[args.a_at + k * args.a_step]); }
        let z: real = sums[args.z_at + k];
        if (pivot >= MIN_POSITIVE && z * z * MIN_POSITIVE <= real(1) && sums[args.y_at + k] <= args.limit) { count += 1u; }
    }
    counts[t] = count;
    workgroupBarrier();
    if (t < 16u) { counts[t] += counts[t + 16u]; }
    workgroupBarrier();
    if (t < 8u) { counts[t] += counts[t + 8u]; }
    workgroupBarrier();
    if (t < 4u) { counts[t] += counts[t + 4u]; }
    workgroupBarrier();
    if (t < 2u) { counts[t] += counts[t + 2u]; }
    workgroupBarrier();
    if (t < 1u) { counts[t] += counts[t + 1u]; }
    workgroupBarrier();
    let keeps: bool = counts[0] == rows;
    if (t == 0u) { sums[args.flags_at + begin] = select(real(1), real(0), keeps); }
    if (!keeps) {
        for (var e: size = t; e < rows * rows; e += ITEMS) {
            let i: size = e % rows;
            let k: size = e / rows;
            v[args.v_at + begin + i + (begin + k) * args.v_ld] = select(real(0), real(1), i == k);
        }
    }
}