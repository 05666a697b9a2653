//! Tests, on every adapter, that the potential solves the equations and that the picture shows the potential.

use lapidary::wgpu::list;

use super::{App, Capacitor, Solver, WIDTH, encoded};

/// Returns the residual of the equation of a point, and whether the value of the point lies between the values of its neighbours.
fn equation(problem: &Capacitor, u: impl Fn(u32, u32) -> f32, [x, y]: [u32; 2]) -> (f32, bool) {
    let (here, around) = (u(x, y), [u(x - 1, y), u(x + 1, y), u(x, y - 1), u(x, y + 1)]);
    match problem.held[(x + y * (problem.width + 2)) as usize] {
        Some(value) => ((here - value).abs(), true),
        None => {
            let (least, most) = (around.into_iter().fold(here, f32::min), around.into_iter().fold(here, f32::max));
            ((4.0 * here - around.into_iter().sum::<f32>()).abs(), least < here && here < most)
        }
    }
}

/// Asserts that no pixel is as dark as a line where the potential is not near a tenth of a volt, in grid cells of small gradient. Drivers
/// compute wrong derivatives of a shader's variables at the edges of triangles.
fn assert_lines(problem: &Capacitor, u: impl Fn(u32, u32) -> f32, pixels: &[u8], name: &str) {
    for (at, pixel) in pixels.chunks_exact(4).enumerate() {
        let pixel_of = |index: usize, pixels: u32, cells: u32| (index as f32 + 0.5) * (cells + 1) as f32 / pixels as f32;
        let x = pixel_of(at % WIDTH as usize, WIDTH, problem.width);
        let y = pixel_of(at / WIDTH as usize, problem.rows(), problem.height);
        let (i, j, s, t) = (x as u32, y as u32, x.fract(), y.fract());
        let corners = [u(i, j), u(i + 1, j), u(i, j + 1), u(i + 1, j + 1)];
        let [a, b, c, d] = corners;
        let tenths = 10.0 * ((a + (b - a) * s) * (1.0 - t) + (c + (d - c) * s) * t);
        let spread = corners.into_iter().fold(a, f32::max) - corners.into_iter().fold(a, f32::min);
        let is_dark = pixel[..3].iter().all(|&value| value < 100);
        assert!(spread > 0.1 || (tenths - tenths.round()).abs() < 0.1 || !is_dark, "{name}: a line at {at}, u = {tenths} tenths");
    }
}

#[test]
fn the_potential_solves_the_equations_and_is_drawn() {
    for found in list().devices {
        let problem = Capacitor::new(24, 15);
        let app = App::open(&found.adapter, &problem).unwrap();
        let mut solver = Solver::open(&app, &problem).unwrap();
        let pivots = solver.enqueue(&app, &problem).unwrap();
        let solution = app.read(solver.solution());
        let wall = |x, y| x == 0 || y == 0 || x > problem.width || y > problem.height;
        let u = |x, y| if wall(x, y) { 0.0 } else { solution[(x - 1 + (y - 1) * problem.width) as usize] };
        // The limit is bound 9 of docs/numerics.md without its factor n, for ‖A‖ = 8 and ‖x‖ = ‖b‖ = 1.
        let limit = 16.0 * f32::EPSILON * (8.0 + 1.0);
        for y in 1..=problem.height {
            for x in 1..=problem.width {
                let (residual, inside) = equation(&problem, u, [x, y]);
                assert!(residual <= limit, "{}: ({x}, {y}) is off by {residual:e}", found.info.name);
                assert!(inside, "{}: ({x}, {y}) is not between its neighbours", found.info.name);
            }
        }

        // each computation writes the matrix again; the device holds more and more calls back that are not flushed
        let mut pivots = vec![pivots];
        pivots.extend((0..4).map(|_| solver.enqueue(&app, &problem).unwrap()));
        let pixels = app.draw(solver.solution(), problem.rows()).unwrap();
        pivots.iter().for_each(|pivots| solver.check(pivots).unwrap());
        // returns red and blue of the pixel in the middle of the plate with this potential
        let pixel = |volts: f32| {
            let plate: Vec<usize> = (0..problem.held.len()).filter(|&at| problem.held[at] == Some(volts)).collect();
            let at = u32::try_from(plate[plate.len() / 2]).unwrap();
            let [x, y] = [at % (problem.width + 2), at / (problem.width + 2)];
            let (row, column) = (y * problem.rows() / (problem.height + 1), x * WIDTH / (problem.width + 1));
            let at = 4 * (column + row * WIDTH) as usize;
            [pixels[at], pixels[at + 2]]
        };
        let ([red, less_blue], [less_red, blue]) = (pixel(1.0), pixel(-1.0));
        assert!(red > 2 * less_blue && blue > 2 * less_red, "{}: {:?} {:?}", found.info.name, pixel(1.0), pixel(-1.0));
        assert_lines(&problem, u, &pixels, &found.info.name);
        let reader = png::Decoder::new(std::io::Cursor::new(encoded(&pixels).unwrap())).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (WIDTH, problem.rows()));
    }
}
