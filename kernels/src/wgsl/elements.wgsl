// Kernels with little arithmetic, in which each invocation computes one line or one element.
{% if kernel == "scale" %}
// C <- beta·C. If beta = 0, the kernel writes zeros and does not read C.
@compute @workgroup_size(GROUP)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= args.m || id.y >= args.n) { return; }
    let at = args.c_at + id.x + id.y * args.c_ld;
    if (args.beta == real()) {
        {{ c }}[at] = real();
    } else {
        {{ c }}[at] = args.beta * {{ c }}[at];
    }
}
{% elif kernel == "copy" %}
// Copies a matrix: B <- A.
@compute @workgroup_size(GROUP)
fn copy(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= args.m || id.y >= args.n) { return; }
    {{ b }}[args.b_at + id.x + id.y * args.b_ld] = {{ a }}[args.a_at + id.x + id.y * args.a_ld];
}
{% elif kernel == "narrow" %}
// Copies a matrix to a matrix in single precision: B <- alpha·A.
@compute @workgroup_size(GROUP)
fn narrow(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= args.m || id.y >= args.n) { return; }
    {{ rounded }}[args.rounded_at + id.x + id.y * args.rounded_ld] = f32(args.alpha * {{ a }}[args.a_at + id.x + id.y * args.a_ld]);
}
{% elif kernel == "laswp" %}
// Exchanges lines i and ipiv[i] - first for `count` values of i from `begin` on, in order or in reverse order. Element r of line
// i is a[a_at + i·by_line + r·by_place]. An invocation makes all exchanges for one value of r.
@compute @workgroup_size(GROUP)
fn laswp(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= args.places) { return; }
    let at = args.a_at + id.x * args.by_place;
    for (var step = 0u; step < args.count; step++) {
        let i = args.begin + select(args.count - 1u - step, step, args.forward != 0u);
        let p = u32({{ ipiv }}[args.ipiv_at + i]) - args.first;
        if (p != i) {
            let old = {{ a }}[at + i * args.by_line];
            {{ a }}[at + i * args.by_line] = {{ a }}[at + p * args.by_line];
            {{ a }}[at + p * args.by_line] = old;
        }
    }
}
{% elif kernel == "zero_pivots" %}
// info[g] <- 1 + the first row with a zero on the diagonal of matrix g, or 0 if there is no zero. Matrix g begins g·lu_step
// elements after the first matrix.
@compute @workgroup_size(GROUP)
fn zero_pivots(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= args.count) { return; }
    let at = args.lu_at + id.x * args.lu_step;
    var told = 0;
    for (var i = 0u; i < args.n && told == 0; i++) {
        if ({{ lu }}[at + i * (args.lu_ld + 1u)] == real()) { told = i32(i + 1u); }
    }
    {{ info }}[args.info_at + id.x] = told;
}
{% elif kernel == "clear" %}
// Fills the array info with zeros.
@compute @workgroup_size(GROUP)
fn clear(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < args.count) { {{ info }}[args.info_at + id.x] = 0; }
}
{% endif %}
