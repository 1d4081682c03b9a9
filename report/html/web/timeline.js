// The pipeline in time: a row for each class of devices, a bar for each cell.

const barKinds = [
  {name: "forward", colour: colours.sky, ink: "#000000"},
  {name: "backward", colour: colours.green, ink: "#ffffff"},
  {name: "weight gradients", colour: colours.orange, ink: "#000000"},
  {name: "steps of the optimizer", colour: colours.pink, ink: "#000000"},
];

// Bars of a device as columns; in the order of their beginnings.
function barsOf(device) {
  const count = device.bars.length / 5;
  const column = (at) => Float64Array.from({length: count}, (_, i) => device.bars[5 * i + at]);
  const bars = {count, kind: column(0), stage: column(1), micro: column(2), begin: column(3),
                length: column(4)};
  bars.longest = bars.length.reduce((a, b) => Math.max(a, b), 0);
  return bars;
}

// The first bar that may reach beyond an instant.
function firstFrom(bars, instant) {
  let low = 0, high = bars.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars.begin[middle] < instant - bars.longest) low = middle + 1;
    else high = middle;
  }
  return low;
}

function deviceName(device) {
  return device.count > 1 ? `GPU ${device.device} (×${device.count})` : `GPU ${device.device}`;
}

// With as many digits as tell neighbours apart.
function secondsOnAxis(seconds, step) {
  return `${seconds.toFixed(Math.max(0, -Math.floor(Math.log10(step))))} s`;
}

class Timeline {
  constructor(picture) {
    this.tick = picture.tick_s;
    this.devices = picture.devices.filter((device) => device.bars.length > 0);
    this.rows = this.devices.map(barsOf);
    this.end = picture.ticks;
    this.shown = [0, this.end];
    this.left = 100;
    this.top = 24;
    this.row = this.rows.length > 24 ? 12 : 22;
    this.canvas = make("canvas", {tabindex: 0, role: "img", "aria-label":
        "Cells of each device in time. Plus and minus zoom, arrows move, 0 shows all."});
    this.tip = make("div", {class: "tip", hidden: ""});
    this.box = make("div", {class: "timeline scroll"}, this.canvas, this.tip);
    this.listen();
    requestAnimationFrame(() => this.draw());
  }

  element() {
    const button = (text, label, act) => {
      const one = make("button", {type: "button", "aria-label": label}, text);
      one.addEventListener("click", act);
      return one;
    };
    const keys = make("p", {class: "keys"}, ...barKinds.map(
        (kind) => make("span", {}, make("i", {style: `background: ${kind.colour}`}), kind.name)));
    return make("div", {}, keys, this.box,
                make("p", {}, button("+", "zoom in", () => this.zoom(0.5)),
                     button("−", "zoom out", () => this.zoom(2)),
                     button("all", "show all", () => this.show(0, this.end))),
                faint("From the end of one iteration to the end of the next. Numbers are " +
                      "micro-batches. What is blank is communication, copies, steps on hosts, or " +
                      "idle. Drag to move; Ctrl and the wheel zoom."));
  }

