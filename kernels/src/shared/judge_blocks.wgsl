// Judges the inverses of the blocks on the diagonal of a triangle. A block of V has `order` rows (the last one may have fewer), and begins at
// the same row and column as its block of the triangle. A workgroup judges one block. sums[z_at + k] is the sum of the magnitudes of column k of the block, and
// sums[y_at + k] the sum of column k of the product of the magnitudes of the block and of its inverse.
//
// An inverse is kept if in each of its columns sums[y_at + k] <= limit, the pivot a[a_at + k·a_step] is neither zero nor subnormal, and the
// square of sums[z_at + k] is at most the reciprocal of the smallest normal number. The last condition rejects blocks with very
// large elements, because elements of their inverses may underflow. An inverse that is not kept becomes the identity.
// sums[flags_at + first row of the block] becomes zero if the inverse is kept, and else one. The kernel does not read a unit diagonal.
var<workgroup> counts: array<u32, {{ ITEMS }}>;

@compute @workgroup_size(ITEMS)
fn judge_blocks(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let begin: size = group.x * args.order;
    let rows: size = min(args.order, args.n - begin);
    // the number of columns that meet the conditions, since comparisons with NaN are false
    var count: u32 = 0u;
    for (var k: size = begin + t; k < begin + rows; k += ITEMS) {
        var pivot: real = real(1);
        if (args.unit == 0u) { pivot = abs({{ a }}[args.a_at + k * args.a_step]); }
        let z: real = {{ sums }}[args.z_at + k];
        if (pivot >= MIN_POSITIVE && z * z * MIN_POSITIVE <= real(1) && {{ sums }}[args.y_at + k] <= args.limit) { count += 1u; }
    }
    counts[t] = count;
    workgroupBarrier();
    {%- for half in halves(ITEMS) %}
    if (t < {{ half }}u) { counts[t] += counts[t + {{ half }}u]; }
    workgroupBarrier();
    {%- endfor %}
    let keeps: bool = counts[0] == rows;
    if (t == 0u) { {{ sums }}[args.flags_at + begin] = select(real(1), real(0), keeps); }
    if (!keeps) {
        for (var e: size = t; e < rows * rows; e += ITEMS) {
            let i: size = e % rows;
            let k: size = e / rows;
            {{ v }}[args.v_at + begin + i + (begin + k) * args.v_ld] = select(real(0), real(1), i == k);
        }
    }
}
