// The parts of the page: opens the GPU, solves a system, and shows its result.

import init, { Gpu, lines } from "./pkg/lapidary_web.js";
import { drawCube } from "./cube.js";

export const at = (id) => document.getElementById(id);

function showProgress(step, part) {
  at("progress").textContent = `${step} …`;
  at("bar").hidden = false;
  at("bar").value = part;
}

export function showError(place, error) {
  at(place).textContent = error.message ?? String(error);
  at(place).classList.add("bad");
}

function showResults(rows) {
  const cells = rows.flatMap(([name, value]) => [["dt", name], ["dd", value]]);
  at("results").replaceChildren(...cells.map(([tag, text]) => Object.assign(document.createElement(tag), { textContent: text })));
  at("results").hidden = false;
}

// Solves the chosen system and shows the result.
export async function solve(gpu, what, size) {
  const cube = what === "cube";
  const solution = cube ? await gpu.cube(size, showProgress) : await gpu.random(size, showProgress);
  const x = solution.x;
  showResults([
    ["Order", `n = ${x.length}`],
    ["Factorisation", `${(1000 * solution.seconds).toFixed(1)} ms, ${solution.gigaflops.toFixed(1)} GFLOP/s`],
    ["Residual", solution.residual.toExponential(2)],
    ...(cube ? [["Capacitance", `${solution.sum.toFixed(5)} · 4πε₀·edge (known: 0.66068)`]] : []),
  ]);
  at("canvas").hidden = at("caption").hidden = !cube;
  if (cube) {
    drawCube(at("canvas"), lines(size), x);
  }
  at("progress").textContent = "";
  at("bar").hidden = true;
}

// Opens the GPU of the browser, and shows its name, as far as the browser tells it.
export async function open() {
  await init();
  const gpu = await Gpu.open();
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const { vendor, architecture, description } = adapter.info;
  const name = [vendor, architecture, description].filter(Boolean).join(" ") || "the browser does not tell its name";
  at("device").textContent = `Your GPU: ${name}`;
  return { gpu, name };
}
