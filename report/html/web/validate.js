// How predictions compare with measurements: data.validation as --json has it.

function validated({validation}) {
  const figures = validation.groups.flatMap(
      (group) => group.figures.map((figure) => ({...figure, group: group.group})));
  const judged = figures.filter((one) => one.judges && one.predicted > 0 && one.measured > 0);
  const count = (name) => judged.filter((one) => one.figure === name).length;
  const names = [...new Set(judged.map((one) => one.figure))].filter((name) => count(name) > 2);
  return [
    make("h1", {}, "How far predictions are off what was measured"),
    faint("Predicted by stratagem validate."),
    statistics(validation),
    section("Predicted against measured", faint("On the line both are equal; the dashed lines " +
        "are 20 % off. A click on a group's name hides it."), againstMeasured(judged, names)),
    ...ranked(validation.rankings),
    ...verdicts(validation),
    ...refusedRuns(validation.refused),
    section("Every figure", tableOf(figureColumns, figures, (one) => one.group)),
  ];
}

const figureColumns = [
  {name: "run", left: true, of: (one) => one.run},
  {name: "figure", left: true, of: (one) => inWords(one.figure)},
  {name: "measured", key: "measured", of: (one) => one.measured,
   text: (value, one) => figureText(one.figure, value)},
  {name: "predicted", key: "predicted", of: (one) => one.predicted,
   text: (value, one) => figureText(one.figure, value)},
  {name: "error", key: "error", of: (one) => one.error,
   text: (value, one) => errorText(one.figure, value)},
  {name: "", left: true, of: (one) => one.judges ? "" : "not judged"},
];

function statistics(validation) {
  const rows = validation.groups.flatMap((group) => group.statistics.map(
      (one) => ({...one, group: group.group})));
  return section("By group", tableOf([
    {name: "figure", left: true, of: (row) => inWords(row.figure)},
    {name: "runs", key: "count", of: (row) => row.count},
    {name: "median of absolute errors", key: "median_error", of: (row) => row.median_error,
     text: (value, row) => errorText(row.figure, value).replace("+", "")},
    {name: "mean of absolute errors", key: "mean_absolute_error",
     of: (row) => row.mean_absolute_error,
     text: (value, row) => errorText(row.figure, value).replace("+", "")},
    {name: "mean error", key: "mean_error", of: (row) => row.mean_error,
     text: (value, row) => errorText(row.figure, value)},
    {name: "worst", key: "worst_error", of: (row) => row.worst_error,
     text: (value, row) => errorText(row.figure, value)},
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
    const text = (value) => figureText(name, value);
    return chart(480, `${inWords(name)}, predicted against measured`, {
      type: "scatter",
      data: {datasets: [...sets, line(1, []), line(1.2, [4, 4]), line(1 / 1.2, [4, 4])]},
      options: {
        scales: {x: logAxis(`${inWords(name)}, measured`, text), y: logAxis("predicted", text)},
        plugins: {
          legend: {labels: {filter: (item) => item.text !== ""}},
          tooltip: {filter: (item) => item.raw.one !== undefined, callbacks: {label: ({raw}) =>
              `${raw.one.run}: ${errorText(name, raw.one.error)}`}},
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

function verdicts(validation) {
  const rows = validation.groups.flatMap((group) => group.verdicts.map(
      (one) => ({...one, group: group.group})));
  if (rows.length === 0) return [];
  const words = [...new Set(rows.map((one) => one.verdict))].sort();
  const groups = [...new Set(rows.map((one) => one.group))];
  const counts = groups.map((group) => ({group, rows: rows.filter((one) => one.group === group)}));
  const ofWord = (word) => (row) => row.rows.filter((one) => one.verdict === word).length;
  const wrong = rows.filter((one) => one.verdict === "wrong").map((one) => make("li", {},
      `${one.run} (${one.group}): ${figureText("fits", one.fits)}; predicted to need ` +
      `${inBytes(one.needed_bytes)} of ${inBytes(one.capacity_bytes)}`));
  return [section("Does it fit?", faint("Verdicts on runs of which one knows only that."),
      tableOf([{name: "group", left: true, of: (row) => row.group},
               ...words.map((word) => ({name: word, key: `verdict_${word}`, of: ofWord(word)}))],
              counts),
      wrong.length > 0 ? make("p", {}, "Wrong:") : "", make("ul", {}, ...wrong))];
}

function refusedRuns(refused) {
  if (refused.length === 0) return [];
  return [section("Refused", make("ul", {}, ...refused.map(
      (one) => make("li", {}, typeof one === "string" ? one : JSON.stringify(one)))))];
}
