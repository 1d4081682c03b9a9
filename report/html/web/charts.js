// Charts by Chart.js, in the page's colours.

// Told apart by people with any colour vision (Okabe and Ito, 2008; then Tol's muted scheme).
const colours = {
  blue: "#0072b2", orange: "#e69f00", green: "#009e73", sky: "#56b4e9", red: "#d55e00",
  pink: "#cc79a7", yellow: "#f0e442", indigo: "#332288", olive: "#999933", wine: "#882255",
  teal: "#44aa99", purple: "#aa4499", grey: "#999999",
};
const inTurn = Object.values(colours).slice(0, -1);

function pageColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Charts by their canvases; those whose canvas has left the page are given back to Chart.js.
const drawn = new Map();

function chart(height, label, config) {
  const canvas = make("canvas", {role: "img", "aria-label": label});
  const box = make("div", {class: "chart", style: `height: ${height}px`}, canvas);
  Chart.defaults.color = pageColour("--ink");
  Chart.defaults.borderColor = pageColour("--line");
  Chart.defaults.font.family = "system-ui, sans-serif";
  const plugins = Object.assign({}, config.options.plugins);
  plugins.legend = Object.assign({labels: {}}, plugins.legend);
  plugins.legend.labels.usePointStyle = config.type === "scatter";
  config.options = Object.assign({responsive: true, maintainAspectRatio: false, animation: false},
                                 config.options, {plugins});
  // A canvas has no size before it stands in the page.
  requestAnimationFrame(() => {
    for (const [other, one] of drawn) {
      if (other.isConnected) continue;
      one.destroy();
      drawn.delete(other);
    }
    if (canvas.isConnected) drawn.set(canvas, new Chart(canvas, config));
  });
  return box;
}

function axis(title, text, more = {}) {
  return Object.assign({title: {display: true, text: title},
                        ticks: {callback: (value) => text(value)}}, more);
}

// Powers of ten, and twice and five times these, have numbers.
function logAxis(title, text) {
  const worth = (value) => ["1", "2", "5"].includes(value.toExponential(3)[0]) &&
      value.toExponential(3).slice(1, 5) === ".000";
  return axis(title, (value) => worth(value) ? text(value) : "", {type: "logarithmic"});
}

// A line across each bar at limits[i], where there is one.
function limitLines(limits) {
  return {
    id: "limits",
    afterDatasetsDraw(drawing) {
      const {ctx, scales} = drawing;
      ctx.save();
      ctx.strokeStyle = pageColour("--ink");
      ctx.lineWidth = 2;
      limits.forEach((limit, i) => {
        if (limit === undefined) return;
        const x = scales.x.getPixelForValue(limit), y = scales.y.getPixelForValue(i);
        const next = scales.y.getPixelForValue(1) - scales.y.getPixelForValue(0);
        const half = Math.abs(next) / 2 || 14;
        ctx.beginPath();
        ctx.moveTo(x, y - 0.9 * half);
        ctx.lineTo(x, y + 0.9 * half);
        ctx.stroke();
      });
      ctx.restore();
    },
  };
}

// Parts of sums as bars one below the other: parts are {label, colour, values}. `limits` are lines.
function stackedBars(label, names, parts, title, text, limits = []) {
  const datasets = parts.map((part) => ({
    label: part.label, data: part.values, backgroundColor: part.colour, stack: "all",
  }));
  const most = Math.max(...limits.filter((limit) => limit !== undefined), 0);
  const bars = chart(110 + 26 * names.length, label, {
    type: "bar",
    data: {labels: names, datasets},
    plugins: limits.length > 0 ? [limitLines(limits)] : [],
    options: {
      indexAxis: "y",
      scales: {x: axis(title, text, {stacked: true, suggestedMax: 1.05 * most}),
               y: {stacked: true}},
      plugins: {tooltip: {callbacks: {
        label: (item) => `${item.dataset.label}: ${text(item.raw)}`}}},
    },
  });
  return names.length > 24 ? make("div", {class: "scroll"}, bars) : bars;
}
