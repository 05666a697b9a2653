// Copies the right-hand sides of a triangular system of at most {{ ITEMS * EACH }} unknowns. If flags[flag_at] is not zero, the kernel solves the
// system by forward substitution, and writes the unknowns in place of the copy. Coefficient k of equation i is a[a_at + i·a_i + k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]
// and is written to c[c_at + i·c_i + r·c_r]. For backward substitution, the caller passes the positions of the last unknown and negative
// strides. The kernel reads neither coefficients above the diagonal nor a unit diagonal.
//
// A workgroup has NR right-hand sides. An invocation holds every unknown with an index t + p·ITEMS, for p below EACH. In each step, the
// invocation with the next unknown divides by its pivot and writes the unknown to workgroup memory. The other invocations eliminate the
// unknown from later equations. Two steps use different halves of workgroup memory, so that a step needs one barrier.
var<workgroup> solved: array<real, {{ 2 * NR }}>;

@compute @workgroup_size(ITEMS)
fn solve_copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let origin: stride = stride(args.a_at);
    {%- for s in range(NR) %}
    let r_{{ s }}: size = group.x * NR + {{ s }}u;
    let from_{{ s }}: stride = stride(args.b_at) + stride(min(r_{{ s }}, args.nrhs - 1u)) * args.b_r;
    {%- endfor %}
    {%- for p in range(EACH) %}
    let i_{{ p }}: u32 = t + {{ p }}u * ITEMS;
    {%- for s in range(NR) %}
    var x_{{ p }}_{{ s }}: real;
    {%- endfor %}
    if (i_{{ p }} < args.n) {
        {%- for s in range(NR) %}
        x_{{ p }}_{{ s }} = {{ b }}[from_{{ s }} + stride(i_{{ p }}) * args.b_i];
        {%- endfor %}
    }
    {%- endfor %}
    // a loop without steps takes the place of an `if`, because some compilers refuse a barrier in a branch
    let steps: u32 = select(0u, args.n, {{ flags }}[args.flag_at] != real(0));
    {%- for q in range(EACH) %}
    for (var k: u32 = {{ q }}u * ITEMS; k < min({{ q + 1 }}u * ITEMS, steps); k++) {
        let at: u32 = k % 2u * NR;
        {%- for p in range(q, EACH) %}
        var l_{{ p }}: real;
        if (i_{{ p }} > k && i_{{ p }} < args.n) { l_{{ p }} = {{ a }}[origin + stride(i_{{ p }}) * args.a_i + stride(k) * args.a_k]; }
        {%- endfor %}
        if (i_{{ q }} == k) {
            if (args.unit == 0u) {
                let pivot: real = {{ a }}[origin + stride(k) * (args.a_i + args.a_k)];
                {%- for s in range(NR) %}
                x_{{ q }}_{{ s }} /= pivot;
                {%- endfor %}
            }
            {%- for s in range(NR) %}
            solved[at + {{ s }}u] = x_{{ q }}_{{ s }};
            {%- endfor %}
        }
        workgroupBarrier();
        {%- for p in range(q, EACH) %}
        if (i_{{ p }} > k) {
            {%- for s in range(NR) %}
            x_{{ p }}_{{ s }} = fma(-l_{{ p }}, solved[at + {{ s }}u], x_{{ p }}_{{ s }});
            {%- endfor %}
        }
        {%- endfor %}
    }
    {%- endfor %}
    {%- for p in range(EACH) %}
    if (i_{{ p }} < args.n) {
        {%- for s in range(NR) %}
        if (r_{{ s }} < args.nrhs) {
            {{ c }}[stride(args.c_at) + stride(i_{{ p }}) * args.c_i + stride(r_{{ s }}) * args.c_r] = x_{{ p }}_{{ s }};
        }
        {%- endfor %}
    }
    {%- endfor %}
}
