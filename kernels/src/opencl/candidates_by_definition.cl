#define CANDIDATES 1

// The functions below write and read pieces of messages, as `put_word` and `get_word` do words.
#define put_piece(to, piece) (*(volatile __global Piece *)(to) = (piece))
#define get_piece(from) (*(volatile __global const Piece *)(from))

// Returns the number of the work-item that holds the best candidate. All work-items of the work-group call the function.
static uint lane_of_best(Candidate c, __local Candidate *candidates) {
    barrier(CLK_LOCAL_MEM_FENCE);
    candidates[get_local_id(0)] = c;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint best = 0;
    for (uint e = 1; e < ITEMS; ++e)
        if (candidates[e].bits > candidates[best].bits
            || (candidates[e].bits == candidates[best].bits && candidates[e].origin < candidates[best].origin))
            best = e;
    return best;
}

// Returns `origin` of the candidate of work-item `lane` in the last call of `lane_of_best`.
static uint origin_of_lane(uint origin, uint lane, __local const Candidate *candidates) {
    return candidates[lane].origin;
}

#define reciprocal_of(x) (1 / (x))

