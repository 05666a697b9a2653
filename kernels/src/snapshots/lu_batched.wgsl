alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
const ITEMS = 32u;
const ROOM = 256u;

struct Args {
    m: u32,
    n: u32,
    pivoting: u32,
    a_at: u32,
    a_ld: u32,
    a_step: u32,
    ipiv_at: u32,
    info_at: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read_write> a: array<real>;
@group(0) @binding(2) var<storage, read_write> ipiv: array<i32>;
@group(0) @binding(3) var<storage, read_write> info: array<i32>;

// LU of many small matrices, and solves with the factors. A workgroup of ITEMS invocations computes one matrix. Matrix g of
// operand x begins g·x_step elements after the first matrix. If ROOM is not zero, the kernel works on a copy of the matrix in
// workgroup memory, which has room for ROOM elements. If ROOM is zero, the kernel works in storage memory.
var<workgroup> w: array<real, ROOM>;

var<workgroup> magnitude: array<real, ITEMS>;
var<workgroup> place: array<u32, ITEMS>;

// LU factorisation A = P·L·U of each matrix. The pivot of a column is the element with the largest magnitude, from the diagonal
// down. Among equal magnitudes, the kernel chooses the first row. A NaN is chosen as pivot only if the NaN stands on the
// diagonal. If the pivot is zero, the kernel does not scale the column. The kernel sets info to 1 + the row of the first zero
// pivot, or to 0.
@compute @workgroup_size(ITEMS)
fn getrf_batched(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let rows = args.m;
    let order = min(args.m, args.n);
    let w_at = args.a_at + group.x * args.a_step;
    let w_ld = args.a_ld;
    let ipiv_at = args.ipiv_at + group.x * order;
    for (var e = t; e < rows * args.n; e += ITEMS) { w[e] = a[w_at + e % rows + e / rows * w_ld]; }
    workgroupBarrier();
    var told = 0;
    for (var c = 0u; c < order; c++) {
        var p = c;
        if (args.pivoting != 0u) {
            var most = real(-1);
            for (var i = c + t; i < rows; i += ITEMS) {
                let here = abs(w[i + (c) * rows]);
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
            p = select(c, place[0], magnitude[0] > abs(w[c + (c) * rows]));
            workgroupBarrier();
            workgroupBarrier();
        }
        if (p != c) {
            for (var j = t; j < args.n; j += ITEMS) {
                let old = w[c + (j) * rows];
                w[c + (j) * rows] = w[p + (j) * rows];
                w[p + (j) * rows] = old;
            }
        }
        workgroupBarrier();
        let pivot = w[c + (c) * rows];
        if (pivot == real() && told == 0) { told = i32(c + 1u); }
        if (t == 0u) { ipiv[ipiv_at + c] = i32(p); }
        let reciprocal = abs(pivot) >= MIN_POSITIVE;
        let factor = real(1) / pivot;
        for (var i = c + 1u + t; i < rows; i += ITEMS) {
            var l = w[i + (c) * rows];
            if (!(pivot == real())) {
                if (reciprocal) { l = l * factor; } else { l = l / pivot; }
                w[i + (c) * rows] = l;
            }
            for (var j = c + 1u; j < args.n; j++) {
                w[i + (j) * rows] -= l * w[c + (j) * rows];
            }
        }
        workgroupBarrier();
    }
    if (t == 0u) { info[args.info_at + group.x] = told; }
    for (var e = t; e < rows * args.n; e += ITEMS) { a[w_at + e % rows + e / rows * w_ld] = w[e]; }
}
