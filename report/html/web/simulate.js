// What `stratagem simulate` predicts: data.report as --json has it, data.pictures by run.

function simulatedRuns({report, pictures}) {
  const runs = report.runs.map((one, i) => ({...one, picture: pictures[i]}));
  const simulated = runs.filter((one) => one.iteration_time_s !== undefined);
  const fitting = simulated.filter((one) => one.status === "ok");
  return [
    make("h1", {}, report.question),
    faint(`Predicted by stratagem simulate ${report.scenario}`),
    comparison(runs),
    ...(fitting.length > 0 ? [timeSplit(fitting)] : []),
    ...(simulated.length > 0 ? [memoryOfRuns(simulated)] : []),
    ...scaling(fitting),
    ...(simulated.length > 0 ? [oneRun(simulated)] : []),
    ...measurements(runs),
    ...provenance(simulated),
  ];
}

const statusWords = {ok: "fits", out_of_memory: "does not fit", refused: "refused"};

function statusCell(status, run) {
  const words = status === "ok" && run.tight ? "fits, tight" : statusWords[status];
  const cell = make("span", {class: status === "ok" ? "" : "bad"}, words);
  if (run.reason) cell.title = run.reason;
  return cell;
}

// Of a run that fits: another one has no speed.
const ifFits = (figure) => (run) => run.status === "ok" ? figure(run) : undefined;

const runColumns = [
  {name: "run", left: true, of: (run) => run.name},
  {name: "", left: true, of: (run) => run.status, text: statusCell},
  {name: "GPUs", key: "gpus", of: (run) => run.gpus},
  {name: "iteration", key: "iteration_time_s", of: ifFits((run) => run.iteration_time_s),
   text: inSeconds},
  {name: "tokens/s", key: "tokens_per_s", of: ifFits((run) => run.tokens_per_s), text: inNumber},
  {name: "per GPU", key: "tokens_per_s_per_gpu", of: ifFits((run) => run.tokens_per_s / run.gpus),
   text: inNumber},
  {name: "cost of 1e9 tokens", key: "cost_per_billion_tokens",
   of: ifFits((run) => run.cost_per_billion_tokens), text: inNumber, optional: true},
  {name: "MFU", key: "mfu", of: ifFits((run) => run.mfu), text: inPercent},
  {name: "exposed communication", key: "exposed_communication_s",
   of: ifFits((run) => run.exposed_communication_s), text: inSeconds},
  {name: "idle", key: "bubble_fraction", of: ifFits((run) => run.bubble_fraction),
   text: inPercent},
  {name: "memory", key: "peak_used_bytes", of: (run) => run.peak_used_bytes, text: inBytes},
  {name: "a GPU has", key: "limit_bytes", of: (run) => run.picture.limit_bytes, text: inBytes},
];

// Of the runs that fit, the one with the most FLOP/s of the model per GPU.
function bestOf(runs) {
  return runs.filter((one) => one.status === "ok").reduce(
      (a, b) => a && a.model_tflops_per_gpu >= b.model_tflops_per_gpu ? a : b, undefined);
}

// Why a run does not run, and with what it would.
function reasonOf(run) {
  const remedies = (run.remedies || []).map((one) => make("li", {},
      `it would fit, as simulated, with ${JSON.stringify(one.settings)}: ` +
      `${inSeconds(one.iteration_time_s)}, ${inBytes(one.peak_used_bytes)}`));
  return make("li", {}, `${run.name}: ${run.reason}`,
              remedies.length > 0 ? make("ul", {}, ...remedies) : "");
}

function comparison(runs) {
  const best = bestOf(runs);
  const verdict = best === undefined ? "No run fits." :
      `Most FLOP/s of the model per GPU: ${best.name}, ` +
      `${inRate(best.model_tflops_per_gpu * 1e12)}.`;
  const reasons = runs.filter((one) => one.reason && one.status !== "ok").map(reasonOf);
  return section("Runs", make("p", {}, verdict),
                 tableOf(runColumns, runs, (one) => one.picture.group),
                 reasons.length > 0 ? make("ul", {}, ...reasons) : "");
}

