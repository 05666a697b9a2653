// LU factorisation A = P·L·U of a panel of at most WIDTH columns in one launch. The work-groups wait for one another. Each work-item
// loads one row of the panel into registers, and stores the row at the end. The kernel chooses pivots by the rules that the comment of
// `getrf_panel` states.
//
// A row stays with its work-item. The work-item only changes the number of the place that the row has in P·A. Step s chooses the pivot of
// column s. Each work-group sends its best candidate: first the magnitude and the place of the candidate, then the elements of its row. Each
// work-group receives the magnitudes of all candidates, and the row of the best candidate. The row at place s is always a candidate. If
// this row must be the pivot, it counts as larger than all other candidates, so that each step has a best candidate.
//
// A step first updates column s + 1 and sends the magnitude of the next candidate. It updates the other columns while the message is on
// its way. After step s, x[0] holds the element of column s + 1, x[1] that of column s + 2 and so on, so that no index of a register varies.
//
// A message consists of words of 64 bits. A word holds 32 bits of data, and the number of the step, s + 1. The receiver reads a word until
// the word holds the number of the step. Messages therefore need no order in memory. `records` holds two sets of records, and a set has a
// record for each work-group. Even steps use one set, and odd steps use the other set. A work-group sends the magnitude of step s + 1
// after it has received all messages of step s. A work-group that sends in step s + 2 has received these magnitudes from all work-groups.
// Thus no work-group still reads the set.
//
// Each launch clears the messages of the launch before it. `records` begins with two words: the number of earlier launches, and the number
// of words that the last launch used. Two regions follow, one for launches with an even number and one for launches with an odd number. A
// launch writes zeros to the words that the last launch used in the other region. A region is therefore all zero when a launch begins to
// use it: only the launch before the last one has used the region, and the last launch has cleared it. The regions lie at the same places
// for all numbers of work-groups and columns and for both types. One work-item changes the two words after the last step. Each work-group
// reads the two words before it sends its first message, and the work-item has received messages from all work-groups.
//
// At the end, the work-groups exchange the rows of other columns of the matrix: of `left` columns on the left of the panel and of `right`
// columns on its right. Each work-group moves elements in its share of these columns. Work-groups without rows of the panel may take part.

// A real number takes WORDS words. A record consists of the magnitude and the place of the candidate (HEAD words), the reciprocal of the
// candidate, and its row. The number of words of a record is even, because vectors of two words are read and written.
#define WORDS (REAL_BYTES / 4)
#define HEAD 4
#define RECORD (HEAD + (WIDTH + 2) * WORDS)

#if WORDS == 2
typedef ulong Bits;
#define AS_BITS(x) as_ulong(x)
#define AS_REAL(x) as_double(x)
#else
typedef uint Bits;
#define AS_BITS(x) as_uint(x)
#define AS_REAL(x) as_float(x)
#endif

// A candidate for the pivot. `bits` are the bits of its magnitude: a larger magnitude has larger bits. `origin` holds the place of the row and
// the number of the work-group.
typedef struct {
    Bits bits;
    uint origin;
} Candidate;
#define ORIGIN(place, group) ((place) << 8 | (group))
#define PLACE(origin) ((origin) >> 8)
#define GROUP(origin) ((origin) & 255)
#define NOWHERE 0xffffffff
// `bits` of a candidate that must be the pivot: larger than the bits of every magnitude
#define LARGEST ((Bits)-1)

// Number of places to which the exchanges may move rows: the first WIDTH places, and WIDTH places of pivots
#define PLACES (2 * WIDTH)

