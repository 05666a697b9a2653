// no barrier is needed: a work-item that waits for a message does not stop other work-items of its work-group
#define BARRIER_AFTER_SENDING

// The functions below write and read words of messages in global memory. Other work-groups access the same words at the same time, so that
// the accesses have the scope of the device (PTX ISA, section memory consistency model).
static void put_word(__global ulong *to, ulong word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(to), "l"(word));
}

static void put_words(__global ulong *to, ulong2 words) {
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" :: "l"(to), "l"(words.x), "l"(words.y));
}

static ulong get_word(__global const ulong *from) {
    ulong word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from));
    return word;
}

static ulong2 get_words(__global const ulong *from) {
    ulong x, y;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(from));
    return (ulong2)(x, y);
}

// Returns the largest, or the smallest, x of the 32 work-items of a sub-group (PTX ISA, section redux).
static uint max_of_sub_group(uint x) {
    uint most;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(x));
    return most;
}

static uint min_of_sub_group(uint x) {
    uint least;
    asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(least) : "r"(x));
    return least;
}

// Returns the best candidate of a sub-group.
static Candidate best_of_sub_group(Candidate c) {
#if WORDS == 2
    const uint high = max_of_sub_group((uint)(c.bits >> 32)), low = max_of_sub_group((uint)(c.bits >> 32) == high ? (uint)c.bits : 0);
    const Bits most = (ulong)high << 32 | low;
#else
    const Bits most = max_of_sub_group(c.bits);
#endif
    const Candidate best = {most, min_of_sub_group(c.bits == most ? c.origin : NOWHERE)};
    return best;
}

// Returns the best candidate of a work-group.
#define CANDIDATES (ITEMS / 32)
static Candidate best_of_group(Candidate c, __local Candidate *candidates) {
    c = best_of_sub_group(c);
    if (get_local_id(0) % 32 == 0) candidates[get_local_id(0) / 32] = c;
    barrier(CLK_LOCAL_MEM_FENCE);
    return best_of_sub_group(candidates[get_local_id(0) % CANDIDATES]);
}

