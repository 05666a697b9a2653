// Triangles of at most ORDER unknowns, forward substitution: coefficient k of equation i is
// a[a_at + i·a_i + k·a_k], unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. Backward
// substitution starts at the last unknown, with negative strides. A unit diagonal and what stands
// above are loaded with the rest, and never computed with.
//
// A work-group has WIDTH right-hand sides, a work-item MR unknowns of NR of them, in registers.
// In each step the work-items that have the next MR unknowns solve for them and tell those
// after them, which take them out of their equations; the coefficients of the next step are on
// their way meanwhile.
#define ORDER (ITEMS / LANES * MR)
#define WIDTH (LANES * NR)
#define SLICE (ORDER * MR)
#define EACH_UNKNOWN(i) _Pragma("unroll") for (int i = 0; i < MR; ++i)
#define EACH_SIDE(c) _Pragma("unroll") for (int c = 0; c < NR; ++c)
#define EACH_FETCHED(f) _Pragma("unroll") for (int f = 0; f < SLICE / ITEMS; ++f)
#define FETCHED(f) (t + (f) * ITEMS)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void solve(const ulong n, const ulong nrhs, const ulong unit, __global const real *a, const ulong a_at, const long a_i,
           const long a_k, __global real *b, const ulong b_at, const long b_i, const long b_r) {
    // columns of coefficients for a step and for the next; the unknowns of a step
    __local real coefficients[2 * SLICE], solved[MR * WIDTH];
    const int t = get_local_id(0), last = (int)n - 1, own = t / LANES * MR;
    a += a_at;
    b += b_at;
// What would stand beyond the last coefficient is taken from there, for unknowns that there are none of.
#define COEFFICIENT(i, k) a[min(i, last) * a_i + min(k, last) * a_k]
// the right-hand side of registers c
#define SIDE(c) ((ulong)get_group_id(0) * WIDTH + (c) * LANES + t % LANES)
    EACH_FETCHED(f) coefficients[FETCHED(f)] = COEFFICIENT(FETCHED(f) % ORDER, FETCHED(f) / ORDER);
    real x[MR][NR], next[SLICE / ITEMS];
    EACH_SIDE(c) EACH_UNKNOWN(i) x[i][c] = b[min(own + i, last) * b_i + (long)min(SIDE(c), nrhs - 1) * b_r];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k <= last; k += MR) {
        const int at = k / MR % 2 * SLICE;
        EACH_FETCHED(f) next[f] = COEFFICIENT(max(FETCHED(f) % ORDER, k + MR), k + MR + FETCHED(f) / ORDER);
        if (own == k)
            EACH_UNKNOWN(i) {
                if (!unit) EACH_SIDE(c) x[i][c] /= coefficients[at + i * ORDER + own + i];
                EACH_SIDE(c) {
                    _Pragma("unroll")
                    for (int j = i + 1; j < MR; ++j) x[j][c] -= coefficients[at + i * ORDER + own + j] * x[i][c];
                    solved[i * WIDTH + c * LANES + t % LANES] = x[i][c];
                }
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own > k)
            EACH_UNKNOWN(q) EACH_SIDE(c) {
                const real u = solved[q * WIDTH + c * LANES + t % LANES];
                EACH_UNKNOWN(i) x[i][c] -= coefficients[at + q * ORDER + own + i] * u;
            }
        EACH_FETCHED(f) coefficients[SLICE - at + FETCHED(f)] = next[f];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    EACH_UNKNOWN(i) EACH_SIDE(c)
        if (own + i <= last && SIDE(c) < nrhs) b[(own + i) * b_i + (long)SIDE(c) * b_r] = x[i][c];
}
