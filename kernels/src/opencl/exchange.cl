// Exchanges rows i and ipiv[i] - first of A for all i, in order or in reverse order.
// Work-item (q, r) of a work-group moves what stands in rows q and BATCH + q of a batch of
// BATCH exchanges, in columns r, r + ACROSS, ... of the work-group's PLACES columns.
//
// What the exchanges of a batch do together is found out first: where each of their rows
// comes from. Then all that moves is read before anything is written.
#define SET (BATCH * BATCHES)
#define ACROSS (ITEMS / BATCH)
#define EACH (PLACES / ACROSS)
// the row of an exchange
#define ROW(step) (forward ? (step) : count - 1 - (step))

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void exchange(const ulong count, const ulong n, const ulong forward, const ulong first, __global real *a, const ulong a_at,
              const ulong a_ld, __global const int *restrict ipiv, const ulong ipiv_at) {
    // the row that exchange e of the set names, and its place in the batch
    __local uint named[SET], slot[SET];
    // the row whose elements end in each place of a batch: its own rows, then those named
    __local uint held[2 * SET];
    const uint t = get_local_id(0), q = t % BATCH;
    const ulong column = get_group_id(0) * (ulong)PLACES + t / BATCH;
    for (ulong begin = 0; begin < count; begin += SET) {
        const uint here = (uint)min(count - begin, (ulong)SET);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = t; e < here; e += ITEMS) {
            named[e] = (uint)ipiv[ipiv_at + ROW(begin + e)] - (uint)first;
            held[e / BATCH * BATCH + e] = (uint)ROW(begin + e);
            held[e / BATCH * BATCH + e + BATCH] = named[e];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = t; e < here; e += ITEMS) {
            const uint batch = e - e % BATCH, own = (uint)ROW(begin + batch);
            // the rows of a batch follow one another
            uint place = forward ? named[e] - own : own - named[e];
            if (place >= min((uint)BATCH, here - batch)) {
                for (place = BATCH; named[batch + place - BATCH] != named[e];) ++place;
            }
            slot[e] = 2 * batch + place;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint batch = t * BATCH; batch < here; batch += ITEMS * BATCH)
            for (uint e = batch; e < min(batch + BATCH, here); ++e) {
                const uint old = held[batch + e];
                held[batch + e] = held[slot[e]];
                held[slot[e]] = old;
            }
        for (uint batch = 0; batch < here; batch += BATCH) {
            // what the batch before has written is read by others now
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            const int moves = batch + q < here;
            const ulong own = moves ? held[2 * batch + q] : 0, other = moves ? held[2 * batch + BATCH + q] : 0;
            real x[EACH], y[EACH];
            #pragma unroll
            for (uint r = 0; r < EACH; ++r)
                if (moves && column + r * ACROSS < n) {
                    x[r] = AT(a, own, column + r * ACROSS);
                    y[r] = AT(a, other, column + r * ACROSS);
                }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (moves) {
                const ulong to = ROW(begin + batch + q), to_other = named[batch + q];
                #pragma unroll
                for (uint r = 0; r < EACH; ++r)
                    if (column + r * ACROSS < n) {
                        if (own != to) AT(a, to, column + r * ACROSS) = x[r];
                        if (other != to_other) AT(a, to_other, column + r * ACROSS) = y[r];
                    }
            }
        }
    }
}
