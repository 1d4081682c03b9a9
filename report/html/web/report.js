// Draws the page from its data: {kind, ...}, with one part for each kind.

const parts = {simulate: simulatedRuns, search: searchedPlans, validate: validated};

function drawReport(data) {
  document.getElementById("report").replaceChildren(...parts[data.kind](data));
}

function startReport() {
  const data = JSON.parse(document.getElementById("data").textContent);
  drawReport(data);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawReport(data);
  });
}
