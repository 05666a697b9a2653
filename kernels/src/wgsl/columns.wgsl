// One step of the factorisation A = P·L·U of a panel of at most WIDTH columns by many workgroups. LANES invocations share a row.
// Step s eliminates column s - 1 and searches column s for the pivot. A panel of n columns takes n + 1 steps. The kernel
// chooses pivots by the rules in the comment of `getrf_panel`.
//
// The workgroups exchange pivot candidates through records in `notes`. The record of a workgroup contains the magnitude, the row
// number and the row of the workgroup's best candidate. An additional record contains the row on the diagonal. `notes` contains
// two sets of records: each step reads one set and writes the other.
{%- set ROWS = ITEMS // LANES %}
{%- set HELD = WIDTH // LANES %}
{%- set LINE = [16, ROWS] | min %}
const ROWS = {{ ROWS }}u;
const NOTE = WIDTH + 2u;
const LINE = {{ LINE }}u;
var<workgroup> magnitude: array<real, ITEMS>;
var<workgroup> place: array<u32, ITEMS>;
var<workgroup> most_of_line: array<real, {{ ITEMS // LINE }}>;
var<workgroup> best_of_line: array<u32, {{ ITEMS // LINE }}>;
// column s - 1 in the rows of this workgroup
var<workgroup> eliminated: array<real, {{ ROWS }}>;

fn element(i: u32, j: u32) -> u32 { return args.a_at + i + j * args.a_ld; }

fn groups() -> u32 { return (args.m + ROWS - 1u) / ROWS; }

// Returns the index of the first element in the record that a workgroup writes in a step.
fn note(step: u32, group: u32) -> u32 { return ((step % 2u) * (groups() + 1u) + group) * NOTE; }

{#- Finds the first of the largest magnitudes in `lines` lines: first the best candidate of each line, then the best of all lines. -#}
{%- macro first_largest(best, lines) %}
    workgroupBarrier();
    if (t < {{ lines }}u) {
        var e = t * LINE;
        var most = magnitude[e];
        {%- for q in range(1, LINE) %}
        let next_{{ q }} = magnitude[t * LINE + {{ q }}u];
        {%- endfor %}
        {%- for q in range(1, LINE) %}
        if (next_{{ q }} > most) { most = next_{{ q }}; e = t * LINE + {{ q }}u; }
        {%- endfor %}
        best_of_line[t] = e;
        most_of_line[t] = most;
    }
    workgroupBarrier();
    var {{ best }} = best_of_line[0];
    {%- if lines > 1 %}
    {
        var most = most_of_line[0];
        {%- for q in range(1, lines) %}
        if (most_of_line[{{ q }}] > most) { most = most_of_line[{{ q }}]; {{ best }} = best_of_line[{{ q }}]; }
        {%- endfor %}
    }
    {%- endif %}
{%- endmacro %}
@compute @workgroup_size(ITEMS)
fn getrf_column(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let row = t % ROWS;
    let lane = t / ROWS;
    let i = group.x * ROWS + row;
    let s = args.step;
    // elements of row i in the columns lane, lane + LANES, ...
    {%- for q in range(HELD) %}
    let j_{{ q }} = lane + {{ q * LANES }}u;
    var x_{{ q }} = real();
    if (i < args.m && j_{{ q }} < args.n) { x_{{ q }} = {{ a }}[element(i, j_{{ q }})]; }
    {%- endfor %}

    if (s > 0u) {
        let c = s - 1u;
        // each invocation compares the candidates of consecutive workgroups, so that the first of equal magnitudes wins
        let each = (groups() + ITEMS - 1u) / ITEMS;
        let diagonal = note(c, groups()) + 2u;
        let on_diagonal = {{ notes }}[diagonal + c];
        var most = real(-1);
        var best = 0u;
        for (var g = t * each; g < min(t * each + each, groups()); g++) {
            let here = {{ notes }}[note(c, g)];
            let row_of_group = u32({{ notes }}[note(c, g) + 1u]);
            if (here > most) {
                most = here;
                best = g * ROWS + row_of_group;
            }
        }
        magnitude[t] = most;
        place[t] = best;
        {%- for q in range(HELD) %}
        if (j_{{ q }} == c) { eliminated[row] = x_{{ q }}; }
        {%- endfor %}
        {{- first_largest("leader", ITEMS // LINE) }}
        let better = magnitude[leader] > abs(on_diagonal);
        let p = select(c, place[leader], better);
        let pivots = select(diagonal, note(c, p / ROWS) + 2u, better);
        let pivot = {{ notes }}[pivots + c];
        {%- for q in range(HELD) %}
        let upper_{{ q }} = {{ notes }}[pivots + j_{{ q }}];
        {%- endfor %}
        if (group.x == 0u && t == 0u) {
            {{ ipiv }}[args.ipiv_at + c] = i32(args.first + p);
            if (pivot == real() && {{ info }}[args.info_at] == 0) {
                {{ info }}[args.info_at] = i32(args.first + c + 1u);
            }
        }
        var l = eliminated[row];
        if (i == p && better) {
            l = on_diagonal;
            {%- for q in range(HELD) %}
            x_{{ q }} = {{ notes }}[diagonal + j_{{ q }}];
            {%- endfor %}
        }
        if (!(pivot == real())) {
            if (abs(pivot) >= MIN_POSITIVE) { l = l * (real(1) / pivot); } else { l = l / pivot; }
        }
        // left of column c, only the two exchanged rows change
        let changes_from = select(c, 0u, better && (i == p || i == c));
        {%- for q in range(HELD) %}
        if (i < args.m && i >= c && j_{{ q }} < args.n && j_{{ q }} >= changes_from) {
            if (i == c) {
                x_{{ q }} = upper_{{ q }};
            } else if (j_{{ q }} == c) {
                x_{{ q }} = l;
            } else if (j_{{ q }} > c) {
                x_{{ q }} -= l * upper_{{ q }};
            }
            {{ a }}[element(i, j_{{ q }})] = x_{{ q }};
        }
        {%- endfor %}
    }

    if (s < args.n) {
        workgroupBarrier();
        {%- for q in range(HELD) %}
        if (j_{{ q }} == s) {
            // a NaN is not a pivot candidate
            magnitude[row] = select(real(-1), abs(x_{{ q }}), args.pivoting != 0u && i >= s && i < args.m && abs(x_{{ q }}) >= real());
        }
        {%- endfor %}
        {{- first_largest("leader", ROWS // LINE) }}
        let own = note(s, group.x);
        if (t == 0u) {
            {{ notes }}[own] = magnitude[leader];
            {{ notes }}[own + 1u] = real(leader);
        }
        if (row == leader) {
            {%- for q in range(HELD) %}
            {{ notes }}[own + 2u + j_{{ q }}] = x_{{ q }};
            {%- endfor %}
        }
        if (i == s) {
            {%- for q in range(HELD) %}
            {{ notes }}[note(s, groups()) + 2u + j_{{ q }}] = x_{{ q }};
            {%- endfor %}
        }
    }
}
