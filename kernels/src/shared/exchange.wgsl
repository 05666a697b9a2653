// Exchanges rows i and ipiv[i] - first of A for all i from 0 to count - 1, in ascending or in descending order of i.
//
// A workgroup combines SET consecutive exchanges (a set) into one permutation of the rows that the set names. It applies the permutation to one
// column after the other. It reads all elements of a column that move before it writes one of them.
//
// The rows that a set names are numbered. The number of a row is its place. Row i of the first exchange of the set has place 0, row i of the
// second exchange has place 1, and so on. The rows that the set names only as ipiv[i] - first have the places from SET on, in ascending order,
// so that neighbouring invocations access elements in the same cache lines. One invocation computes the permutation: it applies the exchanges to a
// column in which the element at each place is the number of the place.
{%- set EACH = 2 * SET // ITEMS %}
// the rows that the set names only as ipiv[i] - first, in ascending order
var<workgroup> others: array<u32, {{ SET }}>;
// for each exchange of the set: at first the row ipiv[i] - first, later the place of this row
var<workgroup> named: array<u32, {{ SET }}>;
// one value for each place: at first the place from which the permutation takes the element of this place (a whole number below 2^24, which is
// exact in f32), later an element of a column
var<workgroup> x: array<real, {{ 2 * SET }}>;

// Returns row i of exchange number `step`.
fn row_of(step: u32) -> u32 {
    return u32(select(args.count - 1u - step, step, args.forward != 0u));
}

// Returns row ipiv[i] - first of exchange number `step`.
fn partner(step: u32) -> u32 {
    return u32({{ ipiv }}[args.ipiv_at + row_of(step)]) - u32(args.first);
}

// Returns the place of a row that is row i of an exchange of the set. The set begins with exchange number `begin`. If no exchange of the set has this
// row i, the result is not below the number of exchanges of the set.
fn place_of_row_i(row: u32, begin: u32) -> u32 {
    return select(row_of(begin) - row, row - row_of(begin), args.forward != 0u);
}

@compute @workgroup_size(ITEMS)
fn exchange(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    for (var begin: u32 = 0u; begin < args.count; begin += SET) {
        let set_count: u32 = u32(min(args.count - begin, SET));
        // a power of two
        var sorted: u32 = 1u;
        while (sorted < set_count) { sorted *= 2u; }
        // 0xffffffff stands for no row, and follows all rows in ascending order
        for (var e: u32 = t; e < sorted; e += ITEMS) {
            var other: u32 = 0xffffffffu;
            if (e < set_count) {
                named[e] = partner(begin + e);
                if (place_of_row_i(named[e], begin) >= set_count) { other = named[e]; }
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
            var place: u32 = place_of_row_i(row, begin);
            if (place >= set_count) {
                // a binary search; if `others` contains the row several times, it finds the first time
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
        // for each place of this invocation: its row, the place from which the permutation takes its element, and whether this is another place
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
        // other invocations may have written the elements that this invocation reads, for the previous set
        storageBarrier();
        for (var column: u32 = group.x; column < args.n; column += groups.x) {
            let at: size = args.a_at + column * args.a_ld;
            {%- for q in range(EACH) %}
            var x_{{ q }}: real;
            if (moves_{{ q }}) { x_{{ q }} = {{ a }}[at + row_{{ q }}]; }
            {%- endfor %}
            // before x changes, all invocations have read the permutation, or have written the previous column
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
