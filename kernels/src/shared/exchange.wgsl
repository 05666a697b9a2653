// Exchanges rows i and ipiv[i] - first of A for all i, in order or in reverse order. The kernel makes a set of at most SET exchanges at once:
// in one column after the other, a workgroup reads all elements that the set moves before it writes them.
//
// Each row that a set moves has a place. The rows i of a set have the first SET places, in the order of the exchanges. The other rows that
// the set names follow in ascending order, so that neighbouring invocations access elements in the same cache lines. To find out which element
// ends at which place, one invocation makes the exchanges in a column whose elements are the numbers of the places.
{%- set EACH = 2 * SET // ITEMS %}
// the rows that are not rows i of the set, in ascending order
var<workgroup> others: array<u32, {{ SET }}>;
// row ipiv[i] - first for each exchange of the set, and then the place of this row
var<workgroup> named: array<u32, {{ SET }}>;
// the numbers of the places, which are exact also in f32, and then the elements of a column at the places of their rows
var<workgroup> x: array<real, {{ 2 * SET }}>;

// Returns the row i of exchange number `step`.
fn row_of(step: u32) -> u32 {
    return u32(select(args.count - 1u - step, step, args.forward != 0u));
}

// Returns the row with which exchange number `step` exchanges its row i.
fn partner(step: u32) -> u32 {
    return u32({{ ipiv }}[args.ipiv_at + row_of(step)]) - u32(args.first);
}

// Returns the number of the exchange whose row i is `row`, counted from exchange number `begin`.
fn step_of_row(row: u32, begin: u32) -> u32 {
    return select(row_of(begin) - row, row - row_of(begin), args.forward != 0u);
}

@compute @workgroup_size(ITEMS)
fn exchange(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    for (var begin: u32 = 0u; begin < args.count; begin += SET) {
        let set_count: u32 = u32(min(args.count - begin, SET));
        // a power of two
        var sorted: u32 = 1u;
        while (sorted < set_count) { sorted *= 2u; }
        // 0xffffffff is no row, and follows all rows
        for (var e: u32 = t; e < sorted; e += ITEMS) {
            var other: u32 = 0xffffffffu;
            if (e < set_count) {
                named[e] = partner(begin + e);
                if (step_of_row(named[e], begin) >= set_count) { other = named[e]; }
            }
            others[e] = other;
        }
        workgroupBarrier();
        // the bitonic sort (Batcher 1968)
        for (var length: u32 = 2u; length <= sorted; length *= 2u) {
            for (var distance: u32 = length / 2u; distance > 0u; distance /= 2u) {
                for (var e: u32 = t; e < sorted / 2u; e += ITEMS) {
                    let low: u32 = 2u * e - (e & (distance - 1u));
                    let is_ascending: bool = (low & length) == 0u;
                    let u: u32 = others[low];
                    let v: u32 = others[low + distance];
                    if ((u > v) == is_ascending) {
                        others[low] = v;
                        others[low + distance] = u;
                    }
                }
                workgroupBarrier();
            }
        }
        for (var e: u32 = t; e < set_count; e += ITEMS) {
            let row: u32 = named[e];
            var place: u32 = step_of_row(row, begin);
            if (place >= set_count) {
                // of several equal rows, all exchanges name the place of the first
                place = SET;
                for (var step: u32 = sorted / 2u; step > 0u; step /= 2u) {
                    if (others[place - SET + step - 1u] < row) { place += step; }
                }
            }
            named[e] = place;
        }
        for (var place: u32 = t; place < 2u * SET; place += ITEMS) { x[place] = real(place); }
        workgroupBarrier();
        if (t == 0u) {
            for (var e: u32 = 0u; e < set_count; e++) {
                let old: real = x[e];
                x[e] = x[named[e]];
                x[named[e]] = old;
            }
        }
        workgroupBarrier();
        // the row at each place, the place from which its element comes, and whether it comes from another place
        {%- for q in range(EACH) %}
        let place_{{ q }}: u32 = t + {{ q }}u * ITEMS;
        let from_{{ q }}: u32 = u32(x[place_{{ q }}]);
        let moves_{{ q }}: bool = from_{{ q }} != place_{{ q }};
        {%- if q < EACH // 2 %}
        let row_{{ q }}: u32 = row_of(begin + place_{{ q }});
        {%- else %}
        let row_{{ q }}: u32 = others[place_{{ q }} - SET];
        {%- endif %}
        {%- endfor %}
        // an invocation reads elements that other invocations have written for the previous set
        storageBarrier();
        for (var column: u32 = group.x; column < args.n; column += groups.x) {
            let at: size = args.a_at + column * args.a_ld;
            {%- for q in range(EACH) %}
            var x_{{ q }}: real;
            if (moves_{{ q }}) { x_{{ q }} = {{ a }}[at + row_{{ q }}]; }
            {%- endfor %}
            // all invocations have written the previous column, or have read the numbers of their places
            workgroupBarrier();
            {%- for q in range(EACH) %}
            x[place_{{ q }}] = x_{{ q }};
            {%- endfor %}
            workgroupBarrier();
            {%- for q in range(EACH) %}
            if (moves_{{ q }}) { {{ a }}[at + row_{{ q }}] = x[from_{{ q }}]; }
            {%- endfor %}
        }
        workgroupBarrier();
    }
}
