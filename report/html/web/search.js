// What `stratagem search` found: data.search as --json has it.

function settingsOf(plan) {
  return Object.entries(plan.settings.strategy || {}).concat(
      Object.entries(plan.settings.training || {}));
}

const inOneLine = (plan) => settingsOf(plan).map(
    ([key, value]) => `${key} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");

const planColumns = [
  {name: "rank", of: (plan) => plan.rank},
  {name: "GPUs", key: "gpus", of: (plan) => plan.gpus},
  {name: "iteration", key: "iteration_time_s", of: (plan) => plan.iteration_time_s,
   text: inSeconds},
  {name: "tokens/s", key: "tokens_per_s", of: (plan) => plan.tokens_per_s, text: inNumber},
  {name: "cost of 1e9 tokens", key: "cost_per_billion_tokens",
   of: (plan) => plan.cost_per_billion_tokens, text: inNumber, optional: true},
  {name: "TFLOP/s per GPU", key: "model_tflops_per_gpu", of: (plan) => plan.model_tflops_per_gpu,
   text: inNumber},
  {name: "idle", key: "bubble_fraction", of: (plan) => plan.bubble_fraction, text: inPercent},
  {name: "memory", key: "peak_used_bytes", of: (plan) => plan.peak_used_bytes, text: inBytes},
  {name: "", left: true, of: (plan) => plan.tight ? "tight" : "", optional: true},
  {name: "settings", left: true, of: inOneLine},
];

function searchedPlans({search, objective}) {
  const best = search.best.map((plan, i) => ({...plan, rank: i + 1}));
  const none = search.too_large > 0 ? "No plan of the space fits." : "There is no plan.";
  const nearest = search.nearest === undefined ? "" : make("p", {},
      `Closest: ${inOneLine(search.nearest)}. It ${search.nearest.reason}.`);
  return [
    make("h1", {}, search.question),
    faint(`Predicted by stratagem search ${search.scenario}, for the least ${objective}`),
    section("The best plans", best.length > 0 ? tableOf(planColumns, best) :
        make("p", {class: "bad"}, none), nearest),
    ...front(search, best),
    answered(search),
  ];
}

function front(search, best) {
  const gpus = [...new Set(search.front_of_simulated.map((plan) => plan.gpus))];
  if (gpus.length === 0) return [];
  const point = (plan) => ({x: plan.peak_used_bytes, y: plan.tokens_per_s, plan});
  const datasets = gpus.sort((a, b) => a - b).map((count, i) => ({
    label: `front, ${count} GPUs`, showLine: true, stepped: true,
    borderColor: inTurn[i % inTurn.length], backgroundColor: inTurn[i % inTurn.length],
    data: search.front_of_simulated.filter((plan) => plan.gpus === count).map(point)
        .sort((a, b) => a.x - b.x),
  }));
  datasets.push({label: "the best plans", data: best.map(point), pointStyle: "circle",
                 pointRadius: 6, backgroundColor: "transparent", borderWidth: 2,
                 borderColor: pageColour("--ink")});
  return [section("Throughput and memory",
      faint("Of the plans that were simulated, those that no other one beats in time, memory and " +
            "GPUs."),
      chart(420, "Tokens per second against memory of the simulated plans", {
        type: "scatter", data: {datasets}, options: {
          scales: {x: axis("memory of the fullest GPU", inBytes),
                   y: axis("tokens/s", inNumber)},
          plugins: {tooltip: {callbacks: {label: (item) =>
              `${inNumber(item.raw.y)} tokens/s, ${inBytes(item.raw.x)}: ` +
              inOneLine(item.raw.plan)}}},
        }}))];
}

// How every combination was answered.
function answered(search) {
  const refused = search.refused.reduce((sum, some) => sum + some.combinations, 0);
  const fit = search.combinations - search.left_out - refused - search.too_large -
      search.not_better;
  const rows = [
    {what: "combinations", key: "combinations", count: search.combinations},
    {what: "left out: a key varies where that is not worth trying", key: "left_out",
     count: search.left_out},
    ...search.refused.map((some) => ({what: `no plan: ${some.reason}`, key: "refused",
                                      count: some.combinations})),
    {what: "need more memory than there is", key: "too_large", count: search.too_large},
    {what: "surely no better than the last one above", key: "not_better",
     count: search.not_better},
    {what: "were simulated and fit", key: "fit", count: fit},
  ];
  return section("How every combination was answered", tableOf([
    {name: "", left: true, of: (row) => row.what},
    {name: "number", key: "count", of: (row) => row.count, text: inNumber},
  ], rows));
}
