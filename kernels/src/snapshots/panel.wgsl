alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
const ITEMS = 16u;

struct Args {
    m: u32,
    n: u32,
    pivoting: u32,
    first: u32,
    a_at: u32,
    a_ld: u32,
    ipiv_at: u32,
    info_at: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read_write> a: array<real>;
@group(0) @binding(2) var<storage, read_write> ipiv: array<i32>;
@group(0) @binding(3) var<storage, read_write> info: array<i32>;

// LU factorisation A = P·L·U of a narrow panel by one workgroup. Each invocation has every ITEMS-th row.
//
// The pivot of a column is the element with the largest magnitude, from the diagonal down. Among equal magnitudes, the kernel
// chooses the first row. A NaN is chosen as pivot only if the NaN stands on the diagonal. If the pivot is zero, the kernel does
// not scale the column, and sets info to 1 + the row of the pivot if info is zero.
var<workgroup> magnitude: array<real, ITEMS>;
var<workgroup> place: array<u32, ITEMS>;

fn element(i: u32, j: u32) -> u32 { return args.a_at + i + j * args.a_ld; }

@compute @workgroup_size(ITEMS)
fn getrf_panel(@builtin(local_invocation_index) t: u32) {
    for (var c = 0u; c < args.n; c++) {
        var p = c;
        if (args.pivoting != 0u) {
            var most = real(-1);
            for (var i = c + t; i < args.m; i += ITEMS) {
                let here = abs(a[element(i, c)]);
                if (here > most) {
                    most = here;
                    p = i;
                }
            }
            magnitude[t] = most;
            place[t] = p;
            for (var step = ITEMS / 2u; step > 0u; step /= 2u) {
                workgroupBarrier();
                if (t < step) {
                    let other = magnitude[t + step];
                    if (other > magnitude[t] || (other == magnitude[t] && place[t + step] < place[t])) {
                        magnitude[t] = other;
                        place[t] = place[t + step];
                    }
                }
            }
            workgroupBarrier();
            p = select(c, place[0], magnitude[0] > abs(a[element(c, c)]));
            workgroupBarrier();
            storageBarrier();
        }
        if (p != c) {
            for (var j = t; j < args.n; j += ITEMS) {
                let old = a[element(c, j)];
                a[element(c, j)] = a[element(p, j)];
                a[element(p, j)] = old;
            }
        }
        storageBarrier();

        let pivot = a[element(c, c)];
        if (t == 0u) {
            ipiv[args.ipiv_at + c] = i32(args.first + p);
            if (pivot == real() && info[args.info_at] == 0) {
                info[args.info_at] = i32(args.first + c + 1u);
            }
        }
        let reciprocal = abs(pivot) >= MIN_POSITIVE;
        let factor = real(1) / pivot;
        for (var i = c + 1u + t; i < args.m; i += ITEMS) {
            var l = a[element(i, c)];
            if (!(pivot == real())) {
                if (reciprocal) { l = l * factor; } else { l = l / pivot; }
                a[element(i, c)] = l;
            }
            for (var j = c + 1u; j < args.n; j++) {
                a[element(i, j)] -= l * a[element(c, j)];
            }
        }
        storageBarrier();
    }
}