// Elements, and words for screen readers.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children);
  return element;
}

export function say(text) {
  byId("said").textContent = text;
}

export function trouble(text) {
  byId("trouble").textContent = text;
  byId("trouble").hidden = !text;
}

export const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 0 });
export const percent = (share) => `${(100 * share).toFixed(1)}%`;

// The chosen radio button of a group: its value now, and whenever it changes.
export function chosen(name, tell) {
  for (const input of document.querySelectorAll(`input[name="${name}"]`)) {
    input.addEventListener("change", () => tell(input.value));
  }
}

// A strip of bits; those that differ from `other`, if it is given, are lit.
export function strip(code, nBits, other = null, label = null) {
  const named = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  const whole = svg("svg", { class: "strip", viewBox: `0 0 ${9 * nBits} 16`, ...named });
  for (let bit = 0; bit < nBits; bit++) {
    const one = (code >> bit) & 1;
    const lit = other !== null && ((code ^ other) >> bit) & 1;
    const kind = `bit ${one ? "one" : "zero"}${lit ? " lit" : ""}`;
    whole.append(svg("rect", {
      class: kind, x: 9 * bit + 1, width: 7, y: lit ? 1 : 4, height: lit ? 14 : 8,
    }));
  }
  return whole;
}

// A picture in a frame; in dark colours the picture is turned, not the frame.
export function framed(source, alt) {
  return el("span", { class: "frame" }, el("img", { class: "digit", src: source, alt }));
}

export function countBits(code) {
  let n = 0;
  for (; code; code &= code - 1) n++;
  return n;
}
