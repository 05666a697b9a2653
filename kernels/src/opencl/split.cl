
// Single precision by matrix units, which take factors of 11 significant bits (tf32). Each factor x is split into two parts,
//     2^13·x = high + low,    where high is 2^13·x rounded to 11 bits, and low = 2^13·x - high has at most 12 bits.
// The unit reads the first 11 bits of each part. The kernel computes 2^26·p·q as p.high·q.high + (p.low·q.high + p.high·q.low), and leaves out
// p.low·q.low. The unit may cut off bits when it adds. It therefore adds only 8 products of high parts to a sum, and a work-item adds these sums
// in single precision. The other products are smaller by 2^-11, so that the unit cuts off at most k/200 times u of their sum in k terms. The
// factor 2^13 makes the parts of subnormal elements multiples of the smallest number that the unit reads.
//
// With u = 2^-24, the parts differ from 2^13·x by at most 2u·|2^13·x|, and p.low·q.low is at most 4u·|p·q|. If the unit keeps 24 bits of each
// term, it cuts off at most 18u of a sum of 8 terms. The whole error of a sum of k terms is at most k/7 + 28 times u of the sum of magnitudes,
// below the 2·(k + 3)·u of bound 1 (docs/numerics.md) for k >= 32. If scaled elements or sums exceed the largest number,
// the kernel computes the sums by fma. The kernel violates bound 5: it may round a sum of integers, because the unit does not read the 12th bit of
// low, and because the kernel leaves out p.low·q.low.
//
// Method: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance"
// (2022).
#define PRODUCT 8
#define SCALE 0x1p13f

// Splits x into `high` and `low`. If x is infinite or NaN, or if `high` exceeds the largest number, `low` is NaN or infinite. If x is NaN, the
// addition may turn `high` into a number: 0x7fffffff becomes -0.
static void split(float x, float *high, float *low) {
    const float scaled = x * SCALE;
    // adds half of the last place that is kept, so that the cut is a rounding
    *high = as_float(as_uint(scaled) + 0x1000 & 0xffffe000);
    *low = scaled - *high;
}

// Adds the product of 16 lines of P and 8 lines of Q in 8 terms: the products of the high parts to the first half of `sum`, and the products
// of a high and a low part to the second half.
#define MULTIPLY(sum, p, q) multiply_split(sum, p, q, exchanged)
static void multiply_split(float sum[PRODUCT], const float p[4], const float q[2], __local float (*exchanged)[6]) {
    float p_high[4], p_low[4], q_high[2], q_low[2], high[4] = {0, 0, 0, 0};
    #pragma unroll
    for (int e = 0; e < 4; ++e) split(p[e], p_high + e, p_low + e);
    #pragma unroll
    for (int e = 0; e < 2; ++e) split(q[e], q_high + e, q_low + e);
    multiply(high, p_high, q_high, exchanged);
    multiply(sum + 4, p_low, q_high, exchanged);
    multiply(sum + 4, p_high, q_low, exchanged);
    #pragma unroll
    for (int e = 0; e < 4; ++e) sum[e] += high[e];
}
