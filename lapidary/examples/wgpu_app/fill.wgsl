// The five-point matrix, column-major, and its right-hand side.
// An unknown that is held has the equation u = value, each other 4·u − Σ neighbours = 0.

@group(0) @binding(2) var<storage, read_write> a: array<f32>;
@group(0) @binding(3) var<storage, read_write> b: array<f32>;

// The point of an unknown.
fn place(unknown: u32) -> vec2<u32> {
    return vec2(unknown % grid.x + 1, unknown / grid.x + 1);
}

fn on_the_wall(p: vec2<u32>) -> bool {
    return p.x == 0 || p.y == 0 || p.x > grid.x || p.y > grid.y;
}

// What a neighbour on the wall brings to the right-hand side.
fn wall(p: vec2<u32>) -> f32 {
    return select(0.0, points[index(p)].value, on_the_wall(p));
}

@compute @workgroup_size(64)
fn fill(@builtin(global_invocation_id) id: vec3<u32>) {
    let n = grid.x * grid.y;
    let row = id.x;
    let col = id.y;
    if row >= n { return; }
    let p = place(row);
    let q = place(col);
    let here = points[index(p)];
    let apart = vec2<i32>(p) - vec2<i32>(q);
    let distance = abs(apart.x) + abs(apart.y);
    let free = here.held == 0;
    a[row + col * n] = select(0.0, select(1.0, 4.0, free), distance == 0) - select(0.0, 1.0, free && distance == 1);
    if col == 0 {
        let walls = wall(p - vec2(1, 0)) + wall(p + vec2(1, 0)) + wall(p - vec2(0, 1)) + wall(p + vec2(0, 1));
        b[row] = select(here.value, walls, free);
    }
}
