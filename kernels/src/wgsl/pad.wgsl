// Lines of a matrix side by side, filled up with zeros: element (l, p) of `lines`
// lines of k elements, src[src_at + l·by_line + p·by_k], goes to
// dst[dst_at + l + p·dst_ld] for l below lines_pad and p below k_pad.
// A workgroup moves SIDE x SIDE elements, so that both sides are read and written in runs.
const SIDE = 32u;
var<workgroup> square: array<real, {{ 32 * 33 }}>;

@compute @workgroup_size(ITEMS)
fn pad(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let l0 = group.x * SIDE;
    let p0 = group.y * SIDE;
    // neighbours along the side on which the source is contiguous
    let along = args.by_line == 1u;
    for (var e = t; e < SIDE * SIDE; e += ITEMS) {
        let l = select(e / SIDE, e % SIDE, along);
        let p = select(e % SIDE, e / SIDE, along);
        var x = real();
        if (l0 + l < args.lines && p0 + p < args.k) {
            x = {{ src }}[args.src_at + (l0 + l) * args.by_line + (p0 + p) * args.by_k];
        }
        square[l + p * (SIDE + 1u)] = x;
    }
    workgroupBarrier();
    for (var e = t; e < SIDE * SIDE; e += ITEMS) {
        let l = e % SIDE;
        let p = e / SIDE;
        if (l0 + l < args.lines_pad && p0 + p < args.k_pad) {
            {{ dst }}[args.dst_at + l0 + l + (p0 + p) * args.dst_ld] = square[l + p * (SIDE + 1u)];
        }
    }
}
