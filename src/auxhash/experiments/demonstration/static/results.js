// What two models find: pictures, codes, and precision and recall at the place of the sliders.

import { byId, chosen, el, framed, percent, say, strip } from "./dom.js";
import { address, pixelsOf } from "./pictures.js";

const NARROW = matchMedia("(max-width: 44rem)");
const SHOWN = { wide: 24, narrow: 12 }; // pictures; of more, only the number is told
export const SIDES = ["left", "right"];

export class Results {
  constructor(show, changed) {
    this.show = show;
    this.models = new Map(show.models.map((model) => [model.name, model]));
    this.names = { left: "two-step", right: "refined" };
    this.by = "k";
    this.changed = changed; // called with what changed: "models" or "place"
    this.cards = Object.fromEntries(SIDES.map((side) => [side, this.makeCard(side)]));
    byId("k").max = show.most_k;
    byId("radius").max = show.n_bits;
    chosen("by", (by) => this.choose(by));
    NARROW.addEventListener("change", () => this.choose(this.by));
    for (const name of ["k", "radius"]) {
      byId(name).addEventListener("input", () => this.choose(name));
      byId(name).addEventListener("change", () => this.tellScores());
    }
  }

  get k() {
    return Number(byId("k").value);
  }

  get radius() {
    return Number(byId("radius").value);
  }

  choose(by) {
    this.by = by;
    document.querySelector(`input[name="by"][value="${by}"]`).checked = true;
    this.fill();
    this.changed("place");
  }

  makeCard(side) {
    const article = document.querySelector(`.model.${side}`);
    const select = el("select", { id: `${side}-model` });
    for (const model of this.show.models) {
      select.append(el("option", { value: model.name, selected: model.name === this.names[side] }, model.title));
    }
    select.addEventListener("change", () => {
      this.names[side] = select.value;
      this.changed("models");
    });
    const parts = {};
    for (const name of ["about", "code", "tiles", "more"]) parts[name] = el("div", { class: name });
    parts.scores = el("table", { class: "scores" });
    const title = el("label", { for: select.id, class: "unseen" }, side === "left" ? "First model" : "Second model");
    article.append(title, select, parts.about, parts.scores, parts.code, parts.tiles, parts.more);
    return parts;
  }

  // The answer of a search, for the query told by `what`.
  set(answer, what) {
    this.answer = answer;
    this.what = what;
    this.fill();
    this.tellScores();
  }

  found(side) {
    return this.answer.found.find((one) => one.model === this.names[side]);
  }

  // How many are retrieved at the place of the slider in use.
  retrieved(side) {
    return this.by === "k" ? this.k : this.found(side).within[this.radius];
  }

  // Base rows that a side shows, nearest first.
  shown(side) {
    return this.found(side).rows.slice(0, Math.min(this.retrieved(side), NARROW.matches ? SHOWN.narrow : SHOWN.wide));
  }

  right(row) {
    return this.answer.label === null ? null : this.show.base.labels[row] === this.answer.label;
  }

  // Precision and recall at the place of the slider, of one query or of all.
  score(of) {
    if (!of.precision) return null;
    return this.by === "k"
      ? { precision: of.precision[this.k - 1], recall: of.recall[this.k - 1] }
      : { precision: of.radius_precision[this.radius], recall: of.radius_recall[this.radius] };
  }

  fill() {
    byId("k-told").value = this.k;
    byId("radius-told").value = this.radius;
    if (!this.answer) return;
    for (const side of SIDES) this.fillSide(side);
  }

  fillSide(side) {
    const card = this.cards[side];
    const found = this.found(side);
    card.about.textContent = this.models.get(this.names[side]).about;
    this.fillScores(card.scores, found, this.models.get(this.names[side]));
    const label = `code of the query: ${bits(found.code, this.show.n_bits)}`;
    card.code.replaceChildren(el("span", {}, "its code"), strip(found.code, this.show.n_bits, null, label));
    const rows = this.shown(side);
    card.tiles.replaceChildren(el("ul", {}, ...rows.map((row, at) => this.tile(row, found, at))));
    const more = this.retrieved(side) - rows.length;
    card.more.textContent = rows.length
      ? more > 0 ? `and ${more} more` : ""
      : `No picture lies within radius ${this.radius}.`;
  }

  fillScores(table, found, model) {
    const cells = (score) => ["precision", "recall"].map((name) =>
      el("td", { "data-score": name }, score ? percent(score[name]) : "–"));
    table.replaceChildren(
      el("thead", {}, el("tr", {}, el("td"), el("th", { scope: "col" }, "precision"), el("th", { scope: "col" }, "recall"))),
      el("tbody", {},
        el("tr", { class: "this" }, el("th", { scope: "row" }, "this query"), ...cells(this.score(found))),
        el("tr", { class: "all" }, el("th", { scope: "row" }, `all ${this.show.queries.labels.length}`), ...cells(this.score(model)))),
    );
  }

  tile(row, found, at) {
    const right = this.right(row);
    const digit = this.show.base.labels[row];
    const distance = found.distances[at];
    const kind = right === null ? "" : right ? "right" : "wrong";
    const told = { right: ", right", wrong: ", wrong" }[kind] ?? "";
    const source = address(pixelsOf(this.show.base.pixels, row));
    const picture = framed(source, `a ${digit}, distance ${distance}${told}`);
    const mark = { right: "✓", wrong: "✗" }[kind] ?? "";
    return el("li", { class: `tile ${kind}`, "data-row": row },
      picture,
      el("span", { class: "under", "aria-hidden": "true" }, el("b", { class: `mark ${kind}` }, mark), el("span", {}, `d ${distance}`)),
      strip(found.codes[at], this.show.n_bits, found.code));
  }

  tellScores() {
    if (!this.answer) return;
    const place = this.by === "k" ? `the ${this.k} nearest` : `within radius ${this.radius}`;
    const told = SIDES.map((side) => {
      const score = this.score(this.found(side));
      const name = this.models.get(this.names[side]).title;
      return score ? `${name}: precision ${percent(score.precision)}, recall ${percent(score.recall)}` : name;
    });
    say(`Found for ${this.what}, ${place}. ${told.join(". ")}.`);
  }
}

function bits(code, nBits) {
  return Array.from({ length: nBits }, (_, bit) => (code >> bit) & 1).join(" ");
}
