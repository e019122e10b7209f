// Pictures of 8 x 8 pixels, 0 (no ink) to 16, and how strokes and files become such pictures.
//
// The digits of scikit-learn fill the frame from top to bottom, but not its outer columns, and hold
// about as much ink each, whatever the digit: a 1 has thick strokes. What is drawn or uploaded is
// brought into the same form, or no model could know it.

export const SIDE = 8;
export const MOST = 16;
const INK = 19.5; // pixels' worth of ink in a picture
const WIDTH = 5.6; // columns
const SQUEEZE = 2; // the most that a wide digit is narrowed, to fill the height as well
const FINE = 8; // samples along a pixel's edge
const DARK = 0.5; // share of the ink range above which a sample of a file is ink
const DOT = 0.01; // length of the shortest line
const LARGEST = 256; // samples along the longer edge of a file

// Picture `row` of a text with one letter per pixel.
export function pixelsOf(letters, row) {
  const start = row * SIDE * SIDE;
  return Array.from({ length: SIDE * SIDE }, (_, at) => letters.charCodeAt(start + at) - 97);
}

const kept = new Map();

// The address of a picture, black on white.
export function address(pixels) {
  const name = pixels.join();
  if (!kept.has(name)) {
    const [canvas, context] = surface(SIDE, SIDE);
    const data = context.createImageData(SIDE, SIDE);
    pixels.forEach((ink, at) => {
      const grey = 255 - Math.round((255 * ink) / MOST);
      data.data.set([grey, grey, grey, 255], 4 * at);
    });
    context.putImageData(data, 0, 0);
    kept.set(name, canvas.toDataURL());
  }
  return kept.get(name);
}

// Strokes, each a list of [x, y], as a picture; null if there are none.
export function ofStrokes(strokes) {
  const points = strokes.flat();
  if (!points.length) return null;
  const box = bounds(points);
  let [thin, thick] = [0.5, 4];
  for (let turn = 0; turn < 12; turn++) {
    const middle = (thin + thick) / 2;
    if (inked(drawn(strokes, box, middle)) < INK) thin = middle;
    else thick = middle;
  }
  return drawn(strokes, box, thick).map((share) => Math.round(MOST * share));
}

function bounds(points) {
  const x = points.map((point) => point[0]);
  const y = points.map((point) => point[1]);
  const [left, top] = [Math.min(...x), Math.min(...y)];
  return { left, top, width: Math.max(...x) - left, height: Math.max(...y) - top };
}

// Shares of ink of the strokes, fitted into the frame with this width of the pen.
function drawn(strokes, box, pen) {
  const [, context] = surface(SIDE * FINE, SIDE * FINE);
  const [across, down] = fitted(box, WIDTH - pen, SIDE - pen);
  const x0 = SIDE / 2 - (across * box.width) / 2;
  const y0 = SIDE / 2 - (down * box.height) / 2;
  context.scale(FINE, FINE);
  context.lineWidth = pen;
  context.lineCap = context.lineJoin = "round";
  for (const stroke of strokes) {
    context.beginPath();
    stroke.forEach(([x, y], at) => {
      const place = [x0 + across * (x - box.left), y0 + down * (y - box.top)];
      if (at === 0) context.moveTo(place[0] - DOT, place[1]); // or a dot would not be drawn
      context.lineTo(...place);
    });
    context.stroke();
  }
  const data = context.getImageData(0, 0, SIDE * FINE, SIDE * FINE).data;
  return averaged((x, y) => data[4 * (y * SIDE * FINE + x) + 3] / 255);
}

// Factors, across and down, that fit a box into width and height.
function fitted(box, width, height) {
  if (!box.width && !box.height) return [0, 0]; // a dot
  const [across, down] = [width / box.width, height / box.height];
  return [Math.min(across, down), Math.min(down, SQUEEZE * across)];
}

function averaged(sample) {
  return Array.from({ length: SIDE * SIDE }, (_, at) => {
    const [left, top] = [(at % SIDE) * FINE, Math.floor(at / SIDE) * FINE];
    let sum = 0;
    for (let y = 0; y < FINE; y++) for (let x = 0; x < FINE; x++) sum += sample(left + x, top + y);
    return sum / FINE ** 2;
  });
}

