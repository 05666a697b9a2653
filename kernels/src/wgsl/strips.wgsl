// One step of A = P·L·U of a panel by strips of WIDTH columns, each held by one workgroup
// in registers: an invocation has ROWS rows. Step s makes the exchanges of strip s - 1 in
// all other strips and eliminates its columns from those to the right; the workgroup that
// has strip s factors it then. Rules as in `getrf_panel`.
//
// What is done, or lies outside of the panel, is computed along and not stored.
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
// L of strip s - 1 on the diagonal, and the rows of U beside it, both by rows of U
var<workgroup> lower: array<real, {{ WIDTH * WIDTH }}>;
var<workgroup> upper: array<real, {{ WIDTH * WIDTH }}>;

fn element(i: u32, j: u32) -> u32 { return args.a_at + i + j * args.a_ld; }

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

@compute @workgroup_size(ITEMS)
fn getrf_strip(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let s = args.step;
    // the first workgroup has strip s, and none has strip s - 1
    let strip = (s + group.x) % ((args.n + WIDTH - 1u) / WIDTH);
    let left = strip * WIDTH;
    // the columns that were factored last
    let done = (s - 1u) * WIDTH;
    {%- for r in range(ROWS) %}
    let i_{{ r }} = t + {{ r * ITEMS }}u;
    // the row that comes to this place
    var from_{{ r }} = i_{{ r }};
    {%- endfor %}
    if (s > 0u && args.pivoting != 0u) {
        let count = min(WIDTH, args.n - done);
        if (t < count) { named[t] = u32({{ ipiv }}[args.ipiv_at + done + t]) - args.first; }
        workgroupBarrier();
        var touched = false;
        for (var e = 0u; e < count; e++) { touched = touched | (t == (done + e) % ITEMS) | (t == named[e] % ITEMS); }
        if (touched) {
            for (var e = count; e > 0u; e--) {
                let i = done + e - 1u;
                let p = named[e - 1u];
                {%- for r in range(ROWS) %}
                from_{{ r }} = select(select(from_{{ r }}, i, from_{{ r }} == p), p, from_{{ r }} == i);
                {%- endfor %}
            }
        }
    }
    {%- for c in range(WIDTH) %}
    let column_{{ c }} = min(left + {{ c }}u, args.n - 1u);
    {%- for r in range(ROWS) %}
    var x_{{ r }}_{{ c }} = real();
    {%- endfor %}
    {%- endfor %}
    if (strip >= s) {
        {%- for r in range(ROWS) %}
        {%- for c in range(WIDTH) %}
        x_{{ r }}_{{ c }} = {{ a }}[element(min(from_{{ r }}, args.m - 1u), column_{{ c }})];
        {%- endfor %}
        {%- endfor %}
    } else {
        {%- for r in range(ROWS) %}
        if (from_{{ r }} != i_{{ r }}) {
            {%- for c in range(WIDTH) %}
            x_{{ r }}_{{ c }} = {{ a }}[element(from_{{ r }}, column_{{ c }})];
            {%- endfor %}
        }
        {%- endfor %}
    }

    // rows go where those of other invocations were
    workgroupBarrier();
    storageBarrier();

    if (s > 0u && strip >= s) {
        for (var e = t; e < {{ WIDTH * WIDTH }}u; e += ITEMS) {
            lower[e] = {{ a }}[element(done + e % WIDTH, done + e / WIDTH)];
        }
        {%- for r in range(ROWS) %}
        if (i_{{ r }} - done < WIDTH) {
            {%- for c in range(WIDTH) %}
            upper[(i_{{ r }} - done) * WIDTH + {{ c }}u] = x_{{ r }}_{{ c }};
            {%- endfor %}
        }
        {%- endfor %}
        workgroupBarrier();
        if (t < WIDTH) {
            {%- for k in range(WIDTH) %}
            var u_{{ k }} = upper[{{ k }}u * WIDTH + t];
            {%- endfor %}
            {%- for k in range(WIDTH) %}
            {%- for i in range(k + 1, WIDTH) %}
            u_{{ i }} -= lower[{{ i + k * WIDTH }}] * u_{{ k }};
            {%- endfor %}
            upper[{{ k }}u * WIDTH + t] = u_{{ k }};
            if (left + t < args.n) { {{ a }}[element(done + {{ k }}u, left + t)] = u_{{ k }}; }
            {%- endfor %}
        }
        workgroupBarrier();
        // the next column of L is on its way while this one is used
        {%- for r in range(ROWS) %}
        let l_at_{{ r }} = element(min(i_{{ r }}, args.m - 1u), done);
        var next_{{ r }} = {{ a }}[l_at_{{ r }}];
        {%- endfor %}
        for (var k = 0u; k < WIDTH; k++) {
            {%- for r in range(ROWS) %}
            let l_{{ r }} = next_{{ r }};
            next_{{ r }} = {{ a }}[l_at_{{ r }} + min(k + 1u, WIDTH - 1u) * args.a_ld];
            {%- endfor %}
            {%- for c in range(WIDTH) %}
            let u_{{ c }} = upper[k * WIDTH + {{ c }}u];
            {%- endfor %}
            {%- for r in range(ROWS) %}
            {%- for c in range(WIDTH) %}
            x_{{ r }}_{{ c }} -= l_{{ r }} * u_{{ c }};
            {%- endfor %}
            {%- endfor %}
        }
    }

    var begin = select(0u, done + WIDTH, s > 0u);
    var count = 0u;
    if (strip == s) {
        // rows beyond the panel are zero: no candidates, since they are no larger than the diagonal
        {%- for r in range(ROWS) %}
        if (i_{{ r }} >= args.m) {
            {%- for c in range(WIDTH) %}
            x_{{ r }}_{{ c }} = real();
            {%- endfor %}
        }
        {%- endfor %}
        count = min(WIDTH, args.n - left);
        // column 0 of the registers is the next one; the others follow, then those that are done
        for (var c = 0u; c < count; c++) {
            let j = left + c;
            // a NaN is no candidate
            var best = Candidate(real(), j);
            {%- for r in range(ROWS) %}
            {
                let here = abs(x_{{ r }}_0);
                let better = (i_{{ r }} >= j) & (here > best.magnitude);
                best = Candidate(select(best.magnitude, here, better), select(best.row, i_{{ r }}, better));
            }
            {%- endfor %}
            candidates[t] = best;
            if (t == j % ITEMS) {
                switch (j / ITEMS) {
                    {%- for r in range(ROWS) %}
                    case {{ r }}u: {
                        {%- for k in range(WIDTH) %}
                        diagonal[{{ k }}] = x_{{ r }}_{{ k }};
                        {%- endfor %}
                    }
                    {%- endfor %}
                    default: {}
                }
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
            let p = select(j, line_0.row, args.pivoting != 0u && line_0.magnitude > abs(diagonal[0]));
            if (t == p % ITEMS) {
                switch (p / ITEMS) {
                    {%- for r in range(ROWS) %}
                    case {{ r }}u: {
                        {%- for k in range(WIDTH) %}
                        pivots[{{ k }}] = x_{{ r }}_{{ k }};
                        x_{{ r }}_{{ k }} = diagonal[{{ k }}];
                        {%- endfor %}
                    }
                    {%- endfor %}
                    default: {}
                }
            }
            workgroupBarrier();
            let pivot = pivots[0];
            {%- for k in range(1, WIDTH) %}
            let u_{{ k }} = pivots[{{ k }}];
            {%- endfor %}
            if (t < WIDTH) {
                let col = left + (c + t) % WIDTH;
                if (col < args.n) { {{ a }}[element(j, col)] = pivots[t]; }
            }
            if (t == 0u) {
                {{ ipiv }}[args.ipiv_at + j] = i32(args.first + p);
                if (pivot == real() && {{ info }}[args.info_at] == 0) {
                    {{ info }}[args.info_at] = i32(args.first + j + 1u);
                }
            }
            if (abs(pivot) >= MIN_POSITIVE) {
                let factor = real(1) / pivot;
                {%- for r in range(ROWS) %}
                x_{{ r }}_0 *= factor;
                {%- endfor %}
            } else if (pivot != real()) {
                {%- for r in range(ROWS) %}
                x_{{ r }}_0 /= pivot;
                {%- endfor %}
            }
            {%- for k in range(1, WIDTH) %}
            if (c + {{ k }}u < WIDTH) {
                {%- for r in range(ROWS) %}
                x_{{ r }}_{{ k }} -= x_{{ r }}_0 * u_{{ k }};
                {%- endfor %}
            }
            {%- endfor %}
            {%- for r in range(ROWS) %}
            let x_{{ r }} = x_{{ r }}_0;
            {%- for k in range(1, WIDTH) %}
            x_{{ r }}_{{ k - 1 }} = x_{{ r }}_{{ k }};
            {%- endfor %}
            x_{{ r }}_{{ WIDTH - 1 }} = x_{{ r }};
            {%- endfor %}
        }
        begin = left + count;
    }

    {%- for k in range(WIDTH) %}
    let to_{{ k }} = left + (count + {{ k }}u) % WIDTH;
    {%- endfor %}
    {%- for r in range(ROWS) %}
    if (i_{{ r }} < args.m && select(from_{{ r }} != i_{{ r }}, i_{{ r }} >= begin, strip >= s)) {
        {%- for k in range(WIDTH) %}
        if (to_{{ k }} < args.n) { {{ a }}[element(i_{{ r }}, to_{{ k }})] = x_{{ r }}_{{ k }}; }
        {%- endfor %}
    }
    {%- endfor %}
}
