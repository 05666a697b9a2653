// One step of A = P·L·U of a panel of at most WIDTH columns by many workgroups, LANES
// invocations for a row. Step s eliminates column s - 1, and looks for the pivot of
// column s; there are n + 1 steps. Rules as in `getrf_panel`.
//
// What a step must know of all rows stands in notes: for each workgroup the best pivot
// among its rows (magnitude, place) and the row that holds it, and at the end the row on
// the diagonal. There are two sets of notes: one is read while the other is written.
{%- set ROWS = ITEMS // LANES %}
{%- set HELD = WIDTH // LANES %}
const ROWS = {{ ROWS }}u;
const NOTE = WIDTH + 2u;
var<workgroup> magnitude: array<real, ITEMS>;
var<workgroup> place: array<u32, ITEMS>;
// column s - 1 of the workgroup's rows
var<workgroup> eliminated: array<real, {{ ROWS }}>;

fn element(i: u32, j: u32) -> u32 { return args.a_at + i + j * args.a_ld; }

fn groups() -> u32 { return (args.m + ROWS - 1u) / ROWS; }

// Where the note of a workgroup begins that it wrote in that step.
fn note(step: u32, group: u32) -> u32 { return ((step % 2u) * (groups() + 1u) + group) * NOTE; }

// Brings the largest of `count` magnitudes to the front, the first of equal ones.
fn first_largest(t: u32, count: u32) {
    for (var half = count / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (t < half) {
            let other = magnitude[t + half];
            if (other > magnitude[t] || (other == magnitude[t] && place[t + half] < place[t])) {
                magnitude[t] = other;
                place[t] = place[t + half];
            }
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(ITEMS)
fn getrf_column(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let row = t % ROWS;
    let lane = t / ROWS;
    let i = group.x * ROWS + row;
    let s = args.step;
    // columns lane, lane + LANES, ... of row i
    {%- for q in range(HELD) %}
    let j_{{ q }} = lane + {{ q * LANES }}u;
    var x_{{ q }} = real();
    if (i < args.m && j_{{ q }} < args.n) { x_{{ q }} = {{ a }}[element(i, j_{{ q }})]; }
    {%- endfor %}

    if (s > 0u) {
        let c = s - 1u;
        {%- for q in range(HELD) %}
        if (j_{{ q }} == c) { eliminated[row] = x_{{ q }}; }
        {%- endfor %}
        magnitude[t] = real(-1);
        place[t] = 0u;
        for (var g = t; g < groups(); g += ITEMS) {
            let here = {{ notes }}[note(c, g)];
            if (here > magnitude[t]) {
                magnitude[t] = here;
                place[t] = g * ROWS + u32({{ notes }}[note(c, g) + 1u]);
            }
        }
        first_largest(t, ITEMS);
        let diagonal = note(c, groups()) + 2u;
        let better = magnitude[0] > abs({{ notes }}[diagonal + c]);
        let p = select(c, place[0], better);
        let pivots = select(diagonal, note(c, p / ROWS) + 2u, better);
        let pivot = {{ notes }}[pivots + c];
        if (group.x == 0u && t == 0u) {
            {{ ipiv }}[args.ipiv_at + c] = i32(args.first + p);
            if (pivot == real() && {{ info }}[args.info_at] == 0) {
                {{ info }}[args.info_at] = i32(args.first + c + 1u);
            }
        }
        var l = eliminated[row];
        if (i == p && better) {
            l = {{ notes }}[diagonal + c];
            {%- for q in range(HELD) %}
            x_{{ q }} = {{ notes }}[diagonal + j_{{ q }}];
            {%- endfor %}
        }
        if (pivot != real()) {
            if (abs(pivot) >= MIN_POSITIVE) { l = l * (real(1) / pivot); } else { l = l / pivot; }
        }
        // only the exchanged rows change to the left of column c
        let changes_from = select(c, 0u, better && (i == p || i == c));
        {%- for q in range(HELD) %}
        if (i < args.m && i >= c && j_{{ q }} < args.n && j_{{ q }} >= changes_from) {
            let upper = {{ notes }}[pivots + j_{{ q }}];
            if (i == c) {
                x_{{ q }} = upper;
            } else if (j_{{ q }} == c) {
                x_{{ q }} = l;
            } else if (j_{{ q }} > c) {
                x_{{ q }} -= l * upper;
            }
            {{ a }}[element(i, j_{{ q }})] = x_{{ q }};
        }
        {%- endfor %}
    }

    if (s < args.n) {
        workgroupBarrier();
        {%- for q in range(HELD) %}
        if (j_{{ q }} == s) {
            // a NaN is no candidate
            magnitude[row] = select(real(-1), abs(x_{{ q }}), args.pivoting != 0u && i >= s && i < args.m && abs(x_{{ q }}) >= real());
            place[row] = i;
        }
        {%- endfor %}
        first_largest(t, ROWS);
        let own = note(s, group.x);
        if (t == 0u) {
            {{ notes }}[own] = magnitude[0];
            {{ notes }}[own + 1u] = real(place[0] % ROWS);
        }
        if (i == place[0]) {
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
