
// Products in single precision by matrix units that multiply numbers in half precision. The kernel splits each element x of a factor into two
// numbers in half precision, its parts:
//     high is x, rounded to half precision;    low is x - high, rounded to half precision;    rest = x - high - low is left out.
// The kernel computes p·q as p.high·q.high + p.low·q.high + p.high·q.low, and leaves out p.low·q.low. A matrix unit may cut off bits when it
// adds. It therefore adds these products of 16 terms only, and a work-item adds the results in single precision.
//
// With u = 2^-24, the rest is at most max(2u·|x|, u/2), because the parts are multiples of 2^-24, and the product of the low parts is at most
// 4u·|p·q|. The error of a sum is therefore small relative to the largest elements of the factors, if these are not much smaller than 1
// (Accuracy::Normwise). If a factor exceeds 65504, the largest number in half precision, a sum is infinite or NaN, and the kernel computes the
// sums by fma.
//
// Method: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance"
// (2022).

// Splits x and y into two parts. The parts of x lie in the lower halves of `high` and `low`, and the parts of y in the upper halves.
static void split(float x, float y, uint *high, uint *low) {
    float x_high, y_high;
    *high = pack(x, y);
    unpack(*high, &x_high, &y_high);
    *low = pack(x - x_high, y - y_high);
}
