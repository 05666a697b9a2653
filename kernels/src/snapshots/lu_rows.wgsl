alias real = f32;
const MIN_POSITIVE: real = 1.17549435e-38f;
const ITEMS = 32u;
const ORDER = 8u;

struct Args {
    m: u32,
    n: u32,
    pivoting: u32,
    a_at: u32,
    a_ld: u32,
    a_step: u32,
    ipiv_at: u32,
    info_at: u32,
    count: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read_write> a: array<real>;
@group(0) @binding(2) var<storage, read_write> ipiv: array<i32>;
@group(0) @binding(3) var<storage, read_write> info: array<i32>;

// LU factorisation A = P·L·U of many matrices of at most ORDER rows and columns. Each invocation holds one row of a matrix, and
// each workgroup holds ITEMS / ORDER matrices. Matrix g begins g·a_step elements after the first matrix.
//
// Registers hold the columns that are not eliminated yet. In each step, the remaining columns move by one register, so that the
// column of the pivot is always in r0. A pivot row is a row of U, and its registers no longer change. Workgroup memory holds L.
// The kernel exchanges rows only at the end. Until then, `at` is the place of the invocation's row after the exchanges so far.
var<workgroup> done: array<real, 256>;
// the pivot row of each matrix
var<workgroup> upper: array<vec2<real>, 16>;
// for each place, the magnitude of the element in the pivot column, or -1 if the place has no row or a former pivot row
var<workgroup> magnitude: array<real, ITEMS>;
// for every four places, the largest magnitude and the place of this magnitude
var<workgroup> largest: array<real, 8>;
var<workgroup> place: array<u32, 8>;

// The kernel chooses pivots by the rules in the comment of `getrf_batched`.
@compute @workgroup_size(ITEMS)
fn getrf_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let order = min(args.m, args.n);
    let row = t % ORDER;
    let first = t - row;
    let g = group.x * (ITEMS / ORDER) + t / ORDER;
    // the last workgroup may have fewer matrices, so invocations without a matrix compute with zeros
    let is_there = g < args.count && row < args.m;
    let a_at = args.a_at + g * args.a_step;
    // The device issues several loads together if no branch lies between them. To avoid branches, indices out of range are
    // replaced by valid ones, and the loaded values by zeros.
    let safe = args.a_at + min(g, args.count - 1u) * args.a_step + min(row, args.m - 1u);
    var r0 = a[safe + min(0u, args.n - 1u) * args.a_ld];
    r0 = select(real(), r0, is_there && 0u < args.n);
    var r1 = a[safe + min(1u, args.n - 1u) * args.a_ld];
    r1 = select(real(), r1, is_there && 1u < args.n);
    var r2 = a[safe + min(2u, args.n - 1u) * args.a_ld];
    r2 = select(real(), r2, is_there && 2u < args.n);
    var r3 = a[safe + min(3u, args.n - 1u) * args.a_ld];
    r3 = select(real(), r3, is_there && 3u < args.n);
    var r4 = a[safe + min(4u, args.n - 1u) * args.a_ld];
    r4 = select(real(), r4, is_there && 4u < args.n);
    var r5 = a[safe + min(5u, args.n - 1u) * args.a_ld];
    r5 = select(real(), r5, is_there && 5u < args.n);
    var r6 = a[safe + min(6u, args.n - 1u) * args.a_ld];
    r6 = select(real(), r6, is_there && 6u < args.n);
    var r7 = a[safe + min(7u, args.n - 1u) * args.a_ld];
    r7 = select(real(), r7, is_there && 7u < args.n);
    var at = row;
    var zero_pivot = 0;
    for (var c = 0u; c < order; c++) {
        let is_open = row < args.m && at >= c;
        magnitude[first + at] = select(real(-1), abs(r0), is_open);
        workgroupBarrier();
        var p = c;
        if (args.pivoting != 0u) {
            if (row < ORDER / 4u) {
                var most = real(-1);
                var found = 0u;
                for (var i = 4u * row; i < 4u * row + 4u; i++) {
                    let here = magnitude[first + i];
                    if (here > most) {
                        most = here;
                        found = i;
                    }
                }
                largest[first / 4u + row] = most;
                place[first / 4u + row] = found;
            }
            workgroupBarrier();
            // the first of equal magnitudes wins, and a NaN on the diagonal remains the pivot
            var most = magnitude[first + c];
            for (var i = first / 4u; i < (first + ORDER) / 4u; i++) {
                if (largest[i] > most) {
                    most = largest[i];
                    p = place[i];
                }
            }
        }
        at = select(select(at, p, at == c), c, at == p);
        if (is_open && at == c) {
            if (c + 0u < ORDER) {
                upper[first / 2u + 0u] = vec2(r0, r1);
                upper[first / 2u + 1u] = vec2(r2, r3);
            }
            if (c + 4u < ORDER) {
                upper[first / 2u + 2u] = vec2(r4, r5);
                upper[first / 2u + 3u] = vec2(r6, r7);
            }
        }
        workgroupBarrier();
        let pivot = upper[first / 2u].x;
        if (pivot == real() && zero_pivot == 0) { zero_pivot = i32(c + 1u); }
        if (is_there && row == 0u) { ipiv[args.ipiv_at + g * order + c] = i32(p); }
        if (is_open && at != c) {
            var l = r0;
            if (abs(pivot) >= MIN_POSITIVE) { l *= real(1) / pivot; } else if (!(pivot == real())) { l /= pivot; }
            done[t + (c) * ITEMS] = l;
            // columns beyond the last column of the matrix are computed, but not stored
            if (c + 0u < ORDER) {
                let u = upper[first / 2u + 0u];
                let v = upper[first / 2u + 1u];
                r0 = r1 - l * u.y;
                r1 = r2 - l * v.x;
                r2 = r3 - l * v.y;
            }
            if (c + 4u < ORDER) {
                let u = upper[first / 2u + 2u];
                let v = upper[first / 2u + 3u];
                r3 = r4 - l * u.x;
                r4 = r5 - l * u.y;
                r5 = r6 - l * v.x;
                r6 = r7 - l * v.y;
            }
        }
    }
    if (is_there) {
        if (at + 0u < args.n) { done[t + (at + 0u) * ITEMS] = r0; }
        if (at + 1u < args.n) { done[t + (at + 1u) * ITEMS] = r1; }
        if (at + 2u < args.n) { done[t + (at + 2u) * ITEMS] = r2; }
        if (at + 3u < args.n) { done[t + (at + 3u) * ITEMS] = r3; }
        if (at + 4u < args.n) { done[t + (at + 4u) * ITEMS] = r4; }
        if (at + 5u < args.n) { done[t + (at + 5u) * ITEMS] = r5; }
        if (at + 6u < args.n) { done[t + (at + 6u) * ITEMS] = r6; }
        if (at + 7u < args.n) { done[t + (at + 7u) * ITEMS] = r7; }
        if (row == 0u) { info[args.info_at + g] = zero_pivot; }
        for (var j = 0u; j < args.n; j++) { a[a_at + at + j * args.a_ld] = done[t + (j) * ITEMS]; }
    }
}