// Draws the charge density of the cube: three faces in isometric projection, and a colour scale.

const COLOURS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99],
  [170, 220, 50], [253, 231, 37]];
const EDGE = 220;
const ORIGIN = [300, 240];
// The density is infinite at the edges. The scale ends at the density that this fraction of the surface exceeds.
const BEYOND = 0.03;

function colour(position) {
  const place = Math.min(Math.max(position, 0), 1) * (COLOURS.length - 1);
  const below = Math.min(Math.floor(place), COLOURS.length - 2);
  const mixed = COLOURS[below].map((from, k) => Math.round(from + (COLOURS[below + 1][k] - from) * (place - below)));
  return `rgb(${mixed.join()})`;
}

function project([x, y, z]) {
  return [ORIGIN[0] + EDGE * (y - x) * Math.sqrt(3) / 2, ORIGIN[1] + EDGE * ((x + y) / 2 - z)];
}

// The panels of the three visible faces, as corners and density. `charges` are in the order of the library: face by face.
function panels(lines, charges) {
  const m = lines.length - 1, visible = [];
  for (let axis = 0; axis < 3; axis++) {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < m; j++) {
        const [u, v] = [[lines[i], lines[i + 1]], [lines[j], lines[j + 1]]];
        const area = (u[1] - u[0]) * (v[1] - v[0]);
        const point = (a, b) => {
          const at = [1, 1, 1];
          at[(axis + 1) % 3] = a;
          at[(axis + 2) % 3] = b;
          return project(at);
        };
        const corners = [point(u[0], v[0]), point(u[1], v[0]), point(u[1], v[1]), point(u[0], v[1])];
        const density = 4 * Math.PI * charges[(2 * axis + 1) * m * m + i * m + j] / area;
        visible.push({ corners, density, area });
      }
    }
  }
  return visible;
}

// The ends of the colour scale: the smallest density, and the density that the fraction BEYOND of the surface exceeds.
function range(visible) {
  const sorted = [...visible].sort((a, b) => b.density - a.density);
  let area = 0;
  const last = sorted.find((panel) => (area += panel.area / 3) > BEYOND);
  const low = sorted[sorted.length - 1].density;
  return [low, Math.max(last.density, low * 1.01)];
}

export function drawCube(canvas, lines, charges) {
  const draw = canvas.getContext("2d"), visible = panels(lines, charges), [low, high] = range(visible);
  const text = getComputedStyle(canvas).color;
  draw.clearRect(0, 0, canvas.width, canvas.height);
  for (const { corners, density } of visible) {
    draw.fillStyle = draw.strokeStyle = colour(Math.log(density / low) / Math.log(high / low));
    draw.lineWidth = 1;
    draw.beginPath();
    corners.forEach(([x, y]) => draw.lineTo(x, y));
    draw.closePath();
    draw.fill();
    draw.stroke();
  }
  const [left, top, width, height] = [610, 50, 26, 380];
  for (let y = 0; y < height; y++) {
    draw.fillStyle = colour(1 - y / height);
    draw.fillRect(left, top + y, width, 1.5);
  }
  draw.fillStyle = text;
  draw.font = "14px sans-serif";
  draw.fillText(high.toFixed(2), left + width + 8, top + 10);
  draw.fillText(low.toFixed(2), left + width + 8, top + height);
  draw.fillText("density in ε₀·V / edge", left - 60, top - 16);
}
