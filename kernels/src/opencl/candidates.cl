#define CANDIDATES (ITEMS / LANES)

// The functions below write and read pieces of messages, as `put_word` and `get_word` do words.
static void put_piece(__global Piece *to, Piece p) {
#if REAL_BYTES == 8
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" :: "l"(to), "l"(p.x), "l"(p.y));
#else
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(to), "r"(p.x), "r"(p.y), "r"(p.z), "r"(p.w));
#endif
}

static Piece get_piece(__global const Piece *from) {
    Piece p;
#if REAL_BYTES == 8
    ulong x, y;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(from));
    p = (Piece)(x, y);
#else
    uint x, y, z, w;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(from));
    p = (Piece)(x, y, z, w);
#endif
    return p;
}

// Returns the largest, or the smallest, x of the work-items of a sub-group (PTX ISA, section redux).
static uint max_of_lanes(uint x) {
    uint most;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(x));
    return most;
}

static uint min_of_lanes(uint x) {
    uint least;
    asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(least) : "r"(x));
    return least;
}

// Returns a bit for each work-item of a sub-group, which is set if the condition holds there (PTX ISA, section vote).
static uint lanes_with(int condition) {
    uint lanes;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(lanes) : "r"(condition));
    return lanes;
}

// Returns the number of the work-item of a sub-group that holds the best candidate. All work-items of the sub-group call the function.
static uint lane_of_best(Candidate c, __local Candidate *candidates) {
#if REAL_BYTES == 8
    const uint high = (uint)(c.bits >> 32);
#else
    const uint high = c.bits;
#endif
    const uint most = max_of_lanes(high);
    uint lanes = lanes_with(high == most);
    // the branch is rarely taken: in few steps, several candidates have the same leading bits
    if (lanes & (lanes - 1)) {
        int is_best = high == most;
#if REAL_BYTES == 8
        const uint low = is_best ? (uint)c.bits : 0, most_of_low = max_of_lanes(low);
        is_best = is_best && low == most_of_low;
#endif
        const uint origin = is_best ? c.origin : NOWHERE, least = min_of_lanes(origin);
        lanes = lanes_with(is_best && origin == least);
    }
    // if no work-item holds a candidate, all bits are set, and the lowest one is taken
    return 31 - clz(lanes & -lanes);
}

// Returns `origin` of the work-item `lane` of a sub-group.
static uint origin_of_lane(uint origin, uint lane, __local const Candidate *candidates) {
    return uint_of_lane(origin, lane);
}

// Returns 1/x with an error of a few roundings. In double precision, returns zero or NaN if x or 1/x is zero, subnormal or not finite; the
// caller divides in these cases. A division in double precision takes about 200 cycles on an H100 (PTX ISA, section rcp; Newton's method).
static real reciprocal_of(real x) {
#if REAL_BYTES == 8
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    r = fma(r, fma(-x, r, 1.0), r);
    return fma(r, fma(-x, r, 1.0), r);
#else
    return 1 / x;
#endif
}