// Of the time of an iteration, on the mean GPU.
function timeSplit(runs) {
  const idle = (run) => run.bubble_fraction * run.iteration_time_s;
  const optimizer = (run) => run.picture.optimizer_s;
  const computing = (run) => Math.max(
      0, run.iteration_time_s - run.exposed_communication_s - idle(run) - optimizer(run));
  const parts = [
    {label: "computing", colour: colours.blue, values: runs.map(computing)},
    {label: "optimizer", colour: colours.pink, values: runs.map(optimizer)},
    {label: "communication beside which nothing is computed", colour: colours.orange,
     values: runs.map((run) => run.exposed_communication_s)},
    {label: "neither (bubbles, hosts, their steps and copies)", colour: colours.grey,
     values: runs.map(idle)},
  ];
  return section("Where the time goes",
                 stackedBars("Time of an iteration by what it is spent on", runs.map((r) => r.name),
                             parts, "an iteration of the mean GPU", inSeconds));
}

const besideBuffers = [
  ["context", "context_bytes"], ["communicators", "communicator_bytes"],
  ["workspace", "workspace_bytes"],
];

// What fills a device at the peak of its buffers: the program's, what stands beside them, and what
// the allocator holds beyond.
function memoryParts(devices) {
  const names = Object.keys(devices[0].memory_breakdown_bytes);
  const parts = names.map((name, i) => ({
    label: inWords(name), colour: inTurn[i % inTurn.length],
    values: devices.map((device) => device.memory_breakdown_bytes[name]),
  }));
  besideBuffers.forEach(([name, key], i) => parts.push({
    label: name, colour: ["#555555", "#999999", "#cccccc"][i],
    values: devices.map((device) => device[key]),
  }));
  const all = devices.map((_, i) => parts.reduce((sum, part) => sum + part.values[i], 0));
  parts.push({label: "held by the allocator besides", colour: "#e0d8c0",
              values: devices.map((device, i) => Math.max(0, device.peak_used_bytes - all[i]))});
  return parts.filter((part) => part.values.some((value) => value > 0));
}

function fullest(run) {
  return run.devices.reduce((a, b) => a.peak_used_bytes >= b.peak_used_bytes ? a : b);
}

const nameInMemory = (run) => run.status === "ok" ? run.name : `${run.name} (does not fit)`;

function memoryOfRuns(runs) {
  return section("Memory of the fullest GPU",
                 faint("The line is what a GPU has."),
                 stackedBars("Memory of the fullest GPU of each run by category",
                             runs.map(nameInMemory), memoryParts(runs.map(fullest)),
                             "bytes", inBytes, runs.map((run) => run.picture.limit_bytes)));
}

// FLOP/s of the model on all GPUs: runs of different models can be compared by it.
const rateOf = (run) => run.model_tflops_per_gpu * run.gpus * 1e12;

// Measured over predicted speed, if a figure says it.
function measuredRate(run) {
  const measured = run.measured || {};
  if (measured.iteration_time)
    return rateOf(run) * run.iteration_time_s / measured.iteration_time.value;
  if (measured.tflops_per_gpu)
    return rateOf(run) * measured.tflops_per_gpu.value / run.hardware_tflops_per_gpu;
  if (measured.model_tflops_per_gpu)
    return measured.model_tflops_per_gpu.value * 1e12 * run.gpus;
  for (const name of ["scaling_efficiency", "speedup"]) {
    if (measured[name] && run[name]) return rateOf(run) * measured[name].value / run[name];
  }
  return undefined;
}

