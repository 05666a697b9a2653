// LU of many small matrices, and solves with the factors. A workgroup of ITEMS invocations computes one matrix. Matrix g of
// operand x begins g·x_step elements after the first matrix. If ROOM is not zero, the kernel works on a copy of the matrix in
// workgroup memory, which has room for ROOM elements. If ROOM is zero, the kernel works in storage memory.
{%- if ROOM > 0 %}
var<workgroup> w: array<real, ROOM>;
{%- macro W(i, j) -%} w[{{ i }} + ({{ j }}) * rows] {%- endmacro %}
{%- set SYNC = "workgroupBarrier();" %}
{%- else %}
{%- macro W(i, j) -%} {{ written }}[w_at + {{ i }} + ({{ j }}) * w_ld] {%- endmacro %}
{%- set SYNC = "storageBarrier();" %}
{%- endif %}
{%- macro enter(x, cols) %}
    {%- if ROOM > 0 %}
    for (var e = t; e < rows * {{ cols }}; e += ITEMS) { w[e] = {{ x }}[w_at + e % rows + e / rows * w_ld]; }
    workgroupBarrier();
    {%- endif %}
{%- endmacro %}
{%- macro leave(x, cols) %}
    {%- if ROOM > 0 %}
    for (var e = t; e < rows * {{ cols }}; e += ITEMS) { {{ x }}[w_at + e % rows + e / rows * w_ld] = w[e]; }
    {%- endif %}
{%- endmacro %}
{% if kernel == "getrf_batched" %}
{%- set written = a %}
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
    {{- enter(a, "args.n") }}
    var told = 0;
    for (var c = 0u; c < order; c++) {
        var p = c;
        if (args.pivoting != 0u) {
            var most = real(-1);
            for (var i = c + t; i < rows; i += ITEMS) {
                let here = abs({{ W("i", "c") }});
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
            p = select(c, place[0], magnitude[0] > abs({{ W("c", "c") }}));
            workgroupBarrier();
            {{ SYNC }}
        }
        if (p != c) {
            for (var j = t; j < args.n; j += ITEMS) {
                let old = {{ W("c", "j") }};
                {{ W("c", "j") }} = {{ W("p", "j") }};
                {{ W("p", "j") }} = old;
            }
        }
        {{ SYNC }}
        let pivot = {{ W("c", "c") }};
        if (pivot == real() && told == 0) { told = i32(c + 1u); }
        if (t == 0u) { {{ ipiv }}[ipiv_at + c] = i32(p); }
        let reciprocal = abs(pivot) >= MIN_POSITIVE;
        let factor = real(1) / pivot;
        for (var i = c + 1u + t; i < rows; i += ITEMS) {
            var l = {{ W("i", "c") }};
            if (!(pivot == real())) {
                if (reciprocal) { l = l * factor; } else { l = l / pivot; }
                {{ W("i", "c") }} = l;
            }
            for (var j = c + 1u; j < args.n; j++) {
                {{ W("i", "j") }} -= l * {{ W("c", "j") }};
            }
        }
        {{ SYNC }}
    }
    if (t == 0u) { {{ info }}[args.info_at + group.x] = told; }
    {{- leave(a, "args.n") }}
}
{% elif kernel == "getrs_batched" %}
{%- set written = b %}
{#- Exchanges the rows of B as the pivots say, in reverse order if `trans` is set. #}
{%- macro exchange() %}
        for (var r = t; r < sides; r += ITEMS) {
            for (var step = 0u; step < rows; step++) {
                let i = select(step, rows - 1u - step, trans);
                let p = u32({{ ipiv }}[ipiv_at + i]);
                let old = {{ W("i", "r") }};
                {{ W("i", "r") }} = {{ W("p", "r") }};
                {{ W("p", "r") }} = old;
            }
        }
        {{ SYNC }}
{%- endmacro %}
{#- Eliminates unknown c from the equations first, ..., first + count - 1. #}
{%- macro eliminate(x) %}
        for (var e = t; e < count * sides; e += ITEMS) {
            let i = first + e % count;
            let r = e / count;
            {{ W("i", "r") }} -= {{ lu }}[lu_at + select(i + c * args.lu_ld, c + i * args.lu_ld, trans)] * ({{ x }});
        }
        {{ SYNC }}
{%- endmacro %}
// B <- op(A)^-1·B from P·L·U = A. The kernel divides an unknown by the pivot in each elimination with U, and stores the quotients
// only at the end. The repeated divisions save one barrier for each unknown.
@compute @workgroup_size(ITEMS)
fn getrs_batched(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let rows = args.n;
    let sides = args.nrhs;
    let trans = args.trans != 0u;
    let lu_at = args.lu_at + group.x * args.lu_step;
    let ipiv_at = args.ipiv_at + group.x * rows;
    let w_at = args.b_at + group.x * args.b_step;
    let w_ld = args.b_ld;
    {{- enter(b, "sides") }}
    if (!trans) {
        {{- exchange() }}
        for (var c = 0u; c < rows; c++) {
            let first = c + 1u;
            let count = rows - first;
            {{- eliminate(W("c", "r")) }}
        }
    }
    for (var s = 0u; s < rows; s++) {
        let c = select(rows - 1u - s, s, trans);
        let pivot = {{ lu }}[lu_at + c * (args.lu_ld + 1u)];
        let first = select(0u, c + 1u, trans);
        let count = rows - 1u - s;
        {{- eliminate(W("c", "r") ~ " / pivot") }}
    }
    for (var e = t; e < rows * sides; e += ITEMS) {
        {{ W("e % rows", "e / rows") }} /= {{ lu }}[lu_at + e % rows * (args.lu_ld + 1u)];
    }
    {{ SYNC }}
    if (trans) {
        for (var s = 0u; s < rows; s++) {
            let c = rows - 1u - s;
            let first = 0u;
            let count = c;
            {{- eliminate(W("c", "r")) }}
        }
        {{- exchange() }}
    }
    {{- leave(b, "sides") }}
}
{% endif %}
