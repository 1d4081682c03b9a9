// What `stratagem simulate` predicts: data.report as --json has it, data.pictures by run.

function simulatedRuns({report, pictures}) {
  const run = report.runs.map((one, i) => ({...one, picture: pictures[i]}));
  const timed = run.filter((one) => one.iteration_time_s !== undefined);
  return [
    make("h1", {}, report.question),
    faint(`Predicted by stratagem simulate ${report.scenario}`),
    comparison(run),
    ...(timed.length > 0 ? [timeSplit(timed), memoryOfRuns(timed)] : []),
    ...scaling(timed),
    ...(timed.length > 0 ? [oneRun(timed)] : []),
    ...measurements(run),
    provenance(timed),
  ];
}

const statusWords = {ok: "fits", out_of_memory: "does not fit", refused: "refused"};

function statusCell(status, run) {
  const words = status === "ok" && run.tight ? "fits, tight" : statusWords[status];
  const cell = make("span", {class: status === "ok" ? "" : "bad"}, words);
  if (run.reason) cell.title = run.reason;
  return cell;
}

const runColumns = [
  {name: "run", left: true, of: (run) => run.name},
  {name: "GPUs", key: "gpus", of: (run) => run.gpus},
  {name: "iteration", key: "iteration_time_s", of: (run) => run.iteration_time_s, text: inSeconds},
  {name: "tokens/s", key: "tokens_per_s", of: (run) => run.tokens_per_s, text: inNumber},
  {name: "per GPU", key: "tokens_per_s_per_gpu",
   of: (run) => run.tokens_per_s && run.tokens_per_s / run.gpus, text: inNumber},
  {name: "MFU", key: "mfu", of: (run) => run.mfu, text: inPercent},
  {name: "exposed communication", key: "exposed_communication_s",
   of: (run) => run.exposed_communication_s, text: inSeconds},
  {name: "bubble", key: "bubble_fraction", of: (run) => run.bubble_fraction, text: inPercent},
  {name: "memory", key: "peak_used_bytes", of: (run) => run.peak_used_bytes, text: inBytes},
  {name: "of", key: "limit_bytes", of: (run) => run.picture.limit_bytes, text: inBytes},
  {name: "", left: true, of: (run) => run.status, text: statusCell},
];

// Of the runs that fit, the one with the most tokens per GPU.
function bestOf(runs) {
  return runs.filter((one) => one.status === "ok").reduce(
      (a, b) => a && a.tokens_per_s / a.gpus >= b.tokens_per_s / b.gpus ? a : b, undefined);
}

function comparison(run) {
  const best = bestOf(run);
  const verdict = best === undefined ? "No run fits." :
      `Most tokens per GPU: ${best.name}, ${inNumber(best.tokens_per_s / best.gpus)} a second.`;
  const reasons = run.filter((one) => one.reason && one.status !== "ok").map(
      (one) => make("li", {}, `${one.name}: ${one.reason}`));
  return section("Runs", make("p", {}, verdict),
                 tableOf(runColumns, run, (one) => one.picture.group),
                 reasons.length > 0 ? make("ul", {}, ...reasons) : "");
}

