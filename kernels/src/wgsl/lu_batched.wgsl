// LU of many small matrices, and solves with the factors: a workgroup of ITEMS invocations for each matrix. Matrix g of x begins
// g·x_step elements after the first. The matrix that is written is in workgroup memory if that has room for ROOM elements of it,
// else (ROOM = 0) in storage memory.
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

// A = P·L·U. The largest magnitude from the diagonal down is the pivot; ties keep the first row; a NaN wins only where it already
// stands. A zero pivot leaves its column unscaled; the first one is told by info.
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
{#- Rows of B exchanged as the pivots say, in order or in reverse order. #}
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
{#- Takes unknown c out of the equations first .. first + count. #}
{%- macro eliminate(x) %}
        for (var e = t; e < count * sides; e += ITEMS) {
            let i = first + e % count;
            let r = e / count;
            {{ W("i", "r") }} -= {{ lu }}[lu_at + select(i + c * args.lu_ld, c + i * args.lu_ld, trans)] * ({{ x }});
        }
        {{ SYNC }}
{%- endmacro %}
// B <- op(A)^-1·B from P·L·U = A. A pivot divides its unknown for each equation that this is taken out of, and at the end, which
// saves a barrier for each unknown.
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
