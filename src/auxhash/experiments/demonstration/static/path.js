// MAC's path: the codes Z and h(X) of some pictures, the losses and the violations, step by step.

import { Chart } from "./chart.js";
import { byId, countBits, el, number, percent, svg } from "./dom.js";
import { address, pixelsOf } from "./pictures.js";

const CELL = 12;
const GAP = 4; // between digits
const PAUSE = 700; // milliseconds per step

export class Path {
  constructor(show, path) {
    this.show = show;
    this.path = path;
    this.steps = path.steps;
    this.at = 0;
    this.points = path.points;
    // The first picture that is followed is one that MAC has much to do with.
    const apart = (point) => countBits(point.Z[0] ^ point.H[0]);
    this.chosen = this.points.reduce((best, one) => (apart(one) > apart(best) ? one : best));
    this.last = this.steps.filter((step) => step.mu !== null).length - 1; // of MAC
    this.makeOne();
    this.makeMatrix();
    this.makeCharts();
    const slider = byId("iteration");
    slider.max = this.steps.length - 1;
    slider.addEventListener("input", () => {
      this.stop();
      this.go(Number(slider.value));
    });
    byId("play").addEventListener("click", () => (this.timer ? this.stop() : this.play()));
    this.go(0);
  }

  // Follow a base point, {row, Z, H}; one that is not in the list becomes its guest, in the place
  // of an earlier guest.
  follow(point) {
    this.chosen = point;
    this.fill();
  }

  play() {
    if (this.at === this.steps.length - 1) this.go(0);
    byId("play").textContent = "Pause";
    this.timer = setInterval(() => {
      this.go(this.at + 1);
      if (this.at === this.steps.length - 1) this.stop();
    }, PAUSE);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    byId("play").textContent = "Play";
  }

  go(at) {
    this.at = at;
    byId("iteration").value = at;
    const step = this.steps[at];
    const told = this.phase(step);
    byId("iteration-told").value = told;
    byId("iteration").setAttribute("aria-valuetext", `${told}, ${step.violations} bits differ`);
    byId("story").textContent = this.story(step);
    this.fill();
    for (const chart of this.charts) chart.mark(step.iteration);
  }

  phase(step) {
    if (step.iteration === 0) return "µ = 0: two-step hashing";
    return step.mu === null ? "after MAC: refinement" : `iteration ${step.iteration}, µ = ${step.mu.toPrecision(2)}`;
  }

  story(step) {
    const apart = percent(step.violations / this.path.n_bits_in_all);
    const precision = `Precision at ${this.path.precision_at} of new pictures: ${percent(step.precision)}.`;
    const start = this.steps[0];
    const less = percent(1 - step.loss / start.loss);
    if (step.iteration === 0) {
      return `Differing costs nothing yet. Z suits the loss alone: pictures of one digit share their bits. A linear function of the pixels cannot follow: h(X) misses ${number(step.violations)} bits, ${apart} of all. Two-step hashing ends here. ${precision}`;
    }
    if (step.mu === null) {
      return `MAC has ended; Z is no longer needed. Gradient descent on the loss of h itself goes on from there (not in the paper): L(h) is ${less} below two-step hashing's. ${precision}`;
    }
    if (step.violations === 0) {
      return `Z = h(X): no bit is left to argue about, and MAC ends. L(h) is ${less} below where two-step hashing ended. ${precision}`;
    }
    return `Z step: bits of Z turn to those of h(X) where that costs less than 4µ = ${(4 * step.mu).toPrecision(2)}. h step: h is fitted to the new Z. ${number(step.violations)} bits still differ, ${apart} of all; L(h) is ${less} below two-step hashing's. ${precision}`;
  }

  makeOne() {
    this.follows = el("select", { id: "follow" });
    this.follows.addEventListener("change", () => {
      const known = this.guest ? [...this.points, this.guest] : this.points;
      this.follow(known.find((point) => point.row === Number(this.follows.value)));
    });
    for (const point of this.points) this.follows.append(this.option(point));
    this.face = el("img", { class: "digit", alt: "" });
    this.pair = el("div", { class: "strips" });
    byId("one").append(
      el("div", { class: "who" }, this.face, el("div", {}, el("label", { for: "follow" }, "One picture, bit by bit"), this.follows)),
      this.pair);
  }

  option(point) {
    return el("option", { value: point.row }, `a ${this.show.base.labels[point.row]}, number ${point.row}`);
  }

