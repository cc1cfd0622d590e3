// Making elements, and drawing an array to scale.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export function table(columns, rows) {
  const head = columns.map((name) => el("th", { scope: "col" }, name));
  const body = rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))));
  return el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
}

// -- the array --------------------------------------------------------------------------------

const SIGNS = { 1: "+", "-1": "\u2212", 0: "" };
export const STATES = { 1: "anode", "-1": "cathode", 0: "off" };

export function centreOf(corners) {
  return [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis] / 4, 0));
}

// Where mm go on the screen: the patient's left is on the left, rostral is up.
export function arrayFrame(store, scale, up) {
  const shown = store.corners.filter(Boolean).concat(store.body ? [store.body] : []).flat();
  const reach = Math.max(...shown.map(([x]) => Math.abs(x)));
  const [low, high] = up ?? [Math.min(...shown.map((p) => p[1])) - 1, Math.max(...shown.map((p) => p[1])) + 1];
  return {
    scale,
    low,
    high,
    width: 2 * (reach + 1) * scale,
    height: (high - low) * scale,
    point: ([x, z]) => [(reach + 1 - x) * scale, (high - z) * scale],
  };
}

// An anode is an open box with a plus, a cathode a filled one with a minus: no colour is needed.
export function drawArray(store, pattern, frame, other = null) {
  const path = (corners) => corners.map((p) => frame.point(p).map((x) => x.toFixed(1)).join()).join(" ");
  const parts = [];
  if (store.body) parts.push(svg("polygon", { class: "paddle", points: path(store.body) }));
  store.corners.forEach((corners, e) => {
    if (!corners) return;
    const [x, y] = frame.point(centreOf(corners));
    const sides = corners.map(frame.point);
    const across = Math.max(...sides.map((p) => p[0])) - Math.min(...sides.map((p) => p[0]));
    const along = Math.max(...sides.map((p) => p[1])) - Math.min(...sides.map((p) => p[1]));
    const state = STATES[pattern[e]];
    const changed = other && other[e] !== pattern[e] ? " changed" : "";
    parts.push(svg("polygon", { class: `contact ${state}${changed}`, points: path(corners) }));
    const size = Math.min(11, (1.7 * across) / Math.max(store.names[e].length, 1.6));
    const label = (text, dy, bigger) =>
      svg("text", { class: `label ${state}`, x: x.toFixed(1), y: (y + dy).toFixed(1), "font-size": bigger * size }, text);
    if (size < 8) {
      if (pattern[e]) parts.push(label(SIGNS[pattern[e]], 0.3 * across, (1.1 * across) / size));
      return;
    }
    const stacked = along > 2.2 * size;
    if (!pattern[e]) parts.push(label(store.names[e], 0.36 * size, 1));
    else if (!stacked) parts.push(label(store.names[e] + SIGNS[pattern[e]], 0.36 * size, Math.min(0.9, (1.5 * across) / size / (store.names[e].length + 1))));
    else parts.push(label(store.names[e], -0.25 * size, 1), label(SIGNS[pattern[e]], 0.95 * size, 1.3));
  });
  const title = `${words(store, pattern)}, seen from behind, rostral up`;
  const { width, height } = frame;
  return svg("svg", { class: "array", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, parts);
}

// "cathode 5, anodes 7 and 8": for people who listen.
export function words(store, pattern) {
  const named = (sign, word) => {
    const names = store.names.filter((_, e) => pattern[e] === sign);
    return names.length ? [`${word}${names.length > 1 ? "s" : ""} ${names.join(", ")}`] : [];
  };
  return [...named(-1, "cathode"), ...named(1, "anode")].join("; ") || "all contacts off";
}

// Rectangles [x, y, width, height] in px to press: as large as the neighbours leave room for.
export function pressAreas(store, frame) {
  const length = (corners) => Math.max(...corners.map((p) => p[1])) - Math.min(...corners.map((p) => p[1]));
  const centres = store.corners.map((corners) => corners && centreOf(corners));
  return centres.map((centre, e) => {
    if (!centre) return null;
    const row = 0.5 * length(store.corners[e]);
    let [wide, high] = [2.6, 8];
    centres.forEach((other, f) => {
      if (!other || e === f) return;
      const [dx, dz] = [Math.abs(other[0] - centre[0]), Math.abs(other[1] - centre[1])];
      if (dz <= row) wide = Math.min(wide, dx / 2);
      else if (dx < 6) high = Math.min(high, dz / 2);
    });
    const [x, y] = frame.point(centre);
    const half = [wide * frame.scale, Math.min(high, row + 2) * frame.scale];
    return [x - half[0], y - half[1], 2 * half[0], 2 * half[1]];
  });
}

export function smallArray(store, pattern, height = 120, other = null) {
  const { low, high } = arrayFrame(store, 1);
  return drawArray(store, pattern, arrayFrame(store, height / (high - low)), other);
}
