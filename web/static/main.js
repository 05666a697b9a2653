// Starts the page: the form, or the checks if the address ends in `?check`.

import { run } from "./check.js";
import { at, open, showError, solve } from "./page.js";

// Panels along an edge of the cube; the system has 6·m² unknowns.
const PANELS = [4, 8, 12, 16, 20, 24, 32];
const ORDERS = [256, 512, 1024, 2048, 4096, 8192];

const kind = at("kind"), order = at("order");

// Lists the orders of the chosen kind that fit into one buffer of the GPU.
function listOrders(largest) {
  const cube = kind.value === "cube";
  const sizes = (cube ? PANELS.map((m) => [m, 6 * m * m]) : ORDERS.map((n) => [n, n])).filter(([, n]) => n <= largest);
  order.replaceChildren(...sizes.map(([value, n]) => new Option(n, value, false, n >= 1000 && n < 2000)));
}

async function start() {
  let gpu;
  try {
    ({ gpu } = await open());
  } catch (error) {
    showError("device", error);
    return;
  }
  const largest = gpu.largest_order;
  kind.onchange = () => listOrders(largest);
  listOrders(largest);
  at("controls").disabled = false;
  at("form").onsubmit = async (event) => {
    event.preventDefault();
    at("controls").disabled = true;
    at("progress").classList.remove("bad");
    try {
      await solve(gpu, kind.value, Number(order.value));
    } catch (error) {
      showError("progress", error);
    }
    at("controls").disabled = false;
  };
}

// a panic of the library is an exception of no promise
addEventListener("error", (event) => showError("progress", event));
await (new URLSearchParams(location.search).has("check") ? run() : start());
