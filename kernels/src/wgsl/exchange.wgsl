// Exchanges rows i and ipiv[i] - first of A for all i, in order or in reverse order. The kernel makes a set of SET exchanges at
// once. One invocation first computes where the set moves each row. Then the invocations move COLUMNS columns at a time: all
// elements are read before any element is written.
//
// Each row that a set moves has a place. The rows i of a set have the first SET places, in the order of the exchanges. Other rows
// that a set names have places in a hash table of TABLE entries. In the hash table, a row takes the first free entry from entry
// (row number modulo TABLE) on.
{%- set SET = 4 * ITEMS %}
{%- set TABLE = 2 * SET %}
const SET = {{ SET }}u;
const TABLE = {{ TABLE }}u;
const NONE = 0xffffffffu;
// the place of row ipiv[i] - first for each exchange of the set
var<workgroup> named: array<u32, SET>;
// the row at each place of the table, and the row whose elements end at each place
var<workgroup> others: array<atomic<u32>, TABLE>;
var<workgroup> held: array<u32, {{ SET + TABLE }}>;

// Returns the row i of exchange number `step`.
fn row(step: u32) -> u32 { return select(args.count - 1u - step, step, args.forward != 0u); }

// Returns the place of a row in the hash table. If the table does not contain the row, the function enters the row first.
fn place_of(i: u32) -> u32 {
    var place = i % TABLE;
    loop {
        let found = atomicCompareExchangeWeak(&others[place], NONE, i);
        if (found.exchanged || found.old_value == i) { return place; }
        // a weak exchange may fail although the entry is free, in which case the loop tries the same entry again
        if (found.old_value != NONE) { place = (place + 1u) % TABLE; }
    }
    return NONE;
}

@compute @workgroup_size(ITEMS)
fn exchange(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) t: u32,
) {
    for (var begin = 0u; begin < args.count; begin += SET) {
        let count = min(args.count - begin, SET);
        let first = row(begin);
        for (var q = t; q < TABLE; q += ITEMS) { atomicStore(&others[q], NONE); }
        workgroupBarrier();
        for (var e = t; e < count; e += ITEMS) {
            held[e] = row(begin + e);
            let other = u32({{ ipiv }}[args.ipiv_at + held[e]]) - args.first;
            // the rows i of a set are consecutive
            let turn = select(first - other, other - first, args.forward != 0u);
            if (turn < count) {
                named[e] = turn;
            } else {
                named[e] = SET + place_of(other);
                held[named[e]] = other;
            }
        }
        workgroupBarrier();
        if (t == 0u) {
            for (var e = 0u; e < count; e++) {
                let old = held[e];
                held[e] = held[named[e]];
                held[named[e]] = old;
            }
        }
        // after these barriers, an invocation sees the elements that other invocations wrote for the previous set
        workgroupBarrier();
        storageBarrier();
        // the row from which the elements at each place come, the row to which they move, and whether they move at all
        {%- for q in range((SET + TABLE) // ITEMS) %}
        {%- if q < SET // ITEMS %}
        let e_{{ q }} = t + {{ q }}u * ITEMS;
        let to_{{ q }} = row(begin + e_{{ q }});
        let moves_{{ q }} = e_{{ q }} < count && held[e_{{ q }}] != to_{{ q }};
        {%- else %}
        let e_{{ q }} = t + {{ q }}u * ITEMS;
        let to_{{ q }} = atomicLoad(&others[e_{{ q }} - SET]);
        let moves_{{ q }} = to_{{ q }} != NONE && held[e_{{ q }}] != to_{{ q }};
        {%- endif %}
        let from_{{ q }} = held[e_{{ q }}];
        {%- endfor %}
        for (var column = group.x * COLUMNS; column < args.n; column += groups.x * COLUMNS) {
            {%- for c in range(COLUMNS) %}
            let at_{{ c }} = args.a_at + min(column + {{ c }}u, args.n - 1u) * args.a_ld;
            {%- endfor %}
            {%- for q in range((SET + TABLE) // ITEMS) %}
            {%- for c in range(COLUMNS) %}
            var x_{{ q }}_{{ c }} = real();
            {%- endfor %}
            if (moves_{{ q }}) {
                {%- for c in range(COLUMNS) %}
                x_{{ q }}_{{ c }} = {{ a }}[at_{{ c }} + from_{{ q }}];
                {%- endfor %}
            }
            {%- endfor %}
            workgroupBarrier();
            storageBarrier();
            {%- for q in range((SET + TABLE) // ITEMS) %}
            if (moves_{{ q }}) {
                {%- for c in range(COLUMNS) %}
                if (column + {{ c }}u < args.n) { {{ a }}[at_{{ c }} + to_{{ q }}] = x_{{ q }}_{{ c }}; }
                {%- endfor %}
            }
            {%- endfor %}
        }
        workgroupBarrier();
    }
}
