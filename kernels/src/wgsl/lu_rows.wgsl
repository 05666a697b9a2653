// LU factorisation A = P·L·U of many matrices of at most ORDER rows and columns. Each invocation holds one row of a matrix, and
// each workgroup holds ITEMS / ORDER matrices. Matrix g begins g·a_step elements after the first matrix.
//
// Registers hold the columns that are not eliminated yet. In each step, the remaining columns move by one register, so that the
// column of the pivot is always in r0. A pivot row is a row of U, and its registers no longer change. Workgroup memory holds L.
// The kernel exchanges rows only at the end. Until then, `at` is the place of the invocation's row after the exchanges so far.
var<workgroup> done: array<real, {{ ITEMS * ORDER }}>;
// the pivot row of each matrix
var<workgroup> upper: array<vec2<real>, {{ ITEMS // 2 }}>;
// for each place, the magnitude of the element in the pivot column, or -1 if the place has no row or a former pivot row
var<workgroup> magnitude: array<real, ITEMS>;
// for every four places, the largest magnitude and the place of this magnitude
var<workgroup> largest: array<real, {{ ITEMS // 4 }}>;
var<workgroup> place: array<u32, {{ ITEMS // 4 }}>;
{#- Element in column j of the row of invocation t. -#}
{%- macro done(t, j) -%} done[{{ t }} + ({{ j }}) * ITEMS] {%- endmacro %}

// The kernel chooses pivots by the rules in the comment of `getrf_batched`.
@compute @workgroup_size(ITEMS)
fn getrf_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let order = min(args.m, args.n);
    let row = t % ORDER;
    let first = t - row;
    let g = group.x * (ITEMS / ORDER) + t / ORDER;
    // the last workgroup may have fewer matrices, so invocations without a matrix compute with zeros
    let is_there = g < args.count && row < args.m;
    let a_at = args.a_at + g * args.a_step;
    // The device issues several loads together if no branch lies between them. To avoid branches, indices out of range are
    // replaced by valid ones, and the loaded values by zeros.
    let safe = args.a_at + min(g, args.count - 1u) * args.a_step + min(row, args.m - 1u);
    {%- for j in range(ORDER) %}
    var r{{ j }} = {{ a }}[safe + min({{ j }}u, args.n - 1u) * args.a_ld];
    r{{ j }} = select(real(), r{{ j }}, is_there && {{ j }}u < args.n);
    {%- endfor %}
    var at = row;
    var zero_pivot = 0;
    for (var c = 0u; c < order; c++) {
        let is_open = row < args.m && at >= c;
        magnitude[first + at] = select(real(-1), abs(r0), is_open);
        workgroupBarrier();
        var p = c;
        if (args.pivoting != 0u) {
            if (row < ORDER / 4u) {
                var most = real(-1);
                var found = 0u;
                for (var i = 4u * row; i < 4u * row + 4u; i++) {
                    let here = magnitude[first + i];
                    if (here > most) {
                        most = here;
                        found = i;
                    }
                }
                largest[first / 4u + row] = most;
                place[first / 4u + row] = found;
            }
            workgroupBarrier();
            // the first of equal magnitudes wins, and a NaN on the diagonal remains the pivot
            var most = magnitude[first + c];
            for (var i = first / 4u; i < (first + ORDER) / 4u; i++) {
                if (largest[i] > most) {
                    most = largest[i];
                    p = place[i];
                }
            }
        }
        at = select(select(at, p, at == c), c, at == p);
        if (is_open && at == c) {
            {%- for j in range(0, ORDER, 4) %}
            if (c + {{ j }}u < ORDER) {
                upper[first / 2u + {{ j // 2 }}u] = vec2(r{{ j }}, r{{ j + 1 }});
                upper[first / 2u + {{ j // 2 + 1 }}u] = vec2(r{{ j + 2 }}, r{{ j + 3 }});
            }
            {%- endfor %}
        }
        workgroupBarrier();
        let pivot = upper[first / 2u].x;
        if (pivot == real() && zero_pivot == 0) { zero_pivot = i32(c + 1u); }
        if (is_there && row == 0u) { {{ ipiv }}[args.ipiv_at + g * order + c] = i32(p); }
        if (is_open && at != c) {
            var l = r0;
            if (abs(pivot) >= MIN_POSITIVE) { l *= real(1) / pivot; } else if (!(pivot == real())) { l /= pivot; }
            {{ done("t", "c") }} = l;
            // columns beyond the last column of the matrix are computed, but not stored
            {%- for j in range(0, ORDER, 4) %}
            if (c + {{ j }}u < ORDER) {
                let u = upper[first / 2u + {{ j // 2 }}u];
                let v = upper[first / 2u + {{ j // 2 + 1 }}u];
                {%- if j > 0 %}
                r{{ j - 1 }} = r{{ j }} - l * u.x;
                {%- endif %}
                r{{ j }} = r{{ j + 1 }} - l * u.y;
                r{{ j + 1 }} = r{{ j + 2 }} - l * v.x;
                r{{ j + 2 }} = r{{ j + 3 }} - l * v.y;
            }
            {%- endfor %}
        }
    }
    if (is_there) {
        {%- for j in range(ORDER) %}
        if (at + {{ j }}u < args.n) { {{ done("t", "at + " ~ j ~ "u") }} = r{{ j }}; }
        {%- endfor %}
        if (row == 0u) { {{ info }}[args.info_at + g] = zero_pivot; }
        for (var j = 0u; j < args.n; j++) { {{ a }}[a_at + at + j * args.a_ld] = {{ done("t", "j") }}; }
    }
}
