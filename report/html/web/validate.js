// How predictions compare with measurements: data.validation as --json has it.

function validated({validation}) {
  const figures = validation.groups.flatMap(
      (group) => group.figures.map((figure) => ({...figure, group: group.group})));
  const judged = figures.filter((one) => one.judges && one.predicted > 0 && one.measured > 0);
  const names = [...new Set(judged.map((one) => one.figure))];
  return [
    make("h1", {}, "How far predictions are off what was measured"),
    faint("Predicted by stratagem validate."),
    statistics(validation),
    section("Predicted against measured", faint("On the line both are equal; the dashed lines " +
        "are 20 % off. A click on a group's name hides it."), againstMeasured(judged, names)),
    ...ranked(validation.rankings),
    section("Every figure", tableOf(figureColumns, figures, (one) => one.group)),
  ];
}

const isTime = (name) => name === "iteration_time";
const unitOf = (name) => isTime(name) ? inSeconds : name.startsWith("peak") ? inBytes : inNumber;
const signed = (share) => `${share >= 0 ? "+" : ""}${(100 * share).toFixed(1)} %`;

const figureColumns = [
  {name: "run", left: true, of: (one) => one.run},
  {name: "figure", left: true, of: (one) => inWords(one.figure)},
  {name: "measured", key: "measured", of: (one) => one.measured,
   text: (value, one) => unitOf(one.figure)(value)},
  {name: "predicted", key: "predicted", of: (one) => one.predicted,
   text: (value, one) => unitOf(one.figure)(value)},
  {name: "error", key: "error", of: (one) => one.error, text: signed},
  {name: "", left: true, of: (one) => one.judges ? "" : "not judged"},
];

function statistics(validation) {
  const rows = validation.groups.flatMap((group) => group.statistics.map(
      (one) => ({...one, group: group.group})));
  return section("By group", tableOf([
    {name: "figure", left: true, of: (row) => inWords(row.figure)},
    {name: "runs", key: "count", of: (row) => row.count},
    {name: "median of absolute errors", key: "median_error", of: (row) => row.median_error,
     text: inPercent},
    {name: "mean error", key: "mean_error", of: (row) => row.mean_error, text: signed},
    {name: "worst", key: "worst_error", of: (row) => row.worst_error, text: signed},
    {name: "of", left: true, of: (row) => row.worst_run},
  ], rows, (row) => row.group));
}

// A chart of each figure, with a colour for each group.
function againstMeasured(judged, names) {
  const groups = [...new Set(judged.map((one) => one.group))];
  const marks = ["circle", "triangle", "rect", "rectRot", "crossRot"];
  const plots = names.map((name) => {
    const all = judged.filter((one) => one.figure === name);
    const ends = [Math.min, Math.max].map((of) => of(...all.map((one) => one.measured)));
    const line = (factor, dash) => ({
      label: factor === 1 ? "equal" : "", data: ends.map((x) => ({x, y: factor * x})),
      showLine: true, pointRadius: 0, borderDash: dash, borderWidth: 1,
      borderColor: pageColour("--faint"), backgroundColor: pageColour("--faint"),
    });
    const sets = groups.map((group, i) => {
      const colour = inTurn[i % inTurn.length];
      return {label: group, pointStyle: marks[Math.floor(i / inTurn.length) % marks.length],
              pointRadius: 4, backgroundColor: colour, borderColor: colour,
              data: all.filter((one) => one.group === group).map(
                  (one) => ({x: one.measured, y: one.predicted, one}))};
    }).filter((set) => set.data.length > 0);
    const text = unitOf(name);
    return chart(480, `${inWords(name)}, predicted against measured`, {
      type: "scatter",
      data: {datasets: [...sets, line(1, []), line(1.2, [4, 4]), line(1 / 1.2, [4, 4])]},
      options: {
        scales: {x: logAxis(`${inWords(name)}, measured`, text), y: logAxis("predicted", text)},
        plugins: {
          legend: {labels: {filter: (item) => item.text !== ""}},
          tooltip: {filter: (item) => item.raw.one !== undefined, callbacks: {label: ({raw}) =>
              `${raw.one.run}: ${signed(raw.one.error)}`}},
        },
      }});
  });
  return make("div", {}, ...plots);
}

function ranked(rankings) {
  if (rankings.length === 0) return [];
  return [section("Is the right plan chosen?",
      faint("Plans of one model, batch and number of GPUs, of which at least five were measured."),
      tableOf([
        {name: "plans of", left: true, of: (row) => row.of},
        {name: "plans", key: "plans", of: (row) => row.plans},
        {name: "rank correlation", key: "rank_correlation", of: (row) => row.rank_correlation,
         text: (value) => value.toFixed(2)},
        {name: "the chosen plan loses", key: "loss", of: (row) => row.loss, text: inPercent},
        {name: "chosen", left: true, of: (row) => row.chosen},
      ], rankings, (row) => row.group))];
}
