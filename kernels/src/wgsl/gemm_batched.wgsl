// C <- alpha·op(A)·op(B) + beta·C for many small matrices. Matrix g of operand x begins g·x_step elements after the first matrix.
//
// A workgroup computes a tile of TILE x TILE elements of one matrix. Each of its LANES x LANES invocations computes MICRO x MICRO
// elements. A and B pass through workgroup memory in slices of DEPTH terms. Slices hold zeros beyond the edges of the matrices,
// and elements beyond the edges of C are not stored. If beta = 0, the kernel does not read C.
{%- set TILE = LANES * MICRO %}
{%- set ITEMS = LANES * LANES %}
const TILE = {{ TILE }}u;
const ITEMS = {{ ITEMS }}u;
// one element of padding, so that neighbours along k lie in different banks
const LINE = {{ TILE + 1 }}u;
var<workgroup> slice_a: array<real, {{ DEPTH * (TILE + 1) }}>;
var<workgroup> slice_b: array<real, {{ DEPTH * (TILE + 1) }}>;

@compute @workgroup_size({{ ITEMS }})
fn gemm_batched(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let tiles = (args.m + TILE - 1u) / TILE;
    let i0 = group.x % tiles * TILE;
    let j0 = group.x / tiles * TILE;
    let ti = t % LANES;
    let tj = t / LANES;
    let a_at = args.a_at + group.y * args.a_step;
    let b_at = args.b_at + group.y * args.b_step;
    let c_at = args.c_at + group.y * args.c_step;
    {%- for x in range(MICRO) %}{% for y in range(MICRO) %}
    var sum_{{ x }}_{{ y }} = real();
    {%- endfor %}{% endfor %}
    for (var p0 = 0u; p0 < args.k; p0 += DEPTH) {
        // neighbouring invocations read neighbouring memory
        for (var s = t; s < TILE * DEPTH; s += ITEMS) {
            let i = {% if TRANS_A %}s / DEPTH{% else %}s % TILE{% endif %};
            let p = {% if TRANS_A %}s % DEPTH{% else %}s / TILE{% endif %};
            var left = real();
            if (i0 + i < args.m && p0 + p < args.k) {
                left = {{ a }}[a_at + {% if TRANS_A %}p0 + p + (i0 + i) * args.a_ld{% else %}i0 + i + (p0 + p) * args.a_ld{% endif %}];
            }
            slice_a[p * LINE + i] = left;
        }
        for (var s = t; s < TILE * DEPTH; s += ITEMS) {
            let j = {% if TRANS_B %}s % TILE{% else %}s / DEPTH{% endif %};
            let p = {% if TRANS_B %}s / TILE{% else %}s % DEPTH{% endif %};
            var right = real();
            if (j0 + j < args.n && p0 + p < args.k) {
                right = {{ b }}[b_at + {% if TRANS_B %}j0 + j + (p0 + p) * args.b_ld{% else %}p0 + p + (j0 + j) * args.b_ld{% endif %}];
            }
            slice_b[p * LINE + j] = right;
        }
        workgroupBarrier();
        for (var p = 0u; p < DEPTH; p++) {
            {%- for x in range(MICRO) %}
            let a_{{ x }} = slice_a[p * LINE + ti + {{ x * LANES }}u];
            {%- endfor %}
            {%- for y in range(MICRO) %}
            let b_{{ y }} = slice_b[p * LINE + tj + {{ y * LANES }}u];
            {%- for x in range(MICRO) %}
            sum_{{ x }}_{{ y }} = fma(a_{{ x }}, b_{{ y }}, sum_{{ x }}_{{ y }});
            {%- endfor %}{% endfor %}
        }
        workgroupBarrier();
    }
    {%- for y in range(MICRO) %}{% for x in range(MICRO) %}
    store(c_at, i0 + ti + {{ x * LANES }}u, j0 + tj + {{ y * LANES }}u, sum_{{ x }}_{{ y }});
    {%- endfor %}{% endfor %}
}

// Computes element (i, j) of the matrix that begins at c_at from the sum of products, and stores the element.
fn store(c_at: u32, i: u32, j: u32, sum: real) {
    if (i >= args.m || j >= args.n) { return; }
    let at = c_at + i + j * args.c_ld;
    if (args.beta == real()) {
        {{ c }}[at] = args.alpha * sum;
    } else {
        {{ c }}[at] = args.alpha * sum + args.beta * {{ c }}[at];
    }
}
