// The map: every base picture a dot; the query, and lines to what is found for it.

import { byId, el, say, strip, svg } from "./dom.js";
import { address, pixelsOf } from "./pictures.js";
import { SIDES } from "./results.js";

const MARGIN = 30;
const NEAR = 30; // how far from a dot a click may be

export class PictureMap {
  // `ask` gets a model's codes and colours; `pick` makes a base point the query, `follow` follows it.
  constructor(show, map, results, { ask, pick, follow }) {
    Object.assign(this, { show, map, results, ask, pick, follow });
    this.places = Array.from({ length: show.base.labels.length }, (_, row) => [map.base[2 * row], map.base[2 * row + 1]]);
    this.at = 0; // the point that is looked at
    this.make();
    byId("colour").addEventListener("change", () => this.paint());
    byId("lines").addEventListener("change", () => this.join());
  }

  make() {
    const side = this.map.side + 2 * MARGIN;
    this.picture = svg("svg", {
      viewBox: `${-MARGIN} ${-MARGIN} ${side} ${side}`, tabindex: 0, role: "application", class: "plot",
      "aria-label": "Map of the base. Arrow keys go from picture to picture, Enter searches for one.",
    });
    this.dots = this.places.map(([x, y], row) => svg("circle", { cx: x, cy: y, r: 6, class: `dot class-${this.show.base.labels[row]}` }));
    this.joined = svg("g", { class: "joined" });
    this.names = svg("g", { class: "names", "aria-hidden": "true" }, ...this.digits());
    this.ring = svg("circle", { r: 13, class: "looked-at" });
    this.picture.append(svg("g", {}, ...this.dots), this.names, this.joined, this.ring);
    byId("map").append(this.picture);
    this.picture.addEventListener("pointermove", (event) => this.look(this.under(event), false));
    this.picture.addEventListener("click", (event) => {
      const row = this.under(event);
      if (row !== null) this.take(row);
    });
    this.picture.addEventListener("keydown", (event) => this.key(event));
  }

  // The digits, written where most of their pictures are.
  digits() {
    return [...new Set(this.show.base.labels)].sort().map((digit) => {
      const these = this.places.filter((_, row) => this.show.base.labels[row] === digit);
      const middle = (axis) => these.map((place) => place[axis]).sort((a, b) => a - b)[these.length >> 1];
      return svg("text", { x: middle(0), y: middle(1) + 14, "text-anchor": "middle" }, `${digit}`);
    });
  }

  // The base point under the pointer, or null.
  under(event) {
    const matrix = this.picture.getScreenCTM();
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const near = this.nearest((place) => Math.hypot(place[0] - x, place[1] - y));
    const [px, py] = this.places[near];
    return Math.hypot(px - x, py - y) < NEAR ? near : null;
  }

  nearest(cost) {
    let best = 0;
    this.places.forEach((place, row) => {
      if (cost(place, row) < cost(this.places[best], best)) best = row;
    });
    return best;
  }

  key(event) {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in ways) {
      const [dx, dy] = ways[event.key];
      const [x, y] = this.places[this.at];
      const cost = ([px, py], row) => {
        const along = (px - x) * dx + (py - y) * dy;
        const beside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
        return row === this.at || along <= 0 ? Infinity : along + 2 * beside;
      };
      const to = this.nearest(cost);
      if (cost(this.places[to], to) < Infinity) this.look(to, true);
    } else if (event.key === "Enter" || event.key === " ") {
      this.take(this.at);
    } else {
      return;
    }
    event.preventDefault();
  }

  look(row, aloud) {
    if (row === null) return;
    this.at = row;
    const [x, y] = this.places[row];
    this.ring.setAttribute("cx", x);
    this.ring.setAttribute("cy", y);
    const digit = this.show.base.labels[row];
    if (aloud) say(`A ${digit}, number ${row}`);
    const search = el("button", { type: "button" }, "Search for it");
    search.addEventListener("click", () => this.take(row));
    const follow = el("button", { type: "button" }, "Follow its code");
    follow.addEventListener("click", () => this.follow(row));
    const codes = SIDES.filter((side) => this.codes?.[side]).map((side) =>
      el("div", { class: `code ${side}` }, el("span", {}, this.title(side)), strip(this.codes[side].codes[row], this.show.n_bits)));
    byId("spot").replaceChildren(
      el("div", { class: "who" },
        el("img", { class: "digit", src: address(pixelsOf(this.show.base.pixels, row)), alt: `a ${digit}` }),
        el("p", {}, `a ${digit}, number ${row}`)),
      ...codes, el("p", {}, search, " ", follow));
  }

  take(row) {
    this.look(row, false);
    this.pick(row);
  }

  title(side) {
    return this.results.models.get(this.results.names[side]).title;
  }

  // Other models are compared: their codes are fetched, and the choices named after them.
  async changeModels() {
    const chosen = [byId("colour").value || "class", byId("lines").value || "both"];
    const titles = SIDES.map((side) => this.title(side));
    const fill = (id, options, value) => {
      byId(id).replaceChildren(...options.map(([name, text]) => el("option", { value: name }, text)));
      byId(id).value = value;
    };
    fill("colour", [["class", "digit"], ...SIDES.map((side, at) => [side, `code, ${titles[at]}`])], chosen[0]);
    fill("lines", [["both", "both models"], ...SIDES.map((side, at) => [side, titles[at]])], chosen[1]);
    const names = SIDES.map((side) => this.results.names[side]);
    const found = await Promise.all(names.map((name) => this.ask(name)));
    if (SIDES.some((side, at) => this.results.names[side] !== names[at])) return; // changed again
    this.codes = Object.fromEntries(SIDES.map((side, at) => [side, found[at]]));
    this.paint();
    this.look(this.at, false);
  }

  paint() {
    const by = byId("colour").value;
    this.picture.classList.toggle("by-code", by !== "class");
    const colours = this.codes?.[by]?.colours;
    this.dots.forEach((dot, row) => {
      if (colours) dot.style.fill = colours[row];
      else dot.style.removeProperty("fill");
    });
  }

  // Lines from the query to what the chosen models show of it.
  join() {
    const answer = this.results.answer;
    if (!answer) return;
    const [x, y] = answer.place;
    const wanted = byId("lines").value;
    const parts = [];
    for (const side of SIDES) {
      if (wanted !== "both" && wanted !== side) continue;
      for (const row of this.results.shown(side)) {
        const [px, py] = this.places[row];
        const kind = `${side} ${this.results.right(row) === false ? "wrong" : ""}`;
        parts.push(svg("path", { class: `link ${kind}`, d: `M${x} ${y}L${px} ${py}` }));
        parts.push(side === "left"
          ? svg("circle", { class: `found ${kind}`, cx: px, cy: py, r: 10 })
          : svg("rect", { class: `found ${kind}`, x: px - 12, y: py - 12, width: 24, height: 24 }));
      }
    }
    parts.push(svg("path", { class: "query-mark", d: `M${x} ${y - 24}L${x + 24} ${y}L${x} ${y + 24}L${x - 24} ${y}Z` }));
    this.joined.replaceChildren(...parts);
  }
}
