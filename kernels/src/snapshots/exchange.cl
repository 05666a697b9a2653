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
u32 step_of_row(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 row, u32 begin);
// Exchanges rows i and ipiv[i] - first of A for all i, in order or in reverse order. The kernel makes a set of at most SET exchanges at once:
// in one column after the other, a workgroup reads all elements that the set moves before it writes them.
//
// Each row that a set moves has a place. The rows i of a set have the first SET places, in the order of the exchanges. The other rows that
// the set names follow in ascending order, so that neighbouring invocations access elements in the same cache lines. To find out which element
// ends at which place, one invocation makes the exchanges in a column whose elements are the numbers of the places.
// the rows that are not rows i of the set, in ascending order
// row ipiv[i] - first for each exchange of the set, and then the place of this row
// the numbers of the places, which are exact also in f32, and then the elements of a column at the places of their rows

// Returns the row i of exchange number `step`.
u32 row_of(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 step) {
    return u32(select(args.count - 1u - step, step, args.forward != 0u));
}

// Returns the row with which exchange number `step` exchanges its row i.
u32 partner(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 step) {
    return u32(ipiv[args.ipiv_at + row_of(a, ipiv, args, step)]) - u32(args.first);
}

// Returns the number of the exchange whose row i is `row`, counted from exchange number `begin`.
u32 step_of_row(__global real *restrict a, __global const int *restrict ipiv, const struct Args args, u32 row, u32 begin) {
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
        // 0xffffffff is no row, and follows all rows
        for (u32 e = t; e < sorted; e += ITEMS) {
            u32 other = 0xffffffffu;
            if (e < set_count) {
                named[e] = partner(a, ipiv, args, begin + e);
                if (step_of_row(a, ipiv, args, named[e], begin) >= set_count) { other = named[e]; }
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
            u32 place = step_of_row(a, ipiv, args, row, begin);
            if (place >= set_count) {
                // of several equal rows, all exchanges name the place of the first
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
        // the row at each place, the place from which its element comes, and whether it comes from another place
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
        // an invocation reads elements that other invocations have written for the previous set
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
            // all invocations have written the previous column, or have read the numbers of their places
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