const inked = (shares) => shares.reduce((sum, share) => sum + share, 0);

// A file as a picture; throws an Error that says what is wrong with it.
export async function ofFile(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name} is no picture that this browser can read.`);
  }
  const scale = Math.min(1, LARGEST / Math.max(bitmap.width, bitmap.height));
  const [width, height] = [bitmap.width, bitmap.height].map((n) => Math.max(1, Math.round(scale * n)));
  const [, context] = surface(width, height);
  context.fillStyle = "white"; // behind what is transparent
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0, width, height);
  const shares = inkOf(context.getImageData(0, 0, width, height).data, width, height);
  if (!shares) throw new Error(`${file.name} shows nothing: all of it is of one grey.`);
  if (width === SIDE && height === SIDE) return shares.map((share) => Math.round(MOST * share));
  return ofSamples(shares, width, height);
}

// Ink of every sample, 0 to 1; the edge of a picture tells what is paper. Null if all is the same.
function inkOf(data, width, height) {
  const grey = Array.from({ length: width * height }, (_, at) =>
    0.299 * data[4 * at] + 0.587 * data[4 * at + 1] + 0.114 * data[4 * at + 2]);
  let [low, high] = [Infinity, -Infinity];
  for (const value of grey) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (high - low < 8) return null;
  const edge = grey.filter((_, at) =>
    at < width || at >= width * (height - 1) || at % width === 0 || at % width === width - 1);
  const paper = edge.reduce((sum, value) => sum + value, 0) / edge.length;
  const light = paper > (low + high) / 2;
  return grey.map((value) => (light ? high - value : value - low) / (high - low));
}

// Strokes are made thicker or thinner, until there is the usual amount of ink.
function ofSamples(shares, width, height) {
  const places = [];
  shares.forEach((share, at) => share > DARK && places.push([at % width, Math.floor(at / width)]));
  const box = bounds(places);
  [box.width, box.height] = [box.width + 1, box.height + 1];
  const isInk = (column, row) =>
    column >= 0 && row >= 0 && column < box.width && row < box.height &&
    shares[(box.top + row) * width + box.left + column] > DARK;
  let [thin, thick] = [-0.6, 1.4];
  for (let turn = 0; turn < 10; turn++) {
    const middle = (thin + thick) / 2;
    if (inked(thickened(isInk, box, middle)) < INK) thin = middle;
    else thick = middle;
  }
  return thickened(isInk, box, thick).map((share) => Math.round(MOST * share));
}

// Shares of ink of a box of samples, fitted into the frame with strokes thicker by `more` all round.
function thickened(isInk, box, more) {
  const [across, down] = fitted(box, WIDTH - 2 * more, SIDE - 2 * more);
  const [x0, y0] = [SIDE / 2 - (across * box.width) / 2, SIDE / 2 - (down * box.height) / 2];
  const side = SIDE * FINE;
  const ink = Array.from({ length: side * side }, (_, at) => {
    const [x, y] = [((at % side) + 0.5) / FINE, (Math.floor(at / side) + 0.5) / FINE];
    return isInk(Math.floor((x - x0) / across), Math.floor((y - y0) / down));
  });
  // Thinner ink is thicker paper.
  const spread = widened(more < 0 ? ink.map((one) => !one) : ink, side, Math.abs(more) * FINE);
  return averaged((x, y) => Number(spread[y * side + x] === more >= 0));
}

// All samples within this distance of one that is set.
function widened(set, side, distance) {
  const found = [...set];
  const reach = Math.floor(distance);
  set.forEach((is, at) => {
    if (!is) return;
    const [x, y] = [at % side, Math.floor(at / side)];
    for (let dy = Math.max(-reach, -y); dy <= Math.min(reach, side - 1 - y); dy++) {
      for (let dx = Math.max(-reach, -x); dx <= Math.min(reach, side - 1 - x); dx++) {
        if (dx * dx + dy * dy <= distance * distance) found[at + dy * side + dx] = true;
      }
    }
  });
  return found;
}

function surface(width, height) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  return [canvas, canvas.getContext("2d", { willReadFrequently: true })];
}
