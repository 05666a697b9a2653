// Kernels for triangles of at most NB unknowns.
{% if kernel == "trsm_block" %}
// Solves a triangular system by forward substitution, one right-hand side for each invocation. Coefficient k of equation i is
// a[a_at + i·a_i + k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. For backward substitution, the caller
// passes the position of the last unknown and negative strides. The kernel does not read a unit diagonal. The loops are unrolled,
// so that the unknowns stay in registers. Unknowns beyond the last one repeat equation n - 1 and are not stored.
{%- macro coefficient(i, k) -%}
    {{ a }}[a_at + row_{{ i }} * args.a_i + {{ k }} * args.a_k]
{%- endmacro %}
@compute @workgroup_size(GROUP)
fn trsm_block(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= args.nrhs) { return; }
    let a_at = i32(args.a_at);
    let b_at = i32(args.b_at) + i32(id.x) * args.b_r;
    let last = i32(args.n) - 1;
    {%- for i in range(NB) %}
    let row_{{ i }} = min({{ i }}, last);
    var x_{{ i }} = {{ b }}[b_at + row_{{ i }} * args.b_i];
    {%- endfor %}
    {%- for k in range(NB) %}
    if ({{ k }} <= last) {
        if (args.unit == 0u) { x_{{ k }} /= {{ coefficient(k, k) }}; }
        {%- for i in range(k + 1, NB) %}
        x_{{ i }} -= {{ coefficient(i, k) }} * x_{{ k }};
        {%- endfor %}
    }
    {%- endfor %}
    {%- for i in range(NB) %}
    if ({{ i }} <= last) { {{ b }}[b_at + {{ i }} * args.b_i] = x_{{ i }}; }
    {%- endfor %}
}
{% elif kernel == "trtri_block" %}
// V <- the inverses of the NB x NB blocks on the diagonal of A. Each invocation computes one column of one block. The opposite
// triangle of each block becomes zero. The kernel treats an upper block as a lower block whose rows and columns are in reverse
// order.
@compute @workgroup_size(GROUP)
fn trtri_block(@builtin(global_invocation_id) id: vec3<u32>) {
    let o = id.y * NB;
    let j = id.x;
    if (o >= args.n || j >= min(NB, args.n - o)) { return; }
    let size = min(NB, args.n - o);
    let upper = args.upper != 0u;
    var x: array<real, NB>;
    for (var i = 0u; i < size; i++) {
        let row = select(i, size - 1u - i, upper);
        var rest = real();
        if (i >= j) {
            if (i == j) { rest = real(1); }
            for (var k = j; k < i; k++) {
                let col = select(k, size - 1u - k, upper);
                rest -= {{ a }}[args.a_at + o + row + (o + col) * args.a_ld] * x[k];
            }
            if (args.unit == 0u) {
                rest /= {{ a }}[args.a_at + (o + row) * (args.a_ld + 1u)];
            }
        }
        x[i] = rest;
        {{ v }}[args.v_at + o + row + (o + select(j, size - 1u - j, upper)) * args.v_ld] = rest;
    }
}
{% endif %}
