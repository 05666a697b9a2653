alias real = f32;
const MIN_POSITIVE: real = 1.17549435e-38f;
alias vec = vec4<real>;
alias size = u32;
alias stride = i32;
const ITEMS = 256u;
const SIDE = 32u;
const V = 4u;

struct Args {
    k: u32,
    k_pad: u32,
    a_lines: u32,
    a_at: u32,
    a_by_line: u32,
    a_by_k: u32,
    a_dst: u32,
    a_ld: u32,
    b_lines: u32,
    b_at: u32,
    b_by_line: u32,
    b_by_k: u32,
    b_dst: u32,
    b_ld: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> a: array<real>;
@group(0) @binding(2) var<storage, read> b: array<real>;
@group(0) @binding(3) var<storage, read_write> dst: array<vec>;

// Copies lines of one or two matrices side by side into whole vectors of dst, with zeros for missing lines and terms. Element (l,
// p) of a, which has a_lines lines of k elements, is a[a_at + l·a_by_line + p·a_by_k]. The kernel copies this element to
// dst[a_dst + l + p·a_ld], for l below a_ld and p below k_pad. The lines of b, if there is a second matrix, are copied in the
// same way. A workgroup copies SIDE x SIDE elements, so that it reads and writes contiguous elements in both directions.
var<workgroup> square: array<real, 1056>;

@compute @workgroup_size(ITEMS)
fn pad(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    // the workgroups copy the squares of the first matrix, then the squares of the second matrix
    let squares: u32 = (args.k_pad + SIDE - 1u) / SIDE;
    let second: bool = group.y >= squares;
    let l0: u32 = group.x * SIDE;
    let p0: u32 = (group.y % squares) * SIDE;
    let lines: u32 = select(args.a_lines, args.b_lines, second);
    let at: size = select(args.a_at, args.b_at, second);
    let by_line: size = select(args.a_by_line, args.b_by_line, second);
    let by_k: size = select(args.a_by_k, args.b_by_k, second);
    let dst_at: size = select(args.a_dst, args.b_dst, second);
    let dst_ld: size = select(args.a_ld, args.b_ld, second);
    // `near` counts elements in the direction in which the source is contiguous, and `far` counts in the other direction
    let along: bool = by_line == 1u;
    let near: u32 = t % SIDE;
    let far: u32 = t / SIDE;
    let inside: bool = select(p0 + near < args.k, l0 + near < lines, along);
    let rest: u32 = select(lines - min(l0, lines), args.k - min(p0, args.k), along);
    let begin: size = at + l0 * by_line + p0 * by_k + select(far * by_line + near * by_k, near * by_line + far * by_k, along);
    let step: size = 8u * select(by_line, by_k, along);
    let place: u32 = select(far + near * (SIDE + 1u), near + far * (SIDE + 1u), along);
    let place_step: u32 = select(8u, 264u, along);
    var x_0: real = real(0);
    var x_1: real = real(0);
    var x_2: real = real(0);
    var x_3: real = real(0);
    if (second) {
        if (inside && far + 0u < rest) { x_0 = b[begin + 0u * step]; }
        if (inside && far + 8u < rest) { x_1 = b[begin + 1u * step]; }
        if (inside && far + 16u < rest) { x_2 = b[begin + 2u * step]; }
        if (inside && far + 24u < rest) { x_3 = b[begin + 3u * step]; }
    } else {
        if (inside && far + 0u < rest) { x_0 = a[begin + 0u * step]; }
        if (inside && far + 8u < rest) { x_1 = a[begin + 1u * step]; }
        if (inside && far + 16u < rest) { x_2 = a[begin + 2u * step]; }
        if (inside && far + 24u < rest) { x_3 = a[begin + 3u * step]; }
    }
    square[place + 0u * place_step] = x_0;
    square[place + 1u * place_step] = x_1;
    square[place + 2u * place_step] = x_2;
    square[place + 3u * place_step] = x_3;
    workgroupBarrier();
    for (var e: u32 = t; e < 256u; e += ITEMS) {
        let l: u32 = e % 8u * 4u;
        let p: u32 = e / 8u;
        if (l0 + l < dst_ld && p0 + p < args.k_pad) {
            let here: u32 = l + p * (SIDE + 1u);
            dst[(dst_at + l0 + l + (p0 + p) * dst_ld) / 4u] = vec(square[here + 0u], square[here + 1u], square[here + 2u], square[here + 3u]);
        }
    }
}