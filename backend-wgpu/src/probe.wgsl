// Whether workgroups that began go on while others wait for them, and whether these then see what they wrote: what the
// kernel `getrf_strips` relies on. Each workgroup takes a ticket and waits until the one with the ticket before
// has signalled; it reads what that one wrote, and writes and signals in its turn.
const ITEMS = 64u;
// Most looks of a wait, so that it ends where nobody signals. There are drivers that end every loop after 65535 rounds.
const LOOKS = 32768u;

// turns[0] counts the tickets that are taken, turns[1] the workgroups that have signalled
@group(0) @binding(0) @coherent var<storage, read_write> turns: array<atomic<u32>>;
// what each workgroup writes: a number for each invocation
@group(0) @binding(1) @coherent var<storage, read_write> notes: array<u32>;
// not zero where an invocation saw the signal and the number
@group(0) @binding(2) var<storage, read_write> seen: array<u32>;

var<workgroup> ticket: u32;
var<workgroup> signalled: u32;

@compute @workgroup_size(ITEMS)
fn probe(@builtin(local_invocation_index) t: u32) {
    if (t == 0u) { ticket = atomicAdd(&turns[0], 1u); }
    let own = workgroupUniformLoad(&ticket);
    // of another invocation's number; the first workgroup reads its own, which are zero
    let before = select(own - 1u, 0u, own == 0u) * ITEMS + (t + 1u) % ITEMS;
    // read too early, so that a cache that is not coherent has something old
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
    // the early number counts for nothing, but must be read
    seen[own * ITEMS + t] = select(0u, 1u + min(early, 1u), is_told == 1u && note == expected);
    storageBarrier();
    notes[own * ITEMS + t] = own + 1u + (t + own) % ITEMS;
    storageBarrier();
    if (t == 0u) { atomicStore(&turns[1], own + 1u); }
}
