alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
alias vec = vec2<real>;
alias size = u32;
alias stride = i32;
const ITEMS = 64u;
const ROWS = 4u;
const WIDTH = 2u;
const V = 2u;
const LINES = 16u;
const LINE = 4u;
const TOGETHER = 8u;

struct Args {
    m: u32,
    n: u32,
    first: u32,
    a_at: u32,
    a_ld: u32,
    ipiv_at: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> strips: array<vec>;
@group(0) @binding(2) var<storage, read_write> a: array<real>;
@group(0) @binding(3) var<storage, read> ipiv: array<i32>;

// LU factorisation A = P·L·U of a panel by strips of WIDTH columns. During the factorisation, the columns of the strips lie one
// after the other in scratch memory. Each column has HEIGHT rows, in vectors of V rows. Rows and columns of a strip beyond the
// panel are zero.
const HEIGHT = 256u;

// Returns the index of the vector that holds row i of a column.
fn at(column: u32, i: u32) -> u32 { return (column * HEIGHT + i) / 2u; }

// Copies the strips back to their panel. Each invocation copies one row of TOGETHER strips.
@compute @workgroup_size(ITEMS)
fn leave_strips(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= args.m) { return; }
    // the row that the exchanges of later strips bring to row i
    var came = i;
    let first = id.y * (TOGETHER * WIDTH);
    for (var end = args.n; end > first; end = (end - 1u) / WIDTH * WIDTH) {
        let begin = (end - 1u) / WIDTH * WIDTH;
        if (begin < first + TOGETHER * WIDTH) {
            for (var j = begin; j < end; j++) {
                a[args.a_at + i + j * args.a_ld] = strips[at(j, came)][came % 2u];
            }
        }
        for (var j = end; j > begin; j--) {
            let p = u32(ipiv[args.ipiv_at + j - 1u]) - args.first;
            came = select(select(came, j - 1u, came == p), p, came == j - 1u);
        }
    }
}
