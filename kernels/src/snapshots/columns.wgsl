alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
const ITEMS = 64u;
const LANES = 8u;
const WIDTH = 64u;

struct Args {
    m: u32,
    n: u32,
    pivoting: u32,
    first: u32,
    step: u32,
    a_at: u32,
    a_ld: u32,
    ipiv_at: u32,
    info_at: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read_write> a: array<real>;
@group(0) @binding(2) var<storage, read_write> ipiv: array<i32>;
@group(0) @binding(3) var<storage, read_write> info: array<i32>;
@group(0) @binding(4) var<storage, read_write> notes: array<real>;

// One step of the factorisation A = P·L·U of a panel of at most WIDTH columns by many workgroups. LANES invocations share a row.
// Step s eliminates column s - 1 and searches column s for the pivot. A panel of n columns takes n + 1 steps. The kernel
// chooses pivots by the rules in the comment of `getrf_panel`.
//
// The workgroups exchange pivot candidates through records in `notes`. The record of a workgroup contains the magnitude, the row
// number and the row of the workgroup's best candidate. An additional record contains the row on the diagonal. `notes` contains
// two sets of records: each step reads one set and writes the other.
const ROWS = 8u;
const NOTE = WIDTH + 2u;
const LINE = 8u;
var<workgroup> magnitude: array<real, ITEMS>;
var<workgroup> place: array<u32, ITEMS>;
var<workgroup> most_of_line: array<real, 8>;
var<workgroup> best_of_line: array<u32, 8>;
// column s - 1 in the rows of this workgroup
var<workgroup> eliminated: array<real, 8>;

fn element(i: u32, j: u32) -> u32 { return args.a_at + i + j * args.a_ld; }

fn groups() -> u32 { return (args.m + ROWS - 1u) / ROWS; }

// Returns the index of the first element in the record that a workgroup writes in a step.
fn note(step: u32, group: u32) -> u32 { return ((step % 2u) * (groups() + 1u) + group) * NOTE; }
@compute @workgroup_size(ITEMS)
fn getrf_column(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let row = t % ROWS;
    let lane = t / ROWS;
    let i = group.x * ROWS + row;
    let s = args.step;
    // elements of row i in the columns lane, lane + LANES, ...
    let j_0 = lane + 0u;
    var x_0 = real();
    if (i < args.m && j_0 < args.n) { x_0 = a[element(i, j_0)]; }
    let j_1 = lane + 8u;
    var x_1 = real();
    if (i < args.m && j_1 < args.n) { x_1 = a[element(i, j_1)]; }
    let j_2 = lane + 16u;
    var x_2 = real();
    if (i < args.m && j_2 < args.n) { x_2 = a[element(i, j_2)]; }
    let j_3 = lane + 24u;
    var x_3 = real();
    if (i < args.m && j_3 < args.n) { x_3 = a[element(i, j_3)]; }
    let j_4 = lane + 32u;
    var x_4 = real();
    if (i < args.m && j_4 < args.n) { x_4 = a[element(i, j_4)]; }
    let j_5 = lane + 40u;
    var x_5 = real();
    if (i < args.m && j_5 < args.n) { x_5 = a[element(i, j_5)]; }
    let j_6 = lane + 48u;
    var x_6 = real();
    if (i < args.m && j_6 < args.n) { x_6 = a[element(i, j_6)]; }
    let j_7 = lane + 56u;
    var x_7 = real();
    if (i < args.m && j_7 < args.n) { x_7 = a[element(i, j_7)]; }

    if (s > 0u) {
        let c = s - 1u;
        // each invocation compares the candidates of consecutive workgroups, so that the first of equal magnitudes wins
        let each = (groups() + ITEMS - 1u) / ITEMS;
        let diagonal = note(c, groups()) + 2u;
        let on_diagonal = notes[diagonal + c];
        var most = real(-1);
        var best = 0u;
        for (var g = t * each; g < min(t * each + each, groups()); g++) {
            let here = notes[note(c, g)];
            let row_of_group = u32(notes[note(c, g) + 1u]);
            if (here > most) {
                most = here;
                best = g * ROWS + row_of_group;
            }
        }
        magnitude[t] = most;
        place[t] = best;
        if (j_0 == c) { eliminated[row] = x_0; }
        if (j_1 == c) { eliminated[row] = x_1; }
        if (j_2 == c) { eliminated[row] = x_2; }
        if (j_3 == c) { eliminated[row] = x_3; }
        if (j_4 == c) { eliminated[row] = x_4; }
        if (j_5 == c) { eliminated[row] = x_5; }
        if (j_6 == c) { eliminated[row] = x_6; }
        if (j_7 == c) { eliminated[row] = x_7; }
    workgroupBarrier();
    if (t < 8u) {
        var e = t * LINE;
        var most = magnitude[e];
        let next_1 = magnitude[t * LINE + 1u];
        let next_2 = magnitude[t * LINE + 2u];
        let next_3 = magnitude[t * LINE + 3u];
        let next_4 = magnitude[t * LINE + 4u];
        let next_5 = magnitude[t * LINE + 5u];
        let next_6 = magnitude[t * LINE + 6u];
        let next_7 = magnitude[t * LINE + 7u];
        if (next_1 > most) { most = next_1; e = t * LINE + 1u; }
        if (next_2 > most) { most = next_2; e = t * LINE + 2u; }
        if (next_3 > most) { most = next_3; e = t * LINE + 3u; }
        if (next_4 > most) { most = next_4; e = t * LINE + 4u; }
        if (next_5 > most) { most = next_5; e = t * LINE + 5u; }
        if (next_6 > most) { most = next_6; e = t * LINE + 6u; }
        if (next_7 > most) { most = next_7; e = t * LINE + 7u; }
        best_of_line[t] = e;
        most_of_line[t] = most;
    }
    workgroupBarrier();
    var leader = best_of_line[0];
    {
        var most = most_of_line[0];
        if (most_of_line[1] > most) { most = most_of_line[1]; leader = best_of_line[1]; }
        if (most_of_line[2] > most) { most = most_of_line[2]; leader = best_of_line[2]; }
        if (most_of_line[3] > most) { most = most_of_line[3]; leader = best_of_line[3]; }
        if (most_of_line[4] > most) { most = most_of_line[4]; leader = best_of_line[4]; }
        if (most_of_line[5] > most) { most = most_of_line[5]; leader = best_of_line[5]; }
        if (most_of_line[6] > most) { most = most_of_line[6]; leader = best_of_line[6]; }
        if (most_of_line[7] > most) { most = most_of_line[7]; leader = best_of_line[7]; }
    }
        let better = magnitude[leader] > abs(on_diagonal);
        let p = select(c, place[leader], better);
        let pivots = select(diagonal, note(c, p / ROWS) + 2u, better);
        let pivot = notes[pivots + c];
        let upper_0 = notes[pivots + j_0];
        let upper_1 = notes[pivots + j_1];
        let upper_2 = notes[pivots + j_2];
        let upper_3 = notes[pivots + j_3];
        let upper_4 = notes[pivots + j_4];
        let upper_5 = notes[pivots + j_5];
        let upper_6 = notes[pivots + j_6];
        let upper_7 = notes[pivots + j_7];
        if (group.x == 0u && t == 0u) {
            ipiv[args.ipiv_at + c] = i32(args.first + p);
            if (pivot == real() && info[args.info_at] == 0) {
                info[args.info_at] = i32(args.first + c + 1u);
            }
        }
        var l = eliminated[row];
        if (i == p && better) {
            l = on_diagonal;
            x_0 = notes[diagonal + j_0];
            x_1 = notes[diagonal + j_1];
            x_2 = notes[diagonal + j_2];
            x_3 = notes[diagonal + j_3];
            x_4 = notes[diagonal + j_4];
            x_5 = notes[diagonal + j_5];
            x_6 = notes[diagonal + j_6];
            x_7 = notes[diagonal + j_7];
        }
        if (!(pivot == real())) {
            if (abs(pivot) >= MIN_POSITIVE) { l = l * (real(1) / pivot); } else { l = l / pivot; }
        }
        // left of column c, only the two exchanged rows change
        let changes_from = select(c, 0u, better && (i == p || i == c));
        if (i < args.m && i >= c && j_0 < args.n && j_0 >= changes_from) {
            if (i == c) {
                x_0 = upper_0;
            } else if (j_0 == c) {
                x_0 = l;
            } else if (j_0 > c) {
                x_0 -= l * upper_0;
            }
            a[element(i, j_0)] = x_0;
        }
        if (i < args.m && i >= c && j_1 < args.n && j_1 >= changes_from) {
            if (i == c) {
                x_1 = upper_1;
            } else if (j_1 == c) {
                x_1 = l;
            } else if (j_1 > c) {
                x_1 -= l * upper_1;
            }
            a[element(i, j_1)] = x_1;
        }
        if (i < args.m && i >= c && j_2 < args.n && j_2 >= changes_from) {
            if (i == c) {
                x_2 = upper_2;
            } else if (j_2 == c) {
                x_2 = l;
            } else if (j_2 > c) {
                x_2 -= l * upper_2;
            }
            a[element(i, j_2)] = x_2;
        }
        if (i < args.m && i >= c && j_3 < args.n && j_3 >= changes_from) {
            if (i == c) {
                x_3 = upper_3;
            } else if (j_3 == c) {
                x_3 = l;
            } else if (j_3 > c) {
                x_3 -= l * upper_3;
            }
            a[element(i, j_3)] = x_3;
        }
        if (i < args.m && i >= c && j_4 < args.n && j_4 >= changes_from) {
            if (i == c) {
                x_4 = upper_4;
            } else if (j_4 == c) {
                x_4 = l;
            } else if (j_4 > c) {
                x_4 -= l * upper_4;
            }
            a[element(i, j_4)] = x_4;
        }
        if (i < args.m && i >= c && j_5 < args.n && j_5 >= changes_from) {
            if (i == c) {
                x_5 = upper_5;
            } else if (j_5 == c) {
                x_5 = l;
            } else if (j_5 > c) {
                x_5 -= l * upper_5;
            }
            a[element(i, j_5)] = x_5;
        }
        if (i < args.m && i >= c && j_6 < args.n && j_6 >= changes_from) {
            if (i == c) {
                x_6 = upper_6;
            } else if (j_6 == c) {
                x_6 = l;
            } else if (j_6 > c) {
                x_6 -= l * upper_6;
            }
            a[element(i, j_6)] = x_6;
        }
        if (i < args.m && i >= c && j_7 < args.n && j_7 >= changes_from) {
            if (i == c) {
                x_7 = upper_7;
            } else if (j_7 == c) {
                x_7 = l;
            } else if (j_7 > c) {
                x_7 -= l * upper_7;
            }
            a[element(i, j_7)] = x_7;
        }
    }

    if (s < args.n) {
        workgroupBarrier();
        if (j_0 == s) {
            // a NaN is not a pivot candidate
            magnitude[row] = select(real(-1), abs(x_0), args.pivoting != 0u && i >= s && i < args.m && abs(x_0) >= real());
        }
        if (j_1 == s) {
            // a NaN is not a pivot candidate
            magnitude[row] = select(real(-1), abs(x_1), args.pivoting != 0u && i >= s && i < args.m && abs(x_1) >= real());
        }
        if (j_2 == s) {
            // a NaN is not a pivot candidate
            magnitude[row] = select(real(-1), abs(x_2), args.pivoting != 0u && i >= s && i < args.m && abs(x_2) >= real());
        }
        if (j_3 == s) {
            // a NaN is not a pivot candidate
            magnitude[row] = select(real(-1), abs(x_3), args.pivoting != 0u && i >= s && i < args.m && abs(x_3) >= real());
        }
        if (j_4 == s) {
            // a NaN is not a pivot candidate
            magnitude[row] = select(real(-1), abs(x_4), args.pivoting != 0u && i >= s && i < args.m && abs(x_4) >= real());
        }
        if (j_5 == s) {
            // a NaN is not a pivot candidate
            magnitude[row] = select(real(-1), abs(x_5), args.pivoting != 0u && i >= s && i < args.m && abs(x_5) >= real());
        }
        if (j_6 == s) {
            // a NaN is not a pivot candidate
            magnitude[row] = select(real(-1), abs(x_6), args.pivoting != 0u && i >= s && i < args.m && abs(x_6) >= real());
        }
        if (j_7 == s) {
            // a NaN is not a pivot candidate
            magnitude[row] = select(real(-1), abs(x_7), args.pivoting != 0u && i >= s && i < args.m && abs(x_7) >= real());
        }
    workgroupBarrier();
    if (t < 1u) {
        var e = t * LINE;
        var most = magnitude[e];
        let next_1 = magnitude[t * LINE + 1u];
        let next_2 = magnitude[t * LINE + 2u];
        let next_3 = magnitude[t * LINE + 3u];
        let next_4 = magnitude[t * LINE + 4u];
        let next_5 = magnitude[t * LINE + 5u];
        let next_6 = magnitude[t * LINE + 6u];
        let next_7 = magnitude[t * LINE + 7u];
        if (next_1 > most) { most = next_1; e = t * LINE + 1u; }
        if (next_2 > most) { most = next_2; e = t * LINE + 2u; }
        if (next_3 > most) { most = next_3; e = t * LINE + 3u; }
        if (next_4 > most) { most = next_4; e = t * LINE + 4u; }
        if (next_5 > most) { most = next_5; e = t * LINE + 5u; }
        if (next_6 > most) { most = next_6; e = t * LINE + 6u; }
        if (next_7 > most) { most = next_7; e = t * LINE + 7u; }
        best_of_line[t] = e;
        most_of_line[t] = most;
    }
    workgroupBarrier();
    var leader = best_of_line[0];
        let own = note(s, group.x);
        if (t == 0u) {
            notes[own] = magnitude[leader];
            notes[own + 1u] = real(leader);
        }
        if (row == leader) {
            notes[own + 2u + j_0] = x_0;
            notes[own + 2u + j_1] = x_1;
            notes[own + 2u + j_2] = x_2;
            notes[own + 2u + j_3] = x_3;
            notes[own + 2u + j_4] = x_4;
            notes[own + 2u + j_5] = x_5;
            notes[own + 2u + j_6] = x_6;
            notes[own + 2u + j_7] = x_7;
        }
        if (i == s) {
            notes[note(s, groups()) + 2u + j_0] = x_0;
            notes[note(s, groups()) + 2u + j_1] = x_1;
            notes[note(s, groups()) + 2u + j_2] = x_2;
            notes[note(s, groups()) + 2u + j_3] = x_3;
            notes[note(s, groups()) + 2u + j_4] = x_4;
            notes[note(s, groups()) + 2u + j_5] = x_5;
            notes[note(s, groups()) + 2u + j_6] = x_6;
            notes[note(s, groups()) + 2u + j_7] = x_7;
        }
    }
}