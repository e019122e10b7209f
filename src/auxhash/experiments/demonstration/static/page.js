// The page: it asks what there is to show, and lets the parts tell each other what changed.

import { get, post } from "./ask.js";
import { Chart } from "./chart.js";
import { byId, trouble } from "./dom.js";
import { PictureMap } from "./map.js";
import { own } from "./own.js";
import { Path } from "./path.js";
import { Query } from "./query.js";
import { Results, SIDES } from "./results.js";

class Demo {
  constructor(show, path, map) {
    this.show = show;
    this.turn = 0; // of the latest search
    this.codes = new Map();
    byId("title").textContent = "A picture in sixteen bits";
    byId("lead").hidden = byId("demo").hidden = false;
    this.results = new Results(show, (what) => (what === "models" ? this.changeModels() : this.place()));
    this.path = new Path(show, path);
    this.map = new PictureMap(show, map, this.results, {
      ask: (name) => this.codesOf(name),
      pick: (row) => this.query.take({ base: row }),
      follow: (row) => this.follow(row),
    });
    this.query = new Query(show, (asked, what) => this.search(asked, what));
    this.drawCurves();
    this.query.take({ query: show.first });
    this.map.changeModels().catch(told);
    byId("protocol").textContent = `${show.protocol} The linear models are those of ${show.call}: its start, MAC, and MAC refined.`;
    byId("curves-note").textContent =
      `The mean over ${show.queries.labels.length} pictures that no model has seen; pictures at equal distance count by their expected value. Drag a slider above to move the marks.`;
  }

  async search(asked, what) {
    this.asked = [asked, what];
    const turn = ++this.turn;
    const models = [...new Set(SIDES.map((side) => this.results.names[side]))];
    try {
      const answer = await post("show/search", { ...asked, models });
      if (turn !== this.turn) return; // a later search has been made
      this.results.set(answer, what);
      this.place();
    } catch (error) {
      told(error);
    }
  }

  changeModels() {
    this.drawCurves();
    this.search(...this.asked);
    this.map.changeModels().catch(told);
  }

  place() {
    this.byK.mark(this.results.k);
    this.byRadius.mark(this.results.radius);
    this.map.join();
  }

  drawCurves() {
    const chosen = SIDES.map((side) => [side, this.results.models.get(this.results.names[side])]);
    const ranks = Array.from({ length: this.show.most_k }, (_, at) => at + 1);
    const radii = Array.from({ length: this.show.n_bits + 1 }, (_, radius) => radius);
    const told = (value) => `${Math.round(100 * value)}%`;
    const others = this.show.models.filter((model) => !chosen.some(([, one]) => one === model));
    this.byK = new Chart({
      title: "Precision among the k nearest", xLabel: "k", yLabel: "precision", high: 1, log: true, told,
      ticks: [1, 2, 5, 10, 20, 50, 100, 200],
      series: [
        ...others.map((model, at) => ({ label: at ? "" : "the other models", kind: "other", x: ranks, y: model.precision })),
        ...chosen.map(([side, model]) => ({ label: model.title, kind: side, x: ranks, y: model.precision })),
      ],
    });
    this.byRadius = new Chart({
      title: "Within radius r", xLabel: "r, bits that may differ", yLabel: "share", low: 0, high: 1, told, ticks: radii.filter((radius) => radius % 2 === 0),
      series: chosen.flatMap(([side, model]) => [
        { label: `precision, ${model.title}`, kind: side, x: radii, y: model.radius_precision },
        { label: `recall, ${model.title}`, kind: `${side} recall`, x: radii, y: model.radius_recall },
      ]),
    });
    byId("curves").replaceChildren(this.byK.element, this.byRadius.element);
    this.byK.mark(this.results.k);
    this.byRadius.mark(this.results.radius);
  }

  codesOf(name) {
    if (!this.codes.has(name)) {
      const asked = get(`show/codes/${encodeURIComponent(name)}`);
      this.codes.set(name, asked);
      asked.catch(() => this.codes.delete(name)); // to be asked for again
    }
    return this.codes.get(name);
  }

  async follow(row) {
    try {
      this.path.follow(await get(`show/path/${row}`));
      byId("path").scrollIntoView();
      byId("follow").focus({ preventScroll: true });
    } catch (error) {
      told(error);
    }
  }
}

function told(error) {
  trouble(error.message);
}

async function start() {
  const show = await get("show");
  if (!show.show) return own();
  const [path, map] = await Promise.all([get("show/path"), get("show/map")]);
  new Demo(show, path, map);
}

start().catch(told);