  listen() {
    let from = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      from = {x: event.offsetX, shown: [...this.shown]};
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointerup", () => { from = null; });
    this.canvas.addEventListener("pointermove", (event) => {
      if (from === null) return this.point(event);
      const moved = (event.offsetX - from.x) * this.perPixel();
      this.show(from.shown[0] - moved, from.shown[1] - moved);
    });
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX);
    }, {passive: false});
    this.canvas.addEventListener("keydown", (event) => {
      const step = (this.shown[1] - this.shown[0]) / 8;
      const acts = {"+": () => this.zoom(0.5), "-": () => this.zoom(2),
                    "0": () => this.show(0, this.end),
                    ArrowLeft: () => this.show(this.shown[0] - step, this.shown[1] - step),
                    ArrowRight: () => this.show(this.shown[0] + step, this.shown[1] + step)};
      if (!(event.key in acts)) return;
      event.preventDefault();
      acts[event.key]();
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  width() { return Math.max(1, this.box.clientWidth - this.left); }
  perPixel() { return (this.shown[1] - this.shown[0]) / this.width(); }
  instantAt(x) { return this.shown[0] + (x - this.left) * this.perPixel(); }

  zoom(factor, x = this.left + this.width() / 2) {
    const at = this.instantAt(x);
    this.show(at - (at - this.shown[0]) * factor, at + (this.shown[1] - at) * factor);
  }

  // No more than the whole, and no less than a millionth of it.
  show(from, to) {
    const length = Math.min(this.end, Math.max(this.end / 1e6, to - from));
    const begin = Math.min(Math.max(0, from), this.end - length);
    this.shown = [begin, begin + length];
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waits = false;
    const scale = window.devicePixelRatio || 1;
    const width = this.box.clientWidth, height = this.top + this.row * this.rows.length + 4;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.clearRect(0, 0, width, height);
    this.drawAxis(pen, height);
    let bars = 0;
    this.rows.forEach((row, i) => { bars += this.drawRow(pen, row, i); });
    this.canvas.dataset.bars = String(bars);
    pen.fillStyle = pageColour("--paper");
    pen.fillRect(0, this.top, this.left, height);
    pen.fillStyle = pageColour("--ink");
    pen.font = `${Math.min(13, this.row)}px system-ui, sans-serif`;
    this.devices.forEach((device, i) => {
      pen.fillText(deviceName(device), 6, this.top + this.row * i + 0.75 * this.row);
    });
  }

  drawAxis(pen, height) {
    const seconds = (this.shown[1] - this.shown[0]) * this.tick;
    const rough = seconds / 6, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    pen.font = "12px system-ui, sans-serif";
    for (let n = Math.ceil(this.shown[0] * this.tick / step); ; ++n) {
      const x = this.left + (n * step / this.tick - this.shown[0]) / this.perPixel();
      if (x > this.left + this.width()) break;
      pen.fillStyle = pageColour("--line");
      pen.fillRect(x, this.top - 4, 1, height);
      pen.fillStyle = pageColour("--faint");
      pen.fillText(secondsOnAxis(n * step, step), x + 3, 14);
    }
  }

  // How many bars of the row are in sight. One that is narrower than a pixel tints it by its share.
  drawRow(pen, bars, number) {
    const per = this.perPixel(), y = this.top + this.row * number, height = this.row - 2;
    let seen = 0;
    pen.font = "11px system-ui, sans-serif";
    for (let i = firstFrom(bars, this.shown[0]); i < bars.count; ++i) {
      if (bars.begin[i] > this.shown[1]) break;
      const x = this.left + (bars.begin[i] - this.shown[0]) / per;
      const width = bars.length[i] / per;
      if (x + width < this.left) continue;
      ++seen;
      const kind = barKinds[bars.kind[i]];
      pen.fillStyle = kind.colour;
      pen.fillRect(x, y, width - (width > 4 ? 1 : 0), height);
      if (width < 20 || height < 12 || bars.kind[i] === 3) continue;
      pen.fillStyle = kind.ink;
      pen.fillText(String(bars.micro[i]), Math.max(x, this.left) + 3, y + height - 5);
    }
    return seen;
  }

  point(event) {
    const number = Math.floor((event.offsetY - this.top) / this.row);
    const bars = this.rows[number], at = this.instantAt(event.offsetX);
    let found = -1;
    if (bars !== undefined && event.offsetX > this.left) {
      for (let i = firstFrom(bars, at); i < bars.count && bars.begin[i] <= at; ++i) {
        if (bars.begin[i] + bars.length[i] >= at) found = i;
      }
    }
    this.tip.hidden = found < 0;
    if (found < 0) return;
    const kind = barKinds[bars.kind[found]].name;
    const which = bars.kind[found] === 3 ? "" : `, micro-batch ${bars.micro[found]}`;
    this.tip.textContent = `${kind}, stage ${bars.stage[found]}${which}: ` +
        `${inSeconds(bars.length[found] * this.tick)} from ` +
        `${inSeconds(bars.begin[found] * this.tick)}`;
    const most = Math.max(0, this.box.clientWidth - this.tip.offsetWidth - 4);
    this.tip.style.left = `${Math.min(event.offsetX + 12, most)}px`;
    this.tip.style.top = `${event.offsetY + 14}px`;
  }
}
