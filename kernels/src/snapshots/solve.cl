#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define ITEMS 16
#define LANES 4
#define MR 8
#define NR 2
#define V 2
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// Solves triangular systems of at most ORDER unknowns by forward substitution. Coefficient k of equation i is a[a_at + i·a_i +
// k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. For backward substitution, the caller passes the position of
// the last unknown and negative strides. The kernel also loads the coefficients above the diagonal and a unit diagonal, but does
// not use them.
//
// A work-group has WIDTH right-hand sides. Each work-item holds MR unknowns of NR right-hand sides in registers. In each step,
// the work-items with the next MR unknowns compute these unknowns and write them to local memory. After a barrier, the work-items
// with later unknowns eliminate the solved unknowns from their own equations. During a step, all work-items load the coefficients
// of the next step.
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
    // the coefficients of this step and of the next one, and the unknowns that are solved in this step
    __local real coefficients[2 * SLICE], solved[MR * WIDTH];
    const int t = get_local_id(0), last = (int)n - 1, own = t / LANES * MR;
    a += a_at;
    b += b_at;
// Indices beyond the last unknown are replaced by the last index, so that work-items without unknowns load valid elements.
#define COEFFICIENT(i, k) a[min(i, last) * a_i + min(k, last) * a_k]
// the right-hand side in registers x[...][c]
#define SIDE(c) ((ulong)get_group_id(0) * WIDTH + (c) * LANES + t % LANES)
    EACH_FETCHED(f) coefficients[FETCHED(f)] = COEFFICIENT(FETCHED(f) % ORDER, FETCHED(f) / ORDER);
    real x[MR][NR], next[SLICE / ITEMS];
    EACH_SIDE(c) EACH_UNKNOWN(i) x[i][c] = b[min(own + i, last) * b_i + (long)min(SIDE(c), nrhs - 1) * b_r];
    // the barrier also orders the loads of `b` that are repeated by other work-items before the stores of these elements
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
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
