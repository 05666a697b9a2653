// C <- alpha·op(A)·op(B) + beta·C. A workgroup computes a tile of MWG x NWG elements, and each invocation MR x NR elements of it.
{%- set WGM = MWG // MR %}
{%- set WGN = NWG // NR %}
{%- set ITEMS = WGM * WGN %}
{%- set VECTORS = MR // VW %}
{%- set LOCAL_A = MEMORY in [1, 2, 4] %}
{%- set LOCAL_B = MEMORY in [1, 4, 5] %}
{%- set SLICES = LOCAL_A or LOCAL_B %}
{%- set BLOCKED = MEMORY in [3, 4] %}
{%- set STAGED = MEMORY == 4 %}
{%- set SWIZZLES_A = SWIZZLE and LOCAL_A and TRANS_A %}
{%- set SWIZZLES_B = SWIZZLE and LOCAL_B and not TRANS_B %}
{%- set TILE_V = MWG // VW %}
{%- set LINE_A = TILE_V + PAD %}
{%- set LINE_B = NWG + PAD %}
{%- set COLUMNS = [16 // MR, 1] | max %}
{%- set MOVES_A = TILE_V * KWG %}
{%- set MOVES_B = NWG * KWG %}
{%- set LOADS_A = (MOVES_A + ITEMS - 1) // ITEMS if LOCAL_A else 0 %}
{%- set LOADS_B = (MOVES_B + ITEMS - 1) // ITEMS if LOCAL_B else 0 %}
{%- set USED_A = "used * " ~ KWG * LINE_A ~ "u + " if STAGES == 2 else "" %}
{%- set USED_B = "used * " ~ KWG * LINE_B ~ "u + " if STAGES == 2 else "" %}
{%- set m = "M" if INLINE else "args.m" %}
{%- set n = "N" if INLINE else "args.n" %}
{%- set k = "K" if INLINE else "args.k" %}
{%- set begin = "begin" if SPLIT > 1 else "0u" %}
{%- set end = "end" if SPLIT > 1 else k %}
{%- macro plus(x) %}{% if x %} + {{ x }}u{% endif %}{% endmacro %}
{%- macro swizzle_a(p) %}{{ swizzle_of(p, TILE_V, VW) }}{% endmacro %}
{%- macro swizzle_b(p) %}{{ swizzle_of(p, NWG, 1) }}{% endmacro %}
{%- macro formula(text) %}{{ text | replace("u", "") | replace(" * ", "·") | replace(" / ", "/") | replace(" % ", " mod ") }}{% endmacro %}
{%- macro times(x) %}{% if x > 1 %} * {{ x }}u{% endif %}{% endmacro %}
//
// Invocation (ti, tj) of the tile at (i0, j0) computes rows row_x, row_x + 1, ... in column col_y for each x < {{ VECTORS }} and y < {{ NR }}:
//     start_x = i0 + (ti + {{ WGM }}·x)·{{ VW }},  row_x = min(start_x, m - {{ VW }}),  col_y = min(j0 + tj + {{ WGN }}·y, n - 1)
// A vector or a column beyond the edge thus repeats elements inside the matrices. The kernel does not store its results.
//     op(A)(i, p) = a[a_at + {{ "p + i·a_ld" if TRANS_A else "i + p·a_ld" }}],  op(B)(p, j) = b[b_at + {{ "j + p·b_ld" if TRANS_B else "p + j·b_ld" }}]
{%- if LOCAL_A %}
//     slice_a[p·{{ LINE_A }} + {% if SWIZZLES_A %}(v ^ {{ formula(swizzle_a("p")) }}){% else %}v{% endif %}] = vector v of the tile's rows of op(A) in term p of a slice, v < {{ TILE_V }}
{%- endif %}
{%- if LOCAL_B %}
//     slice_b[p·{{ LINE_B }} + {% if SWIZZLES_B %}(j ^ {{ formula(swizzle_b("p")) }}){% else %}j{% endif %}] = op(B)(p, j0 + j) in term p of a slice, j < {{ NWG }}
{%- endif %}
//
// {{ [
    "Invocations read each term of both operands from global memory right before they multiply it.",
    "Both operands pass through workgroup memory in slices of KWG terms.",
    "A passes through workgroup memory in slices of KWG terms. Invocations read B from global memory.",
    "Invocations read KR terms of both operands from global memory into registers before they multiply them.",
    "Both operands pass through workgroup memory in slices of KWG terms. Invocations load the next slice into registers\n// while they "
        ~ "use a slice, and read KR terms of a slice into registers before they multiply them.",
    "B passes through workgroup memory in slices of KWG terms. Invocations read A from global memory.",
][MEMORY] }}
{%- if SLICES and STAGES == 2 %}
// Workgroup memory holds two slices of an operand: some invocations fill one slice while others still use the other slice.
{%- endif %}
{%- if SWIZZLES_A or SWIZZLES_B %}
// Invocations store neighbouring {{ "terms of A" if not SWIZZLES_B else "terms of B" if not SWIZZLES_A else "terms of A and of B" }} to different lines of a slice.
// The operator ^ (exclusive or) permutes each line so that no two of these stores use the same bank of memory at once.
{%- endif %}
{%- if SPLIT > 1 %}
// The terms are divided into SPLIT parts of whole slices. A workgroup multiplies the terms of one part. The product of part s is the
// matrix of n columns that begins at column s·n of C.
{%- endif %}
{{ "// The product of a part replaces the old elements." if SPLIT > 1 else "// If beta = 0, the kernel does not read C." }}
{{- "\nvar<workgroup> slice_a: array<vec, " ~ STAGES * KWG * LINE_A ~ ">;" if LOCAL_A }}
{{- "\nvar<workgroup> slice_b: array<real, " ~ STAGES * KWG * LINE_B ~ ">;" if LOCAL_B }}

{#- The first row of vector x and the column y of this invocation, inside or outside the matrices #}
{%- macro start(x) %}i0 + {{ "(ti" ~ plus(x * WGM) ~ ")" if x and VW > 1 else "ti" ~ plus(x * WGM) }}{{ times(VW) }}{% endmacro %}
{%- macro column(y) %}j0 + tj{{ plus(y * WGN) }}{% endmacro %}

{#- The part of a position that depends on a row of op(A), on a column of op(B), or on a term #}
{%- macro line_a(row) %}args.a_at + {{ row }}{% if TRANS_A %} * args.a_ld{% endif %}{% endmacro %}
{%- macro line_b(col) %}args.b_at + {{ col }}{% if not TRANS_B %} * args.b_ld{% endif %}{% endmacro %}
{%- macro term_a(p) %}{{ p }}{% if not TRANS_A %} * args.a_ld{% endif %}{% endmacro %}
{%- macro term_b(p) %}{{ p }}{% if TRANS_B %} * args.b_ld{% endif %}{% endmacro %}

{#- A vector of op(A) at a position in global memory #}
{%- macro vector_a(at) -%}
    {%- if VW == 1 -%}
        {{ a }}[{{ at }}]
    {%- elif TRANS_A -%}
        {{ VEC }}({% for q in range(VW) %}{{ a }}[{{ at }}{% if q %} + {{ q }}u * args.a_ld{% endif %}]{{ ", " if not loop.last }}{% endfor %})
    {%- else -%}
        {{ load_vec(a, at, VW) }}
    {%- endif -%}
{%- endmacro %}

{#- A statement of move `e`, for the invocations whose move belongs to the slice: to a whole slice or to one of `depth` terms #}
{%- macro guarded(statement, operand, e, moves, whole) %}
            {%- set in_slice = "t < " ~ (moves - e * ITEMS) ~ "u" if (e + 1) * ITEMS > moves else "" %}
            {%- set in_depth = "p_" ~ operand ~ "_" ~ e ~ " < depth" if not whole else "" %}
            {%- set condition = [in_slice, in_depth] | select | join(" && ") %}
            {% if condition %}if ({{ condition }}) { {{ statement }} }{% else %}{{ statement }}{% endif %}
{%- endmacro %}
{%- macro place_a(e) %}slice_a[{{ USED_A }}to_a_{{ e }}]{% endmacro %}
{%- macro place_b(e) %}slice_b[{{ USED_B }}to_b_{{ e }}]{% endmacro %}
{%- macro loads(whole) %}
            {%- for e in range(LOADS_A) %}
            {%- set to = "next_a_" ~ e if STAGED else place_a(e) %}
            {{- guarded(to ~ " = " ~ vector_a("from_a_" ~ e ~ " + at_a") ~ ";", "a", e, MOVES_A, whole) }}
            {%- endfor %}
            {%- for e in range(LOADS_B) %}
            {%- set to = "next_b_" ~ e if STAGED else place_b(e) %}
            {{- guarded(to ~ " = " ~ b ~ "[from_b_" ~ e ~ " + at_b];", "b", e, MOVES_B, whole) }}
            {%- endfor %}
{%- endmacro %}

{#- Loads the slice of `depth` terms that begins at term `first` #}
{%- macro fetch(first) %}
        {%- if LOCAL_A %}
        let at_a: size = {{ term_a(first) }};
        {%- endif %}
        {%- if LOCAL_B %}
        let at_b: size = {{ term_b(first) }};
        {%- endif %}
        if (depth == KWG) {
            {{- loads(true) }}
        } else {
            {{- loads(false) }}
        }
{%- endmacro %}

{#- Positions of term p + r of a slice in workgroup memory, or of that term of the product in global memory #}
{%- macro positions(r) %}
        {%- set p = "(p" ~ plus(r) ~ ")" if r else "p" %}
        {%- set term = "(p0 + p" ~ plus(r) ~ ")" if SLICES else p %}
        {%- if LOCAL_A %}
        let at_a_{{ r }}: u32 = {{ USED_A }}{% if not SWIZZLES_A %}ti + {% endif %}{{ p }} * {{ LINE_A }}u;
        {{- "\n        let swizzled_a_" ~ r ~ ": u32 = ti ^ (" ~ swizzle_a(p) ~ ");" if SWIZZLES_A }}
        {%- else %}
        let at_a_{{ r }}: size = {{ term_a(term) }};
        {%- endif %}
        {%- if LOCAL_B %}
        let at_b_{{ r }}: u32 = {{ USED_B }}{% if not SWIZZLES_B %}tj + {% endif %}{{ p }} * {{ LINE_B }}u;
        {{- "\n        let swizzled_b_" ~ r ~ ": u32 = tj ^ (" ~ swizzle_b(p) ~ ");" if SWIZZLES_B }}
        {%- else %}
        let at_b_{{ r }}: size = {{ term_b(term) }};
        {%- endif %}
{%- endmacro %}
{#- The extents are powers of two, and ti and tj have no bit in common with a multiple of the extent of a workgroup #}
{%- macro swizzled(operand, r, x) %} + {% if x %}(swizzled_{{ operand }}_{{ r }} ^ {{ x }}u){% else %}swizzled_{{ operand }}_{{ r }}{% endif %}{% endmacro %}
{%- macro read_a(r, x) %}
        {%- set place = swizzled("a", r, x * WGM) if SWIZZLES_A else plus(x * WGM) %}
        {%- set from_slice = "slice_a[at_a_" ~ r ~ place ~ "]" %}
        let a_{{ r }}_{{ x }}: vec = {{ from_slice if LOCAL_A else vector_a("from_a_" ~ x ~ " + at_a_" ~ r) }};
{%- endmacro %}
{%- macro read_b(r, y) %}
        {%- set place = swizzled("b", r, y * WGN) if SWIZZLES_B else plus(y * WGN) %}
        {%- set from_slice = "slice_b[at_b_" ~ r ~ place ~ "]" %}
        let b_{{ r }}_{{ y }}: real = {{ from_slice if LOCAL_B else b ~ "[from_b_" ~ y ~ " + at_b_" ~ r ~ "]" }};
{%- endmacro %}
{%- macro reads_a(r) %}{% for x in range(VECTORS) %}{{ read_a(r, x) }}{% endfor %}{% endmacro %}
{%- macro reads_b(r) %}{% for y in range(NR) %}{{ read_b(r, y) }}{% endfor %}{% endmacro %}
{%- macro multiply(r, x, y) %}
        {%- set element = "b_" ~ r ~ "_" ~ y %}
        {%- set sum = "sum_" ~ x ~ "_" ~ y %}
        {{ sum }} = fma(a_{{ r }}_{{ x }}, {{ element if VW == 1 else VEC ~ "(" ~ element ~ ")" }}, {{ sum }});
{%- endmacro %}

{#- Adds the products of `count` terms. Unless they are read in blocks, the outer loop reads its operand itself. #}
{%- macro pass(count) %}
        {%- for r in range(count) %}{{ positions(r) }}{% endfor %}
        {%- if BLOCKED %}{% for r in range(count) %}{{ reads_a(r) }}{{ reads_b(r) }}{% endfor %}{% endif %}
        {%- for r in range(count) %}
            {%- if ORDER == 0 %}
                {%- if not BLOCKED %}{{ reads_b(r) }}{% endif %}
                {%- for x in range(VECTORS) %}
                    {%- if not BLOCKED %}{{ read_a(r, x) }}{% endif %}
                    {%- for y in range(NR) %}{{ multiply(r, x, y) }}{% endfor %}
                {%- endfor %}
            {%- else %}
                {%- if not BLOCKED %}{{ reads_a(r) }}{% endif %}
                {%- for y in range(NR) %}
                    {%- if not BLOCKED %}{{ read_b(r, y) }}{% endif %}
                    {%- for x in range(VECTORS) %}{{ multiply(r, x, y) }}{% endfor %}
                {%- endfor %}
            {%- endif %}
        {%- endfor %}
{%- endmacro %}

@compute @workgroup_size({{ WGM }}, {{ WGN }})
{%- if INDEXING == 0 %}
fn gemm_block(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) own: vec3<u32>) {
    let ti: u32 = own.x;
    let tj: u32 = own.y;
    {%- set group_m = "group.x" %}
    {%- set group_y = "group.y" %}
{%- else %}
fn gemm_block(@builtin(global_invocation_id) item: vec3<u32>) {
    let ti: u32 = item.x % {{ WGM }}u;
    let tj: u32 = item.y % {{ WGN }}u;
    {%- set group_m = "item.x / " ~ WGM ~ "u" %}
    {%- set group_y = "item.y / " ~ WGN ~ "u" %}
{%- endif %}
{%- set group_n = group_y ~ (" / SPLIT" if SPLIT > 1 else "") %}
{%- if SPLIT > 1 %}
    let part: u32 = {{ group_y }} % SPLIT;
    // the first parts have one slice more than the others if the number of slices is no multiple of SPLIT
    let slices: size = ({{ k }} + KWG - 1u) / KWG;
    let longer: size = slices % SPLIT;
    let begin: u32 = (slices / SPLIT * part + min(part, longer)) * KWG;
    let end: u32 = min(begin + (slices / SPLIT + select(0u, 1u, part < longer)) * KWG, {{ k }});
{%- endif %}
    {%- if RASTER > 1 %}
    // workgroups take the tiles in stripes of RASTER columns of tiles, row by row within a stripe
    let tiles_m: size = ({{ m }} + MWG - 1u) / MWG;
    let tiles_n: size = ({{ n }} + NWG - 1u) / NWG;
    let number: size = {{ group_m }} + {{ group_n }} * tiles_m;
    let stripe: size = number / (RASTER * tiles_m);
    let in_stripe: size = number % (RASTER * tiles_m);
    let width: size = min(RASTER, tiles_n - stripe * RASTER);
    let i0: u32 = in_stripe / width * MWG;
    let j0: u32 = (stripe * RASTER + in_stripe % width) * NWG;
    {%- else %}
    let i0: u32 = {{ group_m }} * MWG;
    let j0: u32 = {{ group_n }} * NWG;
    {%- endif %}
    {%- if not LOCAL_A %}{% for x in range(VECTORS) %}
    let row_{{ x }}: u32 = min({{ start(x) }}, {{ m }} - {{ VW }}u);
    let from_a_{{ x }}: size = {{ line_a("row_" ~ x) }};
    {%- endfor %}{% endif %}
    {%- if not LOCAL_B %}{% for y in range(NR) %}
    let col_{{ y }}: u32 = min({{ column(y) }}, {{ n }} - 1u);
    let from_b_{{ y }}: size = {{ line_b("col_" ~ y) }};
    {%- endfor %}{% endif %}
    {{- "\n    let t: u32 = ti + tj * " ~ WGM ~ "u;" if SLICES }}
    {{- "\n    // this invocation brings vector v_a_e of the tile in term p_a_e of each slice to place to_a_e" if LOCAL_A }}
    {%- for e in range(LOADS_A) %}
    {%- set s = "(t" ~ plus(e * ITEMS) ~ ")" if e else "t" %}
    let v_a_{{ e }}: u32 = {{ s }} {{ "/ KWG" if TRANS_A else "% " ~ TILE_V ~ "u" }};
    let p_a_{{ e }}: u32 = {{ s }} {{ "% KWG" if TRANS_A else "/ " ~ TILE_V ~ "u" }};
    let row_{{ e }}: u32 = min(i0 + v_a_{{ e }}{{ times(VW) }}, {{ m }} - {{ VW }}u);
    let from_a_{{ e }}: size = {{ line_a("row_" ~ e) }} + {{ term_a("p_a_" ~ e) }};
    let to_a_{{ e }}: u32 = p_a_{{ e }} * {{ LINE_A }}u + {% if SWIZZLES_A %}(v_a_{{ e }} ^ ({{ swizzle_a("p_a_" ~ e) }})){% else %}v_a_{{ e }}{% endif %};
    {%- if STAGED %}
    var next_a_{{ e }}: vec;
    {%- endif %}
    {%- endfor %}
    {{- "\n    // this invocation brings column j_b_e of the tile in term p_b_e of each slice to place to_b_e" if LOCAL_B }}
    {%- for e in range(LOADS_B) %}
    {%- set s = "(t" ~ plus(e * ITEMS) ~ ")" if e else "t" %}
    let j_b_{{ e }}: u32 = {{ s }} {{ "% NWG" if TRANS_B else "/ KWG" }};
    let p_b_{{ e }}: u32 = {{ s }} {{ "/ NWG" if TRANS_B else "% KWG" }};
    let col_{{ e }}: u32 = min(j0 + j_b_{{ e }}, {{ n }} - 1u);
    let from_b_{{ e }}: size = {{ line_b("col_" ~ e) }} + {{ term_b("p_b_" ~ e) }};
    let to_b_{{ e }}: u32 = p_b_{{ e }} * {{ LINE_B }}u + {% if SWIZZLES_B %}(j_b_{{ e }} ^ ({{ swizzle_b("p_b_" ~ e) }})){% else %}j_b_{{ e }}{% endif %};
    {%- if STAGED %}
    var next_b_{{ e }}: real;
    {%- endif %}
    {%- endfor %}
    {%- for y in range(NR) %}{% for x in range(VECTORS) %}
    var sum_{{ x }}_{{ y }}: vec;
    {%- endfor %}{% endfor %}
{% if SLICES %}
    {%- if STAGES == 2 %}
    var used: u32 = 0u;
    {%- endif %}
    {%- if STAGED %}
    {
        let depth: u32 = min(KWG, {{ end ~ " - begin" if SPLIT > 1 else k }});
        {{- fetch(begin) }}
    }
    {%- endif %}
    for (var p0: u32 = {{ begin }}; p0 < {{ end }}; p0 += KWG) {
        let depth: u32 = min(KWG, {{ end }} - p0);
        {%- if STAGED %}
        {
            {%- for e in range(LOADS_A) %}{{ guarded(place_a(e) ~ " = next_a_" ~ e ~ ";", "a", e, MOVES_A, true) }}{% endfor %}
            {%- for e in range(LOADS_B) %}{{ guarded(place_b(e) ~ " = next_b_" ~ e ~ ";", "b", e, MOVES_B, true) }}{% endfor %}
        }
        workgroupBarrier();
        if (p0 + KWG < {{ end }}) {
            let first: u32 = p0 + KWG;
            let depth: u32 = min(KWG, {{ end }} - first);
            {{- fetch("first") | indent(4) }}
        }
        {%- else %}
        {{- fetch("p0") }}
        workgroupBarrier();
        {%- endif %}
        if (depth == KWG) {
            for (var p: u32 = 0u; p < KWG; p += KR) {
                {{- pass(KR) | indent(8) }}
            }
        } else {
            for (var p: u32 = 0u; p < depth; p++) {
                {{- pass(1) | indent(8) }}
            }
        }
        {%- if STAGES == 2 %}
        used = 1u - used;
        {%- else %}
        // all invocations must have used this slice before the next one replaces it
        workgroupBarrier();
        {%- endif %}
    }
{%- else %}
    var p: u32 = {{ begin }};
    for (; p + KR <= {{ end }}; p += KR) {
        {{- pass(KR) }}
    }
    for (; p < {{ end }}; p++) {
        {{- pass(1) }}
    }
{%- endif %}
    {%- if SPLIT == 1 %}
    // Several old elements are read before the first of them is replaced. Otherwise each read would wait for the read before, because the compiler
    // keeps the order of reads and writes.
    {%- endif %}
    {%- for columns in range(NR) | batch(COLUMNS) %}
    {%- if SPLIT == 1 %}{% for y in columns %}{% for x in range(VECTORS) %}
    let old_{{ x }}_{{ y }}: vec = old({{ start(x) }}, {{ column(y) }});
    {%- endfor %}{% endfor %}{% endif %}
    {%- for y in columns %}{% for x in range(VECTORS) %}
    store({{ start(x) }}, {{ column(y) }}, {{ "part, " if SPLIT > 1 }}sum_{{ x }}_{{ y }}{{ ", old_" ~ x ~ "_" ~ y if SPLIT == 1 }});
    {%- endfor %}{% endfor %}
    {%- endfor %}
}
{%- if SPLIT == 1 %}

// Reads column j of C in the vector of rows that begins at `start`. Elements above `start` or outside C are zero, and all elements are zero if
// beta = 0.
fn old(start: u32, j: u32) -> vec {
    var elements: vec;
    if (args.beta == real(0) || j >= {{ n }}) { return elements; }
    let row: u32 = min(start, {{ m }} - {{ VW }}u);
    let at: size = args.c_at + row + j * args.c_ld;
    {%- for q in range(VW) %}
    if (row{{ plus(q) }} >= start) { elements{{ part(q) if VW > 1 }} = {{ c }}[at{{ plus(q) }}]; }
    {%- endfor %}
    return elements;
}
{%- endif %}

// Computes column j of {{ "the product of a part" if SPLIT > 1 else "C" }} in the vector of rows that begins at `start`, and stores the elements at `start` and below it.
fn store(start: u32, j: u32, {{ "part: u32, " if SPLIT > 1 }}sum: vec{{ ", old: vec" if SPLIT == 1 }}) {
    if (j >= {{ n }}) { return; }
    let row: u32 = min(start, {{ m }} - {{ VW }}u);
    let at: size = args.c_at + row + {{ "(j + part * " ~ n ~ ")" if SPLIT > 1 else "j" }} * args.c_ld;
    var elements: vec = args.alpha * sum;
    {{- "\n    if (args.beta != real(0)) { elements = elements + args.beta * old; }" if SPLIT == 1 }}
    // the rows above `start` belong to another vector
    {%- for q in range(VW) %}
    if (row{{ plus(q) }} >= start) { {{ c }}[at{{ plus(q) }}] = elements{{ part(q) if VW > 1 }}; }
    {%- endfor %}
}
