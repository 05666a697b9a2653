// PTX instructions that copy to local memory (PTX ISA, section cp.async).

#define REAL_BYTES ((int)sizeof(real))
// address of local memory in PTX instructions
typedef uint Address;

static Address local_address(__local real *x) {
    Address address;
    asm volatile("{ .reg .u64 at; cvta.to.shared.u64 at, %1; cvt.u32.u64 %0, at; }" : "=r"(address) : "l"(x));
    return address;
}

// Starts to copy `v` elements from global memory to local memory: one element, or elements of 16 bytes in all.
static void copy(Address to, __global const real *from, int v) {
    if (v * REAL_BYTES == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(to), "l"(from));
    else
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(REAL_BYTES));
}

// Starts to copy the first `bytes` bytes of `v` elements. The other bytes become zero. A single element is either copied as a whole or
// becomes zero. Two copies with opposite conditions take fewer instructions than one copy whose number of bytes is a variable (bench/results/opencl/2026-11-26-f32-registers.txt).
static void copy_part(Address to, __global const real *from, int v, int bytes) {
    if (v * REAL_BYTES == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes));
    else
        asm volatile("{ .reg .pred is_inside; setp.ne.s32 is_inside, %2, 0;"
            " @is_inside cp.async.ca.shared.global.L2::128B [%0], [%1], %3; @!is_inside cp.async.ca.shared.global [%0], [%1], %3, 0; }"
            :: "r"(to), "l"(from), "r"(bytes), "n"(REAL_BYTES));
}

// Ends a group of copies.
#define END_OF_COPY asm volatile("cp.async.commit_group;" ::: "memory")
// Waits until at most `groups` groups of copies are not complete.
#define WAIT_FOR_COPIES(groups) asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory")