// Of the time of an iteration, on the mean GPU.
function timeSplit(runs) {
  const idle = (run) => run.bubble_fraction * run.iteration_time_s;
  const optimizer = (run) => run.picture.optimizer_s;
  const computing = (run) => run.iteration_time_s - run.exposed_communication_s - idle(run) -
      optimizer(run);
  const parts = [
    {label: "computing", colour: colours.blue, values: runs.map(computing)},
    {label: "optimizer", colour: colours.pink, values: runs.map(optimizer)},
    {label: "communication beside which nothing is computed", colour: colours.orange,
     values: runs.map((run) => run.exposed_communication_s)},
    {label: "idle (bubbles, waits for the host)", colour: colours.grey, values: runs.map(idle)},
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
    label: name, colour: ["#777777", "#aaaaaa", "#cccccc"][i],
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

function memoryOfRuns(runs) {
  return section("Memory of the fullest GPU",
                 faint("The line is what a GPU has."),
                 stackedBars("Memory of the fullest GPU of each run by category",
                             runs.map((run) => run.name), memoryParts(runs.map(fullest)),
                             "bytes", inBytes, runs.map((run) => run.picture.limit_bytes)));
}

// FLOP/s of the model on all GPUs: runs of different models can be compared by it.
const rateOf = (run) => run.model_tflops_per_gpu * run.gpus * 1e12;

// The same as measured, if a figure says it.
function measuredRate(run) {
  const time = run.measured && run.measured.iteration_time;
  if (time) return rateOf(run) * run.iteration_time_s / time.value;
  const rate = run.measured && run.measured.tflops_per_gpu;
  return rate && rateOf(run) * rate.value / run.hardware_tflops_per_gpu;
}

function scaling(runs) {
  const fitting = runs.filter((run) => run.status === "ok").sort((a, b) => a.gpus - b.gpus);
  const groups = new Map();
  for (const run of fitting) {
    const name = run.picture.group || "runs";
    groups.set(name, [...(groups.get(name) || []), run]);
  }
  const grows = [...groups].filter(([, some]) => new Set(some.map((run) => run.gpus)).size > 1);
  if (grows.length === 0) return [];
  const datasets = [];
  grows.forEach(([name, some], i) => {
    const colour = inTurn[i % inTurn.length], first = some[0], last = some[some.length - 1];
    const line = {borderColor: colour, backgroundColor: colour, showLine: true};
    datasets.push({...line, label: name, data: some.map(
        (run) => ({x: run.gpus, y: rateOf(run), name: run.name}))});
    datasets.push({...line, label: `${name}, as fast per GPU as ${first.name}`, borderDash: [4, 4],
                   pointRadius: 0, borderWidth: 1, data: [first, last].map(
                       (run) => ({x: run.gpus, y: rateOf(first) / first.gpus * run.gpus}))});
    const measured = some.filter((run) => measuredRate(run) !== undefined);
    if (measured.length === 0) return;
    datasets.push({...line, label: `${name}, measured`, showLine: false, pointStyle: "crossRot",
                   pointRadius: 7, borderWidth: 2, data: measured.map(
                       (run) => ({x: run.gpus, y: measuredRate(run), name: run.name}))});
  });
  const plot = chart(380, "FLOP/s of the model against the number of GPUs", {
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
               y: axis("bytes", inBytes, {stacked: true, suggestedMax: runLimit})},
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
        make("h3", {}, "An iteration in time"), new Timeline(picture).element(), left,
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

function measurements(runs) {
  const rows = [];
  for (const run of runs) {
    for (const [name, figure] of Object.entries(run.measured || {}))
      rows.push({run: run.name, name, ...figure, error: run.error[name]});
  }
  if (rows.length === 0) return [];
  const points = (row) => ["scaling_efficiency", "fits"].includes(row.name);
  const errorText = (error, row) =>
      `${error >= 0 ? "+" : ""}${(100 * error).toFixed(1)} ${points(row) ? "pt" : "%"}`;
  const columns = [
    {name: "run", left: true, of: (row) => row.run},
    {name: "figure", left: true, of: (row) => inWords(row.name)},
    {name: "measured", key: "measured", of: (row) => row.value,
     text: (value) => typeof value === "number" ? inNumber(value) : String(value)},
    {name: "error of the prediction", key: "error", of: (row) => row.error, text: errorText},
    {name: "source", left: true,
     of: (row) => row.source + (row.fitted ? " (fitted to it)" : "") +
         (row.from_memory ? " (recalled, nothing is judged by it)" : "")},
  ];
  return [section("Held against what was measured", tableOf(columns, rows))];
}

// Runs that rest on the same share a line.
function provenance(runs) {
  const byText = new Map();
  for (const run of runs) {
    const weakest = run.provenance;
    const names = [...weakest.profile, ...weakest.stack, ...weakest.cluster];
    const text = `${weakest.weakest} (${names.join(", ")}); ` +
        `${inPercent(run.extrapolated.kernel_time)} of the kernels' time beyond measured sizes` +
        (run.assumed ? `. Assumed: ${run.assumed}` : "");
    byText.set(text, [...(byText.get(text) || []), run.name]);
  }
  const lines = [...byText].map(([text, names]) => make("li", {}, `${names.join("; ")}: ${text}`));
  return section("What the predictions rest on",
                 faint("The weakest constants that each run uses."), make("ul", {}, ...lines));
}
