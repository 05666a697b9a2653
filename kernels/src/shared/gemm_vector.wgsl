// C <- alpha·A·op(B) + beta·C for operands in whole vectors. The extent k is a multiple of KWG.
// Positions and leading dimensions of A and B are multiples of the vector length.{% if VEC_C %}
// Position and leading dimension of C, and m, are multiples of the vector length too.{% endif %}
// Elements that fill the last vector follow each line of A{% if TRANS_B %} and of B{% endif %}. A vector has {{ V }} elements.
//     A(i, p) = element a_at + i + p·a_ld of a,  op(B)(p, j) = element b_at + {{ "j + p·b_ld" if TRANS_B else "p + j·b_ld" }} of b
{%- if IMAGES %}
// The kernel reads a and b as images. Pixel q of an image holds the {{ V }} elements from element {{ V }}·q of its buffer on.
{%- endif %}
//
// A workgroup computes a tile of MWG x NWG elements. The invocations form strips of {{ 32 // LANES_N }} x {{ LANES_N }} = 32.
// Each invocation computes MR x NR elements: vectors of rows that are {{ 32 // LANES_N }} vectors apart, in groups of as many
// columns as a vector has elements. A and op(B) pass through workgroup memory in slices of KWG terms along k. While the invocations
// use one slice, they load the next slice into registers. The kernel text unrolls the loop over a slice. Invocations
// beyond an edge read elements inside the matrices and store nothing. If beta = 0, the kernel does not read C.
{%- set LANES_M = 32 // LANES_N %}
{%- set T = (MWG // MR) * (NWG // NR) %}
{%- set STRIPS_M = MWG // (LANES_M * MR) %}
{%- set VEC_M = MR // V %}
{%- set VEC_N = NR // V %}
{%- set LINE_A = MWG // V %}
{%- set LINE_B = NWG // V %}
{%- set SLICE_B = LINE_B * KWG %}
{%- set SLICES = SLICE_B + LINE_A * KWG %}
{%- set LOADS_A = LINE_A * KWG // T %}
{%- set LOADS_B = LINE_B * KWG // T %}
{%- set KV = KWG // V %}
{%- set ROWS_A = T // LINE_A %}
{%- set ROWS_B = T // LINE_B if TRANS_B else T // KV %}
{%- set SWIZZLE = 0 if TRANS_B else 8 // KV %}
{%- set COLUMNS = [16 // MR, 1] | max %}
{%- macro column(y) %}j + {{ y // V * LANES_N * V + y % V }}u{% endmacro %}

{#- Computes the position of a vector of C. Returns from the function if the vector is not stored. #}
{%- macro position(leave) %}
    {%- if TRANS_B %}
    let j: u32 = tile * NWG + col;
    if (i * {{ V }}u >= args.m || j >= args.n) { {{ leave }} }
    {%- else %}
    let j: u32 = min(tile * NWG, args.n - NWG) + col;
    // the previous tile stores the columns that both tiles contain
    if (i * {{ V }}u >= args.m || j < tile * NWG) { {{ leave }} }
    {%- endif %}
    {%- if VEC_C %}
    let at: size = args.c_at / {{ V }}u + i + j * (args.c_ld / {{ V }}u);
    {%- else %}
    let at: size = args.c_at + i * {{ V }}u + j * args.c_ld;
    {%- endif %}
{%- endmacro %}
// the slices of B, followed by the slices of A, each stored in lines of vectors along the side of the tile
var<workgroup> slices: array<vec, {{ 2 * SLICES }}>;

@compute @workgroup_size({{ T }})
fn gemm_vector(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let ld_a: size = args.a_ld / {{ V }}u;
    let ld_b: size = args.b_ld / {{ V }}u;
    let lane: u32 = t % 32u;
    let strip: u32 = t / 32u;
    {%- if ZIGZAG %}
    let lane_n: u32 = lane / {{ 2 * LANES_M }}u * 2u + lane % 2u;
    let lane_m: u32 = lane / 2u % {{ LANES_M }}u;
    {%- else %}
    let lane_n: u32 = lane / {{ LANES_M }}u;
    let lane_m: u32 = lane % {{ LANES_M }}u;
    {%- endif %}
    let strip_m: u32 = strip % {{ STRIPS_M }}u;
    let strip_n: u32 = strip / {{ STRIPS_M }}u;

    // this invocation reads vector row_a of the tile in line p_a of each slice of A
    let row_a: u32 = t % {{ LINE_A }}u;
    let p_a: u32 = t / {{ LINE_A }}u;
    var from_a: size = args.a_at / {{ V }}u + min(group.x * {{ LINE_A }}u + row_a, (args.m - 1u) / {{ V }}u) + p_a * ld_a;
    let step_a: size = KWG * ld_a;
    let to_a: u32 = {{ SLICE_B }}u + p_a * {{ LINE_A }}u + row_a;
    {%- if TRANS_B %}
    let col_b: u32 = t % {{ LINE_B }}u;
    let p_b: u32 = t / {{ LINE_B }}u;
    var from_b: size = args.b_at / {{ V }}u + min(group.y * {{ LINE_B }}u + col_b, (args.n - 1u) / {{ V }}u) + p_b * ld_b;
    let step_b: size = KWG * ld_b;
    let to_b: u32 = p_b * {{ LINE_B }}u + col_b;
    {%- else %}
    // This invocation reads vector p_b of each slice of B in column col_b of the tile. The invocation stores the elements of a
    // vector to neighbouring lines, in a shuffled order in which few stores meet in one bank. The last tile begins so early that
    // the tile ends with the last column of B. This is possible because n is at least NWG.
    let j0: u32 = min(group.y * NWG, args.n - NWG);
    let col_b: u32 = t / {{ KV }}u;
    let p_b: u32 = t % {{ KV }}u;
    var from_b: size = args.b_at / {{ V }}u + p_b + (j0 + col_b) * ld_b;
    let step_b: size = {{ KV }}u;
    let to_b: u32 = p_b * {{ V * LINE_B }}u + ((col_b / {{ V }}u) ^ ({{ SWIZZLE }}u * p_b));
    let part_b: u32 = col_b % {{ V }}u;
    {%- endif %}
    {%- for e in range(LOADS_B) %}
    let next_b_{{ e }}: size = {{ e * ROWS_B }}u * ld_b;
    {%- endfor %}
    {%- for y in range(NR) %}{% for x in range(VEC_M) %}
    var sum_{{ x }}_{{ y }}: vec = {{ VEC }}(real(0));
    {%- endfor %}{% endfor %}

    let read_a: u32 = {{ SLICE_B }}u + strip_m * {{ LANES_M * VEC_M }}u + lane_m;
    {%- for d in range(LANES_N) %}{% if SWIZZLE and d % SWIZZLE == 0 or d == 0 %}
    let read_b_{{ d }}: u32 = strip_n * {{ LANES_N * VEC_N }}u + (lane_n ^ {{ d }}u);
    {%- endif %}{% endfor %}
    {%- macro fetch() %}
        {%- for e in range(LOADS_A) %}
        load_a_{{ e }} = {{ read_vec(a, "from_a + " ~ e * ROWS_A ~ "u * ld_a") }};
        {%- endfor %}
        {%- for e in range(LOADS_B) %}
        load_b_{{ e }} = {{ read_vec(b, "from_b + next_b_" ~ e) }};
        {%- endfor %}
    {%- endmacro %}
    {%- macro place(slice) %}
        {%- for e in range(LOADS_A) %}
        slices[{{ slice }} + to_a + {{ e * ROWS_A * LINE_A }}u] = load_a_{{ e }};
        {%- endfor %}
        {%- for e in range(LOADS_B) %}
        {%- if TRANS_B %}
        slices[{{ slice }} + to_b + {{ e * ROWS_B * LINE_B }}u] = load_b_{{ e }};
        {%- else %}{% for q in range(V) %}
        {{ set_part("slices", slice ~ " + to_b + " ~ (e * ROWS_B // V + q * LINE_B) ~ "u", "part_b") }} = load_b_{{ e }}{{ part(q) }};
        {%- endfor %}{% endif %}
        {%- endfor %}
    {%- endmacro %}
    {%- for e in range(LOADS_A) %}
    var load_a_{{ e }}: vec;
    {%- endfor %}
    {%- for e in range(LOADS_B) %}
    var load_b_{{ e }}: vec;
    {%- endfor %}
    {{- fetch() | replace("        ", "    ") }}
    // after the last slice, the same slice is fetched again and not used
    let count: u32 = args.k / KWG;
    from_a += select(0u, step_a, 1u < count);
    from_b += select(0u, step_b, 1u < count);
    {{- place("0u") | replace("        ", "    ") }}
    workgroupBarrier();
    var used: u32 = 0u;
    {%- macro read_b(p, y) -%}
        {%- set turn = SWIZZLE * (p // V) -%}
        slices[used + read_b_{{ turn % LANES_N }} + {{ p * LINE_B + xor(y * LANES_N, turn // LANES_N * LANES_N) }}u]
    {%- endmacro %}
    {%- macro read_a(p, x) -%}
        slices[used + read_a + {{ p * LINE_A + x * LANES_M }}u]
    {%- endmacro %}
    {%- macro multiply(p) %}
        {%- for y in range(NR) %}{% for x in range(VEC_M) %}
        sum_{{ x }}_{{ y }} = fma({{ VEC }}(b_{{ p }}_{{ y // V }}{{ part(y % V) }}), a_{{ p }}_{{ x }}, sum_{{ x }}_{{ y }});
        {%- endfor %}{% endfor %}
    {%- endmacro %}
    {%- macro declared(keyword, name) -%}
        {% if keyword %}{{ keyword }} {{ name }}: vec{% else %}{{ name }}{% endif %}
    {%- endmacro %}
    {%- macro read(keyword, p) %}
        {%- for y in range(VEC_N) %}
        {{ declared(keyword, "b_" ~ p ~ "_" ~ y) }} = {{ read_b(p, y) }};
        {%- endfor %}
        {%- for x in range(VEC_M) %}
        {{ declared(keyword, "a_" ~ p ~ "_" ~ x) }} = {{ read_a(p, x) }};
        {%- endfor %}
    {%- endmacro %}
    {%- if AHEAD %}
    // the kernel reads the operands of a step during the previous step, even across the barrier
    {{- read("var", 0) }}
    {%- endif %}
    for (var s: u32 = 1u; s <= count; s++) {
        {{- fetch() }}
        from_a += select(0u, step_a, s + 1u < count);
        from_b += select(0u, step_b, s + 1u < count);
        {%- for p in range(KWG) %}
        {%- if not AHEAD %}
        {{- read("let", p) }}
        {%- elif p + 1 < KWG %}
        {{- read("let", p + 1) }}
        {%- else %}
        used = {{ SLICES }}u - used;
        workgroupBarrier();
        {{- read("", 0) }}
        {%- endif %}
        {{- multiply(p) }}
        {%- if p + 1 + AHEAD == KWG %}
        {{- place(SLICES ~ "u - used") }}
        {%- endif %}
        {%- endfor %}
        {%- if not AHEAD %}
        used = {{ SLICES }}u - used;
        workgroupBarrier();
        {%- endif %}
    }

    let i: u32 = group.x * {{ LINE_A }}u + strip_m * {{ LANES_M * VEC_M }}u + lane_m;
    let j: u32 = strip_n * {{ LANES_N * NR }}u + lane_n * {{ V }}u;
    // Several old vectors are read before the first of them is replaced. Otherwise each read would wait for the read before, because the compiler
    // keeps the order of reads and writes.
    {%- for columns in range(NR) | batch(COLUMNS) %}
    {%- for y in columns %}{% for x in range(VEC_M) %}
    let old_{{ x }}_{{ y }}: vec = old(group.y, i + {{ x * LANES_M }}u, {{ column(y) }});
    {%- endfor %}{% endfor %}
    {%- for y in columns %}{% for x in range(VEC_M) %}
    store(group.y, i + {{ x * LANES_M }}u, {{ column(y) }}, sum_{{ x }}_{{ y }}, old_{{ x }}_{{ y }});
    {%- endfor %}{% endfor %}
    {%- endfor %}
}

// Reads vector i of C in column `col` of a tile. The elements are zero if beta = 0 or if they lie outside.
fn old(tile: u32, i: u32, col: u32) -> vec {
    var elements: vec;
    {{- position("return elements;") }}
    if (args.beta == real(0)) { return elements; }
    {%- if VEC_C %}
    elements = {{ c }}[at];
    {%- else %}
    {%- for q in range(V) %}
    if (i * {{ V }}u + {{ q }}u < args.m) { elements{{ part(q) }} = {{ c }}[at + {{ q }}u]; }
    {%- endfor %}
    {%- endif %}
    return elements;
}

// Computes vector i of C in column `col` of a tile from the vector's sums of products and the old vector, and stores the vector.
fn store(tile: u32, i: u32, col: u32, sum: vec, old: vec) {
    {{- position("return;") }}
    var elements: vec = args.alpha * sum;
    if (args.beta != real(0)) { elements = elements + args.beta * old; }
    {%- if VEC_C %}
    {{ c }}[at] = elements;
    {%- else %}
    {%- for q in range(V) %}
    if (i * {{ V }}u + {{ q }}u < args.m) { {{ c }}[at + {{ q }}u] = elements{{ part(q) }}; }
    {%- endfor %}
    {%- endif %}
}
