// The potential as colours, with contour lines. The picture is WIDTH pixels wide, and its pixels are square.

@group(0) @binding(2) var<storage, read> solution: array<f32>;

struct Corner {
    @builtin(position) position: vec4<f32>,
    // from 0 to 1 over the picture
    @location(0) at: vec2<f32>,
}

// One triangle that covers the picture.
@vertex
fn cover(@builtin(vertex_index) i: u32) -> Corner {
    let at = vec2(f32(i & 1), f32(i >> 1)) * 2.0;
    return Corner(vec4(at * 2.0 - 1.0, 0.0, 1.0), vec2(at.x, 1.0 - at.y));
}

fn potential(p: vec2<u32>) -> f32 {
    if p.x == 0 || p.y == 0 || p.x > grid.x || p.y > grid.y {
        return points[index(p)].value;
    }
    return solution[p.x - 1 + (p.y - 1) * grid.x];
}

// Linear between the four points around. Returns the potential and its gradient; the unit of length is a cell of the grid.
fn between(at: vec2<f32>) -> vec3<f32> {
    let p = min(vec2<u32>(at), grid);
    let t = at - vec2<f32>(p);
    let left = vec2(potential(p), potential(p + vec2(0, 1)));
    let right = vec2(potential(p + vec2(1, 0)), potential(p + vec2(1, 1)));
    let across = mix(left, right, t.x);
    let slope = right - left;
    return vec3(mix(across.x, across.y, t.y), mix(slope.x, slope.y, t.y), across.y - across.x);
}

@fragment
fn colour(corner: Corner) -> @location(0) vec4<f32> {
    let value = between(corner.at * vec2<f32>(grid + 1));
    let u = value.x;
    let negative = vec3(0.13, 0.30, 0.65);
    let positive = vec3(0.70, 0.10, 0.17);
    let heat = mix(vec3(0.97), select(negative, positive, u > 0.0), abs(u));
    // A line at every tenth, a pixel and a half wide. A driver computes derivatives such as fwidth from neighbouring pixels, and wrongly
    // where it has divided the triangle.
    let tenths = u * 10.0;
    let per_pixel = 10.0 * length(value.yz) * f32(grid.x + 1) / f32(WIDTH);
    let line = abs(fract(tenths - 0.5) - 0.5) / max(per_pixel, 1e-6);
    return vec4(heat * mix(0.35, 1.0, smoothstep(0.5, 1.5, line)), 1.0);
}
