#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define ITEMS 32
#define ROOM 256
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// LU of many small matrices, and solves with the factors. A work-group of ITEMS work-items computes one matrix. Matrix g of
// operand x begins g·x_step elements after the first matrix. If ROOM is not zero, the kernel works on a copy of the matrix in
// local memory, which has room for ROOM elements. If ROOM is zero, the kernel works in global memory.
#if ROOM
#define COPY __local real w[ROOM];
#define W(i, j) w[(uint)(i) + (uint)(j) * rows]
#define ENTER(x, cols) \
    for (uint e = t; e < rows * (uint)(cols); e += ITEMS) w[e] = x[e % rows + (ulong)(e / rows) * x##_ld]; \
    barrier(CLK_LOCAL_MEM_FENCE);
#define LEAVE(x, cols) \
    for (uint e = t; e < rows * (uint)(cols); e += ITEMS) x[e % rows + (ulong)(e / rows) * x##_ld] = w[e];
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)
#define INDEX(x)
#else
#define COPY
#define INDEX(x) __global real *w = x; const ulong w_ld = x##_ld;
#define W(i, j) w[(ulong)(i) + (ulong)(j) * w_ld]
#define ENTER(x, cols)
#define LEAVE(x, cols)
#define SYNC barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#endif

// LU factorisation A = P·L·U of each matrix. The pivot of a column is the element with the largest magnitude, from the diagonal
// down. Among equal magnitudes, the kernel chooses the first row. A NaN is chosen as pivot only if the NaN stands on the
// diagonal. If the pivot is zero, the kernel does not scale the column. The kernel sets info to 1 + the row of the first zero
// pivot, or to 0.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_batched(const ulong m, const ulong n, const ulong pivoting, __global real *a, const ulong a_at, const ulong a_ld,
                   const ulong a_step, __global int *ipiv, const ulong ipiv_at, __global int *info, const ulong info_at) {
    __local real magnitude[ITEMS];
    __local uint place[ITEMS];
    COPY
    const uint rows = (uint)m, cols = (uint)n, t = get_local_id(0), order = min(rows, cols);
    const ulong g = get_group_id(0);
    a += a_at + g * a_step;
    ipiv += ipiv_at + g * order;
    INDEX(a)
    ENTER(a, cols)
    int told = 0;
    for (uint c = 0; c < order; ++c) {
        uint p = c;
        if (pivoting) {
            real most = -1;
            for (uint i = c + t; i < rows; i += ITEMS) {
                const real here = fabs(W(i, c));
                if (here > most) {
                    most = here;
                    p = i;
                }
            }
            magnitude[t] = most;
            place[t] = p;
            for (uint step = ITEMS / 2; step > 0; step /= 2) {
                barrier(CLK_LOCAL_MEM_FENCE);
                if (t < step) {
                    const real other = magnitude[t + step];
                    if (other > magnitude[t] || (other == magnitude[t] && place[t + step] < place[t])) {
                        magnitude[t] = other;
                        place[t] = place[t + step];
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            p = magnitude[0] > fabs(W(c, c)) ? place[0] : c;
            SYNC;
        }
        for (uint j = t; p != c && j < cols; j += ITEMS) {
            const real old = W(c, j);
            W(c, j) = W(p, j);
            W(p, j) = old;
        }
        SYNC;
        const real pivot = W(c, c);
        if (pivot == 0 && told == 0) told = (int)c + 1;
        if (t == 0) ipiv[c] = (int)p;
        const int reciprocal = fabs(pivot) >= MIN_POSITIVE;
        const real factor = 1 / pivot;
        for (uint i = c + 1 + t; i < rows; i += ITEMS) {
            real l = W(i, c);
            if (pivot != 0) {
                l = reciprocal ? l * factor : l / pivot;
                W(i, c) = l;
            }
            for (uint j = c + 1; j < cols; ++j) W(i, j) -= l * W(c, j);
        }
        SYNC;
    }
    if (t == 0) info[info_at + g] = told;
    LEAVE(a, cols)
}

// Exchanges the rows of B as the pivots say, in reverse order if `trans` is set.
#define EXCHANGE \
    for (uint r = t; r < sides; r += ITEMS) \
        for (uint step = 0; step < rows; ++step) { \
            const uint i = trans ? rows - 1 - step : step, p = (uint)ipiv[i]; \
            const real old = W(i, r); \
            W(i, r) = W(p, r); \
            W(p, r) = old; \
        } \
    SYNC;
// Eliminates unknown c from the equations first, ..., end - 1.
#define ELIMINATE(first, end, x_of_side) \
    for (uint e = t; e < ((end) - (first)) * sides; e += ITEMS) { \
        const uint i = (first) + e % ((end) - (first)), r = e / ((end) - (first)); \
        W(i, r) -= (trans ? lu[c + i * lu_ld] : lu[i + c * lu_ld]) * (x_of_side); \
    } \
    SYNC;

// B <- op(A)^-1·B from P·L·U = A. The kernel divides an unknown by the pivot in each elimination with U, and stores the quotients
// only at the end. The repeated divisions save one barrier for each unknown.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrs_batched(const ulong n, const ulong nrhs, const ulong trans, __global const real *lu, const ulong lu_at, const ulong lu_ld,
                   const ulong lu_step, __global const int *ipiv, const ulong ipiv_at, __global real *b, const ulong b_at,
                   const ulong b_ld, const ulong b_step) {
    COPY
    const uint rows = (uint)n, sides = (uint)nrhs, t = get_local_id(0);
    const ulong g = get_group_id(0);
    lu += lu_at + g * lu_step;
    ipiv += ipiv_at + g * rows;
    b += b_at + g * b_step;
    INDEX(b)
    ENTER(b, sides)
    if (!trans) {
        EXCHANGE
        for (uint c = 0; c < rows; ++c) { ELIMINATE(c + 1, rows, W(c, r)) }
    }
    for (uint s = 0; s < rows; ++s) {
        const uint c = trans ? s : rows - 1 - s;
        const real pivot = lu[c + c * lu_ld];
        ELIMINATE(trans ? c + 1 : 0, trans ? rows : c, W(c, r) / pivot)
    }
    for (uint e = t; e < rows * sides; e += ITEMS) W(e % rows, e / rows) /= lu[e % rows * (lu_ld + 1)];
    SYNC;
    if (trans) {
        for (uint s = 0; s < rows; ++s) {
            const uint c = rows - 1 - s;
            ELIMINATE(0, c, W(c, r))
        }
        EXCHANGE
    }
    LEAVE(b, sides)
}
