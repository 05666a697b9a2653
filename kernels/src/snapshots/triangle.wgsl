alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
const GROUP = 64u;
const NB = 32u;

struct Args {
    n: u32,
    upper: u32,
    unit: u32,
    a_at: u32,
    a_ld: u32,
    v_at: u32,
    v_ld: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> a: array<real>;
@group(0) @binding(2) var<storage, read_write> v: array<real>;

// Kernels for triangles of at most NB unknowns.

// V <- the inverses of the NB x NB blocks on the diagonal of A. Each invocation computes one column of one block. The opposite
// triangle of each block becomes zero. The kernel treats an upper block as a lower block whose rows and columns are in reverse
// order.
@compute @workgroup_size(GROUP)
fn trtri_block(@builtin(global_invocation_id) id: vec3<u32>) {
    let o = id.y * NB;
    let j = id.x;
    if (o >= args.n || j >= min(NB, args.n - o)) { return; }
    let size = min(NB, args.n - o);
    let upper = args.upper != 0u;
    var x: array<real, NB>;
    for (var i = 0u; i < size; i++) {
        let row = select(i, size - 1u - i, upper);
        var rest = real();
        if (i >= j) {
            if (i == j) { rest = real(1); }
            for (var k = j; k < i; k++) {
                let col = select(k, size - 1u - k, upper);
                rest -= a[args.a_at + o + row + (o + col) * args.a_ld] * x[k];
            }
            if (args.unit == 0u) {
                rest /= a[args.a_at + (o + row) * (args.a_ld + 1u)];
            }
        }
        x[i] = rest;
        v[args.v_at + o + row + (o + select(j, size - 1u - j, upper)) * args.v_ld] = rest;
    }
}
