// a sub-group is the whole work-group
#define LANES ITEMS
#define IN_FIRST_SUB_GROUP
// compilers for CPUs take minutes for a loop with many barriers
#define UNROLLED_EXCHANGES
// a device may run the work-items of a work-group one after the other between two barriers
#define BARRIER_AFTER_SENDING barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

// The functions below write and read words of messages in global memory, which other work-groups access at the same time.
#define put_word(to, word) (*(volatile __global Bits *)(to) = (word))
#define get_word(from) (*(volatile __global const Bits *)(from))

// Returns the x of work-item number `lane` among the WIDTH neighbouring work-items to which the caller belongs. All work-items of the
// work-group call the function.
static real real_of_lane(real x, uint lane, __local real *values) {
    barrier(CLK_LOCAL_MEM_FENCE);
    values[get_local_id(0)] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    return values[get_local_id(0) / WIDTH * WIDTH + lane];
}

