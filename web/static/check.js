// Checks this browser: compares results of the GPU with results in f64, and reports them to the server, if it asks for a report.

import { at, open, showError, solve } from "./page.js";

// A server that takes a screenshot answers this request after it has received the report, so that the page is complete by then.
function holdLoading() {
  const image = new Image();
  image.src = "hold";
  image.hidden = true;
  document.body.append(image);
}

function show(check) {
  const item = document.createElement("li");
  item.textContent = `${check.passed ? "✓" : "✗"} ${check.text}`;
  item.classList.toggle("bad", !check.passed);
  at("checks").append(item);
  at("checks").hidden = false;
}

// Only the server of the tests takes reports.
async function send(report) {
  await fetch("report", { method: "POST", body: JSON.stringify(report) }).catch(() => {});
}

export async function run() {
  holdLoading();
  at("form").hidden = true;
  addEventListener("error", (event) => send({ gpu: "", error: event.message, checks: [] }));
  const report = { gpu: "", error: "", checks: [] };
  try {
    const { gpu, name } = await open();
    report.gpu = name;
    for (const { text, passed } of await gpu.checks()) {
      report.checks.push({ text, passed });
      show({ text, passed });
    }
    await solve(gpu, "cube", 8);
  } catch (error) {
    report.error = error.message ?? String(error);
    showError(report.gpu ? "progress" : "device", error);
  }
  await send(report);
}
