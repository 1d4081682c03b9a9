// Elements of the page.

// make("td", {class: "left"}, "text", child, ...)
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A link may name a section: "#where-the-time-goes".
function section(title, ...children) {
  const id = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return make("section", {id}, make("h2", {}, title), ...children);
}

function faint(text) {
  return make("p", {class: "faint"}, text);
}

// Columns are {name, key, of, text, left}: `of` takes a figure or a word from a row's value, and
// `text` makes words of it; where there is none the cell is empty. A cell of a figure has the
// figure itself in data-value, and its key in data-key. `group` of a row begins a new block.
// Optional columns are left out where no row has anything in them.
function tableOf(allColumns, rows, group = () => "") {
  const columns = allColumns.filter((column) =>
    !column.optional || rows.some((row) => (column.of(row) ?? "") !== ""));
  const heads = columns.map(
      (column) => make("th", {scope: "col", class: column.left ? "left" : ""}, column.name));
  const body = make("tbody");
  let before = "";
  for (const row of rows) {
    if (group(row) !== before) {
      before = group(row);
      body.append(make("tr", {class: "group"}, make("td", {colspan: columns.length}, before)));
    }
    body.append(make("tr", {}, ...columns.map((column) => cellOf(column, row))));
  }
  return make("div", {class: "wide"},
              make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
}

function cellOf(column, row) {
  const value = column.of(row);
  const cell = make("td", {class: column.left ? "left" : ""});
  if (value === undefined || value === null) return cell;
  if (column.key) {
    cell.dataset.key = column.key;
    cell.dataset.value = String(value);
  }
  cell.append(column.text ? column.text(value, row) : String(value));
  return cell;
}

// A choice among names; calls `act` with the number of the chosen one, at once (`first`) and when it
// changes.
function choice(label, names, act, first = 0) {
  const select = make("select", {"aria-label": label});
  names.forEach((name, i) => select.append(make("option", {value: i}, name)));
  select.addEventListener("change", () => act(Number(select.value)));
  select.value = String(first);
  act(first);
  return names.length > 1 ? make("p", {}, `${label}: `, select) : make("span");
}
