// Copies between a column-major rectangle in a buffer and the same rectangle without gaps between its columns. All numbers count
// words of 32 bits.
struct Rectangle {
    start: u32, // position of element (0, 0) in the buffer
    ld: u32,    // distance from one column to the next in the buffer
    rows: u32,
    count: u32, // number of words in the rectangle
}

@group(0) @binding(0) var<uniform> rectangle: Rectangle;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> destination: array<u32>;

// The position in the buffer of the word that has position `at` in the packed rectangle.
fn in_buffer(at: u32) -> u32 {
    return rectangle.start + at % rectangle.rows + at / rectangle.rows * rectangle.ld;
}

@compute @workgroup_size(64)
fn pack(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < rectangle.count) { destination[id.x] = source[in_buffer(id.x)]; }
}

@compute @workgroup_size(64)
fn unpack(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < rectangle.count) { destination[in_buffer(id.x)] = source[id.x]; }
}
