// a sub-group is the whole work-group
#define LANES ITEMS
#define CANDIDATES 1
// a device may run the work-items of a work-group one after the other between two barriers
#define BARRIER_AFTER_SENDING barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

// The functions below write and read pieces of messages in global memory, which other work-groups access at the same time.
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

// Returns x of the work-item `lane` of each WIDTH work-items. All work-items of the work-group call the function.
static real real_of_lane(real x, uint lane, __local real *values) {
    barrier(CLK_LOCAL_MEM_FENCE);
    values[get_local_id(0)] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    return values[get_local_id(0) / WIDTH * WIDTH + lane];
}

#define reciprocal_of(x) (1 / (x))

