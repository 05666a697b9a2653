// What both shaders of the application see.

struct Point {
    held: u32,
    value: f32,
}

// Unknowns in each direction; the points have a wall around them.
@group(0) @binding(0) var<uniform> grid: vec2<u32>;
@group(0) @binding(1) var<storage, read> points: array<Point>;

fn index(p: vec2<u32>) -> u32 {
    return p.x + p.y * (grid.x + 2);
}

