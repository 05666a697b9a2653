typedef float real;
#define MIN_POSITIVE 1.17549435e-38f
typedef float vec;
#define ITEMS 64
#define SET 128
typedef uint u32;
typedef ulong size;
typedef long stride;
#define u32(x) ((u32)(x))
#define real(x) ((real)(x))
#define stride(x) ((stride)(x))
#define abs fabs
#undef min
#define min(x, y) ((x) < (y) ? (x) : (y))
#undef max
#define max(x, y) ((x) > (y) ? (x) : (y))
#undef select
#define select(no, yes, condition) ((condition) ? (yes) : (no))
#define workgroupBarrier() barrier(CLK_LOCAL_MEM_FENCE)
#define storageBarrier() barrier(CLK_GLOBAL_MEM_FENCE)
#ifndef FP_FAST_FMAF
#define fma(x, y, z) ((x) * (y) + (z))
#endif
struct Args { size count; size n; size forward; size first; size a_at; size a_ld; size ipiv_at; };

u32 row_of(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 step);
u32 partner(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 step);
u32 place_of_row_i(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 row, u32 begin);
// Exchanges rows i and ipiv[i] - first of A for all i from 0 to count - 1, in ascending or in descending order of i.
//
// A workgroup combines SET consecutive exchanges (a set) into one permutation of the rows that the set names. It applies the permutation to one
// column after the other. It reads all elements of a column that move before it writes one of them.
//
// The rows that a set names are numbered. The number of a row is its place. Row i of the first exchange of the set has place 0, row i of the
// second exchange has place 1, and so on. The rows that the set names only as ipiv[i] - first have the places from SET on, in ascending order,
// so that neighbouring invocations access elements in the same cache lines. One invocation computes the permutation: it applies the exchanges to a
// column in which the element at each place is the number of the place.
// the rows that the set names only as ipiv[i] - first, in ascending order
// for each exchange of the set: at first the row ipiv[i] - first, later the place of this row
// one value for each place: at first the place from which the permutation takes the element of this place (a whole number below 2^24, which is
// exact in f32), later an element of a column

// Returns row i of exchange number `step`.
u32 row_of(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 step) {
    return u32(select(args.count - 1u - step, step, args.forward != 0u));
}

// Returns row ipiv[i] - first of exchange number `step`.
u32 partner(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 step) {
    return u32(ipiv[args.ipiv_at + row_of(a, ipiv, args, step)]) - u32(args.first);
}

// Returns the place of a row that is row i of an exchange of the set. The set begins with exchange number `begin`. If no exchange of the set has this
// row i, the result is not below the number of exchanges of the set.
u32 place_of_row_i(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 row, u32 begin) {
    return select(row_of(a, ipiv, args, begin) - row, row - row_of(a, ipiv, args, begin), args.forward != 0u);
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void exchange(const size count, const size n, const size forward, const size first, __global real *restrict a, const size a_at, const size a_ld, __global const int *restrict ipiv, const size ipiv_at) {
    const struct Args args = { count, n, forward, first, a_at, a_ld, ipiv_at };
    __local u32 others[128];
    __local u32 named[128];
    __local real x[256];
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const uint2 groups = (uint2)(get_num_groups(0), get_num_groups(1));
    const u32 t = get_local_id(0) + get_local_id(1) * get_local_size(0);
    for (u32 begin = 0u; begin < args.count; begin += SET) {
        const u32 set_count = u32(min(args.count - begin, SET));
        // a power of two
        u32 sorted = 1u;
        while (sorted < set_count) { sorted *= 2u; }
        // 0xffffffff stands for no row, and follows all rows in ascending order
        for (u32 e = t; e < sorted; e += ITEMS) {
            u32 other = 0xffffffffu;
            if (e < set_count) {
                named[e] = partner(a, ipiv, args, begin + e);
                if (place_of_row_i(a, ipiv, args, named[e], begin) >= set_count) { other = named[e]; }
            }
            others[e] = other;
        }
        workgroupBarrier();
        // the bitonic sort (Batcher 1968)
        for (u32 length = 2u; length <= sorted; length *= 2u) {
            for (u32 distance = length / 2u; distance > 0u; distance /= 2u) {
                for (u32 e = t; e < sorted / 2u; e += ITEMS) {
                    const u32 low = 2u * e - (e & (distance - 1u));
                    const bool is_ascending = (low & length) == 0u;
                    const u32 u = others[low];
                    const u32 v = others[low + distance];
                    if ((u > v) == is_ascending) {
                        others[low] = v;
                        others[low + distance] = u;
                    }
                }
                workgroupBarrier();
            }
        }
        for (u32 e = t; e < set_count; e += ITEMS) {
            const u32 row = named[e];
            u32 place = place_of_row_i(a, ipiv, args, row, begin);
            if (place >= set_count) {
                // a binary search; if `others` contains the row several times, it finds the first time
                place = SET;
                for (u32 step = sorted / 2u; step > 0u; step /= 2u) {
                    if (others[place - SET + step - 1u] < row) { place += step; }
                }
            }
            named[e] = place;
        }
        for (u32 place = t; place < 2u * SET; place += ITEMS) { x[place] = real(place); }
        workgroupBarrier();
        if (t == 0u) {
            for (u32 e = 0u; e < set_count; e++) {
                const real old = x[e];
                x[e] = x[named[e]];
                x[named[e]] = old;
            }
        }
        workgroupBarrier();
        // for each place of this invocation: its row, the place from which the permutation takes its element, and whether this is another place
        const u32 place_0 = t + 0u * ITEMS;
        const u32 from_0 = u32(x[place_0]);
        const bool moves_0 = from_0 != place_0;
        const u32 row_0 = row_of(a, ipiv, args, begin + place_0);
        const u32 place_1 = t + 1u * ITEMS;
        const u32 from_1 = u32(x[place_1]);
        const bool moves_1 = from_1 != place_1;
        const u32 row_1 = row_of(a, ipiv, args, begin + place_1);
        const u32 place_2 = t + 2u * ITEMS;
        const u32 from_2 = u32(x[place_2]);
        const bool moves_2 = from_2 != place_2;
        const u32 row_2 = others[place_2 - SET];
        const u32 place_3 = t + 3u * ITEMS;
        const u32 from_3 = u32(x[place_3]);
        const bool moves_3 = from_3 != place_3;
        const u32 row_3 = others[place_3 - SET];
        // other invocations may have written the elements that this invocation reads, for the previous set
        storageBarrier();
        for (u32 column = group.x; column < args.n; column += groups.x) {
            const size at = args.a_at + column * args.a_ld;
            real x_0 = (real)(0);
            if (moves_0) { x_0 = a[at + row_0]; }
            real x_1 = (real)(0);
            if (moves_1) { x_1 = a[at + row_1]; }
            real x_2 = (real)(0);
            if (moves_2) { x_2 = a[at + row_2]; }
            real x_3 = (real)(0);
            if (moves_3) { x_3 = a[at + row_3]; }
            // before x changes, all invocations have read the permutation, or have written the previous column
            workgroupBarrier();
            x[place_0] = x_0;
            x[place_1] = x_1;
            x[place_2] = x_2;
            x[place_3] = x_3;
            workgroupBarrier();
            if (moves_0) { a[at + row_0] = x[from_0]; }
            if (moves_1) { a[at + row_1] = x[from_1]; }
            if (moves_2) { a[at + row_2] = x[from_2]; }
            if (moves_3) { a[at + row_3] = x[from_3]; }
        }
        workgroupBarrier();
    }
}
