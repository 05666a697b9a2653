// Exchanges lines i and ipiv[i] - first for all i, in order or in reverse order:
// element r of line i is a[a_at + i·by_line + r·by_place]. One place for each work-item.
//
// What BATCH exchanges do together is found out first: where each of their lines comes
// from. Then all that moves is read before anything is written.
#define SET (BATCH * BATCHES)
// the line of an exchange
#define LINE(step) (forward ? (step) : count - 1 - (step))

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void exchange(const ulong count, const ulong places, const ulong forward, const ulong first, __global real *a, const ulong a_at,
              const ulong by_line, const ulong by_place, __global const int *restrict ipiv, const ulong ipiv_at) {
    // the line that exchange e of the set names, and its place in the batch
    __local uint named[SET], slot[SET];
    // the line whose elements end in each place of a batch: its own lines, then those named
    __local uint held[2 * SET];
    const uint t = get_local_id(0);
    const ulong r = get_global_id(0);
    __global real *at = a + a_at + r * by_place;
    for (ulong begin = 0; begin < count; begin += SET) {
        const uint here = (uint)min(count - begin, (ulong)SET);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = t; e < here; e += GROUP) {
            named[e] = (uint)ipiv[ipiv_at + LINE(begin + e)] - (uint)first;
            held[e / BATCH * BATCH + e] = (uint)LINE(begin + e);
            held[e / BATCH * BATCH + e + BATCH] = named[e];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = t; e < here; e += GROUP) {
            const uint batch = e - e % BATCH, own = (uint)LINE(begin + batch);
            // the lines of a batch follow one another
            uint found = forward ? named[e] - own : own - named[e];
            if (found >= min((uint)BATCH, here - batch)) {
                for (found = BATCH; named[batch + found - BATCH] != named[e];) ++found;
            }
            slot[e] = 2 * batch + found;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint batch = t * BATCH; batch < here; batch += GROUP * BATCH)
            for (uint e = batch; e < min(batch + BATCH, here); ++e) {
                const uint old = held[batch + e];
                held[batch + e] = held[slot[e]];
                held[slot[e]] = old;
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint batch = 0; r < places && batch < here; batch += BATCH) {
            const uint size = min((uint)BATCH, here - batch);
            __local const uint *const own = held + 2 * batch, *const other = own + BATCH;
            real x[BATCH], y[BATCH];
            #pragma unroll
            for (uint q = 0; q < BATCH; ++q)
                if (q < size) {
                    x[q] = at[own[q] * by_line];
                    y[q] = at[other[q] * by_line];
                }
            #pragma unroll
            for (uint q = 0; q < BATCH; ++q)
                if (q < size) {
                    const ulong line = LINE(begin + batch + q);
                    if (own[q] != line) at[line * by_line] = x[q];
                    if (other[q] != named[batch + q]) at[named[batch + q] * by_line] = y[q];
                }
        }
    }
}
