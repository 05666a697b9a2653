static ulong word(uint step, uint data) {
    return (ulong)step << 32 | data;
}

static int has_come(ulong word, uint step) {
    return (uint)(word >> 32) == step;
}

static void send_element(__global ulong *to, uint step, real x) {
    const Bits bits = AS_BITS(x);
#if WORDS == 2
    *(volatile __global ulong2 *)to = (ulong2)(word(step, (uint)bits), word(step, (uint)(bits >> 32)));
#else
    *(volatile __global ulong *)to = word(step, bits);
#endif
}

static real receive_element(__global const ulong *from, uint step) {
#if WORDS == 2
    ulong2 words;
    do words = *(volatile __global const ulong2 *)from;
    while (!has_come(words.x, step) || !has_come(words.y, step));
    return AS_REAL((uint)words.x | words.y << 32);
#else
    ulong word;
    do word = *(volatile __global const ulong *)from;
    while (!has_come(word, step));
    return AS_REAL((uint)word);
#endif
}

static void send_candidate(__global ulong *record, uint step, Candidate c) {
    const ulong bits = c.bits;
    *(volatile __global ulong2 *)record = (ulong2)(word(step, (uint)bits), word(step, (uint)(bits >> 32)));
    *(volatile __global ulong *)(record + 2) = word(step, c.origin);
}

static Candidate receive_candidate(__global const ulong *record, uint step) {
    ulong2 bits;
    ulong origin;
    do {
        bits = *(volatile __global const ulong2 *)record;
        origin = *(volatile __global const ulong *)(record + 2);
    } while (!has_come(bits.x, step) || !has_come(bits.y, step) || !has_come(origin, step));
    const Candidate c = {(Bits)((uint)bits.x | bits.y << 32), (uint)origin};
    return c;
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_held_rows(const ulong m, const ulong n, const ulong pivoting, const ulong first, __global real *a, const ulong a_at,
                     const ulong a_ld, __global int *ipiv, const ulong ipiv_at, __global int *info, const ulong info_at,
                     __global ulong *records) {
    __local Candidate candidates[2][CANDIDATES];
    // rows to send, and received rows: the best candidate's and the one at place s
    __local real sent[2][WIDTH], received[2][WIDTH];
    __local uint holds_s;
    const uint t = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0), i = group * ITEMS + t;
    const Candidate none = {0, NOWHERE};
    const ulong launches = records[0], used = records[1], words = 2 * (groups + 1) * RECORD;
    __global ulong *const region = records + 2 + launches % 2 * REGION, *const last = records + 2 + (launches + 1) % 2 * REGION;
    for (ulong e = i; e < used; e += groups * ITEMS) last[e] = 0;
    real x[WIDTH];
    #pragma unroll
    for (uint q = 0; q < WIDTH; ++q) x[q] = i < m && q < n ? AT(a, i, q) : 0;
    uint place = i;
    if (t == 0) holds_s = 0;

    for (uint s = 0; s < n; ++s) {
        const uint step = s + 1, count = WIDTH - s;
        __global ulong *const set = region + s % 2 * (groups + 1) * RECORD, *const own = set + group * RECORD;
        __global ulong *const at_s = set + groups * RECORD;
        // neither a NaN nor zero is a candidate
        Candidate best = none;
        if (pivoting && i < m && place >= s && fabs(x[0]) > 0) {
            best.bits = AS_BITS(fabs(x[0]));
            best.origin = ORIGIN(place, group);
        }
        best = best_of_group(best, candidates[0]);
        if (t == 0) send_candidate(own, step, best);
        const int has_best = best.bits > 0;
        if (has_best && place == PLACE(best.origin))
            #pragma unroll
            for (uint q = 0; q < WIDTH; ++q) sent[0][q] = x[q];
        if (place == s) {
            holds_s = step;
            #pragma unroll
            for (uint q = 0; q < WIDTH; ++q) sent[1][q] = x[q];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = t; e < 2 * WIDTH; e += ITEMS) {
            const uint of_s = e / WIDTH, q = e % WIDTH;
            if (q < count && (of_s ? holds_s == step : has_best)) send_element((of_s ? at_s : own) + HEAD + q * WORDS, step, sent[of_s][q]);
        }

        // a device may run the work-items of a work-group one after the other between two barriers
        BARRIER_AFTER_SENDING;
        best = t < groups ? receive_candidate(set + t * RECORD, step) : none;
        best = best_of_group(best, candidates[1]);
        for (uint e = t; e < 2 * WIDTH; e += ITEMS) {
            const uint of_s = e / WIDTH, q = e % WIDTH;
            __global const ulong *const from = of_s ? at_s : set + GROUP(best.origin) * RECORD;
            if (q < count && (of_s || best.bits > 0)) received[of_s][q] = receive_element(from + HEAD + q * WORDS, step);
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        const int exchanges = best.bits > 0 && AS_REAL(best.bits) > fabs(received[1][0]);
        const uint p = exchanges ? PLACE(best.origin) : s;
        __local const real *const u = received[!exchanges];
        const real pivot = u[0];
        if (i == 0) {
            ipiv[ipiv_at + s] = (int)(first + p);
            if (pivot == 0 && info[info_at] == 0) info[info_at] = (int)(first + s + 1);
        }
        place = place == p ? s : place == s ? p : place;
        const int is_below = place > s;
        real l = x[0];
        if (is_below && pivot != 0) l = fabs(pivot) >= MIN_POSITIVE ? l * (1 / pivot) : l / pivot;
        // the columns on the left of column s are the last ones
        #pragma unroll
        for (uint q = 1; q < WIDTH; ++q) x[q - 1] = is_below && q < count ? x[q] - l * u[q] : x[q];
        x[WIDTH - 1] = l;
    }
    if (i == 0) {
        records[0] = launches + 1;
        records[1] = words;
    }

    #pragma unroll
    for (uint q = 0; q < WIDTH; ++q) {
        const uint j = (q + (uint)n) % WIDTH;
        if (i < m && j < n) AT(a, place, j) = x[q];
    }
}
