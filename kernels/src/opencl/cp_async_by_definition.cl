// The instructions of cp_async.cl in OpenCL C, for tests on devices without them.

#define REAL_BYTES ((int)sizeof(real))
typedef size_t Address;

static Address local_address(__local real *x) {
    return (Address)x;
}

// Copies the first `bytes` bytes of `v` elements. The other bytes become zero.
static void copy_part(Address to, __global const real *from, int v, int bytes) {
    for (int e = 0; e < v; ++e) ((__local real *)to)[e] = e < bytes / REAL_BYTES ? from[e] : 0;
}

static void copy(Address to, __global const real *from, int v) {
    copy_part(to, from, v, v * REAL_BYTES);
}

// a copy is complete when it returns
#define END_OF_COPY
#define WAIT_FOR_COPIES(groups)
