// Copies lines of one or two matrices side by side into whole vectors of dst, with zeros for missing lines and terms. Element (l,
// p) of a, which has a_lines lines of k elements, is a[a_at + l·a_by_line + p·a_by_k]. The kernel copies this element to
// dst[a_dst + l + p·a_ld], for l below a_ld and p below k_pad. The lines of b, if there is a second matrix, are copied in the
// same way. A workgroup copies SIDE x SIDE elements, so that it reads and writes contiguous elements in both directions.
{%- set LINE = SIDE // V %}
{%- set ACROSS = ITEMS // SIDE %}
var<workgroup> square: array<real, {{ SIDE * (SIDE + 1) }}>;

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
    let step: size = {{ ACROSS }}u * select(by_line, by_k, along);
    let place: u32 = select(far + near * (SIDE + 1u), near + far * (SIDE + 1u), along);
    let place_step: u32 = select({{ ACROSS }}u, {{ ACROSS * (SIDE + 1) }}u, along);
    {%- for q in range(SIDE // ACROSS) %}
    var x_{{ q }}: real = real(0);
    {%- endfor %}
    if (second) {
        {%- for q in range(SIDE // ACROSS) %}
        if (inside && far + {{ q * ACROSS }}u < rest) { x_{{ q }} = {{ b }}[begin + {{ q }}u * step]; }
        {%- endfor %}
    } else {
        {%- for q in range(SIDE // ACROSS) %}
        if (inside && far + {{ q * ACROSS }}u < rest) { x_{{ q }} = {{ a }}[begin + {{ q }}u * step]; }
        {%- endfor %}
    }
    {%- for q in range(SIDE // ACROSS) %}
    square[place + {{ q }}u * place_step] = x_{{ q }};
    {%- endfor %}
    workgroupBarrier();
    for (var e: u32 = t; e < {{ SIDE * LINE }}u; e += ITEMS) {
        let l: u32 = e % {{ LINE }}u * {{ V }}u;
        let p: u32 = e / {{ LINE }}u;
        if (l0 + l < dst_ld && p0 + p < args.k_pad) {
            let here: u32 = l + p * (SIDE + 1u);
            {{ dst }}[(dst_at + l0 + l + (p0 + p) * dst_ld) / {{ V }}u] = {{ VEC }}(
                {%- for q in range(V) %}square[here + {{ q }}u]{{ ", " if not loop.last }}{% endfor -%}
            );
        }
    }
}
