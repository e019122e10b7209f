// The query: from the gallery, drawn, uploaded, or pixel by pixel; `tell` gets what to search for.

import { byId, chosen, el, framed, say, trouble } from "./dom.js";
import { MOST, SIDE, address, ofFile, ofStrokes, pixelsOf } from "./pictures.js";

const PEN = 14; // on the pad

export class Query {
  constructor(show, tell) {
    this.show = show;
    this.tell = tell;
    this.strokes = [];
    this.cells = [];
    this.at = 0; // the pixel that the keyboard is at
    this.makeGallery();
    this.makeGrid();
    this.makePad();
    for (let digit = 0; digit < 10; digit++) byId("label").append(el("option", { value: digit }, `${digit}`));
    byId("label").addEventListener("change", () => this.send());
    byId("file").addEventListener("change", () => this.read(byId("file").files[0]));
    chosen("source", (source) => {
      for (const one of ["gallery", "draw", "upload"]) byId(`from-${one}`).hidden = one !== source;
    });
  }

  // A known picture: {query: row} or {base: row}.
  take(asked) {
    const [kind, row] = Object.entries(asked)[0];
    const points = kind === "query" ? this.show.queries : this.show.base;
    this.set(pixelsOf(points.pixels, row), points.labels[row]);
    for (const input of document.querySelectorAll('input[name="picked"]')) {
      input.checked = kind === "query" && Number(input.value) === row;
    }
    this.known = true;
    this.tell(asked, `a ${points.labels[row]}`);
  }

  // Pixels that the visitor made; what digit they are is for the visitor to say.
  made(pixels, label = "") {
    this.set(pixels, label);
    this.forget();
    this.send();
  }

  forget() {
    this.known = false;
    for (const input of document.querySelectorAll('input[name="picked"]')) input.checked = false;
  }

  send() {
    const label = byId("label").value;
    this.forget();
    const asked = { pixels: this.pixels };
    if (label !== "") asked.label = Number(label);
    this.tell(asked, label === "" ? "your picture" : `your ${label}`);
  }

  set(pixels, label) {
    trouble("");
    this.pixels = pixels;
    byId("label").value = `${label}`;
    pixels.forEach((ink, at) => this.ink(at, ink));
  }

  ink(at, ink) {
    this.pixels[at] = ink;
    const cell = this.cells[at];
    cell.style.setProperty("--ink-share", `${(100 * ink) / MOST}%`);
    const place = `row ${Math.floor(at / SIDE) + 1}, column ${(at % SIDE) + 1}`;
    cell.setAttribute("aria-label", `${place}: ink ${ink} of ${MOST}`);
  }

  makeGallery() {
    for (const row of this.show.gallery) {
      const label = this.show.queries.labels[row];
      const input = el("input", { type: "radio", name: "picked", value: row, class: "unseen" });
      input.addEventListener("change", () => this.take({ query: row }));
      const source = address(pixelsOf(this.show.queries.pixels, row));
      byId("gallery").append(el("label", {}, input, framed(source, `a ${label}, number ${row}`)));
    }
  }

  makeGrid() {
    this.pixels = Array(SIDE * SIDE).fill(0);
    for (let row = 0; row < SIDE; row++) {
      const line = el("div", { role: "row" });
      for (let column = 0; column < SIDE; column++) {
        const at = row * SIDE + column;
        const cell = el("div", { role: "gridcell", tabindex: at ? -1 : 0 });
        cell.addEventListener("click", () => this.change(at, this.pixels[at] < MOST ? MOST : 0));
        cell.addEventListener("keydown", (event) => this.key(event, at));
        this.cells.push(cell);
        line.append(cell);
      }
      byId("pixels").append(line);
    }
  }

  key(event, at) {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -SIDE, ArrowDown: SIDE };
    if (event.key in moves) {
      const to = at + moves[event.key];
      const sameRow = Math.floor(to / SIDE) === Math.floor(at / SIDE);
      if (to >= 0 && to < SIDE * SIDE && (sameRow || Math.abs(moves[event.key]) === SIDE)) this.move(to);
    } else if (event.key === " " || event.key === "Enter") {
      this.change(at, this.pixels[at] < MOST ? Math.min(MOST, this.pixels[at] + MOST / 2) : 0);
    } else if (event.key === "Backspace" || event.key === "Delete") {
      if (event.shiftKey) this.made(Array(SIDE * SIDE).fill(0));
      else this.change(at, 0);
    } else {
      return;
    }
    event.preventDefault();
  }

  move(to) {
    this.cells[this.at].tabIndex = -1;
    this.at = to;
    this.cells[to].tabIndex = 0;
    this.cells[to].focus();
  }

  change(at, ink) {
    const pixels = [...this.pixels];
    pixels[at] = ink;
    this.move(at);
    this.made(pixels, byId("label").value);
  }

  makePad() {
    const pad = byId("pad");
    this.pen = pad.getContext("2d");
    let stroke = null;
    const place = (event) => {
      const box = pad.getBoundingClientRect();
      return [
        ((event.clientX - box.left) * pad.width) / box.width,
        ((event.clientY - box.top) * pad.height) / box.height,
      ];
    };
    pad.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      pad.setPointerCapture(event.pointerId);
      stroke = [place(event)];
      this.strokes.push(stroke);
      this.draw();
      event.preventDefault();
    });
    pad.addEventListener("pointermove", (event) => {
      if (!stroke) return;
      stroke.push(place(event));
      this.draw();
    });
    const end = () => {
      if (!stroke) return;
      stroke = null;
      // What the visitor said of this drawing still holds; what was known of another picture, not.
      const going = this.strokes.length > 1 && !this.known;
      this.made(ofStrokes(this.strokes), going ? byId("label").value : "");
    };
    pad.addEventListener("pointerup", end);
    pad.addEventListener("pointercancel", end);
    byId("clear").addEventListener("click", () => {
      this.strokes = [];
      this.draw();
      byId("label").value = "";
      say("The pad is empty.");
    });
  }

  draw() {
    const pad = byId("pad");
    this.pen.clearRect(0, 0, pad.width, pad.height);
    this.pen.strokeStyle = getComputedStyle(pad).color;
    this.pen.lineWidth = PEN;
    this.pen.lineCap = this.pen.lineJoin = "round";
    for (const stroke of this.strokes) {
      this.pen.beginPath();
      stroke.forEach((point, at) => {
        if (at === 0) this.pen.moveTo(point[0] - 0.1, point[1]); // or a dot would not be drawn
        this.pen.lineTo(...point);
      });
      this.pen.stroke();
    }
  }

  async read(file) {
    if (!file) return;
    try {
      this.made(await ofFile(file));
    } catch (error) {
      trouble(error.message);
    }
  }
}
