alias real = f32;
const MIN_POSITIVE: real = 1.17549435e-38f;
const MV = 1u;
const VW = 4u;
const NR = 3u;
const GROUP = 8u;

struct Args {
    width: u32,
    lines: u32,
    k: u32,
    src_at: u32,
    by_line: u32,
    by_k: u32,
    panels_at: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read> src: array<real>;
@group(0) @binding(2) var<storage, read_write> panels: array<real>;

// Packs `lines` lines of k elements into panels of `width` lines. Element p of line l is src[src_at + l·by_line + p·by_k]. Each
// invocation packs one panel.
@compute @workgroup_size(GROUP)
fn pack(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = id.x * args.width;
    if (first >= args.lines) { return; }
    let here = min(args.width, args.lines - first);
    var at = args.src_at + first * args.by_line;
    var to = args.panels_at + first * args.k;
    for (var p = 0u; p < args.k; p++) {
        for (var l = 0u; l < here; l++) { panels[to + l] = src[at + l * args.by_line]; }
        for (var l = here; l < args.width; l++) { panels[to + l] = real(); }
        at += args.by_k;
        to += args.width;
    }
}