// Solves triangular systems of at most ORDER unknowns by forward substitution. Coefficient k of equation i is a[a_at + i·a_i +
// k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. For backward substitution, the caller passes the position of
// the last unknown and negative strides. The kernel loads a unit diagonal, but does not use it.
//
// A workgroup has WIDTH right-hand sides. Each invocation holds MR unknowns of NR right-hand sides and the coefficients among these
// unknowns in registers. In each step, the invocations with the next MR unknowns compute these unknowns and write them to workgroup
// memory. After a barrier, the invocations with later unknowns eliminate the solved unknowns from their own equations. All invocations
// load the coefficients of the unknowns that a step eliminates, one step ahead, and write them to workgroup memory before the barrier of
// this step.
//
// An invocation multiplies by the reciprocals of its pivots, because a product takes less time than a division. An invocation divides by
// its pivots if one of them is zero, subnormal or not finite, or has a subnormal reciprocal.
{%- set ORDER = ITEMS // LANES * MR %}
{%- set PARTS = MR // V %}
{%- set WIDTH = LANES * NR %}
{#- V unused places follow each part of a column, so that invocations that write at the same time use different banks of memory #}
{%- set PART = ORDER // MR + V %}
{%- set SLICE = MR * PARTS * PART %}
{%- set EACH = ORDER * MR // V // ITEMS %}
// Even steps use the first half of each array, and odd steps the second half. Some invocations already write for the next step while others
// still read for this one.
// The coefficients of the unknowns that a step eliminates:
var<workgroup> coefficients: array<vec, {{ 2 * SLICE }}>;
// The unknowns that a step computes:
var<workgroup> solved: array<vec, {{ 2 * WIDTH * PARTS }}>;

{#- Coefficient k of equation i, for unknowns of this invocation #}
{%- macro own_coefficient(i, k) %}{{ a }}[origin + own_{{ i }} * args.a_i + own_{{ k }} * args.a_k]{% endmacro %}
{#- Loads the coefficients of V equations in the columns from `from` on, if a step from unknown `k` on eliminates their unknowns #}
{%- macro load(k, indent) %}
{{ indent }}if (row >= {{ k }} + MR) {
{%- for e in range(EACH) %}
{{ indent }}    next_{{ e }} = {{ VEC }}({% for v in range(V) %}{{ a }}[from_{{ v }} + stride({{ e * MR // EACH }}) * args.a_k]{{ ", " if not loop.last }}{% endfor %});
{%- endfor %}
{{ indent }}}
{%- endmacro %}
{%- macro x(i, c) %}x_{{ i // V }}_{{ c }}{{ part(i % V) }}{% endmacro %}
{#- Computes the unknowns of this invocation; `scaling` is the assignment that applies a factor #}
{%- macro substitute(scaling) %}
{%- for i in range(MR) %}
{%- for c in range(NR) if scaling %}
                {{ x(i, c) }} {{ scaling }} factor_{{ i }};
{%- endfor %}
{%- for j in range(i + 1, MR) %}
{%- for c in range(NR) %}
                {{ x(j, c) }} = fma(-d_{{ i }}_{{ j }}, {{ x(i, c) }}, {{ x(j, c) }});
{%- endfor %}
{%- endfor %}
{%- endfor %}
{%- endmacro %}
{%- macro solved_part(q, c) %}solved[parity * {{ WIDTH * PARTS }}u + {{ (q * NR + c) * LANES }}u + t % LANES]{% endmacro %}

@compute @workgroup_size(ITEMS)
fn solve(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    // An invocation whose unknowns lie beyond the last one loads the coefficients of the last unknown, which exist, and does not use them.
    let last: u32 = args.n - 1u;
    let origin: stride = stride(args.a_at);
    // the first of the V equations, and the column of a step, whose coefficients this invocation loads
    let i: u32 = t % {{ ORDER // V }}u * V;
    let column: u32 = t / {{ ORDER // V }}u;
    let row: u32 = min(i, last);
    let place: u32 = column * {{ PARTS * PART }}u + i / V % {{ PARTS }}u * {{ PART }}u + i / MR;
    {%- for v in range(V) %}
    var from_{{ v }}: stride = origin + stride(min(i + {{ v }}u, last)) * args.a_i + stride(column) * args.a_k;
    {%- endfor %}
    {%- for e in range(EACH) %}
    var next_{{ e }}: vec;
    {%- endfor %}
    {{- load("0u", "    ") }}
    let own: u32 = t / LANES * MR;
    {%- for i in range(MR) %}
    let own_{{ i }}: stride = stride(min(own + {{ i }}u, last));
    {%- endfor %}
    {%- for i in range(MR) %}
    {%- for j in range(i + 1, MR) %}
    let d_{{ i }}_{{ j }}: real = {{ own_coefficient(j, i) }};
    {%- endfor %}
    {%- endfor %}
    // a factor is the reciprocal of a pivot if the invocation multiplies, and the pivot itself if the invocation divides
    {%- for i in range(MR) %}
    let pivot_{{ i }}: real = {{ own_coefficient(i, i) }};
    var factor_{{ i }}: real = real(1) / pivot_{{ i }};
    {%- endfor %}
    let multiplies: bool = {% for i in range(MR) %}min(abs(pivot_{{ i }}), abs(factor_{{ i }})) >= MIN_POSITIVE{{ " && " if not loop.last }}{% endfor %};
    if (!multiplies) {
        {%- for i in range(MR) %}
        factor_{{ i }} = pivot_{{ i }};
        {%- endfor %}
    }
    // unknowns and right-hand sides beyond the last ones are copies of the last ones
    {%- for i in range(MR) %}
    let row_{{ i }}: stride = stride(args.b_at) + own_{{ i }} * args.b_i;
    {%- endfor %}
    let last_side: u32 = args.nrhs - 1u;
    {%- for c in range(NR) %}
    let r_{{ c }}: u32 = group.x * {{ WIDTH }}u + {{ c }}u * LANES + t % LANES;
    let col_{{ c }}: stride = stride(min(r_{{ c }}, last_side)) * args.b_r;
    {%- for p in range(PARTS) %}
    var x_{{ p }}_{{ c }}: vec = {{ VEC }}({% for e in range(V) %}{{ b }}[row_{{ p * V + e }} + col_{{ c }}]{{ ", " if not loop.last }}{% endfor %});
    {%- endfor %}
    {%- endfor %}
    // other invocations have also loaded elements of b that this invocation stores
    storageBarrier();
    for (var k: u32 = 0u; k < args.n; k += MR) {
        let parity: u32 = k / MR % 2u;
        if (own == k) {
            if (args.unit != 0u) {
                {{- substitute("") }}
            } else if (multiplies) {
                {{- substitute("*=") }}
            } else {
                {{- substitute("/=") }}
            }
            {%- for c in range(NR) %}
            {%- for q in range(PARTS) %}
            {{ solved_part(q, c) }} = x_{{ q }}_{{ c }};
            {%- endfor %}
            {%- endfor %}
        }
        if (row >= k + MR) {
            {%- for e in range(EACH) %}
            coefficients[parity * {{ SLICE }}u + {{ e * SLICE // EACH }}u + place] = next_{{ e }};
            {%- endfor %}
        }
        workgroupBarrier();
        {%- for v in range(V) %}
        from_{{ v }} += stride(MR) * args.a_k;
        {%- endfor %}
        {{- load("k + MR", "        ") }}
        // for equations beyond the last one, no invocation has written coefficients
        if (own > k && own < args.n) {
            {%- for q in range(PARTS) %}
            {%- for c in range(NR) %}
            let u_{{ q }}_{{ c }}: vec = {{ solved_part(q, c) }};
            {%- endfor %}
            {%- for e in range(V) %}
            {%- for p in range(PARTS) %}
            let l_{{ q * V + e }}_{{ p }}: vec = coefficients[parity * {{ SLICE }}u + {{ (q * V + e) * PARTS * PART + p * PART }}u + own / MR];
            {%- for c in range(NR) %}
            x_{{ p }}_{{ c }} = fma(l_{{ q * V + e }}_{{ p }}, {{ VEC }}(-u_{{ q }}_{{ c }}{{ part(e) }}), x_{{ p }}_{{ c }});
            {%- endfor %}
            {%- endfor %}
            {%- endfor %}
            {%- endfor %}
        }
    }
    {%- for i in range(MR) %}
    if (own + {{ i }}u < args.n) {
        {%- for c in range(NR) %}
        if (r_{{ c }} < args.nrhs) { {{ b }}[row_{{ i }} + col_{{ c }}] = {{ x(i, c) }}; }
        {%- endfor %}
    }
    {%- endfor %}
}
