// A section on a canvas, to scale: colours, isopotentials, borders of tissues, contacts.

import { quantity } from "./core.js";

export const KINDS = {
  potential: { name: "Potential", unit: "V", sign: true },
  field: { name: "|E|", unit: "V/m", sign: false },
  activating: { name: "Activating function", unit: "V/m\u00b2", sign: true },
};

const LEVELS = 256;
const SHARE = 0.985; // of the values lie within the colours

function rgb(text) {
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

function mixed(stops, share) {
  const place = share * (stops.length - 1);
  const k = Math.min(Math.floor(place), stops.length - 2);
  return [0, 1, 2].map((c) => stops[k][c] + (place - k) * (stops[k + 1][c] - stops[k][c]));
}

const themes = new Map();

// The colours of the page's theme; a table of LEVELS colours per kind, packed as pixels.
export function themeOf(element) {
  const style = getComputedStyle(element);
  const value = (name) => style.getPropertyValue(name).trim();
  const name = value("--paper") + value("--ink");
  if (!themes.has(name)) themes.set(name, madeTheme(value));
  return themes.get(name);
}

function packed([r, g, b]) {
  return (255 << 24) | (b << 16) | (g << 8) | r;
}

function madeTheme(value) {
  const stops = (...names) => names.map((name) => rgb(value(name)));
  const both = stops("--low-end", "--low", "--middle", "--high", "--high-end");
  const rising = stops("--rise-0", "--rise-1", "--rise-2", "--rise-3");
  const tableOf = (list) => Int32Array.from({ length: LEVELS }, (_, k) => packed(mixed(list, k / (LEVELS - 1))));
  const ink = Object.fromEntries(["ink", "halo", "void", "anode", "cathode", "off"].map((n) => [n, value(`--${n}`)]));
  return { signed: tableOf(both), rising: tableOf(rising), hole: packed(rgb(ink.void)), ...ink };
}

// Sizes of the values in tissue, not zero: inside the paddle there is only what fills the grid.
function tissueValues(pictures) {
  const sizes = new Float64Array(pictures.reduce((sum, { values }) => sum + values.length, 0));
  let count = 0;
  for (const { section, values } of pictures) {
    for (let k = 0; k < values.length; k++) if (section.solid[k] && values[k]) sizes[count++] = Math.abs(values[k]);
  }
  return sizes.subarray(0, count).sort();
}

// Where colours begin and end for all sections shown together; a level is a + b x, of log |x| if not signed.
export function colourScale(kind, pictures) {
  const ordered = tissueValues(pictures);
  if (!ordered.length) return { kind, low: -1, high: 1, offset: LEVELS / 2, slope: 0 };
  const at = (share) => ordered[Math.min(ordered.length - 1, Math.floor(share * ordered.length))];
  const high = at(SHARE);
  const top = LEVELS - 1;
  if (KINDS[kind].sign) return { kind, low: -high, high, offset: top / 2, slope: top / 2 / high };
  const low = at(0.05);
  const slope = top / Math.log(high / low);
  return { kind, low, high, offset: -slope * Math.log(low), slope };
}

// 1, 2 and 5 times powers of ten, on both sides of zero.
function isolevels(limit, largest) {
  const levels = [0];
  for (let power = Math.floor(Math.log10(limit / 16)); power <= Math.log10(largest); power++) {
    for (const m of [1, 2, 5]) {
      const level = m * 10 ** power;
      if (level >= limit / 16 && level <= largest) levels.push(level, -level);
    }
  }
  return levels;
}

// Value between grid points; (i, j) in grid steps.
function between(values, rows, columns, i, j) {
  const [a, b] = [Math.min(Math.floor(i), rows - 2), Math.min(Math.floor(j), columns - 2)];
  const [s, t] = [i - a, j - b];
  const k = a * columns + b;
  return (1 - s) * ((1 - t) * values[k] + t * values[k + 1]) +
    s * ((1 - t) * values[k + columns] + t * values[k + columns + 1]);
}

export class SectionView {
  constructor(canvas, scale) {
    this.canvas = canvas;
    this.scale = scale;
  }

  get size() {
    const [a, b] = [this.section.across, this.section.up];
    return [(a[1] - a[0]) * this.scale, (b[1] - b[0]) * this.scale];
  }

  // Picture coordinates in px of a point in mm, and back to steps of the grid.
  place(x, y) {
    const { across, up, reversed } = this.section;
    return [(reversed ? across[1] - x : x - across[0]) * this.scale, (up[1] - y) * this.scale];
  }

  steps(px, py) {
    const { rows, columns } = this.section.potential;
    const [width, height] = this.size;
    const within = (share) => Math.max(0, Math.min(1, share));
    const share = within(px / width);
    return [(1 - within(py / height)) * (rows - 1), (this.section.reversed ? 1 - share : share) * (columns - 1)];
  }

  valueAt(px, py) {
    const { rows, columns } = this.section.potential;
    const [i, j] = this.steps(px, py);
    if (!this.isInside(i, j)) return null;
    return between(this.values, rows, columns, i, j);
  }

  isInside(i, j) {
    const { finer, inside, potential } = this.section;
    const factor = (finer - 1) / (potential.columns - 1);
    return inside[Math.round(i * factor) * finer + Math.round(j * factor)] === 1;
  }

  draw(section, values, colours, pattern, store) {
    Object.assign(this, { section, values, colours });
    const theme = themeOf(this.canvas);
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const [width, height] = this.size;
    Object.assign(this.canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    Object.assign(this.canvas.style, { width: `${width}px`, aspectRatio: `${width} / ${height}` });
    const pen = this.canvas.getContext("2d");
    this.fill(pen, theme);
    pen.setTransform(this.canvas.width / width, 0, 0, this.canvas.height / height, 0, 0);
    pen.lineJoin = "round";
    if (colours.kind === "potential") this.isolines(pen, theme);
    this.borders(pen, theme);
    this.contacts(pen, theme, pattern, store);
    this.dress(pen, theme);
  }

  // Every pixel: between the two grid points beside it in a row that lies between two of the grid.
  fill(pen, theme) {
    const { width, height } = this.canvas;
    const { values, section, colours } = this;
    const { rows, columns } = section.potential;
    const table = KINDS[colours.kind].sign ? theme.signed : theme.rising;
    const logarithmic = !KINDS[colours.kind].sign;
    const { offset, slope } = colours;
    const image = pen.createImageData(width, height);
    const pixels = new Int32Array(image.data.buffer);
    const fine = (section.finer - 1) / (columns - 1);
    const ratio = width / this.size[0];
    const [column, finely] = [new Int32Array(width), new Int32Array(width)];
    const beyond = new Float64Array(width);
    for (let x = 0; x < width; x++) {
      const j = this.steps((x + 0.5) / ratio, 0)[1];
      column[x] = Math.min(Math.floor(j), columns - 2);
      beyond[x] = j - column[x];
      finely[x] = Math.round(j * fine);
    }
    const line = new Float64Array(columns);
    for (let y = 0, k = 0; y < height; y++) {
      const i = this.steps(0, (y + 0.5) / ratio)[0];
      const row = Math.min(Math.floor(i), rows - 2);
      const start = row * columns;
      for (let c = 0; c < columns; c++) line[c] = values[start + c] + (i - row) * (values[start + columns + c] - values[start + c]);
      const inside = Math.round(i * fine) * section.finer;
      for (let x = 0; x < width; x++, k++) {
        if (section.inside[inside + finely[x]] !== 1) {
          pixels[k] = theme.hole;
          continue;
        }
        const before = line[column[x]];
        let value = before + beyond[x] * (line[column[x] + 1] - before);
        if (logarithmic) value = Math.log(value);
        const level = (offset + slope * value + 0.5) | 0;
        pixels[k] = table[level < 0 ? 0 : level >= LEVELS ? LEVELS - 1 : level];
      }
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.putImageData(image, 0, 0);
  }

  isolines(pen, theme) {
    const { values, section } = this;
    const { rows, columns } = section.potential;
    const { solid } = section;
    let largest = 0;
    for (let k = 0; k < values.length; k++) largest = Math.max(largest, Math.abs(values[k]));
    const lines = isolevels(this.colours.high, largest).map((level) => ({ level, path: new Path2D() }));
    for (let i = 0; i < rows - 1; i++) {
      for (let j = 0; j < columns - 1; j++) {
        const k = i * columns + j;
        if (!solid[k] || !solid[k + columns + 1]) continue;
        const [a, b, c, d] = [values[k], values[k + 1], values[k + columns], values[k + columns + 1]];
        const [low, high] = [Math.min(a, b, c, d), Math.max(a, b, c, d)];
        for (const { level, path } of lines) if (low <= level && level < high) this.crossing(path, level, i, j, columns);
      }
    }
    pen.strokeStyle = theme.ink;
    pen.globalAlpha = 0.45;
    pen.lineWidth = 0.7;
    for (const { level, path } of lines) {
      pen.setLineDash(level < 0 ? [3, 2.5] : []);
      pen.stroke(path);
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  // Marching squares: join the points where the edges of a cell meet the level, in pairs.
  crossing(pen, level, i, j, columns) {
    const k = i * columns + j;
    const corners = [[i, j, k], [i, j + 1, k + 1], [i + 1, j + 1, k + columns + 1], [i + 1, j, k + columns]];
    const ends = [];
    corners.forEach(([a, b, p], n) => {
      const [c, d, q] = corners[(n + 1) % 4];
      const [u, v] = [this.values[p] - level, this.values[q] - level];
      if (u > 0 !== v > 0) ends.push([a + (c - a) * (u / (u - v)), b + (d - b) * (u / (u - v))]);
    });
    for (let n = 0; n + 1 < ends.length; n += 2) {
      pen.moveTo(...this.pixel(...ends[n]));
      pen.lineTo(...this.pixel(...ends[n + 1]));
    }
  }

  pixel(i, j) {
    const { across, up, potential } = this.section;
    const x = across[0] + (j / (potential.columns - 1)) * (across[1] - across[0]);
    return this.place(x, up[0] + (i / (potential.rows - 1)) * (up[1] - up[0]));
  }

  borders(pen, theme) {
    const b = this.section.borders;
    pen.strokeStyle = theme.ink;
    pen.lineWidth = 1;
    pen.globalAlpha = 0.8;
    pen.beginPath();
    for (let k = 0; k < b.length; k += 4) {
      pen.moveTo(...this.place(b[k] / 1e3, b[k + 1] / 1e3));
      pen.lineTo(...this.place(b[k + 2] / 1e3, b[k + 3] / 1e3));
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  contacts(pen, theme, pattern, store) {
    this.labels = [];
    for (const [e, ...ends] of this.section.contacts) {
      const [x0, y0, x1, y1] = [...this.place(ends[0], ends[1]), ...this.place(ends[2], ends[3])];
      pen.strokeStyle = { 1: theme.anode, "-1": theme.cathode, 0: theme.off }[pattern[e]];
      pen.lineWidth = 5;
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
      if (!pattern[e]) continue;
      const flat = Math.abs(x1 - x0) > Math.abs(y1 - y0);
      const name = store.names[e] + (pattern[e] > 0 ? "+" : "\u2212");
      const place = [(x0 + x1) / 2 + (flat ? 0 : 15), (y0 + y1) / 2 - (flat ? 13 : 0)];
      this.labels.push(place);
      this.text(pen, theme, name, ...place, true, pen.strokeStyle);
    }
  }

  text(pen, theme, text, x, y, bold, colour) {
    pen.font = `${bold ? "600 13px" : "11px"} system-ui, sans-serif`;
    Object.assign(pen, { textAlign: "center", textBaseline: "middle", lineWidth: 3, strokeStyle: theme.halo });
    pen.strokeText(text, x, y);
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
  }

  // The name of a tissue; in a sagittal section tissues are long and narrow: it stands along them, below a contact's.
  name(pen, theme, name, x, y) {
    const [width, height] = this.size;
    const sagittal = this.section.plane === "sagittal";
    while (sagittal && this.labels.some(([u, v]) => Math.hypot(u - x, v - y) < 34)) y += 20;
    const besideMark = y < 28 && Math.min(x, width - x) < 40;
    const aboveBar = y > height - 50 && x < 5 * this.scale + 20;
    if (besideMark || aboveBar) return;
    pen.save();
    pen.translate(x, y);
    if (sagittal) pen.rotate(-Math.PI / 2);
    this.text(pen, theme, name, 0, 0, false, theme.ink);
    pen.restore();
  }

  dress(pen, theme) {
    const [width, height] = this.size;
    for (const [name, ...where] of this.section.tissues) this.name(pen, theme, name, ...this.place(...where));
    const [left, right] = this.section.marks;
    this.text(pen, theme, left, 11, 12, true, theme.ink);
    this.text(pen, theme, right, width - 11, 12, true, theme.ink);
    const bar = 5 * this.scale;
    const [x, y] = [10, height - 12]; // away from the contacts
    pen.strokeStyle = theme.halo;
    for (const [wide, colour] of [[5, theme.halo], [2, theme.ink]]) {
      Object.assign(pen, { lineWidth: wide, strokeStyle: colour });
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(x + bar, y);
      pen.stroke();
    }
    this.text(pen, theme, "5 mm", x + bar / 2, y - 10, false, theme.ink);
  }
}

// A bar of the colours with its ends and middle in words.
export function drawColourBar(canvas, colours) {
  const theme = themeOf(canvas);
  const table = KINDS[colours.kind].sign ? theme.signed : theme.rising;
  Object.assign(canvas, { width: LEVELS, height: 1 });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(LEVELS, 1);
  new Int32Array(image.data.buffer).set(table);
  pen.putImageData(image, 0, 0);
  const unit = KINDS[colours.kind].unit;
  const middle = KINDS[colours.kind].sign ? 0 : Math.sqrt(colours.low * colours.high);
  return [colours.low, middle, colours.high].map((x) => quantity(x, unit, 2));
}
