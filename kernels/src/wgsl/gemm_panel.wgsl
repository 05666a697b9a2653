// C <- alpha·A·B + beta·C without barriers: MR x NR elements for each invocation.
//
// A is packed in panels of MR rows and B in panels of NR columns: element p of
// the k elements of line l of a panel lies p·width + l after its start. The
// last panel is filled with zeros. beta = 0 never reads C.
{%- set MR = MV * VW %}
const MR = {{ MR }}u;
{% if kernel == "pack" %}
// Packs `lines` lines of k elements each, `width` lines to a panel: element p of
// line l is src[src_at + l·by_line + p·by_k]. One panel for each invocation.
@compute @workgroup_size(GROUP)
fn pack(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = id.x * args.width;
    if (first >= args.lines) { return; }
    let here = min(args.width, args.lines - first);
    var at = args.src_at + first * args.by_line;
    var to = args.panels_at + first * args.k;
    for (var p = 0u; p < args.k; p++) {
        for (var l = 0u; l < here; l++) { {{ panels }}[to + l] = {{ src }}[at + l * args.by_line]; }
        for (var l = here; l < args.width; l++) { {{ panels }}[to + l] = real(); }
        at += args.by_k;
        to += args.width;
    }
}
{% elif kernel == "gemm_panel" %}
@compute @workgroup_size(GROUP)
fn gemm_panel(@builtin(global_invocation_id) id: vec3<u32>) {
    let i0 = id.y * MR;
    let j0 = id.x * NR;
    if (i0 >= args.m || j0 >= args.n) { return; }
    var a = args.a_at + i0 * args.k;
    var b = args.b_at + j0 * args.k;
    {%- for y in range(NR) %}{% for x in range(MR) %}
    var sum_{{ x }}_{{ y }} = real();
    {%- endfor %}{% endfor %}
    for (var p = 0u; p < args.k; p++) {
        {%- for x in range(MR) %}
        let a_{{ x }} = {{ panels }}[a + {{ x }}u];
        {%- endfor %}
        {%- for y in range(NR) %}
        let b_{{ y }} = {{ panels }}[b + {{ y }}u];
        {%- for x in range(MR) %}
        sum_{{ x }}_{{ y }} = fma(a_{{ x }}, b_{{ y }}, sum_{{ x }}_{{ y }});
        {%- endfor %}{% endfor %}
        a += MR;
        b += NR;
    }
    {%- for y in range(NR) %}{% for x in range(MR) %}
    store(i0 + {{ x }}u, j0 + {{ y }}u, sum_{{ x }}_{{ y }});
    {%- endfor %}{% endfor %}
}

fn store(i: u32, j: u32, sum: real) {
    if (i >= args.m || j >= args.n) { return; }
    let at = args.c_at + i + j * args.c_ld;
    if (args.beta == real()) {
        {{ c }}[at] = args.alpha * sum;
    } else {
        {{ c }}[at] = args.alpha * sum + args.beta * {{ c }}[at];
    }
}
{% endif %}
