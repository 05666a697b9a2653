// C <- alpha·op(A)·op(B) + beta·C. Each workgroup computes a tile of MWG x NWG elements.
//
// Invocation (ti, tj) computes MR x NR elements of the tile: vectors ti + x·WGM, of VWM rows each, in columns tj + y·WGN. The
// factors op(A) and op(B) pass through workgroup memory in slices of KWG terms along k. While the invocations use one slice, they
// load the next slice into registers. If STAGES = 2, workgroup memory has a separate place for the next slice. Slices hold zeros
// beyond the edges of the matrices. If beta = 0, the kernel does not read C.
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
// one vector of padding in each line distributes transposed stores over the banks of workgroup memory
var<workgroup> slice_a: array<vec, {{ STAGES * KWG * LINE_A }}>;
var<workgroup> slice_b: array<real, {{ STAGES * KWG * LINE_B }}>;

// Returns element (i, p) of op(A), or zero beyond the edges.
fn op_a(i: u32, p: u32) -> real {
    if (i >= args.m || p >= args.k) { return real(); }
    return {{ a }}[args.a_at + {% if TRANS_A %}p + i * args.a_ld{% else %}i + p * args.a_ld{% endif %}];
}

// Returns element (p, j) of op(B), or zero beyond the edges.
fn op_b(p: u32, j: u32) -> real {
    if (j >= args.n || p >= args.k) { return real(); }
    return {{ b }}[args.b_at + {% if TRANS_B %}j + p * args.b_ld{% else %}p + j * args.b_ld{% endif %}];
}

// Vector s of a slice of A has index a_v(s) along the tile and index a_p(s) along k. Element s of a slice of B has index b_j(s)
// along the tile and index b_p(s) along k. The order of the elements lets neighbouring invocations read neighbouring memory.
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
        // the slice at p0 is fetched while the previous slice is multiplied
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
        // with one stage, all invocations must have used the current slice before the next slice overwrites it
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
