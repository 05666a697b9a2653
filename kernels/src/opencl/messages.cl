// How the work-groups of a launch send messages to one another through global memory.
//
// A message consists of words of the size of a real number, and a word holds the complement of its data. No data has a complement of zero:
// of the NaN, the one with all bits set is sent as another NaN. The receiver reads a word until it is not zero. Messages therefore need no
// order in memory.
//
// Each launch clears the messages of the launch before it. The memory of messages, `records`, begins with a header of HEADER words of 64 bits:
// the number of earlier launches, the number of pieces of 16 bytes that the last launch used, a word with two counters of 32 bits for kernels
// that need them, and a word that is not used, so that what follows begins at a multiple of 16 bytes. Two regions follow, one for launches with an even number and one for launches with an odd number. A launch writes zeros to the pieces that the
// last launch used in the other region. A region is therefore all zero when a launch begins to use it: the launch before the
// preceding one has used the region, and the preceding launch has cleared it. When all work-groups have read the header, one work-item
// changes it for the next launch.
#if REAL_BYTES == 8
typedef ulong Bits;
typedef ulong2 Piece;
#define AS_BITS(x) as_ulong(x)
#define AS_REAL(x) as_double(x)
#else
typedef uint Bits;
typedef uint4 Piece;
#define AS_BITS(x) as_uint(x)
#define AS_REAL(x) as_float(x)
#endif
// number of words in a piece
#define V (16 / REAL_BYTES)
#define REGION_OF(records, launch) ((__global Piece *)((records) + HEADER) + (launch) % 2 * REGION)

// Returns the word of a message that carries x.
static Bits word_of(real x) {
    const Bits bits = AS_BITS(x);
    return ~(bits == (Bits)-1 ? bits - 1 : bits);
}

