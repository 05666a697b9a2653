
// Instruction of the matrix units (PTX ISA, section mma): adds the product of 16 lines of P and 8 lines of Q in 8 terms. Work-item 4g + t
// of a sub-group holds
//     line g + 8h of P in term t + 4s as p[h + 2s], line g of Q in term t + 4s as q[s],
//     the sum of line g + 8h of P with line 2t + s of Q as sum[2h + s],    for h, s < 2.
// In single precision, the instruction multiplies 16 terms. Each element of p and q is a pair of numbers in half precision, which belong to the
// terms 2(t + 4s) and 2(t + 4s) + 1. The unit adds in single precision.
#define FRAGMENTS __local element (*const exchanged)[6] = 0;
#ifdef TWO_PARTS
typedef uint element;
#else
typedef real element;
#endif
static void multiply(real sum[4], const element p[4], const element q[2], __local element (*exchanged)[6]) {
#ifdef TWO_PARTS
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]));
#elif UNIT == 8
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(p[0]), "d"(p[1]), "d"(p[2]), "d"(p[3]), "d"(q[0]), "d"(q[1]));
#else
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+d"(sum[e % 2 * 2]), "+d"(sum[e % 2 * 2 + 1]) : "d"(p[e]), "d"(q[e / 2]));
#endif
}

#ifdef TWO_PARTS
// Returns x and y, rounded to half precision, as the lower and the upper half of a register.
static uint pack(float x, float y) {
    uint pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
    return pair;
}

// The inverse of `pack`.
static void unpack(uint pair, float *x, float *y) {
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }" : "=f"(*x), "=f"(*y) : "r"(pair));
}
#endif

// Reads the element of local memory at `at`, or the pair of elements. The compiler keeps the order of these instructions.
#ifdef TWO_PARTS
static void read_element(real *x, Address at) {
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(*x) : "r"(at));
}
static void read_pair(real x[2], Address at) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "r"(at));
}
#else
static void read_element(real *x, Address at) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(*x) : "r"(at));
}
static void read_pair(real x[2], Address at) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x[0]), "=d"(x[1]) : "r"(at));
}
#endif
// Returns `at`. The compiler cannot see this. It therefore adds constants in the read instruction and needs no register for the sum.
static Address opaque(Address at) {
    asm volatile("" : "+r"(at));
    return at;
}
