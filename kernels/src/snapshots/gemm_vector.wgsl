alias real = f32;
const MIN_POSITIVE: real = 1.17549435e-38f;
alias vec = vec4<real>;
alias size = u32;
alias stride = i32;
const MWG = 32u;
const NWG = 32u;
const KWG = 4u;
const MR = 4u;
const NR = 8u;
const LANES_N = 4u;
const ZIGZAG = 1u;
const AHEAD = 0u;
const IMAGES = 0u;
const TRANS_B = 0u;
const VEC_C = 1u;
const V = 4u;

struct Args {
    m: u32,
    n: u32,
    k: u32,
    alpha: real,
    a_at: u32,
    a_ld: u32,
    b_at: u32,
    b_ld: u32,
    beta: real,
    c_at: u32,
    c_ld: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> a: array<vec>;
@group(0) @binding(2) var<storage, read> b: array<vec>;
@group(0) @binding(3) var<storage, read_write> c: array<vec>;

// C <- alpha·A·op(B) + beta·C for operands in whole vectors. The extent k is a multiple of KWG.
// Positions and leading dimensions of A and B are multiples of the vector length.
// Position and leading dimension of C, and m, are multiples of the vector length too.
// Elements that fill the last vector follow each line of A. A vector has 4 elements.
//     A(i, p) = element a_at + i + p·a_ld of a,  op(B)(p, j) = element b_at + p + j·b_ld of b
//
// A workgroup computes a tile of MWG x NWG elements. The invocations form strips of 8 x 4 = 32.
// Each invocation computes MR x NR elements: vectors of rows that are 8 vectors apart, in groups of as many
// columns as a vector has elements. A and op(B) pass through workgroup memory in slices of KWG terms along k. While the invocations
// use one slice, they load the next slice into registers. The kernel text unrolls the loop over a slice. Invocations
// beyond an edge read elements inside the matrices and store nothing. If beta = 0, the kernel does not read C.
// the slices of B, followed by the slices of A, each stored in lines of vectors along the side of the tile
var<workgroup> slices: array<vec, 128>;

@compute @workgroup_size(32)
fn gemm_vector(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let ld_a: size = args.a_ld / 4u;
    let ld_b: size = args.b_ld / 4u;
    let lane: u32 = t % 32u;
    let strip: u32 = t / 32u;
    let lane_n: u32 = lane / 16u * 2u + lane % 2u;
    let lane_m: u32 = lane / 2u % 8u;
    let strip_m: u32 = strip % 1u;
    let strip_n: u32 = strip / 1u;

    // this invocation reads vector row_a of the tile in line p_a of each slice of A
    let row_a: u32 = t % 8u;
    let p_a: u32 = t / 8u;
    var from_a: size = args.a_at / 4u + min(group.x * 8u + row_a, (args.m - 1u) / 4u) + p_a * ld_a;
    let step_a: size = KWG * ld_a;
    let to_a: u32 = 32u + p_a * 8u + row_a;
    // This invocation reads vector p_b of each slice of B in column col_b of the tile. The invocation stores the elements of a
    // vector to neighbouring lines, in a shuffled order in which few stores meet in one bank. The last tile begins so early that
    // the tile ends with the last column of B. This is possible because n is at least NWG.
    let j0: u32 = min(group.y * NWG, args.n - NWG);
    let col_b: u32 = t / 1u;
    let p_b: u32 = t % 1u;
    var from_b: size = args.b_at / 4u + p_b + (j0 + col_b) * ld_b;
    let step_b: size = 1u;
    let to_b: u32 = p_b * 32u + ((col_b / 4u) ^ (8u * p_b));
    let part_b: u32 = col_b % 4u;
    let next_b_0: size = 0u * ld_b;
    var sum_0_0: vec = vec(real(0));
    var sum_0_1: vec = vec(real(0));
    var sum_0_2: vec = vec(real(0));
    var sum_0_3: vec = vec(real(0));
    var sum_0_4: vec = vec(real(0));
    var sum_0_5: vec = vec(real(0));
    var sum_0_6: vec = vec(real(0));
    var sum_0_7: vec = vec(real(0));

    let read_a: u32 = 32u + strip_m * 8u + lane_m;
    let read_b_0: u32 = strip_n * 8u + (lane_n ^ 0u);
    var load_a_0: vec;
    var load_b_0: vec;
    load_a_0 = a[from_a + 0u * ld_a];
    load_b_0 = b[from_b + next_b_0];
    // after the last slice, the same slice is fetched again and not used
    let count: u32 = args.k / KWG;
    from_a += select(0u, step_a, 1u < count);
    from_b += select(0u, step_b, 1u < count);
    slices[0u + to_a + 0u] = load_a_0;
    slices[0u + to_b + 0u][part_b] = load_b_0.x;
    slices[0u + to_b + 8u][part_b] = load_b_0.y;
    slices[0u + to_b + 16u][part_b] = load_b_0.z;
    slices[0u + to_b + 24u][part_b] = load_b_0.w;
    workgroupBarrier();
    var used: u32 = 0u;
    for (var s: u32 = 1u; s <= count; s++) {
        load_a_0 = a[from_a + 0u * ld_a];
        load_b_0 = b[from_b + next_b_0];
        from_a += select(0u, step_a, s + 1u < count);
        from_b += select(0u, step_b, s + 1u < count);
        let b_0_0: vec = slices[used + read_b_0 + 0u];
        let b_0_1: vec = slices[used + read_b_0 + 4u];
        let a_0_0: vec = slices[used + read_a + 0u];
        sum_0_0 = fma(vec(b_0_0.x), a_0_0, sum_0_0);
        sum_0_1 = fma(vec(b_0_0.y), a_0_0, sum_0_1);
        sum_0_2 = fma(vec(b_0_0.z), a_0_0, sum_0_2);
        sum_0_3 = fma(vec(b_0_0.w), a_0_0, sum_0_3);
        sum_0_4 = fma(vec(b_0_1.x), a_0_0, sum_0_4);
        sum_0_5 = fma(vec(b_0_1.y), a_0_0, sum_0_5);
        sum_0_6 = fma(vec(b_0_1.z), a_0_0, sum_0_6);
        sum_0_7 = fma(vec(b_0_1.w), a_0_0, sum_0_7);
        let b_1_0: vec = slices[used + read_b_0 + 8u];
        let b_1_1: vec = slices[used + read_b_0 + 12u];
        let a_1_0: vec = slices[used + read_a + 8u];
        sum_0_0 = fma(vec(b_1_0.x), a_1_0, sum_0_0);
        sum_0_1 = fma(vec(b_1_0.y), a_1_0, sum_0_1);
        sum_0_2 = fma(vec(b_1_0.z), a_1_0, sum_0_2);
        sum_0_3 = fma(vec(b_1_0.w), a_1_0, sum_0_3);
        sum_0_4 = fma(vec(b_1_1.x), a_1_0, sum_0_4);
        sum_0_5 = fma(vec(b_1_1.y), a_1_0, sum_0_5);
        sum_0_6 = fma(vec(b_1_1.z), a_1_0, sum_0_6);
        sum_0_7 = fma(vec(b_1_1.w), a_1_0, sum_0_7);
        let b_2_0: vec = slices[used + read_b_0 + 16u];
        let b_2_1: vec = slices[used + read_b_0 + 20u];
        let a_2_0: vec = slices[used + read_a + 16u];
        sum_0_0 = fma(vec(b_2_0.x), a_2_0, sum_0_0);
        sum_0_1 = fma(vec(b_2_0.y), a_2_0, sum_0_1);
        sum_0_2 = fma(vec(b_2_0.z), a_2_0, sum_0_2);
        sum_0_3 = fma(vec(b_2_0.w), a_2_0, sum_0_3);
        sum_0_4 = fma(vec(b_2_1.x), a_2_0, sum_0_4);
        sum_0_5 = fma(vec(b_2_1.y), a_2_0, sum_0_5);
        sum_0_6 = fma(vec(b_2_1.z), a_2_0, sum_0_6);
        sum_0_7 = fma(vec(b_2_1.w), a_2_0, sum_0_7);
        let b_3_0: vec = slices[used + read_b_0 + 24u];
        let b_3_1: vec = slices[used + read_b_0 + 28u];
        let a_3_0: vec = slices[used + read_a + 24u];
        sum_0_0 = fma(vec(b_3_0.x), a_3_0, sum_0_0);
        sum_0_1 = fma(vec(b_3_0.y), a_3_0, sum_0_1);
        sum_0_2 = fma(vec(b_3_0.z), a_3_0, sum_0_2);
        sum_0_3 = fma(vec(b_3_0.w), a_3_0, sum_0_3);
        sum_0_4 = fma(vec(b_3_1.x), a_3_0, sum_0_4);
        sum_0_5 = fma(vec(b_3_1.y), a_3_0, sum_0_5);
        sum_0_6 = fma(vec(b_3_1.z), a_3_0, sum_0_6);
        sum_0_7 = fma(vec(b_3_1.w), a_3_0, sum_0_7);
        slices[64u - used + to_a + 0u] = load_a_0;
        slices[64u - used + to_b + 0u][part_b] = load_b_0.x;
        slices[64u - used + to_b + 8u][part_b] = load_b_0.y;
        slices[64u - used + to_b + 16u][part_b] = load_b_0.z;
        slices[64u - used + to_b + 24u][part_b] = load_b_0.w;
        used = 64u - used;
        workgroupBarrier();
    }

    let i: u32 = group.x * 8u + strip_m * 8u + lane_m;
    let j: u32 = strip_n * 32u + lane_n * 4u;
    // Several old vectors are read before the first of them is replaced. Otherwise each read would wait for the read before, because the compiler
    // keeps the order of reads and writes.
    let old_0_0: vec = old(group.y, i + 0u, j + 0u);
    let old_0_1: vec = old(group.y, i + 0u, j + 1u);
    let old_0_2: vec = old(group.y, i + 0u, j + 2u);
    let old_0_3: vec = old(group.y, i + 0u, j + 3u);
    store(group.y, i + 0u, j + 0u, sum_0_0, old_0_0);
    store(group.y, i + 0u, j + 1u, sum_0_1, old_0_1);
    store(group.y, i + 0u, j + 2u, sum_0_2, old_0_2);
    store(group.y, i + 0u, j + 3u, sum_0_3, old_0_3);
    let old_0_4: vec = old(group.y, i + 0u, j + 16u);
    let old_0_5: vec = old(group.y, i + 0u, j + 17u);
    let old_0_6: vec = old(group.y, i + 0u, j + 18u);
    let old_0_7: vec = old(group.y, i + 0u, j + 19u);
    store(group.y, i + 0u, j + 16u, sum_0_4, old_0_4);
    store(group.y, i + 0u, j + 17u, sum_0_5, old_0_5);
    store(group.y, i + 0u, j + 18u, sum_0_6, old_0_6);
    store(group.y, i + 0u, j + 19u, sum_0_7, old_0_7);
}

// Reads vector i of C in column `col` of a tile. The elements are zero if beta = 0 or if they lie outside.
fn old(tile: u32, i: u32, col: u32) -> vec {
    var elements: vec;
    let j: u32 = min(tile * NWG, args.n - NWG) + col;
    // the previous tile stores the columns that both tiles contain
    if (i * 4u >= args.m || j < tile * NWG) { return elements; }
    let at: size = args.c_at / 4u + i + j * (args.c_ld / 4u);
    if (args.beta == real(0)) { return elements; }
    elements = c[at];
    return elements;
}

// Computes vector i of C in column `col` of a tile from the vector's sums of products and the old vector, and stores the vector.
fn store(tile: u32, i: u32, col: u32, sum: vec, old: vec) {
    let j: u32 = min(tile * NWG, args.n - NWG) + col;
    // the previous tile stores the columns that both tiles contain
    if (i * 4u >= args.m || j < tile * NWG) { return; }
    let at: size = args.c_at / 4u + i + j * (args.c_ld / 4u);
    var elements: vec = args.alpha * sum;
    if (args.beta != real(0)) { elements = elements + args.beta * old; }
    c[at] = elements;
}