alias real = f32;
const MIN_POSITIVE: real = 1.17549435e-38f;
const MV = 1u;
const VW = 4u;
const NR = 3u;
const GROUP = 8u;

struct Args {
    m: u32,
    n: u32,
    k: u32,
    alpha: real,
    a_at: u32,
    b_at: u32,
    beta: real,
    c_at: u32,
    c_ld: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> panels: array<real>;
@group(0) @binding(2) var<storage, read_write> c: array<real>;

// C <- alpha·A·B + beta·C without barriers. Each invocation computes MR x NR elements.
//
// A is packed in panels of MR rows, and B in panels of NR columns. A panel consists of `width` lines of k elements. Element p of
// line l is p·width + l elements after the start of the panel. The last panel is filled up with zeros. If beta = 0, the kernel
// does not read C.
const MR = 4u;
@compute @workgroup_size(GROUP)
fn gemm_panel(@builtin(global_invocation_id) id: vec3<u32>) {
    let i0 = id.y * MR;
    let j0 = id.x * NR;
    if (i0 >= args.m || j0 >= args.n) { return; }
    var a = args.a_at + i0 * args.k;
    var b = args.b_at + j0 * args.k;
    var sum_0_0 = real();
    var sum_1_0 = real();
    var sum_2_0 = real();
    var sum_3_0 = real();
    var sum_0_1 = real();
    var sum_1_1 = real();
    var sum_2_1 = real();
    var sum_3_1 = real();
    var sum_0_2 = real();
    var sum_1_2 = real();
    var sum_2_2 = real();
    var sum_3_2 = real();
    for (var p = 0u; p < args.k; p++) {
        let a_0 = panels[a + 0u];
        let a_1 = panels[a + 1u];
        let a_2 = panels[a + 2u];
        let a_3 = panels[a + 3u];
        let b_0 = panels[b + 0u];
        sum_0_0 = fma(a_0, b_0, sum_0_0);
        sum_1_0 = fma(a_1, b_0, sum_1_0);
        sum_2_0 = fma(a_2, b_0, sum_2_0);
        sum_3_0 = fma(a_3, b_0, sum_3_0);
        let b_1 = panels[b + 1u];
        sum_0_1 = fma(a_0, b_1, sum_0_1);
        sum_1_1 = fma(a_1, b_1, sum_1_1);
        sum_2_1 = fma(a_2, b_1, sum_2_1);
        sum_3_1 = fma(a_3, b_1, sum_3_1);
        let b_2 = panels[b + 2u];
        sum_0_2 = fma(a_0, b_2, sum_0_2);
        sum_1_2 = fma(a_1, b_2, sum_1_2);
        sum_2_2 = fma(a_2, b_2, sum_2_2);
        sum_3_2 = fma(a_3, b_2, sum_3_2);
        a += MR;
        b += NR;
    }
    store(i0 + 0u, j0 + 0u, sum_0_0);
    store(i0 + 1u, j0 + 0u, sum_1_0);
    store(i0 + 2u, j0 + 0u, sum_2_0);
    store(i0 + 3u, j0 + 0u, sum_3_0);
    store(i0 + 0u, j0 + 1u, sum_0_1);
    store(i0 + 1u, j0 + 1u, sum_1_1);
    store(i0 + 2u, j0 + 1u, sum_2_1);
    store(i0 + 3u, j0 + 1u, sum_3_1);
    store(i0 + 0u, j0 + 2u, sum_0_2);
    store(i0 + 1u, j0 + 2u, sum_1_2);
    store(i0 + 2u, j0 + 2u, sum_2_2);
    store(i0 + 3u, j0 + 2u, sum_3_2);
}

// Computes element (i, j) of C from the sum of products, and stores the element.
fn store(i: u32, j: u32, sum: real) {
    if (i >= args.m || j >= args.n) { return; }
    let at = args.c_at + i + j * args.c_ld;
    if (args.beta == real()) {
        c[at] = args.alpha * sum;
    } else {
        c[at] = args.alpha * sum + args.beta * c[at];
    }
}