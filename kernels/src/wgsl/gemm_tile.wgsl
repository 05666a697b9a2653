// C <- alpha·op(A)·op(B) + beta·C: a tile of MWG x NWG elements for each workgroup.
//
// Invocation (ti, tj) holds MR x NR of them: MR / VWM vectors of VWM rows, vector
// ti + x·WGM of the tile, and columns tj + y·WGN. op(A) and op(B) pass through
// workgroup memory in slices of KWG along k: while one is used, the next is on its
// way through registers. With two STAGES it has a place of its own.
// Beyond the edges the slices hold zeros; beta = 0 never reads C.
{%- set WGM = MWG // MR %}
{%- set WGN = NWG // NR %}
{%- set ITEMS = WGM * WGN %}
{%- set VECTORS = MR // VWM %}
{%- set LINE_A = MWG // VWM + 1 %}
{%- set LINE_B = NWG + 1 %}
{%- set LOADS_A = MWG * KWG // VWM // ITEMS %}
{%- set LOADS_B = NWG * KWG // ITEMS %}
{%- if VWM == 1 %}
alias vec = real;
{%- else %}
alias vec = vec{{ VWM }}<real>;
{%- endif %}
// one more vector in each line keeps transposed stores off one bank
var<workgroup> slice_a: array<vec, {{ STAGES * KWG * LINE_A }}>;
var<workgroup> slice_b: array<real, {{ STAGES * KWG * LINE_B }}>;

// Element (i, p) of op(A), zero beyond the edges.
fn op_a(i: u32, p: u32) -> real {
    if (i >= args.m || p >= args.k) { return real(); }
    return {{ a }}[args.a_at + {% if TRANS_A %}p + i * args.a_ld{% else %}i + p * args.a_ld{% endif %}];
}

// Element (p, j) of op(B), zero beyond the edges.
fn op_b(p: u32, j: u32) -> real {
    if (j >= args.n || p >= args.k) { return real(); }
    return {{ b }}[args.b_at + {% if TRANS_B %}j + p * args.b_ld{% else %}p + j * args.b_ld{% endif %}];
}

// Neighbouring invocations read neighbouring memory: vector s of a slice of A is
// vector a_v(s) at a_p(s) along k, likewise element s of a slice of B.
{%- if TRANS_A %}
fn a_v(s: u32) -> u32 { return s / KWG; }
fn a_p(s: u32) -> u32 { return s % KWG; }
{%- else %}
fn a_v(s: u32) -> u32 { return s % {{ MWG // VWM }}u; }
fn a_p(s: u32) -> u32 { return s / {{ MWG // VWM }}u; }
{%- endif %}
{%- if TRANS_B %}
fn b_j(s: u32) -> u32 { return s % NWG; }
fn b_p(s: u32) -> u32 { return s / NWG; }
{%- else %}
fn b_j(s: u32) -> u32 { return s / KWG; }
fn b_p(s: u32) -> u32 { return s % KWG; }
{%- endif %}

@compute @workgroup_size({{ WGM }}, {{ WGN }})
fn gemm_tile(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) own: vec3<u32>) {
    let ti = own.x;
    let tj = own.y;
    let t = ti + tj * {{ WGM }}u;
    let i0 = group.x * MWG;
    let j0 = group.y * NWG;
    {%- for y in range(NR) %}{% for x in range(VECTORS) %}
    var sum_{{ x }}_{{ y }} = vec();
    {%- endfor %}{% endfor %}
    {%- for e in range(LOADS_A) %}
    var next_a_{{ e }} = vec();
    {%- endfor %}
    {%- for e in range(LOADS_B) %}
    var next_b_{{ e }} = real();
    {%- endfor %}

    var used = {{ STAGES - 1 }}u;
    for (var p0 = 0u; p0 < args.k + KWG; p0 += KWG) {
        // the slice at p0 is fetched while the one before it is multiplied
        if (p0 < args.k) {
            {%- for e in range(LOADS_A) %}
            {
                let i = i0 + a_v(t + {{ e * ITEMS }}u) * {{ VWM }}u;
                let p = p0 + a_p(t + {{ e * ITEMS }}u);
                next_a_{{ e }} = vec({% for v in range(VWM) %}op_a(i + {{ v }}u, p){{ "" if loop.last else ", " }}{% endfor %});
            }
            {%- endfor %}
            {%- for e in range(LOADS_B) %}
            next_b_{{ e }} = op_b(p0 + b_p(t + {{ e * ITEMS }}u), j0 + b_j(t + {{ e * ITEMS }}u));
            {%- endfor %}
        }
        if (p0 > 0u) {
            for (var p = 0u; p < KWG; p++) {
                let line_a = (used * KWG + p) * {{ LINE_A }}u + ti;
                let line_b = (used * KWG + p) * {{ LINE_B }}u + tj;
                {%- for x in range(VECTORS) %}
                let a_{{ x }} = slice_a[line_a + {{ x * WGM }}u];
                {%- endfor %}
                {%- for y in range(NR) %}
                let b_{{ y }} = vec(slice_b[line_b + {{ y * WGN }}u]);
                {%- for x in range(VECTORS) %}
                sum_{{ x }}_{{ y }} = fma(a_{{ x }}, b_{{ y }}, sum_{{ x }}_{{ y }});
                {%- endfor %}{% endfor %}
            }
        }
        {%- if STAGES == 1 %}
        // the only place is free when everyone has used what it held
        workgroupBarrier();
        used = 0u;
        {%- else %}
        used = 1u - used;
        {%- endif %}
        if (p0 < args.k) {
            {%- for e in range(LOADS_A) %}
            slice_a[(used * KWG + a_p(t + {{ e * ITEMS }}u)) * {{ LINE_A }}u + a_v(t + {{ e * ITEMS }}u)] = next_a_{{ e }};
            {%- endfor %}
            {%- for e in range(LOADS_B) %}
            slice_b[(used * KWG + b_p(t + {{ e * ITEMS }}u)) * {{ LINE_B }}u + b_j(t + {{ e * ITEMS }}u)] = next_b_{{ e }};
            {%- endfor %}
            workgroupBarrier();
        }
    }
    {% for y in range(NR) %}{% for x in range(VECTORS) %}{% for v in range(VWM) %}
    store(i0 + (ti + {{ x * WGM }}u) * {{ VWM }}u + {{ v }}u, j0 + tj + {{ y * WGN }}u, sum_{{ x }}_{{ y }}{% if VWM > 1 %}[{{ v }}]{% endif %});
    {%- endfor %}{% endfor %}{% endfor %}
}
