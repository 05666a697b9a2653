// number of work-items in a sub-group
#define LANES 32
// the condition on which only the work-items of the first sub-group execute a statement
#define IN_FIRST_SUB_GROUP if (get_local_id(0) < LANES)
// unrolls a loop that calls functions of this file
#define UNROLLED_EXCHANGES _Pragma("unroll")
// no barrier is needed: a work-item that waits for a message does not stop other work-items of its work-group
#define BARRIER_AFTER_SENDING

// The functions below write and read words of messages in global memory. Other work-groups access the same words at the same time, so that
// the accesses have the scope of the device (PTX ISA, section memory consistency model).
static void put_word(__global Bits *to, Bits word) {
#if REAL_BYTES == 8
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(to), "l"(word));
#else
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(to), "r"(word));
#endif
}

static Bits get_word(__global const Bits *from) {
    Bits word;
#if REAL_BYTES == 8
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from));
#else
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from));
#endif
    return word;
}

static uint uint_of_lane(uint x, uint lane) {
    uint of_lane;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(of_lane) : "r"(x), "r"(lane));
    return of_lane;
}

// Returns the x of work-item number `lane` among the WIDTH neighbouring work-items to which the caller belongs. They belong to one sub-group
// (PTX ISA, section shfl).
static real real_of_lane(real x, uint lane, __local real *values) {
    lane += get_local_id(0) % LANES / WIDTH * WIDTH;
#if REAL_BYTES == 8
    const ulong bits = as_ulong(x);
    return as_double((ulong)uint_of_lane((uint)(bits >> 32), lane) << 32 | uint_of_lane((uint)bits, lane));
#else
    return as_float(uint_of_lane(as_uint(x), lane));
#endif
}

