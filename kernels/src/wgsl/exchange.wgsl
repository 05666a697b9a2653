// Exchanges lines i and ipiv[i] - first for all i, in order or in reverse order:
// element r of line i is a[a_at + i·by_line + r·by_place]. One place for each invocation.
//
// What BATCH exchanges do together is found out first: where each of their lines comes
// from. Then all that moves is read before anything is written.
{%- set SET = BATCH * BATCHES %}
// the line that exchange e of the set names
var<workgroup> named: array<u32, {{ SET }}>;
// its place in the batch
var<workgroup> slot: array<u32, {{ SET }}>;
// the line whose elements end in each place of a batch: its own lines, then those named
var<workgroup> held: array<u32, {{ 2 * SET }}>;

// The line of exchange `step`.
fn line(step: u32) -> u32 { return select(args.count - 1u - step, step, args.forward != 0u); }

@compute @workgroup_size(GROUP)
fn exchange(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let at = args.a_at + id.x * args.by_place;
    for (var begin = 0u; begin < args.count; begin += {{ SET }}u) {
        let count = min(args.count - begin, {{ SET }}u);
        workgroupBarrier();
        for (var e = t; e < count; e += GROUP) {
            let own = line(begin + e);
            named[e] = u32({{ ipiv }}[args.ipiv_at + own]) - args.first;
            held[e / BATCH * BATCH + e] = own;
            held[e / BATCH * BATCH + e + BATCH] = named[e];
        }
        workgroupBarrier();
        for (var e = t; e < count; e += GROUP) {
            let batch = e - e % BATCH;
            let own = line(begin + batch);
            // the lines of a batch follow one another
            let inside = select(own - named[e], named[e] - own, args.forward != 0u);
            var found = inside;
            if (inside >= min(BATCH, count - batch)) {
                var q = 0u;
                while (named[batch + q] != named[e]) { q++; }
                found = BATCH + q;
            }
            slot[e] = 2u * batch + found;
        }
        workgroupBarrier();
        for (var batch = t * BATCH; batch < count; batch += GROUP * BATCH) {
            for (var e = batch; e < min(batch + BATCH, count); e++) {
                let own = batch + e;
                let old = held[own];
                held[own] = held[slot[e]];
                held[slot[e]] = old;
            }
        }
        workgroupBarrier();
        if (id.x < args.places) {
            for (var batch = 0u; batch < count; batch += BATCH) {
                let size = min(BATCH, count - batch);
                {%- for q in range(BATCH) %}
                let own_{{ q }} = select(0u, held[2u * batch + {{ q }}u], {{ q }}u < size);
                let other_{{ q }} = select(0u, held[2u * batch + BATCH + {{ q }}u], {{ q }}u < size);
                let x_{{ q }} = {{ a }}[at + own_{{ q }} * args.by_line];
                let y_{{ q }} = {{ a }}[at + other_{{ q }} * args.by_line];
                {%- endfor %}
                {%- for q in range(BATCH) %}
                if ({{ q }}u < size) {
                    let own = line(begin + batch + {{ q }}u);
                    let other = named[batch + {{ q }}u];
                    if (own_{{ q }} != own) { {{ a }}[at + own * args.by_line] = x_{{ q }}; }
                    if (other_{{ q }} != other) { {{ a }}[at + other * args.by_line] = y_{{ q }}; }
                }
                {%- endfor %}
            }
        }
    }
}
