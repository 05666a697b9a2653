// Solves triangular systems of at most ORDER unknowns by forward substitution. Coefficient k of equation i is a[a_at + i·a_i +
// k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. For backward substitution, the caller passes the position of
// the last unknown and negative strides. The kernel also loads the coefficients above the diagonal and a unit diagonal, but does
// not use them.
//
// A workgroup has WIDTH right-hand sides. Each invocation holds MR unknowns of NR right-hand sides in registers. In each step,
// the invocations with the next MR unknowns compute these unknowns and write them to workgroup memory. After a barrier, the
// invocations with later unknowns eliminate the solved unknowns from their own equations. During a step, all invocations load the
// coefficients of the next step.
{%- set ORDER = ITEMS // LANES * MR %}
{%- set SLICE = ORDER * MR // V %}
{%- set EACH = SLICE // ITEMS %}
{%- set PARTS = MR // V %}
const WIDTH = {{ LANES * NR }}u;
const SLICE = {{ SLICE }}u;
const PARTS = {{ PARTS }}u;
// the coefficients of this step and of the next one
var<workgroup> coefficients: array<vec, {{ 2 * SLICE }}>;
// the unknowns that are solved in a step, one right-hand side after the other
var<workgroup> solved: array<vec, {{ LANES * NR * PARTS }}>;

// Returns coefficient k of equation i. Indices beyond the last unknown are replaced by the last index, so that invocations
// without unknowns load valid elements.
fn coefficient(i: u32, k: u32) -> real {
    let last = args.n - 1u;
    return {{ a }}[i32(args.a_at) + i32(min(i, last)) * args.a_i + i32(min(k, last)) * args.a_k];
}

// Returns the coefficients i, ..., i + V - 1 of column k.
fn coefficients_of(i: u32, k: u32) -> vec {
    return vec({% for e in range(V) %}coefficient(i + {{ e }}u, k), {% endfor %});
}

@compute @workgroup_size(ITEMS)
fn solve(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let own = t / LANES * MR;
    {%- for e in range(EACH) %}
    let i_{{ e }} = (t + {{ e }}u * ITEMS) % {{ ORDER // V }}u * V;
    let k_{{ e }} = (t + {{ e }}u * ITEMS) / {{ ORDER // V }}u;
    let place_{{ e }} = k_{{ e }} * {{ ORDER // V }}u + i_{{ e }} / V % PARTS * {{ ORDER // MR }}u + i_{{ e }} / MR;
    coefficients[place_{{ e }}] = coefficients_of(i_{{ e }}, k_{{ e }});
    {%- endfor %}
    // unknowns and right-hand sides beyond the last ones are copies of the last ones
    {%- for i in range(MR) %}
    let row_{{ i }} = i32(args.b_at) + i32(min(own + {{ i }}u, args.n - 1u)) * args.b_i;
    {%- endfor %}
    {%- for c in range(NR) %}
    let r_{{ c }} = group.x * WIDTH + {{ c }}u * LANES + t % LANES;
    let col_{{ c }} = i32(min(r_{{ c }}, args.nrhs - 1u)) * args.b_r;
    {%- for p in range(PARTS) %}
    var x_{{ p }}_{{ c }} = vec({% for e in range(V) %}{{ b }}[row_{{ p * V + e }} + col_{{ c }}], {% endfor %});
    {%- endfor %}
    {%- endfor %}
    workgroupBarrier();
    for (var k = 0u; k < args.n; k += MR) {
        let at = k / MR % 2u * SLICE;
        {%- for e in range(EACH) %}
        let next_{{ e }} = coefficients_of(max(i_{{ e }}, k + MR), k + MR + k_{{ e }});
        {%- endfor %}
        if (own == k) {
            {%- for i in range(MR) %}
            {%- for p in range(PARTS) %}
            let d_{{ i }}_{{ p }} = coefficients[at + {{ i * (ORDER // V) + p * (ORDER // MR) }}u + own / MR];
            {%- endfor %}
            {%- endfor %}
            {%- for i in range(MR) %}
            if (args.unit == 0u) {
                {%- for c in range(NR) %}
                x_{{ i // V }}_{{ c }}[{{ i % V }}] /= d_{{ i }}_{{ i // V }}[{{ i % V }}];
                {%- endfor %}
            }
            {%- for j in range(i + 1, MR) %}
            {%- for c in range(NR) %}
            x_{{ j // V }}_{{ c }}[{{ j % V }}] = fma(-d_{{ i }}_{{ j // V }}[{{ j % V }}], x_{{ i // V }}_{{ c }}[{{ i % V }}], x_{{ j // V }}_{{ c }}[{{ j % V }}]);
            {%- endfor %}
            {%- endfor %}
            {%- endfor %}
            {%- for c in range(NR) %}
            {%- for p in range(PARTS) %}
            solved[({{ c }}u * LANES + t % LANES) * PARTS + {{ p }}u] = x_{{ p }}_{{ c }};
            {%- endfor %}
            {%- endfor %}
        }
        workgroupBarrier();
        if (own > k) {
            {%- for q in range(PARTS) %}
            {%- for e in range(V) %}
            {%- for p in range(PARTS) %}
            let l_{{ q * V + e }}_{{ p }} = coefficients[at + {{ (q * V + e) * (ORDER // V) + p * (ORDER // MR) }}u + own / MR];
            {%- endfor %}
            {%- endfor %}
            {%- for c in range(NR) %}
            let u_{{ q }}_{{ c }} = solved[({{ c }}u * LANES + t % LANES) * PARTS + {{ q }}u];
            {%- for e in range(V) %}
            {%- for p in range(PARTS) %}
            x_{{ p }}_{{ c }} = fma(l_{{ q * V + e }}_{{ p }}, vec(-u_{{ q }}_{{ c }}[{{ e }}]), x_{{ p }}_{{ c }});
            {%- endfor %}
            {%- endfor %}
            {%- endfor %}
            {%- endfor %}
        }
        {%- for e in range(EACH) %}
        coefficients[SLICE - at + place_{{ e }}] = next_{{ e }};
        {%- endfor %}
        workgroupBarrier();
    }
    {%- for i in range(MR) %}
    if (own + {{ i }}u < args.n) {
        {%- for c in range(NR) %}
        if (r_{{ c }} < args.nrhs) { {{ b }}[row_{{ i }} + col_{{ c }}] = x_{{ i // V }}_{{ c }}[{{ i % V }}]; }
        {%- endfor %}
    }
    {%- endfor %}
}
