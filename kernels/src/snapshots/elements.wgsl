alias real = f64;
const MIN_POSITIVE: real = 2.2250738585072014e-308lf;
const GROUP = 64u;

struct Args {
    begin: u32,
    count: u32,
    places: u32,
    forward: u32,
    first: u32,
    a_at: u32,
    by_line: u32,
    by_place: u32,
    ipiv_at: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read_write> a: array<real>;
@group(0) @binding(2) var<storage, read> ipiv: array<i32>;

// Kernels with little arithmetic, in which each invocation computes one line or one element.

// Exchanges lines i and ipiv[i] - first for `count` values of i from `begin` on, in order or in reverse order. Element r of line
// i is a[a_at + i·by_line + r·by_place]. An invocation makes all exchanges for one value of r.
@compute @workgroup_size(GROUP)
fn laswp(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= args.places) { return; }
    let at = args.a_at + id.x * args.by_place;
    for (var step = 0u; step < args.count; step++) {
        let i = args.begin + select(args.count - 1u - step, step, args.forward != 0u);
        let p = u32(ipiv[args.ipiv_at + i]) - args.first;
        if (p != i) {
            let old = a[at + i * args.by_line];
            a[at + i * args.by_line] = a[at + p * args.by_line];
            a[at + p * args.by_line] = old;
        }
    }
}
