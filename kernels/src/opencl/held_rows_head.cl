// LU factorisation A = P·L·U of a panel of at most WIDTH columns in one launch. The work-groups wait for one another. Each work-item
// loads EACH rows of the panel into registers. The kernel chooses pivots by the rules that the comment of `getrf_panel` states.
//
// A row stays with its work-item. The work-item only changes the number of the place that the row has in P·A. Step s chooses the pivot of
// column s. Each work-group sends its best candidate for the pivot, with its row. Each work-group receives the candidates of all
// work-groups. The row at place s is always a candidate. If this row must be the pivot, it counts as larger than all other candidates, so
// that each step has a best candidate.
//
// At step s, x[r][0] holds the element of column s of row r of a work-item, x[r][1] that of column s + 1 and so on, so that no index of a
// register varies. The elements of L and the rows of U lie in local memory.
//
// `records` (messages.cl) has a record for each step and each work-group. Each work-group reads the header before it sends its first message.
// The work-item that changes the header has received messages from all work-groups.
//
// At the end, the work-groups exchange the rows of other columns of the matrix: of `left` columns on the left of the panel and of `right`
// columns on its right. In `solved` columns directly on the right, they also compute the rows of U; the panel then has WIDTH columns. Each
// work-group has a share of the columns. Work-groups without rows of the panel may take part.

// A record has HEAD pieces with the magnitude, the place, the work-group and the work-item of the candidate, and the reciprocal of the
// candidate. Pieces with its row follow.
#if REAL_BYTES == 8
#define HEAD 2
typedef double2 Reals;
#define REALS(x, q) (Reals)((x)[q], (x)[(q) + 1])
#define ANY_IS_ZERO(p) ((p).x == 0 || (p).y == 0)
// the piece of a message with these numbers, and the numbers in a piece
#define MAKE_PIECE(words) (Piece)(word_of((words)[0]), word_of((words)[1]))
#define REALS_IN(p) {AS_REAL((p).x), AS_REAL((p).y)}
#define RECIPROCAL_IN(record) AS_REAL((record)[1].x)
#define OWNER_IN(record) ((uint)((record)[0].y >> 32))
#else
#define HEAD 1
typedef float4 Reals;
#define REALS(x, q) (Reals)((x)[q], (x)[(q) + 1], (x)[(q) + 2], (x)[(q) + 3])
#define ANY_IS_ZERO(p) ((p).x == 0 || (p).y == 0 || (p).z == 0 || (p).w == 0)
#define MAKE_PIECE(words) (Piece)(word_of((words)[0]), word_of((words)[1]), word_of((words)[2]), word_of((words)[3]))
#define REALS_IN(p) {AS_REAL((p).x), AS_REAL((p).y), AS_REAL((p).z), AS_REAL((p).w)}
#define RECIPROCAL_IN(record) AS_REAL((record)[0].z)
#define OWNER_IN(record) ((record)[0].w)
#endif
#define PIECES (HEAD + WIDTH / V)
// number of rows of a work-group
#define ROWS (EACH * ITEMS)
// A step updates and sends the columns in chunks of this number. It skips a chunk whose columns are all complete.
#define CHUNK 8

// A candidate for the pivot. `bits` are the bits of its magnitude: a larger magnitude has larger bits. `origin` holds the place of the row and
// the number of the work-group.
typedef struct {
    Bits bits;
    uint origin;
} Candidate;
#define ORIGIN(place, group) ((place) << 8 | (group))
#define PLACE(origin) ((origin) >> 8)
#define GROUP(origin) ((origin) & 255)
// `origin` if there is no candidate, so that its complement is not zero
#define NOWHERE 0xfffffffe
// `bits` of a candidate that must be the pivot: larger than the bits of every magnitude that is compared
#define LARGEST ((Bits)-2)

// Number of places to which the exchanges may move rows: the first WIDTH places, and WIDTH places of pivots
#define PLACES (2 * WIDTH)
// number of elements between two rows of L and U in local memory, so that work-items that read a column use different banks
#define STRIDE (WIDTH + 1)

