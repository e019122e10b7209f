// Line charts, drawn as SVG; their colours come from the style sheet.

import { el, svg } from "./dom.js";

const [WIDTH, HEIGHT] = [420, 240];
const [LEFT, RIGHT, TOP, BOTTOM] = [54, 12, 12, 38];

// series: {label, kind, x, y}; `kind` is a class that says its colour and dashes.
export class Chart {
  constructor({ title, xLabel, yLabel, series, log = false, low, high, ticks, told = (value) => `${value}`, height = HEIGHT }) {
    this.series = series;
    this.height = height;
    this.log = log;
    const x = series.flatMap((one) => one.x);
    const y = series.flatMap((one) => one.y);
    this.xs = [Math.min(...x), Math.max(...x)];
    const room = 0.06 * (Math.max(...y) - Math.min(...y) || 1);
    this.ys = [low ?? Math.min(...y) - room, high ?? Math.max(...y) + room];
    this.picture = svg("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": title });
    this.frame(xLabel, yLabel, ticks, told);
    for (const one of series) this.line(one);
    this.marker = svg("g", { class: "marker" });
    this.picture.append(this.marker);
    const keys = series.filter((one) => one.label).map((one) => el("li", {}, key(one.kind), one.label));
    this.element = el("figure", {}, el("figcaption", {}, el("h3", {}, title), el("ul", { class: "legend" }, ...keys)), this.picture);
  }

  across(value) {
    const [low, high] = this.xs.map((end) => (this.log ? Math.log(end) : end));
    const at = (this.log ? Math.log(value) : value) - low;
    return LEFT + ((WIDTH - LEFT - RIGHT) * at) / (high - low || 1);
  }

  up(value) {
    const [low, high] = this.ys;
    return this.height - BOTTOM - ((this.height - BOTTOM - TOP) * (value - low)) / (high - low || 1);
  }

  frame(xLabel, yLabel, ticks, told) {
    const bottom = this.height - BOTTOM;
    for (const value of round(...this.ys, Math.max(2, Math.floor(this.height / 45)))) {
      const y = this.up(value);
      this.picture.append(svg("path", { class: "grid", d: `M${LEFT} ${y}H${WIDTH - RIGHT}` }));
      this.picture.append(svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, told(value)));
    }
    for (const value of ticks ?? round(...this.xs, 6)) {
      if (value < this.xs[0] || value > this.xs[1]) continue;
      const x = this.across(value);
      this.picture.append(svg("path", { class: "grid", d: `M${x} ${TOP}V${bottom}` }));
      this.picture.append(svg("text", { x, y: bottom + 14, "text-anchor": "middle" }, `${value}`));
    }
    this.picture.append(svg("path", { class: "axis", d: `M${LEFT} ${TOP}V${bottom}H${WIDTH - RIGHT}` }));
    this.picture.append(svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: this.height - 6, "text-anchor": "middle" }, xLabel));
    const turn = `translate(11 ${(TOP + bottom) / 2}) rotate(-90)`;
    this.picture.append(svg("text", { transform: turn, "text-anchor": "middle" }, yLabel));
  }

  line({ kind, x, y }) {
    const d = x.map((value, at) => `${at ? "L" : "M"}${this.across(value).toFixed(1)} ${this.up(y[at]).toFixed(1)}`);
    this.picture.append(svg("path", { class: `line ${kind}`, d: d.join("") }));
  }

  // A grey area from x to the right end, with a word in it.
  area(from, text) {
    const x = this.across(from);
    const back = svg("rect", { class: "area", x, y: TOP, width: WIDTH - RIGHT - x, height: this.height - TOP - BOTTOM });
    this.picture.prepend(back);
    this.picture.append(svg("text", { x: x + 6, y: this.height - BOTTOM - 8 }, text));
  }

  // Mark a place: a line, and a dot on every series that has a value there.
  mark(value) {
    const x = this.across(value);
    const parts = [svg("path", { d: `M${x} ${TOP}V${this.height - BOTTOM}` })];
    for (const { kind, x: places, y } of this.series) {
      const at = places.indexOf(value);
      if (at >= 0) parts.push(svg("circle", { class: `dot ${kind}`, cx: x, cy: this.up(y[at]), r: 4.5 }));
    }
    this.marker.replaceChildren(...parts);
  }
}

function key(kind) {
  return svg("svg", { class: "key", viewBox: "0 0 30 10", "aria-hidden": "true" }, svg("path", { class: `line ${kind}`, d: "M1 5H29" }));
}

// Round numbers from low to high, about `most` of them.
function round(low, high, most) {
  let step = 10 ** Math.floor(Math.log10((high - low) / most));
  step *= [1, 2, 5, 10].find((factor) => (high - low) / (factor * step) <= most) ?? 10;
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++) {
    found.push(Number((n * step).toPrecision(6)));
  }
  return found;
}
