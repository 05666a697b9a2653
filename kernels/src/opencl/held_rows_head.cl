// LU factorisation A = P·L·U of a panel of at most WIDTH columns in one launch, by work-groups that wait for one another. Each work-item
// holds one row in registers until the panel is factored. The kernel chooses pivots by the rules in the comment of `getrf_panel`.
//
// A row does not move before the end: each work-item keeps the place of its row in P·A. Step s chooses the pivot of column s. Each
// work-group sends the best candidate among its rows, first its magnitude and its place, then its row. Each work-group receives the
// magnitudes of all candidates, and the row of the best one. The row at place s is always a candidate, and counts as larger than all others if
// it must be the pivot, so that there is a best candidate in each step.
//
// A step updates column s + 1 first and sends the magnitude of the next candidate. It updates the other columns while the message travels.
// After step s, x[0] belongs to column s + 1: the columns rotate, so that no index of a register varies.
//
// A message consists of words of 64 bits: a word holds 32 bits of data and the number of the step, s + 1. A work-item that receives a
// word reads it until it holds the number of the step, so that messages need no order in memory. `records` holds two sets of a record
// per work-group. Steps use the sets in turn. A work-group sends the magnitude of step s + 1 after it has received all messages of step s. A
// work-group that sends in step s + 2 has received these magnitudes from all work-groups. Thus no work-group still reads the set.
//
// Each launch clears the messages of the launch before it. `records` begins with two words: the
// number of earlier launches, and the number of words that the last launch used for records. Two regions for records follow, which launches
// use in turn. A launch clears the words that the last launch used in the other region. Thus a region is all zero when a launch begins to
// use it: the last launch that used it was the one before the last, and the last launch has cleared its words. This holds for any numbers of
// work-groups and columns, and for both types, because the regions lie at the same places for all. A work-item changes the two words after
// the last step. Each work-group reads the two words before it sends its first message, and the work-item has received messages from all
// work-groups.
//
// At the end, the work-groups exchange the rows of other columns of the matrix: of `left` columns on the left of the panel and of `right`
// columns on its right. Each work-group moves elements in its share of the columns. Work-groups without rows of the panel may take part.

// Number of words of an element, and of the head of a record, which holds the magnitude and the place of a candidate. The reciprocal of the
// candidate and its row follow. Records begin at whole vectors of two words.
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

// A candidate for the pivot: the bits of its magnitude, which have the order of the magnitudes, and its place and work-group.
typedef struct {
    Bits bits;
    uint origin;
} Candidate;
#define ORIGIN(place, group) ((place) << 8 | (group))
#define PLACE(origin) ((origin) >> 8)
#define GROUP(origin) ((origin) & 255)
#define NOWHERE 0xffffffff
// more than the bits of every magnitude
#define LARGEST ((Bits)-1)

// Number of places to which the exchanges may move rows: the first WIDTH places and the places of the pivots
#define PLACES (2 * WIDTH)

