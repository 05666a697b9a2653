// Solves triangular systems of at most ORDER unknowns by forward substitution. Coefficient k of equation i is a[a_at + i·a_i +
// k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. For backward substitution, the caller passes the position of
// the last unknown and negative strides. The kernel also loads the coefficients above the diagonal and a unit diagonal, but does
// not use them.
//
// A workgroup has WIDTH right-hand sides. Each invocation holds MR unknowns of NR right-hand sides in registers. In each step,
// the invocations with the next MR unknowns compute these unknowns and write them to workgroup memory. After a barrier, the
// invocations with later unknowns eliminate the solved unknowns from their own equations. During a step, all invocations load the
// coefficients of the next step.
//
// An invocation multiplies by the reciprocals of its pivots, because a product takes less time than a division. An invocation divides by
// its pivots if one of them is zero, subnormal or not finite, or has a subnormal reciprocal.
{%- set ORDER = ITEMS // LANES * MR %}
{%- set SLICE = ORDER * MR // V %}
{%- set EACH = SLICE // ITEMS %}
{%- set PARTS = MR // V %}
{%- set WIDTH = LANES * NR %}
// The first half holds the coefficients of the columns that an even step eliminates, and the second half those of an odd step.
var<workgroup> coefficients: array<vec, {{ 2 * SLICE }}>;
// The array holds the unknowns that a step computes: first all of one right-hand side, then all of the next one.
var<workgroup> solved: array<vec, {{ WIDTH * PARTS }}>;

{#- Coefficient k of equation i. Indices beyond the last unknown are replaced by the last index, so that invocations without unknowns load
    valid elements. #}
{%- macro coefficient(i, k) %}{{ a }}[origin + stride(min({{ i }}, last)) * args.a_i + stride(min({{ k }}, last)) * args.a_k]{% endmacro %}
{#- The coefficients i, ..., i + V - 1 of column k #}
{%- macro coefficients_of(i, k) %}{{ VEC }}({% for e in range(V) %}{{ coefficient(i ~ " + " ~ e ~ "u", k) }}{{ ", " if not loop.last }}{% endfor %}){% endmacro %}
{#- The part p of column k of a slice that belongs to the unknowns of this invocation #}
{%- macro own_part(k, p) %}coefficients[at + {{ k * (ORDER // V) + p * (ORDER // MR) }}u + own / MR]{% endmacro %}
{%- macro x(i, c) %}x_{{ i // V }}_{{ c }}{{ part(i % V) }}{% endmacro %}

@compute @workgroup_size(ITEMS)
fn solve(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let last: u32 = args.n - 1u;
    let origin: stride = stride(args.a_at);
    let own: u32 = t / LANES * MR;
    {%- for e in range(EACH) %}
    let i_{{ e }}: u32 = (t + {{ e }}u * ITEMS) % {{ ORDER // V }}u * V;
    let k_{{ e }}: u32 = (t + {{ e }}u * ITEMS) / {{ ORDER // V }}u;
    let place_{{ e }}: u32 = k_{{ e }} * {{ ORDER // V }}u + i_{{ e }} / V % {{ PARTS }}u * {{ ORDER // MR }}u + i_{{ e }} / MR;
    coefficients[place_{{ e }}] = {{ coefficients_of("i_" ~ e, "k_" ~ e) }};
    {%- endfor %}
    // a factor is the reciprocal of a pivot if the invocation multiplies, and the pivot itself if the invocation divides
    {%- for i in range(MR) %}
    let pivot_{{ i }}: real = {{ coefficient("own + " ~ i ~ "u", "own + " ~ i ~ "u") }};
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
    let row_{{ i }}: stride = stride(args.b_at) + stride(min(own + {{ i }}u, last)) * args.b_i;
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
    workgroupBarrier();
    for (var k: u32 = 0u; k < args.n; k += MR) {
        let at: u32 = k / MR % 2u * {{ SLICE }}u;
        {%- for e in range(EACH) %}
        let next_{{ e }}: vec = {{ coefficients_of("max(i_" ~ e ~ ", k + MR)", "k + MR + k_" ~ e) }};
        {%- endfor %}
        if (own == k) {
            {%- for i in range(MR) %}
            if (args.unit == 0u) {
                if (multiplies) {
                    {%- for c in range(NR) %}
                    {{ x(i, c) }} *= factor_{{ i }};
                    {%- endfor %}
                } else {
                    {%- for c in range(NR) %}
                    {{ x(i, c) }} /= factor_{{ i }};
                    {%- endfor %}
                }
            }
            {%- for p in range(PARTS) if (p + 1) * V > i + 1 %}
            let d_{{ i }}_{{ p }}: vec = {{ own_part(i, p) }};
            {%- endfor %}
            {%- for j in range(i + 1, MR) %}
            {%- for c in range(NR) %}
            {{ x(j, c) }} = fma(-d_{{ i }}_{{ j // V }}{{ part(j % V) }}, {{ x(i, c) }}, {{ x(j, c) }});
            {%- endfor %}
            {%- endfor %}
            {%- endfor %}
            {%- for c in range(NR) %}
            {%- for p in range(PARTS) %}
            solved[({{ c }}u * LANES + t % LANES) * {{ PARTS }}u + {{ p }}u] = x_{{ p }}_{{ c }};
            {%- endfor %}
            {%- endfor %}
        }
        workgroupBarrier();
        if (own > k) {
            {%- for q in range(PARTS) %}
            {%- for c in range(NR) %}
            let u_{{ q }}_{{ c }}: vec = solved[({{ c }}u * LANES + t % LANES) * {{ PARTS }}u + {{ q }}u];
            {%- endfor %}
            {%- for e in range(V) %}
            {%- for p in range(PARTS) %}
            let l_{{ q * V + e }}_{{ p }}: vec = {{ own_part(q * V + e, p) }};
            {%- for c in range(NR) %}
            x_{{ p }}_{{ c }} = fma(l_{{ q * V + e }}_{{ p }}, {{ VEC }}(-u_{{ q }}_{{ c }}{{ part(e) }}), x_{{ p }}_{{ c }});
            {%- endfor %}
            {%- endfor %}
            {%- endfor %}
            {%- endfor %}
        }
        {%- for e in range(EACH) %}
        coefficients[{{ SLICE }}u - at + place_{{ e }}] = next_{{ e }};
        {%- endfor %}
        workgroupBarrier();
    }
    {%- for i in range(MR) %}
    if (own + {{ i }}u < args.n) {
        {%- for c in range(NR) %}
        if (r_{{ c }} < args.nrhs) { {{ b }}[row_{{ i }} + col_{{ c }}] = {{ x(i, c) }}; }
        {%- endfor %}
    }
    {%- endfor %}
}
