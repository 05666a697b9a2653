alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
alias vec = real;
alias size = u32;
alias stride = i32;
const ITEMS = 64u;

struct Args {
    m: u32,
    n: u32,
    count: u32,
    alpha: real,
    beta: real,
    c_at: u32,
    c_ld: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> parts: array<real>;
@group(0) @binding(2) var<storage, read_write> c: array<real>;

// C <- alpha·(part 0 + part 1 + ... + part (count - 1)) + beta·C. An invocation computes one element of C.
//
// Element (i, j) of C is element i + j·m of each part, and a part has m·n elements. An invocation adds the parts in this order, so that
// results are reproducible. If beta = 0, the kernel does not read C.
@compute @workgroup_size(64)
fn sum_parts(@builtin(global_invocation_id) item: vec3<u32>) {
    let elements: size = args.m * args.n;
    if (item.x >= elements) { return; }
    var sum: real;
    for (var part: size = 0u; part < args.count; part++) {
        sum += parts[item.x + part * elements];
    }
    let at: size = args.c_at + item.x % args.m + item.x / args.m * args.c_ld;
    if (args.beta == real(0)) {
        c[at] = args.alpha * sum;
    } else {
        c[at] = args.alpha * sum + args.beta * c[at];
    }
}