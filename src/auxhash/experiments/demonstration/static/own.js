// Points of the user's own: search by id, vector or picture, through the service's API.

import { get, post } from "./ask.js";
import { byId, chosen, el, number, say, trouble } from "./dom.js";

const WORDS = { hamming: "differing bits", euclidean: "distance", cosine: "cosine distance" };

let kind = "id";
let info = null;

export async function own() {
  info = await get("info");
  byId("own").hidden = false;
  const facts = {
    model: info.n_features === null ? "none: only points and codes can be searched for" : `${info.n_features} numbers to ${info.n_bits} bits`,
    points: number(info.points),
    store: info.store,
    version: `auxhash ${info.version}`,
  };
  for (const [name, text] of Object.entries(facts)) byId("own-info").append(el("dt", {}, name), el("dd", {}, text));
  byId("own-k").max = info.limits.k ?? 100;
  offer("vector", info.n_features !== null);
  offer("image", info.images);
  chosen("own", (value) => {
    kind = value;
    for (const part of document.querySelectorAll("[data-own]")) part.hidden = part.dataset.own !== kind;
  });
  byId("own-form").addEventListener("submit", (event) => {
    event.preventDefault();
    search().catch((error) => trouble(error.message));
  });
}

// A kind of query that this service does not take is not offered.
function offer(value, can) {
  document.querySelector(`input[name="own"][value="${value}"]`).closest("label").hidden = !can;
}

async function search() {
  trouble("");
  const k = Number(byId("own-k").value);
  const request = { ...(await asked()), k, with_payload: info.keeps_points };
  const answer = await post("points/query", request);
  show(answer.results[0].hits, WORDS[answer.by] ?? answer.by);
  byId("own-request").textContent = `POST points/query\n${brief(request)}`;
  byId("own-answer").textContent = brief(answer);
  byId("own-sample").hidden = false;
}

// JSON to be read: of long lists the first three, of long texts the first letters.
function brief(value) {
  const short = (_, part) => {
    if (Array.isArray(part) && part.length > 3) return [...part.slice(0, 3), "..."];
    return typeof part === "string" && part.length > 60 ? `${part.slice(0, 60)}...` : part;
  };
  return JSON.stringify(value, short, 1);
}

// What the form asks for, as the API wants it; ids stay text, as numbers here are rounded.
async function asked() {
  if (kind === "image") {
    const file = byId("own-image").files[0];
    if (!file) throw new Error("Choose a picture first.");
    return { images: [await inBase64(file)] };
  }
  if (kind === "vector") return { vectors: [numbers(byId("own-vector").value)] };
  const id = byId("own-id").value.trim();
  if (!id) throw new Error("Enter the id of a point.");
  return { ids: [id] };
}

function numbers(text) {
  const found = text.trim().replace(/^\[|\]$/g, "").split(/[\s,;]+/).filter(Boolean).map(Number);
  if (!found.every(Number.isFinite)) throw new Error("A vector is made of numbers, with commas or spaces between them.");
  if (found.length !== info.n_features) throw new Error(`The model wants ${info.n_features} numbers, and ${found.length} came.`);
  return found;
}

function inBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

function show(hits, distance) {
  const columns = ["id", distance, ...(info.keeps_points ? ["payload"] : [])];
  const rows = hits.map((hit) => {
    const payload = hit.payload ? JSON.stringify(hit.payload) : "";
    const texts = [`${hit.id}`, `${Number(hit.distance.toPrecision(6))}`, payload];
    return el("tr", {}, ...columns.map((_, at) => el("td", {}, texts[at])));
  });
  const head = el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)));
  byId("own-found").replaceChildren(
    hits.length ? el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)) : el("p", {}, "There are no points."));
  say(`${hits.length} found.`);
}
