// Exchanges rows i and ipiv[i] - first of A for all i, in order or in reverse order.
// Invocation (q, r) of a workgroup moves what stands in rows q and BATCH + q of a batch of
// BATCH exchanges, in columns r, r + ACROSS, ... of the workgroup's PLACES columns.
//
// What the exchanges of a batch do together is found out first: where each of their rows
// comes from. Then all that moves is read before anything is written.
{%- set SET = BATCH * BATCHES %}
{%- set ACROSS = ITEMS // BATCH %}
{%- set EACH = PLACES // ACROSS %}
// the row that exchange e of the set names
var<workgroup> named: array<u32, {{ SET }}>;
// its place in the batch
var<workgroup> slot: array<u32, {{ SET }}>;
// the row whose elements end in each place of a batch: its own rows, then those named
var<workgroup> held: array<u32, {{ 2 * SET }}>;

// The row of exchange `step`.
fn row(step: u32) -> u32 { return select(args.count - 1u - step, step, args.forward != 0u); }

fn element(i: u32, j: u32) -> u32 { return args.a_at + i + j * args.a_ld; }

@compute @workgroup_size(ITEMS)
fn exchange(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let q = t % BATCH;
    {%- for r in range(EACH) %}
    let j_{{ r }} = group.x * PLACES + t / BATCH + {{ r * ACROSS }}u;
    {%- endfor %}
    for (var begin = 0u; begin < args.count; begin += {{ SET }}u) {
        let count = min(args.count - begin, {{ SET }}u);
        workgroupBarrier();
        for (var e = t; e < count; e += ITEMS) {
            let own = row(begin + e);
            named[e] = u32({{ ipiv }}[args.ipiv_at + own]) - args.first;
            held[e / BATCH * BATCH + e] = own;
            held[e / BATCH * BATCH + e + BATCH] = named[e];
        }
        workgroupBarrier();
        for (var e = t; e < count; e += ITEMS) {
            let batch = e - e % BATCH;
            let first = row(begin + batch);
            // the rows of a batch follow one another
            var place = select(first - named[e], named[e] - first, args.forward != 0u);
            if (place >= min(BATCH, count - batch)) {
                var other = 0u;
                while (named[batch + other] != named[e]) { other++; }
                place = BATCH + other;
            }
            slot[e] = 2u * batch + place;
        }
        workgroupBarrier();
        for (var batch = t * BATCH; batch < count; batch += ITEMS * BATCH) {
            for (var e = batch; e < min(batch + BATCH, count); e++) {
                let old = held[batch + e];
                held[batch + e] = held[slot[e]];
                held[slot[e]] = old;
            }
        }
        for (var batch = 0u; batch < count; batch += BATCH) {
            // what the batch before has written is read by others now
            workgroupBarrier();
            storageBarrier();
            let moves = batch + q < count;
            var own = 0u;
            var other = 0u;
            if (moves) {
                own = held[2u * batch + q];
                other = held[2u * batch + BATCH + q];
            }
            {%- for r in range(EACH) %}
            var x_{{ r }} = real();
            var y_{{ r }} = real();
            if (moves && j_{{ r }} < args.n) {
                x_{{ r }} = {{ a }}[element(own, j_{{ r }})];
                y_{{ r }} = {{ a }}[element(other, j_{{ r }})];
            }
            {%- endfor %}
            workgroupBarrier();
            storageBarrier();
            if (moves) {
                let to = row(begin + batch + q);
                let to_other = named[batch + q];
                {%- for r in range(EACH) %}
                if (own != to && j_{{ r }} < args.n) { {{ a }}[element(to, j_{{ r }})] = x_{{ r }}; }
                if (other != to_other && j_{{ r }} < args.n) { {{ a }}[element(to_other, j_{{ r }})] = y_{{ r }}; }
                {%- endfor %}
            }
        }
    }
}