  makeMatrix() {
    const n = this.show.n_bits;
    const width = 3 * CELL + 2 * n * CELL;
    const place = (at) => 18 + at * CELL + GAP * this.digitsBefore(at);
    const height = place(this.points.length - 1) + CELL + 2;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "plot" });
    const starts = { Z: 1.5 * CELL, H: 3 * CELL + n * CELL };
    picture.append(svg("text", { x: starts.Z, y: 12, class: "title" }, "Z: wanted by the loss"));
    picture.append(svg("text", { x: starts.H, y: 12, class: "title" }, "h(X): given by h"));
    this.rows = this.points.map((point, at) => {
      const y = place(at);
      const source = address(pixelsOf(this.show.base.pixels, point.row));
      const row = svg("g", { class: "row" },
        svg("rect", { class: "back", x: 0, y: y - 1, width, height: CELL + 1 }),
        svg("image", { href: source, x: 1, y, width: CELL - 1, height: CELL - 1, class: "digit" }));
      const cells = { Z: [], H: [] };
      for (const side of ["Z", "H"]) {
        for (let bit = 0; bit < n; bit++) {
          const cell = svg("rect", { x: starts[side] + bit * CELL + 1, y: y + 0.5, width: CELL - 2, height: CELL - 2 });
          cells[side].push(cell);
          row.append(cell);
        }
      }
      row.addEventListener("click", () => this.follow(point));
      picture.append(row);
      return { row, cells };
    });
    this.matrix = picture;
    byId("matrix").append(picture);
  }

  digitsBefore(at) {
    const digits = this.points.slice(0, at + 1).map((point) => this.show.base.labels[point.row]);
    return new Set(digits).size - 1;
  }

  fill() {
    const n = this.show.n_bits;
    let apart = 0;
    this.points.forEach((point, index) => {
      const [z, h] = [point.Z[this.at], point.H[this.at]];
      apart += countBits(z ^ h);
      const { row, cells } = this.rows[index];
      row.classList.toggle("followed", point.row === this.chosen.row);
      for (const [side, code] of [["Z", z], ["H", h]]) {
        for (let bit = 0; bit < n; bit++) {
          const lit = ((z ^ h) >> bit) & 1 ? " lit" : "";
          cells[side][bit].setAttribute("class", `bit ${(code >> bit) & 1 ? "one" : "zero"}${lit}`);
        }
      }
    });
    this.matrix.setAttribute("aria-label", `Codes of ${this.points.length} pictures: Z and h(X) differ in ${apart} of ${this.points.length * n} bits`);
    this.fillOne();
  }

  fillOne() {
    const point = this.chosen;
    if (![...this.follows.options].some((one) => Number(one.value) === point.row)) {
      this.follows.querySelector(".guest")?.remove();
      const guest = this.option(point);
      guest.className = "guest";
      this.follows.append(guest);
      this.guest = point;
    }
    this.follows.value = point.row;
    this.face.src = address(pixelsOf(this.show.base.pixels, point.row));
    this.face.alt = `a ${this.show.base.labels[point.row]}`;
    const [z, h] = [point.Z[this.at], point.H[this.at]];
    const n = this.show.n_bits;
    const picture = svg("svg", { viewBox: `0 0 ${24 * n + 44} 74`, role: "img", class: "plot" });
    const differ = countBits(z ^ h);
    picture.setAttribute("aria-label", `z and h(x) differ in ${differ} of ${n} bits`);
    picture.append(svg("text", { x: 0, y: 20, class: "name" }, "z"));
    picture.append(svg("text", { x: 0, y: 64, class: "name" }, "h(x)"));
    for (let bit = 0; bit < n; bit++) {
      const lit = ((z ^ h) >> bit) & 1;
      const x = 44 + 24 * bit;
      for (const [y, code] of [[4, z], [48, h]]) {
        const one = (code >> bit) & 1;
        picture.append(svg("rect", { class: `bit ${one ? "one" : "zero"}${lit ? " lit" : ""}`, x: x + 1, y, width: 21, height: 21 }));
      }
      picture.append(svg("text", { x: x + 11.5, y: 41, "text-anchor": "middle", class: lit ? "sign lit" : "sign" }, lit ? "≠" : "="));
    }
    const price = this.steps[this.at].mu;
    const words = differ === 0
      ? "They agree in every bit."
      : `They differ in ${differ} ${differ === 1 ? "bit" : "bits"}, at a price of ${differ} × 4µ = ${price ? (4 * price * differ).toPrecision(2) : "0"}.`;
    this.pair.replaceChildren(picture, el("p", { class: "note" }, words));
  }

  makeCharts() {
    const x = this.steps.map((step) => step.iteration);
    const mac = this.steps.slice(0, this.last + 1);
    const [first, last] = [x[0], x.at(-1)];
    const start = this.steps[0].loss;
    const loss = new Chart({
      title: "Loss", xLabel: "iteration", yLabel: "loss over the training pairs",
      series: [
        { label: "two-step hashing", kind: "level", x: [first, last], y: [start, start] },
        { label: "L(Z), of the free codes", kind: "loss-z", x: mac.map((step) => step.iteration), y: mac.map((step) => step.free_loss) },
        { label: "L(h), of the hash function", kind: "loss-h", x, y: this.steps.map((step) => step.loss) },
      ],
      told: (value) => `${value / 1000}k`,
    });
    const differ = new Chart({
      title: "Bits in which Z and h(X) differ", xLabel: "iteration", yLabel: "% of all bits", low: 0, height: 190,
      series: [{ label: "", kind: "violations", x, y: this.steps.map((step) => (100 * step.violations) / this.path.n_bits_in_all) }],
      told: (value) => `${value}%`,
    });
    this.charts = [loss, differ];
    for (const chart of this.charts) chart.area(this.last, "refinement");
    byId("path-charts").append(...this.charts.map((chart) => chart.element));
  }
}