// A group's runs in a line where each has a number of GPUs of its own; else as points.
function scaling(runs) {
  const groups = new Map();
  for (const run of runs) {
    const name = run.picture.group || "runs";
    groups.set(name, [...(groups.get(name) || []), run]);
  }
  const sizes = (some) => new Set(some.map((run) => run.gpus)).size;
  const grows = [...groups].filter(([, some]) => sizes(some) > 1);
  if (grows.length === 0) return [];
  const datasets = [];
  grows.forEach(([name, all], i) => {
    const some = [...all].sort((a, b) => a.gpus - b.gpus);
    const colour = inTurn[i % inTurn.length], first = some[0], last = some[some.length - 1];
    const line = {borderColor: colour, backgroundColor: colour};
    const alone = sizes(some) === some.length;
    datasets.push({...line, label: name, showLine: alone, pointRadius: 4, data: some.map(
        (run) => ({x: run.gpus, y: rateOf(run), name: run.name}))});
    if (alone) {
      datasets.push({...line, label: `as fast per GPU as ${first.name}`, showLine: true,
                     borderDash: [4, 4], pointRadius: 0, borderWidth: 1, pointStyle: "line",
                     data: [first, last].map(
          (run) => ({x: run.gpus, y: rateOf(first) / first.gpus * run.gpus}))});
    }
    const measured = some.filter((run) => measuredRate(run) !== undefined);
    if (measured.length === 0) return;
    datasets.push({...line, label: `${name}, measured`, showLine: false, pointStyle: "crossRot",
                   pointRadius: 7, borderWidth: 2, data: measured.map(
                       (run) => ({x: run.gpus, y: measuredRate(run), name: run.name}))});
  });
  const plot = chart(420, "FLOP/s of the model against the number of GPUs", {
    type: "scatter", data: {datasets}, options: {
      scales: {x: logAxis("GPUs", inNumber), y: logAxis("of the model, on all GPUs", inRate)},
      plugins: {tooltip: {callbacks: {label: (item) =>
          `${item.raw.name || item.dataset.label}: ${inRate(item.raw.y)}`}}},
    }});
  return [section("Scaling", plot)];
}

function memoryInTime(picture, number, runLimit) {
  const device = picture.devices[number], times = device.memory.at_s;
  const datasets = picture.categories.map((name, c) => ({
    label: inWords(name), data: times.map((at, i) => ({x: at, y: device.memory.bytes[i][c]})),
    backgroundColor: inTurn[c % inTurn.length], borderWidth: 0, pointRadius: 0, stepped: true,
  })).filter((set) => set.data.some((point) => point.y > 0));
  datasets.forEach((set, i) => { set.fill = i === 0 ? "origin" : "-1"; });
  return chart(300, "Bytes of live buffers in time", {
    type: "line", data: {datasets}, options: {
      parsing: false, normalized: true,
      interaction: {mode: "nearest", axis: "x", intersect: false},
      scales: {x: axis("of the first iteration", inSeconds, {type: "linear"}),
               y: axis("bytes", inBytes, {stacked: true, beginAtZero: true,
                                          suggestedMax: runLimit})},
      plugins: {tooltip: {callbacks: {label: (item) =>
          `${item.dataset.label}: ${inBytes(item.raw.y)}`}}},
    }});
}

// Timeline, memory, links and plan of a run of one's choice.
function oneRun(runs) {
  const place = make("div", {id: "one-run"});
  const show = (number) => {
    const run = runs[number], picture = run.picture;
    const links = make("div", {class: "links"});
    links.innerHTML = picture.links;
    const memory = make("div");
    const left = picture.without_bars > 0 ?
        faint(`${picture.without_bars} more classes of devices are not drawn.`) : "";
    place.replaceChildren(
        make("h3", {}, `${run.name}: an iteration in time`), new Timeline(picture).element(), left,
        make("h3", {}, "Memory of each class of GPUs"),
        stackedBars("Memory of each class of GPUs by category", run.devices.map(deviceName),
                    memoryParts(run.devices), "bytes", inBytes,
                    run.devices.map(() => picture.limit_bytes)),
        make("h3", {}, "Live buffers in time"),
        choice("of", picture.devices.map(deviceName), (device) => {
          memory.replaceChildren(memoryInTime(picture, device, picture.limit_bytes));
        }), memory,
        make("details", {}, make("summary", {}, "The links of the cluster, and who uses them"),
             links),
        make("details", {}, make("summary", {}, "The plan in words"),
             make("pre", {}, picture.plan)));
  };
  const first = Math.max(0, runs.indexOf(bestOf(runs)));
  return section("One run", choice("Run", runs.map((run) => run.name), show, first), place);
}

