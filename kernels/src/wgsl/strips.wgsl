// A = P·L·U of a panel by strips of WIDTH columns, which stand side by side in memory of
// their own while that goes on: row i of a strip is {{ WIDTH // V }} vectors of V elements. A strip
// has HEIGHT rows, and the last one all its columns: zeros where the panel has none.
{%- set PARTS = WIDTH // V %}
const HEIGHT = {{ ITEMS * ROWS }}u;

// Where a row of a strip begins.
fn row_at(strip: u32, i: u32) -> u32 { return (strip * HEIGHT + i) * {{ PARTS }}u; }
{% if kernel != "getrf_strip" %}
// {% if kernel == "enter_strips" %}The panel, to its strips{% else %}The strips, to their panel{% endif %}: a row of a strip for each invocation.
@compute @workgroup_size(ITEMS)
fn {{ kernel }}(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    {%- for c in range(WIDTH) %}
    let j_{{ c }} = id.y * WIDTH + {{ c }}u;
    let at_{{ c }} = args.a_at + i + j_{{ c }} * args.a_ld;
    {%- endfor %}
    {%- if kernel == "enter_strips" %}
    {%- for q in range(PARTS) %}
    var x_{{ q }} = vec();
    {%- endfor %}
    {%- for c in range(WIDTH) %}
    if (i < args.m && j_{{ c }} < args.n) { x_{{ c // V }}[{{ c % V }}] = {{ a }}[at_{{ c }}]; }
    {%- endfor %}
    {%- for q in range(PARTS) %}
    {{ strips }}[row_at(id.y, i) + {{ q }}u] = x_{{ q }};
    {%- endfor %}
    {%- else %}
    if (i >= args.m) { return; }
    {%- for q in range(PARTS) %}
    let x_{{ q }} = {{ strips }}[row_at(id.y, i) + {{ q }}u];
    {%- endfor %}
    {%- for c in range(WIDTH) %}
    if (j_{{ c }} < args.n) { {{ a }}[at_{{ c }}] = x_{{ c // V }}[{{ c % V }}]; }
    {%- endfor %}
    {%- endif %}
}
{% else %}
// One step: step s makes the exchanges of strip s - 1 in all other strips and eliminates
// its columns from those to the right; the workgroup that has strip s factors it then.
// Rules as in `getrf_panel`. An invocation holds ROWS rows of its workgroup's strip in
// registers, in slots: row begin + i is in slot i / ITEMS of invocation i % ITEMS, so that
// the first invocations have the strip's rows on the diagonal, and those that are done are last.
//
// While a strip is factored rows that are done are zero in registers, as are those beyond
// the panel: a zero is never larger than the diagonal, and so no candidate. Rows that are
// done are computed along otherwise, and not stored. So are columns that the panel lacks, zero
// or NaN, in which none is a candidate.
struct Candidate {
    magnitude: real,
    row: u32,
}
var<workgroup> candidates: array<Candidate, ITEMS>;
var<workgroup> best_of_line: array<Candidate, LINES>;
// the rows on the diagonal and of the pivot
var<workgroup> diagonal: array<real, WIDTH>;
var<workgroup> pivots: array<real, WIDTH>;
// the rows that strip s - 1 exchanged its own with
var<workgroup> named: array<u32, WIDTH>;
// what comes to the rows of strip s - 1, then to those that it named
var<workgroup> moved: array<vec, {{ 2 * WIDTH * PARTS }}>;
// rows of L and U beside one another: those of strip s - 1 on the diagonal
var<workgroup> lower: array<vec, {{ WIDTH * PARTS }}>;
var<workgroup> upper: array<vec, {{ WIDTH * PARTS }}>;

// The larger one, the first of equal ones.
fn larger(x: Candidate, y: Candidate) -> Candidate {
    let second = (y.magnitude > x.magnitude) | ((y.magnitude == x.magnitude) & (y.row < x.row));
    return Candidate(select(x.magnitude, y.magnitude, second), select(x.row, y.row, second));
}
{#- The largest of candidates `x` 0, 1, ..., whose number is a power of two, in the first of them. -#}
{%- macro largest(x, number) %}
    {%- for half in halves(number) %}
    {%- for q in range(half) %}
    {{ x }}_{{ q }} = larger({{ x }}_{{ q }}, {{ x }}_{{ q + half }});
    {%- endfor %}
    {%- endfor %}
{%- endmacro %}
{#- Runs of slots that are searched at once, so that one comparison need not wait for another. -#}
{%- set RUNS = [4, ROWS] | min %}
{%- set RUN = (ROWS + RUNS - 1) // RUNS %}
{#- Slots that one condition leads to. -#}
{%- set CHUNK = [4, ROWS] | min %}
{%- set CHUNKS = (ROWS + CHUNK - 1) // CHUNK %}
{#- Columns whose text is written out: for more it no longer fits the caches for instructions. -#}
{%- set NEXT = WIDTH if WIDTH <= 4 else 1 %}

{#- Stores the rows from one on. -#}
{%- macro keep(first) %}
    {%- for r in range(ROWS) %}
    if (i_{{ r }} >= {{ first }}) {
        {%- for q in range(PARTS) %}
        {{ strips }}[row_at(strip, i_{{ r }}) + {{ q }}u] = vec(
            {%- for c in range(q * V, (q + 1) * V) %}x_{{ r }}_{{ c }}, {% endfor -%}
        );
        {%- endfor %}
    }
    {%- endfor %}
{%- endmacro %}

@compute @workgroup_size(ITEMS)
fn getrf_strip(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let s = args.step;
    // the first workgroup has strip s, and none has strip s - 1
    let strip = (s + group.x) % ((args.n + WIDTH - 1u) / WIDTH);
    // the first row that is not done, and that of strip s - 1
    let begin = s * WIDTH;
    let done = begin - WIDTH;
    {%- for r in range(ROWS) %}
    let i_{{ r }} = (begin + t + {{ r }}u * ITEMS) % HEIGHT;
    {%- for c in range(WIDTH) %}
    var x_{{ r }}_{{ c }} = real();
    {%- endfor %}
    {%- endfor %}
    if (strip >= s) {
        {%- for r in range(ROWS) %}
        {%- for q in range(PARTS) %}
        let part_{{ r }}_{{ q }} = {{ strips }}[row_at(strip, i_{{ r }}) + {{ q }}u];
        {%- endfor %}
        {%- for c in range(WIDTH) %}
        x_{{ r }}_{{ c }} = part_{{ r }}_{{ c // V }}[{{ c % V }}];
        {%- endfor %}
        {%- endfor %}
    }
    if (s > 0u) {
        if (t < WIDTH) {
            var p = done + t;
            if (p < args.n) { p = u32({{ ipiv }}[args.ipiv_at + p]) - args.first; }
            named[t] = p;
            {%- for q in range(PARTS) %}
            lower[t * {{ PARTS }}u + {{ q }}u] = {{ strips }}[row_at(s - 1u, done + t) + {{ q }}u];
            {%- endfor %}
        }
        workgroupBarrier();
        // invocation e has the row that comes to row e of strip s - 1, or to one that it named
        let moves = t < {{ 2 * WIDTH }}u;
        var to = done + t;
        var stores = moves;
        {%- for q in range(PARTS) %}
        var row_{{ q }} = vec();
        {%- endfor %}
        if (moves) {
            if (t >= WIDTH) {
                to = named[t - WIDTH];
                // another one has a row of the strip itself, and one that was named before
                stores = to >= begin;
                for (var e = 0u; e < t - WIDTH; e++) { stores = stores & (named[e] != to); }
            }
            var came = to;
            for (var e = WIDTH; e > 0u; e--) {
                let i = done + e - 1u;
                let p = named[e - 1u];
                came = select(select(came, i, came == p), p, came == i);
            }
            {%- for q in range(PARTS) %}
            row_{{ q }} = {{ strips }}[row_at(strip, came) + {{ q }}u];
            moved[t * {{ PARTS }}u + {{ q }}u] = row_{{ q }};
            {%- endfor %}
        }
        // rows go where others were read
        workgroupBarrier();
        storageBarrier();
        if (strip < s) {
            if (stores) {
                {%- for q in range(PARTS) %}
                {{ strips }}[row_at(strip, to) + {{ q }}u] = row_{{ q }};
                {%- endfor %}
            }
            return;
        }
        for (var e = 0u; e < WIDTH; e++) {
            let p = named[e];
            if (p >= begin && t == (p - begin) % ITEMS) {
                {%- for q in range(PARTS) %}
                let part_{{ q }} = moved[(WIDTH + e) * {{ PARTS }}u + {{ q }}u];
                {%- endfor %}
                let slot = (p - begin) / ITEMS;
                {%- for chunk in range(CHUNKS) %}
                if (slot / {{ CHUNK }}u == {{ chunk }}u) {
                    {%- for r in range(chunk * CHUNK, [(chunk + 1) * CHUNK, ROWS] | min) %}
                    {%- for c in range(WIDTH) %}
                    x_{{ r }}_{{ c }} = select(x_{{ r }}_{{ c }}, part_{{ c // V }}[{{ c % V }}], slot == {{ r }}u);
                    {%- endfor %}
                    {%- endfor %}
                }
                {%- endfor %}
            }
        }
        // U of strip s - 1, a vector of columns for each invocation
        if (t < {{ PARTS }}u) {
            {%- for k in range(WIDTH) %}
            var u_{{ k }} = moved[{{ k * PARTS }}u + t];
            {%- endfor %}
            {%- for k in range(WIDTH) %}
            {%- for i in range(k + 1, WIDTH) %}
            u_{{ i }} -= lower[{{ i * PARTS + k // V }}u][{{ k % V }}] * u_{{ k }};
            {%- endfor %}
            upper[{{ k * PARTS }}u + t] = u_{{ k }};
            {{ strips }}[row_at(strip, done + {{ k }}u) + t] = u_{{ k }};
            {%- endfor %}
        }
        workgroupBarrier();
        {%- for q in range(PARTS) %}
        {%- for k in range(q * V, (q + 1) * V) %}
        {%- for p in range(PARTS) %}
        let u_{{ k }}_{{ p }} = upper[{{ k * PARTS + p }}u];
        {%- endfor %}
        {%- endfor %}
        {%- for r in range(ROWS) %}
        let l_{{ r }}_{{ q }} = {{ strips }}[row_at(s - 1u, i_{{ r }}) + {{ q }}u];
        {%- for k in range(V) %}
        {%- for c in range(WIDTH) %}
        x_{{ r }}_{{ c }} = fma(-l_{{ r }}_{{ q }}[{{ k }}], u_{{ q * V + k }}_{{ c // V }}[{{ c % V }}], x_{{ r }}_{{ c }});
        {%- endfor %}
        {%- endfor %}
        {%- endfor %}
        {%- endfor %}
    }

    if (strip > s) {
        {{- keep("begin") }}
        return;
    }
    {%- for r in range(ROWS) %}
    {%- for c in range(WIDTH) %}
    x_{{ r }}_{{ c }} = select(real(), x_{{ r }}_{{ c }}, i_{{ r }} >= begin);
    {%- endfor %}
    {%- endfor %}
    // the next columns are the first in registers; others follow, then those that are done
    for (var c = 0u; c < WIDTH; c += {{ NEXT }}u) {
        {%- for e in range(NEXT) %}
        {
            let j = begin + c + {{ e }}u;
            // the first of the largest; a NaN is none
            {%- for q in range(RUNS) %}
            var best_{{ q }} = real();
            var slot_{{ q }} = 0u;
            {%- for r in range(q * RUN, [(q + 1) * RUN, ROWS] | min) %}
            slot_{{ q }} = select(slot_{{ q }}, {{ r }}u, abs(x_{{ r }}_{{ e }}) > best_{{ q }});
            best_{{ q }} = select(best_{{ q }}, abs(x_{{ r }}_{{ e }}), abs(x_{{ r }}_{{ e }}) > best_{{ q }});
            {%- endfor %}
            {%- endfor %}
            {%- for q in range(1, RUNS) %}
            slot_0 = select(slot_0, slot_{{ q }}, best_{{ q }} > best_0);
            best_0 = select(best_0, best_{{ q }}, best_{{ q }} > best_0);
            {%- endfor %}
            candidates[t] = Candidate(best_0, begin + t + slot_0 * ITEMS);
            if (t == c + {{ e }}u) {
                {%- for k in range(WIDTH) %}
                diagonal[{{ k }}] = x_0_{{ k }};
                x_0_{{ k }} = real();
                {%- endfor %}
            }
            workgroupBarrier();
            if (t < LINES) {
                // neighbours read neighbours
                {%- for q in range(LINE) %}
                var next_{{ q }} = candidates[t + {{ q * LINES }}u];
                {%- endfor %}
                {{- largest("next", LINE) }}
                best_of_line[t] = next_0;
            }
            workgroupBarrier();
            {%- for q in range(LINES) %}
            var line_{{ q }} = best_of_line[{{ q }}];
            {%- endfor %}
            {{- largest("line", LINES) }}
            let p = select(j, line_0.row, args.pivoting != 0u && line_0.magnitude > abs(diagonal[{{ e }}]));
            if (p == j) {
                if (t < WIDTH) { pivots[t] = diagonal[t]; }
            } else if (t == (p - begin) % ITEMS) {
                let slot = (p - begin) / ITEMS;
                {%- for k in range(WIDTH) %}
                let below_{{ k }} = diagonal[{{ k }}];
                var row_{{ k }} = real();
                {%- endfor %}
                {%- for chunk in range(CHUNKS) %}
                if (slot / {{ CHUNK }}u == {{ chunk }}u) {
                    {%- for r in range(chunk * CHUNK, [(chunk + 1) * CHUNK, ROWS] | min) %}
                    {%- for k in range(WIDTH) %}
                    row_{{ k }} = select(row_{{ k }}, x_{{ r }}_{{ k }}, slot == {{ r }}u);
                    x_{{ r }}_{{ k }} = select(x_{{ r }}_{{ k }}, below_{{ k }}, slot == {{ r }}u);
                    {%- endfor %}
                    {%- endfor %}
                }
                {%- endfor %}
                {%- for k in range(WIDTH) %}
                pivots[{{ k }}] = row_{{ k }};
                {%- endfor %}
            }
            workgroupBarrier();
            let pivot = pivots[{{ e }}];
            {%- for k in range(e + 1, WIDTH) %}
            let u_{{ k }} = pivots[{{ k }}];
            {%- endfor %}
            if (t < {{ PARTS }}u) {
                {{ strips }}[row_at(strip, j) + t] = vec(
                    {%- for q in range(V) %}pivots[(t * {{ V }}u + {{ q }}u + WIDTH - c) % WIDTH], {% endfor -%}
                );
            }
            if (t == 0u && j < args.n) {
                {{ ipiv }}[args.ipiv_at + j] = i32(args.first + p);
                if (pivot == real() && {{ info }}[args.info_at] == 0) {
                    {{ info }}[args.info_at] = i32(args.first + j + 1u);
                }
            }
            if (abs(pivot) >= MIN_POSITIVE) {
                let factor = real(1) / pivot;
                {%- for r in range(ROWS) %}
                x_{{ r }}_{{ e }} *= factor;
                {%- endfor %}
            } else if (!(pivot == real())) {
                {%- for r in range(ROWS) %}
                x_{{ r }}_{{ e }} /= pivot;
                {%- endfor %}
            }
            {%- for r in range(ROWS) %}
            {%- for k in range(e + 1, NEXT) %}
            x_{{ r }}_{{ k }} = fma(-x_{{ r }}_{{ e }}, u_{{ k }}, x_{{ r }}_{{ k }});
            {%- endfor %}
            {%- for k in range(NEXT, WIDTH) %}
            x_{{ r }}_{{ k }} = select(x_{{ r }}_{{ k }}, fma(-x_{{ r }}_{{ e }}, u_{{ k }}, x_{{ r }}_{{ k }}), c + {{ k }}u < WIDTH);
            {%- endfor %}
            {%- endfor %}
        }
        {%- endfor %}
        {%- if NEXT < WIDTH %}
        {%- for r in range(ROWS) %}
        {%- for k in range(NEXT) %}
        let done_{{ r }}_{{ k }} = x_{{ r }}_{{ k }};
        {%- endfor %}
        {%- for k in range(WIDTH - NEXT) %}
        x_{{ r }}_{{ k }} = x_{{ r }}_{{ k + NEXT }};
        {%- endfor %}
        {%- for k in range(NEXT) %}
        x_{{ r }}_{{ WIDTH - NEXT + k }} = done_{{ r }}_{{ k }};
        {%- endfor %}
        {%- endfor %}
        {%- endif %}
    }
    {{- keep("begin + WIDTH") }}
}
{% endif %}
