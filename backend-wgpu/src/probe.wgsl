// Tests the assumption of the kernel `getrf_strips`: a workgroup that has begun makes progress while a later workgroup waits for
// it, and the later workgroup then sees the values that the earlier one wrote. Each workgroup takes a ticket and waits for the
// signal of the workgroup with the previous ticket. Then the waiting workgroup checks the numbers of the previous workgroup,
// writes its own numbers, and signals.
const ITEMS = 64u;
// Maximum number of times that the signal is read, so that the wait ends even without a signal. Some drivers stop loops after
// 65535 iterations.
const LOOKS = 32768u;

// turns[0] counts the tickets that are taken, and turns[1] counts the workgroups that have signalled
@group(0) @binding(0) @coherent var<storage, read_write> turns: array<atomic<u32>>;
// the numbers that the workgroups write, one for each invocation
@group(0) @binding(1) @coherent var<storage, read_write> notes: array<u32>;
// the result of each invocation, which is not zero if the invocation saw the signal and the expected number
@group(0) @binding(2) var<storage, read_write> seen: array<u32>;

var<workgroup> ticket: u32;
var<workgroup> signalled: u32;

@compute @workgroup_size(ITEMS)
fn probe(@builtin(local_invocation_index) t: u32) {
    if (t == 0u) { ticket = atomicAdd(&turns[0], 1u); }
    let own = workgroupUniformLoad(&ticket);
    // the index of a number that another invocation writes (workgroup 0 reads one of its own numbers, which is still zero)
    let before = select(own - 1u, 0u, own == 0u) * ITEMS + (t + 1u) % ITEMS;
    // the number is read before the signal, so that an incoherent cache would keep the old number
    let early = notes[before];
    if (t == 0u) {
        var is_told = 0u;
        for (var look = 0u; look < LOOKS && is_told == 0u; look++) {
            is_told = select(0u, 1u, atomicLoad(&turns[1]) >= own);
        }
        signalled = is_told;
    }
    storageBarrier();
    let is_told = workgroupUniformLoad(&signalled);
    let note = notes[before];
    let expected = select(own + (t + own) % ITEMS, 0u, own == 0u);
    // `early` has no influence on the result, but its use keeps the compiler from removing the read
    seen[own * ITEMS + t] = select(0u, 1u + min(early, 1u), is_told == 1u && note == expected);
    storageBarrier();
    notes[own * ITEMS + t] = own + 1u + (t + own) % ITEMS;
    storageBarrier();
    if (t == 0u) { atomicStore(&turns[1], own + 1u); }
}