// Differences of shares are points; of all else they are relative to what was measured.
const inPoints = (name) => name === "scaling_efficiency";
const errorText = (name, error) =>
    `${error >= 0 ? "+" : ""}${(100 * error).toFixed(1)} ${inPoints(name) ? "pt" : "%"}`;

const units = {
  iteration_time: inSeconds, tflops_per_gpu: (value) => inRate(value * 1e12),
  model_tflops_per_gpu: (value) => inRate(value * 1e12),
  scaling_efficiency: inPercent, speedup: (value) => `${inNumber(value)} x`,
  resident: inBytes, peak_allocated: inBytes, peak_reserved: inBytes, peak_used: inBytes,
};
function figureText(name, value) {
  if (name === "fits") return value ? "fits" : "does not fit";
  return (units[name] || inNumber)(value);
}

// What was predicted, from what was measured and the error.
function predictedOf(row) {
  if (row.error === undefined) return undefined;
  if (row.name === "fits") return row.error === 0 ? row.value : !row.value;
  return inPoints(row.name) ? row.value + row.error : row.value * (1 + row.error);
}

function measurements(runs) {
  const rows = [];
  for (const run of runs) {
    for (const [name, figure] of Object.entries(run.measured || {}))
      rows.push({run: run.name, name, ...figure, error: (run.error || {})[name]});
  }
  if (rows.length === 0) return [];
  const columns = [
    {name: "run", left: true, of: (row) => row.run},
    {name: "figure", left: true, of: (row) => inWords(row.name)},
    {name: "measured", key: "measured", of: (row) => row.value,
     text: (value, row) => figureText(row.name, value)},
    {name: "predicted", of: predictedOf, text: (value, row) => figureText(row.name, value)},
    {name: "error", key: "error", of: (row) => row.name === "fits" ? undefined : row.error,
     text: (value, row) => errorText(row.name, value)},
    {name: "source", left: true,
     of: (row) => row.source + (row.fitted ? " (fitted to it)" : "") +
         (row.from_memory ? " (recalled, nothing is judged by it)" : "")},
  ];
  return [section("Held against what was measured", tableOf(columns, rows))];
}

// Runs that rest on the same share a line.
function provenance(runs) {
  if (runs.length === 0) return [];
  const byText = new Map();
  for (const run of runs) {
    const weakest = run.provenance;
    const of = (what, paths) => paths.length === 0 ? [] :
        [`${what}: ${paths.map((path) => path.replace(/^\//, "")).join(", ")}`];
    const names = [...of("profile", weakest.profile), ...of("stack", weakest.stack),
                   ...of("cluster", weakest.cluster)];
    const text = `${weakest.weakest} (${names.join("; ")}); ` +
        `${inPercent(run.extrapolated.kernel_time)} of the kernels' time beyond measured sizes` +
        (run.assumed ? `. Assumed: ${run.assumed}` : "");
    byText.set(text, [...(byText.get(text) || []), run.name]);
  }
  const lines = [...byText].map(([text, names]) => make("li", {}, `${names.join("; ")}: ${text}`));
  return [section("What the predictions rest on",
                  faint("The weakest constants that each run uses."), make("ul", {}, ...lines))];
}
