// LU factorisation A = P·L·U of a panel by strips of WIDTH columns. During the factorisation, the columns of the strips lie one
// after the other in scratch memory. Each column has HEIGHT rows, in vectors of V rows. Rows and columns of a strip beyond the
// panel are zero.
{%- set PARTS = WIDTH // V %}
{%- set SLOTS = ROWS // V %}
const HEIGHT = {{ ITEMS * ROWS }}u;

// Returns the index of the vector that holds row i of a column.
fn at(column: u32, i: u32) -> u32 { return (column * HEIGHT + i) / {{ V }}u; }
{% if kernel == "enter_strips" %}
// Copies the panel to its strips. Each invocation copies a vector of rows in {{ PARTS }} columns.
@compute @workgroup_size(ITEMS)
fn enter_strips(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x * {{ V }}u % HEIGHT;
    let first = id.y * WIDTH + id.x * {{ V }}u / HEIGHT * {{ PARTS }}u;
    for (var j = first; j < first + {{ PARTS }}u; j++) {
        var x = vec();
        {%- for v in range(V) %}
        if (i + {{ v }}u < args.m && j < args.n) { x[{{ v }}] = {{ a }}[args.a_at + i + {{ v }}u + j * args.a_ld]; }
        {%- endfor %}
        {{ strips }}[at(j, i)] = x;
    }
}
{% elif kernel == "leave_strips" %}
// Copies the strips back to their panel. Each invocation copies one row of TOGETHER strips.
@compute @workgroup_size(ITEMS)
fn leave_strips(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= args.m) { return; }
    // the row that the exchanges of later strips bring to row i
    var came = i;
    let first = id.y * (TOGETHER * WIDTH);
    for (var end = args.n; end > first; end = (end - 1u) / WIDTH * WIDTH) {
        let begin = (end - 1u) / WIDTH * WIDTH;
        if (begin < first + TOGETHER * WIDTH) {
            for (var j = begin; j < end; j++) {
                {{ a }}[args.a_at + i + j * args.a_ld] = {{ strips }}[at(j, came)][came % {{ V }}u];
            }
        }
        for (var j = end; j > begin; j--) {
            let p = u32({{ ipiv }}[args.ipiv_at + j - 1u]) - args.first;
            came = select(select(came, j - 1u, came == p), p, came == j - 1u);
        }
    }
}
{% else %}
{%- set CHAIN = kernel == "getrf_strips" %}
{%- if CHAIN %}
// One launch of the kernel factors all strips. A workgroup takes the next strip when the workgroup begins. The workgroup
// eliminates each earlier strip from the strip that it has taken, as soon as the earlier strip is factored. The counter turns[0]
// counts the strips that workgroups have taken, and turns[1] counts the strips that workgroups have factored. A workgroup waits
// only for workgroups that began before it.
{%- else %}
// One launch of the kernel is one step of the factorisation. Step s applies the row exchanges of strip s - 1 to the strips on the
// right, and eliminates the columns of strip s - 1 from these strips. Then the workgroup that has strip s factors this strip.
{%- endif %}
// The kernel chooses pivots by the rules in the comment of `getrf_panel`. An invocation holds ROWS rows of its workgroup's strip in
// registers. Each slot holds V neighbouring rows: the rows from begin + i * V on are in slot i / ITEMS of invocation i % ITEMS.
// The first invocations hold the rows of the strip on the diagonal. The last slots hold the finished rows, which lie above row
// `begin`.
//
// While a strip is factored, the registers of finished rows and of rows beyond the panel hold zero, or NaN if U contains a NaN or
// an infinity. Finished rows and rows beyond the panel are never chosen as pivot row, because neither zero nor NaN is larger than
// any magnitude on the diagonal. During the elimination, finished rows are computed like other rows, but not stored. Columns that
// the panel lacks hold zero or NaN, are computed like other columns, and are not copied to the panel.
//
// the largest magnitude of each invocation, and of each line of invocations
var<workgroup> magnitudes: array<real, ITEMS>;
var<workgroup> most_of_line: array<real, LINES>;
// the first place that has the largest magnitude of all
var<workgroup> best: atomic<u32>;
// the row on the diagonal, and the pivot row
var<workgroup> diagonal: array<real, WIDTH>;
var<workgroup> pivots: array<real, WIDTH>;
// `held` holds the rows of strip e on the diagonal and their exchange partners, as before the exchanges, in this strip's columns.
// `comes` holds, for each row in `held`, the index of the row that the exchanges bring to its position.
var<workgroup> held: array<vec, {{ 2 * WIDTH * PARTS }}>;
var<workgroup> comes: array<u32, {{ 2 * WIDTH }}>;
// `lower` holds the rows of L on the diagonal of strip e, and `upper` holds the same rows of U in the columns of this strip.
// After the loop over e, `upper` holds the rows of U on the diagonal of this strip.
var<workgroup> lower: array<vec, {{ WIDTH * PARTS }}>;
var<workgroup> upper: array<vec, {{ WIDTH * PARTS }}>;
{%- if CHAIN %}
var<workgroup> ticket: u32;
{%- endif %}

// Returns y if y is larger than x, and x otherwise, even if x or y is a NaN.
fn larger(x: real, y: real) -> real { return select(x, y, y > x); }

// Returns the place of row i among the rows that a workgroup holds. Places count from row `begin`, the first row that is not
// finished.
fn place_of(i: u32, begin: u32) -> u32 { return select(i + HEIGHT - begin, i - begin, i >= begin); }

// Return the invocation that holds a place, and the number of the place among the rows of this invocation.
fn item_of(place: u32) -> u32 { return place / {{ V }}u % ITEMS; }
fn slot_of(place: u32) -> u32 { return place / {{ V * ITEMS }}u * {{ V }}u + place % {{ V }}u; }
{#- Computes the largest of the candidates x_0, x_1, ... in x_0. The number of candidates is a power of two. -#}
{%- macro largest(x, number) %}
    {%- for half in halves(number) %}
    {%- for q in range(half) %}
    {{ x }}_{{ q }} = larger({{ x }}_{{ q }}, {{ x }}_{{ q + half }});
    {%- endfor %}
    {%- endfor %}
{%- endmacro %}
{#- Number of runs of rows. The runs are searched independently, so that a comparison in one run need not wait for another run. -#}
{%- set RUNS = 4 %}
{%- set RUN = ROWS // RUNS %}
{#- Number of rows for which one chain of conditions selects the code. -#}
{%- set CHUNK = 4 %}
{%- set CHUNKS = ROWS // CHUNK %}
{#- Number of columns over which the loop is unrolled. With more columns, the code would no longer fit the instruction caches. -#}
{%- set NEXT = WIDTH if WIDTH <= 4 else 1 %}
{#- Sets p to the row with which strip e exchanged row q on the diagonal. -#}
{%- macro partner() %}
            var p = p_0;
            {%- for q in range(1, WIDTH) %}
            p = select(p, p_{{ q }}, q == {{ q }}u);
            {%- endfor %}
{%- endmacro %}
{#- Runs the operation `what` on the chunk of rows that contains `slot`, which nested conditions find by halving. -#}
{%- macro chunks(first, end, what) %}
    {%- if end - first == 1 %}
        {%- for r in range(first * CHUNK, end * CHUNK) %}
        {%- for c in range(WIDTH) %}
        {%- if what != "put" %}
        row_{{ c }} = select(row_{{ c }}, x_{{ r }}_{{ c }}, slot == {{ r }}u);
        {%- endif %}
        {%- if what != "take" %}
        x_{{ r }}_{{ c }} = select(x_{{ r }}_{{ c }}, new_{{ c }}, slot == {{ r }}u);
        {%- endif %}
        {%- endfor %}
        {%- endfor %}
    {%- else %}
        {%- set middle = (first + end) // 2 %}
        if (slot < {{ middle * CHUNK }}u) {
            {{- chunks(first, middle, what) }}
        } else {
            {{- chunks(middle, end, what) }}
        }
    {%- endif %}
{%- endmacro %}
{#- Copies the row in a slot to row_0, row_1, ... -#}
{%- macro take(slot) %}
            let slot = {{ slot }};
            {%- for c in range(WIDTH) %}
            var row_{{ c }} = real();
            {%- endfor %}
            {{- chunks(0, CHUNKS, "take") }}
{%- endmacro %}
{#- Vector number `part` of the row that `take` has copied. -#}
{%- macro row_part(part) %}vec({% for c in range(part * V, (part + 1) * V) %}row_{{ c }}, {% endfor %}){% endmacro %}
{#- Stores column c of the registers in slot r to column `column` of the strips. -#}
{%- macro store(column, r, c) %}
    {{- strips }}[at({{ column }}, i_{{ r }})] = vec({% for v in range(V) %}x_{{ r * V + v }}_{{ c }}, {% endfor %});
{%- endmacro %}
{#- Stores the rows u_0, u_1, ... on the diagonal from row `first` on. Each invocation stores one vector of columns. -#}
{%- macro store_upper(first) %}
            {%- for v in range(V) %}
            {%- for part in range(PARTS) %}
            {{ strips }}[at(strip * WIDTH + t * {{ V }}u + {{ v }}u, {{ first }} + {{ part * V }}u)] = vec(
                {%- for k in range(part * V, (part + 1) * V) %}u_{{ k }}[{{ v }}], {% endfor -%}
            );
            {%- endfor %}
            {%- endfor %}
{%- endmacro %}

@compute @workgroup_size(ITEMS)
fn {{ kernel }}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    {%- if CHAIN %}
    if (t == 0u) { ticket = atomicAdd(&{{ turns }}[0], 1u); }
    let strip = workgroupUniformLoad(&ticket);
    let s = strip;
    {%- else %}
    let s = args.step;
    let strip = s + group.x;
    {%- endif %}
    // the first row that is not finished when strip s is factored
    let begin = s * WIDTH;
    {%- for r in range(SLOTS) %}
    let i_{{ r }} = (begin + (t + {{ r }}u * ITEMS) * {{ V }}u) % HEIGHT;
    {%- for c in range(WIDTH) %}
    let part_{{ r }}_{{ c }} = {{ strips }}[at(strip * WIDTH + {{ c }}u, i_{{ r }})];
    {%- for v in range(V) %}
    var x_{{ r * V + v }}_{{ c }} = part_{{ r }}_{{ c }}[{{ v }}];
    {%- endfor %}
    {%- endfor %}
    {%- endfor %}

    for (var e = {% if CHAIN %}0u{% else %}max(s, 1u) - 1u{% endif %}; e < s; e++) {
        {%- if CHAIN %}
        if (t == 0u) {
            loop { if (atomicLoad(&{{ turns }}[1]) > e) { break; } }
        }
        storageBarrier();
        {%- endif %}
        let done = e * WIDTH;
        // p_q is the row with which strip e exchanged row q on the diagonal, and bit q of `own` says whether this invocation
        // holds the row
        {%- for q in range(WIDTH) %}
        let p_{{ q }} = u32({{ ipiv }}[args.ipiv_at + done + {{ q }}u]) - args.first;
        {%- endfor %}
        var own = 0u;
        {%- for q in range(WIDTH) %}
        own |= select(0u, {{ 2 ** q }}u, t == item_of(place_of(p_{{ q }}, begin)));
        {%- endfor %}
        if (t < WIDTH) {
            {%- for part in range(PARTS) %}
            lower[t * {{ PARTS }}u + {{ part }}u] = vec(
                {%- for c in range(part * V, (part + 1) * V) %}{{ strips }}[at(done + {{ c }}u, done + t)][t % {{ V }}u], {% endfor -%}
            );
            {%- endfor %}
        }
        // the rows of strip e on the diagonal are in one slot of neighbouring invocations
        let place = place_of(done, begin);
        let k = (t - item_of(place)) * {{ V }}u;
        if (k < WIDTH) {
            for (var v = 0u; v < {{ V }}u; v++) {
                {{- take("slot_of(place) + v") }}
                {%- for part in range(PARTS) %}
                held[(k + v) * {{ PARTS }}u + {{ part }}u] = {{ row_part(part) }};
                {%- endfor %}
            }
        }
        for (var left = own; left != 0u; left &= left - 1u) {
            let q = firstTrailingBit(left);
            {{- partner() }}
            {{- take("slot_of(place_of(p, begin))") }}
            {%- for part in range(PARTS) %}
            held[(WIDTH + q) * {{ PARTS }}u + {{ part }}u] = {{ row_part(part) }};
            {%- endfor %}
        }
        if (t < {{ 2 * WIDTH }}u) {
            let q = t % WIDTH;
            {{- partner() }}
            var came = select(p, done + t, t < WIDTH);
            {%- for q in range(WIDTH - 1, -1, -1) %}
            came = select(select(came, done + {{ q }}u, came == p_{{ q }}), p_{{ q }}, came == done + {{ q }}u);
            {%- endfor %}
            var kept = came - done;
            {%- for q in range(WIDTH) %}
            kept = select(kept, {{ WIDTH + q }}u, came == p_{{ q }});
            {%- endfor %}
            comes[t] = kept;
        }
        workgroupBarrier();
        for (var left = own; left != 0u; left &= left - 1u) {
            let q = firstTrailingBit(left);
            {{- partner() }}
            {%- for c in range(WIDTH) %}
            let new_{{ c }} = held[comes[WIDTH + q] * {{ PARTS }}u + {{ c // V }}u][{{ c % V }}];
            {%- endfor %}
            let slot = slot_of(place_of(p, begin));
            {{- chunks(0, CHUNKS, "put") }}
        }
        // U in the rows of strip e: each invocation computes one vector of columns
        if (t < {{ PARTS }}u) {
            {%- for k in range(WIDTH) %}
            var u_{{ k }} = held[comes[{{ k }}] * {{ PARTS }}u + t];
            {%- endfor %}
            {%- for k in range(WIDTH) %}
            {%- for i in range(k + 1, WIDTH) %}
            u_{{ i }} = fma(vec(-lower[{{ i * PARTS + k // V }}u][{{ k % V }}]), u_{{ k }}, u_{{ i }});
            {%- endfor %}
            upper[{{ k * PARTS }}u + t] = u_{{ k }};
            {%- endfor %}
            {{- store_upper("done") }}
        }
        workgroupBarrier();
        {%- for k in range(WIDTH) %}
        {%- for p in range(PARTS) %}
        let u_{{ k }}_{{ p }} = upper[{{ k * PARTS + p }}u];
        {%- endfor %}
        {%- for r in range(SLOTS) %}
        let l_{{ k }}_{{ r }} = {{ strips }}[at(done + {{ k }}u, i_{{ r }})];
        {%- for v in range(V) %}
        {%- for c in range(WIDTH) %}
        x_{{ r * V + v }}_{{ c }} = fma(-l_{{ k }}_{{ r }}[{{ v }}], u_{{ k }}_{{ c // V }}[{{ c % V }}], x_{{ r * V + v }}_{{ c }});
        {%- endfor %}
        {%- endfor %}
        {%- endfor %}
        {%- endfor %}
    }
    {%- if not CHAIN %}

    if (strip > s) {
        {%- for r in range(SLOTS) %}
        if (i_{{ r }} >= begin) {
            {%- for c in range(WIDTH) %}
            {{ store("strip * WIDTH + " ~ c ~ "u", r, c) }}
            {%- endfor %}
        }
        {%- endfor %}
        return;
    }
    {%- endif %}
    {%- for r in range(ROWS) %}
    {%- for c in range(WIDTH) %}
    x_{{ r }}_{{ c }} = select(real(), x_{{ r }}_{{ c }}, i_{{ r // V }} >= begin);
    {%- endfor %}
    {%- endfor %}
    // bit set of the slots in which a row was exchanged after columns of the row had been stored
    var exchanged = 0u;
    // the first registers hold the next columns to factor, then come later columns, then finished columns
    for (var c = 0u; c < WIDTH; c += {{ NEXT }}u) {
        {%- for e in range(NEXT) %}
        {
            let row = c + {{ e }}u;
            let j = begin + row;
            // finds the first row with the largest magnitude, where neither a NaN nor zero is chosen
            {%- for q in range(RUNS) %}
            var best_{{ q }} = real();
            var slot_{{ q }} = 0u;
            {%- for r in range(q * RUN, (q + 1) * RUN) %}
            slot_{{ q }} = select(slot_{{ q }}, {{ r }}u, abs(x_{{ r }}_{{ e }}) > best_{{ q }});
            best_{{ q }} = select(best_{{ q }}, abs(x_{{ r }}_{{ e }}), abs(x_{{ r }}_{{ e }}) > best_{{ q }});
            {%- endfor %}
            {%- endfor %}
            {%- for q in range(1, RUNS) %}
            slot_0 = select(slot_0, slot_{{ q }}, best_{{ q }} > best_0);
            best_0 = select(best_0, best_{{ q }}, best_{{ q }} > best_0);
            {%- endfor %}
            magnitudes[t] = best_0;
            if (t == row / {{ V }}u) {
                {%- for k in range(WIDTH) %}
                var below_{{ k }} = real();
                {%- for v in range(V) %}
                below_{{ k }} = select(below_{{ k }}, x_{{ v }}_{{ k }}, row % {{ V }}u == {{ v }}u);
                x_{{ v }}_{{ k }} = select(x_{{ v }}_{{ k }}, real(), row % {{ V }}u == {{ v }}u);
                {%- endfor %}
                diagonal[{{ k }}] = below_{{ k }};
                {%- endfor %}
            }
            workgroupBarrier();
            if (t < LINES) {
                // neighbouring invocations read neighbouring elements
                {%- for q in range(LINE) %}
                var next_{{ q }} = magnitudes[t + {{ q * LINES }}u];
                {%- endfor %}
                {{- largest("next", LINE) }}
                most_of_line[t] = next_0;
                if (t == 0u) { atomicStore(&best, HEIGHT); }
            }
            workgroupBarrier();
            {%- for q in range(LINES) %}
            var line_{{ q }} = most_of_line[{{ q }}];
            {%- endfor %}
            {{- largest("line", LINES) }}
            let exchanges = args.pivoting != 0u && line_0 > abs(diagonal[{{ e }}]);
            if (exchanges && best_0 == line_0) {
                atomicMin(&best, (t + slot_0 / {{ V }}u * ITEMS) * {{ V }}u + slot_0 % {{ V }}u);
            }
            workgroupBarrier();
            let p = select(j, begin + atomicLoad(&best), exchanges);
            if (p == j) {
                if (t < WIDTH) { pivots[t] = diagonal[t]; }
            } else if (t == item_of(p - begin)) {
                let slot = slot_of(p - begin);
                {%- for k in range(WIDTH) %}
                let new_{{ k }} = diagonal[{{ k }}];
                var row_{{ k }} = real();
                {%- endfor %}
                {{- chunks(0, CHUNKS, "exchange") }}
                {%- for k in range(WIDTH) %}
                pivots[{{ k }}] = row_{{ k }};
                {%- endfor %}
                exchanged |= select(0u, 1u << (slot / {{ V }}u), row > 0u);
            }
            workgroupBarrier();
            let pivot = pivots[{{ e }}];
            {%- for k in range(e + 1, WIDTH) %}
            let u_{{ k }} = pivots[{{ k }}];
            {%- endfor %}
            if (t < {{ PARTS }}u) {
                upper[row * {{ PARTS }}u + t] = vec(
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
            {%- for r in range(SLOTS) %}
            if (i_{{ r }} >= begin + WIDTH) { {{ store("j", r, e) }} }
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
    if (exchanged != 0u) {
        {%- for r in range(SLOTS) %}
        if ((exchanged & {{ 2 ** r }}u) != 0u && i_{{ r }} >= begin + WIDTH) {
            {%- for c in range(WIDTH) %}
            {{ store("begin + " ~ c ~ "u", r, c) }}
            {%- endfor %}
        }
        {%- endfor %}
    }
    if (t < {{ PARTS }}u) {
        {%- for k in range(WIDTH) %}
        let u_{{ k }} = upper[{{ k * PARTS }}u + t];
        {%- endfor %}
        {{- store_upper("begin") }}
    }
    {%- if CHAIN %}
    storageBarrier();
    if (t == 0u) {
        // no workgroup waits for the last strip, so that the counters can be reset for the next launch
        let last = begin + WIDTH >= args.n;
        if (last) { atomicStore(&{{ turns }}[0], 0u); }
        atomicStore(&{{ turns }}[1], select(strip + 1u, 0u, last));
    }
    {%- endif %}
}
{% endif %}
