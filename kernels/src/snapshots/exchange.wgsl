alias real = f32;
const MIN_POSITIVE: real = 1.17549435e-38f;
const ITEMS = 64u;
const COLUMNS = 2u;

struct Args {
    count: u32,
    n: u32,
    forward: u32,
    first: u32,
    a_at: u32,
    a_ld: u32,
    ipiv_at: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read_write> a: array<real>;
@group(0) @binding(2) var<storage, read> ipiv: array<i32>;

// Exchanges rows i and ipiv[i] - first of A for all i, in order or in reverse order. The kernel makes a set of SET exchanges at
// once. One invocation first computes where the set moves each row. Then the invocations move COLUMNS columns at a time: all
// elements are read before any element is written.
//
// Each row that a set moves has a place. The rows i of a set have the first SET places, in the order of the exchanges. Other rows
// that a set names have places in a hash table of TABLE entries. In the hash table, a row takes the first free entry from entry
// (row number modulo TABLE) on.
const SET = 256u;
const TABLE = 512u;
const NONE = 0xffffffffu;
// the place of row ipiv[i] - first for each exchange of the set
var<workgroup> named: array<u32, SET>;
// the row at each place of the table, and the row whose elements end at each place
var<workgroup> others: array<atomic<u32>, TABLE>;
var<workgroup> held: array<u32, 768>;

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
            let other = u32(ipiv[args.ipiv_at + held[e]]) - args.first;
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
        let e_0 = t + 0u * ITEMS;
        let to_0 = row(begin + e_0);
        let moves_0 = e_0 < count && held[e_0] != to_0;
        let from_0 = held[e_0];
        let e_1 = t + 1u * ITEMS;
        let to_1 = row(begin + e_1);
        let moves_1 = e_1 < count && held[e_1] != to_1;
        let from_1 = held[e_1];
        let e_2 = t + 2u * ITEMS;
        let to_2 = row(begin + e_2);
        let moves_2 = e_2 < count && held[e_2] != to_2;
        let from_2 = held[e_2];
        let e_3 = t + 3u * ITEMS;
        let to_3 = row(begin + e_3);
        let moves_3 = e_3 < count && held[e_3] != to_3;
        let from_3 = held[e_3];
        let e_4 = t + 4u * ITEMS;
        let to_4 = atomicLoad(&others[e_4 - SET]);
        let moves_4 = to_4 != NONE && held[e_4] != to_4;
        let from_4 = held[e_4];
        let e_5 = t + 5u * ITEMS;
        let to_5 = atomicLoad(&others[e_5 - SET]);
        let moves_5 = to_5 != NONE && held[e_5] != to_5;
        let from_5 = held[e_5];
        let e_6 = t + 6u * ITEMS;
        let to_6 = atomicLoad(&others[e_6 - SET]);
        let moves_6 = to_6 != NONE && held[e_6] != to_6;
        let from_6 = held[e_6];
        let e_7 = t + 7u * ITEMS;
        let to_7 = atomicLoad(&others[e_7 - SET]);
        let moves_7 = to_7 != NONE && held[e_7] != to_7;
        let from_7 = held[e_7];
        let e_8 = t + 8u * ITEMS;
        let to_8 = atomicLoad(&others[e_8 - SET]);
        let moves_8 = to_8 != NONE && held[e_8] != to_8;
        let from_8 = held[e_8];
        let e_9 = t + 9u * ITEMS;
        let to_9 = atomicLoad(&others[e_9 - SET]);
        let moves_9 = to_9 != NONE && held[e_9] != to_9;
        let from_9 = held[e_9];
        let e_10 = t + 10u * ITEMS;
        let to_10 = atomicLoad(&others[e_10 - SET]);
        let moves_10 = to_10 != NONE && held[e_10] != to_10;
        let from_10 = held[e_10];
        let e_11 = t + 11u * ITEMS;
        let to_11 = atomicLoad(&others[e_11 - SET]);
        let moves_11 = to_11 != NONE && held[e_11] != to_11;
        let from_11 = held[e_11];
        for (var column = group.x * COLUMNS; column < args.n; column += groups.x * COLUMNS) {
            let at_0 = args.a_at + min(column + 0u, args.n - 1u) * args.a_ld;
            let at_1 = args.a_at + min(column + 1u, args.n - 1u) * args.a_ld;
            var x_0_0 = real();
            var x_0_1 = real();
            if (moves_0) {
                x_0_0 = a[at_0 + from_0];
                x_0_1 = a[at_1 + from_0];
            }
            var x_1_0 = real();
            var x_1_1 = real();
            if (moves_1) {
                x_1_0 = a[at_0 + from_1];
                x_1_1 = a[at_1 + from_1];
            }
            var x_2_0 = real();
            var x_2_1 = real();
            if (moves_2) {
                x_2_0 = a[at_0 + from_2];
                x_2_1 = a[at_1 + from_2];
            }
            var x_3_0 = real();
            var x_3_1 = real();
            if (moves_3) {
                x_3_0 = a[at_0 + from_3];
                x_3_1 = a[at_1 + from_3];
            }
            var x_4_0 = real();
            var x_4_1 = real();
            if (moves_4) {
                x_4_0 = a[at_0 + from_4];
                x_4_1 = a[at_1 + from_4];
            }
            var x_5_0 = real();
            var x_5_1 = real();
            if (moves_5) {
                x_5_0 = a[at_0 + from_5];
                x_5_1 = a[at_1 + from_5];
            }
            var x_6_0 = real();
            var x_6_1 = real();
            if (moves_6) {
                x_6_0 = a[at_0 + from_6];
                x_6_1 = a[at_1 + from_6];
            }
            var x_7_0 = real();
            var x_7_1 = real();
            if (moves_7) {
                x_7_0 = a[at_0 + from_7];
                x_7_1 = a[at_1 + from_7];
            }
            var x_8_0 = real();
            var x_8_1 = real();
            if (moves_8) {
                x_8_0 = a[at_0 + from_8];
                x_8_1 = a[at_1 + from_8];
            }
            var x_9_0 = real();
            var x_9_1 = real();
            if (moves_9) {
                x_9_0 = a[at_0 + from_9];
                x_9_1 = a[at_1 + from_9];
            }
            var x_10_0 = real();
            var x_10_1 = real();
            if (moves_10) {
                x_10_0 = a[at_0 + from_10];
                x_10_1 = a[at_1 + from_10];
            }
            var x_11_0 = real();
            var x_11_1 = real();
            if (moves_11) {
                x_11_0 = a[at_0 + from_11];
                x_11_1 = a[at_1 + from_11];
            }
            workgroupBarrier();
            storageBarrier();
            if (moves_0) {
                if (column + 0u < args.n) { a[at_0 + to_0] = x_0_0; }
                if (column + 1u < args.n) { a[at_1 + to_0] = x_0_1; }
            }
            if (moves_1) {
                if (column + 0u < args.n) { a[at_0 + to_1] = x_1_0; }
                if (column + 1u < args.n) { a[at_1 + to_1] = x_1_1; }
            }
            if (moves_2) {
                if (column + 0u < args.n) { a[at_0 + to_2] = x_2_0; }
                if (column + 1u < args.n) { a[at_1 + to_2] = x_2_1; }
            }
            if (moves_3) {
                if (column + 0u < args.n) { a[at_0 + to_3] = x_3_0; }
                if (column + 1u < args.n) { a[at_1 + to_3] = x_3_1; }
            }
            if (moves_4) {
                if (column + 0u < args.n) { a[at_0 + to_4] = x_4_0; }
                if (column + 1u < args.n) { a[at_1 + to_4] = x_4_1; }
            }
            if (moves_5) {
                if (column + 0u < args.n) { a[at_0 + to_5] = x_5_0; }
                if (column + 1u < args.n) { a[at_1 + to_5] = x_5_1; }
            }
            if (moves_6) {
                if (column + 0u < args.n) { a[at_0 + to_6] = x_6_0; }
                if (column + 1u < args.n) { a[at_1 + to_6] = x_6_1; }
            }
            if (moves_7) {
                if (column + 0u < args.n) { a[at_0 + to_7] = x_7_0; }
                if (column + 1u < args.n) { a[at_1 + to_7] = x_7_1; }
            }
            if (moves_8) {
                if (column + 0u < args.n) { a[at_0 + to_8] = x_8_0; }
                if (column + 1u < args.n) { a[at_1 + to_8] = x_8_1; }
            }
            if (moves_9) {
                if (column + 0u < args.n) { a[at_0 + to_9] = x_9_0; }
                if (column + 1u < args.n) { a[at_1 + to_9] = x_9_1; }
            }
            if (moves_10) {
                if (column + 0u < args.n) { a[at_0 + to_10] = x_10_0; }
                if (column + 1u < args.n) { a[at_1 + to_10] = x_10_1; }
            }
            if (moves_11) {
                if (column + 0u < args.n) { a[at_0 + to_11] = x_11_0; }
                if (column + 1u < args.n) { a[at_1 + to_11] = x_11_1; }
            }
        }
        workgroupBarrier();
    }
}