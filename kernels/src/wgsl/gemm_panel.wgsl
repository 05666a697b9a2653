// C <- alpha·A·B + beta·C without barriers. Each invocation computes MR x NR elements.
//
// A is packed in panels of MR rows, and B in panels of NR columns. A panel consists of `width` lines of k elements. Element p of
// line l is p·width + l elements after the start of the panel. The last panel is filled up with zeros. If beta = 0, the kernel
// does not read C.
{%- set MR = MV * VW %}
const MR = {{ MR }}u;
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
