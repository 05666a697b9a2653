
// Computes element (i, j) of C from the sum of products, and stores the element.
fn store(i: u32, j: u32, sum: real) {
    if (i >= args.m || j >= args.n) { return; }
    let at = args.c_at + i + j * args.c_ld;
    if (args.beta == real()) {
        {{ c }}[at] = args.alpha * sum;
    } else {
        {{ c }}[at] = args.alpha * sum + args.beta * {{ c }}[at];
    }
}
