// a device may run the work-items of a work-group one after the other between two barriers
#define BARRIER_AFTER_SENDING barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

// The functions below write and read words of messages in global memory, which other work-groups access at the same time.
#define put_word(to, word) (*(volatile __global ulong *)(to) = (word))
#define put_words(to, words) (*(volatile __global ulong2 *)(to) = (words))
#define get_word(from) (*(volatile __global const ulong *)(from))
#define get_words(from) (*(volatile __global const ulong2 *)(from))

// Returns the best candidate of a work-group.
#define CANDIDATES ITEMS
static Candidate best_of_group(Candidate c, __local Candidate *candidates) {
    candidates[get_local_id(0)] = c;
    barrier(CLK_LOCAL_MEM_FENCE);
    Candidate best = candidates[0];
    for (uint e = 1; e < ITEMS; ++e)
        if (candidates[e].bits > best.bits || (candidates[e].bits == best.bits && candidates[e].origin < best.origin))
            best = candidates[e];
    return best;
}

