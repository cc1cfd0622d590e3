// The numbers of a page: currents, impedance, r and fields of any pattern, from small matrices.
// Every function here is compared with Python's by tests/web.

// -- packed arrays (packing.py) ---------------------------------------------------------------

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = letters.charCodeAt(k);
  return bytes;
}

async function inflated(text) {
  const bytes = bytesOf(text);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function unpackIntegers(packed) {
  const bytes = await inflated(packed.data);
  const count = packed.shape.reduce((a, b) => a * b, 1);
  const values = new Int32Array(count);
  for (let plane = 0; plane * count < bytes.length; plane++) {
    for (let k = 0, from = plane * count; k < count; k++) values[k] |= bytes[from + k] << (8 * plane);
  }
  for (let k = 0; k < count; k++) values[k] = (values[k] >>> 1) ^ -(values[k] & 1);
  return values;
}

async function unpackGrid(packed) {
  const [channels, rows, columns] = packed.shape;
  const steps = await unpackIntegers(packed);
  const values = new Float64Array(steps.length);
  for (let c = 0; c < channels; c++) {
    const start = c * rows * columns;
    for (let i = 0; i < rows; i++) {
      for (let j = 0, sum = 0; j < columns; j++) {
        const k = start + i * columns + j;
        sum += steps[k];
        steps[k] = sum + (i ? steps[k - columns] : 0);
        values[k] = steps[k] * packed.scale[c];
      }
    }
  }
  return { rows, columns, values };
}

// -- the store of a page ----------------------------------------------------------------------

export async function openStore(data) {
  const contacts = data.names.length;
  const [rows, signs] = await Promise.all([data.rows, data.polarity].map(unpackIntegers));
  const store = { ...data, contacts, rows, patterns: [] };
  for (let k = 0; k < rows.length; k++) {
    store.patterns.push(signs.subarray(k * contacts, (k + 1) * contacts));
  }
  store.texts = store.patterns.map((pattern) => patternText(store, pattern));
  store.placeOf = new Map(store.texts.map((text, k) => [text, k]));
  if (data.nearest) {
    const [near, r] = await Promise.all([data.nearest.rows, data.nearest.r].map(unpackIntegers));
    store.near = { rows: near, r, width: data.nearest.rows.shape[1] };
  }
  return store;
}

// Currents and unit vectors of every configuration, made when they are first asked for.
export function currentsOf(store) {
  store.currents ??= store.patterns.map((pattern) => currents(store, pattern));
  return store.currents;
}

function unitsOf(store) {
  if (store.units) return store.units;
  store.units = new Float64Array(store.patterns.length * store.contacts);
  currentsOf(store).forEach((current, k) => store.units.set(unitVector(store, current), k * store.contacts));
  return store.units;
}

// Sections are unpacked when they are first shown, each kind of field when it is first asked for.
export async function openSection(section, kind = "potential") {
  section.opening ??= unpackOutlines(section);
  const opened = await section.opening;
  for (const needed of new Set(["potential", kind])) opened.unpacking[needed] ??= unpackGrid(section[needed]);
  for (const needed of new Set(["potential", kind])) opened[needed] = await opened.unpacking[needed];
  return opened;
}

// Open all sections, one at a time and while nothing else is to be done: then a press draws at once.
export async function openAhead(sections) {
  const rest = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 50));
  for (const section of sections) {
    await new Promise((act) => rest(act));
    await openSection(section);
  }
}

async function unpackOutlines(section) {
  const [inside, borders] = await Promise.all([section.inside, section.borders].map(unpackIntegers));
  const { shape } = section.potential;
  const [finer, columns] = [section.inside.shape[1], shape[2]];
  const fine = (finer - 1) / (columns - 1);
  // Whether a point of the grid lies in tissue.
  const solid = new Uint8Array(shape[1] * columns);
  for (let k = 0; k < solid.length; k++) solid[k] = inside[fine * (Math.floor(k / columns) * finer + (k % columns))];
  return { ...section, inside, borders, finer, solid, unpacking: {} };
}

// -- texts of patterns ------------------------------------------------------------------------

export function patternText(store, pattern) {
  const words = [];
  pattern.forEach((sign, e) => sign && words.push(store.names[e] + (sign > 0 ? "+" : "-")));
  return words.join(" ") || "off";
}

export function parsePattern(store, text) {
  const pattern = new Int8Array(store.contacts);
  if (text.trim() === "off") return pattern;
  for (const word of text.trim().replaceAll("\u2212", "-").split(/[\s,]+/)) {
    const sign = { "+": 1, "-": -1 }[word.at(-1)];
    const contact = store.names.indexOf(word.slice(0, -1));
    if (!sign) throw new Error(`"${word}" does not end in + (anode) or - (cathode)`);
    if (contact < 0) throw new Error(`there is no contact "${word.slice(0, -1)}"`);
    if (pattern[contact]) throw new Error(`contact ${store.names[contact]} is named twice`);
    pattern[contact] = sign;
  }
  return pattern;
}

// -- drive ------------------------------------------------------------------------------------

// A for a unit drive (1 V between the electrodes, or 1 A in total); null without both signs.
export function currents(store, pattern) {
  if (!pattern.includes(1) || !pattern.includes(-1)) return null;
  const found = store.drive.mode === "current" ? splitCurrents(store, pattern) : driven(store, pattern);
  const active = pattern.reduce((n, sign) => n + (sign !== 0), 0);
  const rest = found.reduce((a, b) => a + b, 0) / active;
  return found.map((current, e) => (pattern[e] ? current - rest : 0));
}

function splitCurrents(store, pattern) {
  const share = store.drive.fractions ?? new Array(store.contacts).fill(1);
  const total = { 1: 0, "-1": 0 };
  pattern.forEach((sign, e) => sign && (total[sign] += share[e]));
  return Float64Array.from(pattern, (sign, e) => (sign ? (sign * share[e]) / total[sign] : 0));
}

// Contacts that are off carry no current, so that only those that are on are solved for: with the
// resistance Z of the contacts, Z i = v + c and sum i = 0, v half a volt each way, c the common part.
function driven(store, pattern) {
  const on = [];
  pattern.forEach((sign, e) => sign && on.push(e));
  const rows = on.map((e) => [...on.map((f) => store.resistance[e][f]), -1]);
  rows.push([...on.map(() => 1), 0]);
  const flow = solved(rows, [...on.map((e) => [pattern[e] / 2]), [0]]);
  const found = new Float64Array(pattern.length);
  on.forEach((e, k) => (found[e] = flow[k][0]));
  return found;
}

// Gaussian elimination with row pivots; a (n, n) and b (n, m) are lost.
function solved(a, b) {
  const n = a.length;
  for (let c = 0; c < n; c++) {
    let pivot = c;
    for (let r = c + 1; r < n; r++) if (Math.abs(a[r][c]) > Math.abs(a[pivot][c])) pivot = r;
    [a[c], a[pivot], b[c], b[pivot]] = [a[pivot], a[c], b[pivot], b[c]];
    for (let r = c + 1; r < n; r++) {
      const factor = a[r][c] / a[c][c];
      for (let k = c; k < n; k++) a[r][k] -= factor * a[c][k];
      for (let k = 0; k < b[r].length; k++) b[r][k] -= factor * b[c][k];
    }
  }
  for (let c = n - 1; c >= 0; c--) {
    for (let k = 0; k < b[c].length; k++) {
      for (let r = c + 1; r < n; r++) b[c][k] -= a[c][r] * b[r][k];
      b[c][k] /= a[c][c];
    }
  }
  return b;
}

// Ohm between the two electrodes: power over the square of the total current.
export function impedance(store, current) {
  const total = current.reduce((sum, x) => sum + Math.max(x, 0), 0);
  let power = 0;
  current.forEach((x, e) => {
    if (x) power += x * store.resistance[e].reduce((sum, z, f) => sum + z * current[f], 0);
  });
  return power / (total * total);
}

// -- stimulation (stimulation.py) -------------------------------------------------------------

// How many times the currents of a unit drive flow at an amplitude, V or mA by the stimulator.
export function driveFactor(store, current, amplitude) {
  const control = store.stimulation?.control ?? store.drive.mode;
  if (control === store.drive.mode) return control === "voltage" ? amplitude : amplitude / 1e3;
  const total = current.reduce((sum, x) => sum + Math.max(x, 0), 0);
  return control === "voltage" ? amplitude / (total * impedance(store, current)) : amplitude / 1e3 / total;
}

// The measured impedance of a pattern, NaN if there is none: see Stimulation.impedance.
function measuredImpedance(store, pattern) {
  const measured = store.stimulation.impedance_ohm;
  const same = (sign) => (text) => !store.names.includes(text) && parsePattern(store, text).every((s, e) => s === sign * pattern[e]);
  const whole = Object.keys(measured).findLast((text) => same(1)(text) || same(-1)(text));
  if (whole) return measured[whole];
  const parallel = [1, -1].map((sign) => store.names.reduce((sum, name, e) =>
    pattern[e] === sign ? sum + 1 / (measured[name] ?? (name === store.case ? 0 : NaN)) : sum, 0));
  return Math.max(...parallel.map((siemens) => 1 / siemens));
}

// What a pattern delivers: {impedance, ceiling, reason, contacts: [{contact, mA, charge, density, k}]}.
export function delivered(store, pattern, current, { amplitude = null, pulseWidth = null } = {}) {
  const own = store.stimulation;
  const width = pulseWidth ?? own.pulse_width_us;
  const set = amplitude ?? own.planned;
  const ohm = measuredImpedance(store, pattern);
  const unit = own.control === "current" ? 1 : 1e3 / ohm;
  const total = current.reduce((sum, x) => sum + Math.abs(x), 0) / 2;
  const contacts = [];
  let most = Infinity;
  pattern.forEach((sign, e) => {
    if (!sign || store.names[e] === store.case) return;
    const share = own.split === "worst" ? 1 : Math.abs(current[e]) / total;
    const area = own.area_cm2[e] ?? NaN;
    const mA = set === null ? NaN : share * unit * set;
    const charge = (mA * width) / 1e3;
    contacts.push({ contact: e, mA, charge, density: charge / area, k: Math.log10(charge / area) + Math.log10(charge) });
    most = Math.min(most, contactLimit(own.limits, area, width) / share);
  });
  let ceiling = Math.min(most / unit, own.largest);
  if (own.step) ceiling = Math.floor(ceiling / own.step + 1e-9) * own.step;
  if (ceiling < own.least) ceiling = 0;
  const noArea = contacts.some(({ contact }) => own.area_cm2[contact] === null);
  const reason = Number.isNaN(unit) ? `no impedance of ${patternText(store, pattern)} was measured`
    : noArea ? "the area of a contact is not known" : set === null ? "no amplitude is planned" : "";
  return { impedance: ohm, ceiling, reason, contacts, amplitude: set };
}

function contactLimit(limits, area, width) {
  const charges = [limits.charge_density_max_uC_per_cm2 && limits.charge_density_max_uC_per_cm2 * area,
    limits.shannon_k_max !== null && Math.sqrt(10 ** limits.shannon_k_max * area)].filter((x) => x !== null && x !== false);
  return Math.min(limits.current_per_contact_max_mA ?? Infinity, ...charges.map((charge) => (1e3 * charge) / width));
}

// "at most 5.9 V; 0.7 uC, 11.7 uC/cm2, k 0.91", or why that is not known.
export function deliveredText(store, found) {
  if (Number.isNaN(found.ceiling)) return `Charge not known: ${found.reason}.`;
  const most = (key) => Math.max(...found.contacts.map((contact) => contact[key]));
  const figures = found.reason || `${Number(most("charge").toPrecision(3))} \u00b5C, ${Number(most("density").toPrecision(3))} \u00b5C/cm\u00b2, k ${signed(most("k").toFixed(2))} at ${Number(found.amplitude.toPrecision(4))} ${store.stimulation.unit}`;
  return `At most ${Number(found.ceiling.toPrecision(4))} ${store.stimulation.unit}; ${figures}.`;
}

export const NO_STIMULATOR = "Charge is not known: no stimulator is described, and a modelled impedance would promise too much.";

// -- correlation ------------------------------------------------------------------------------

function applied(gram, current) {
  const found = new Float64Array(gram.length);
  for (let k = 0; k < found.length; k++) found[k] = dot(gram[k], current);
  return found;
}

function dot(a, b) {
  let sum = 0;
  for (let e = 0; e < a.length; e++) sum += a[e] * b[e];
  return sum;
}

// a / sqrt(a' G a): then r of two patterns is u' G v.
function unitVector(store, current) {
  const size = Math.sqrt(dot(current, applied(store.gram, current)));
  return current.map((x) => x / size);
}

// r of a pattern with every configuration of the page, or null where it cannot be computed.
export function correlations(store, current) {
  if (!store.linear || !current) return null;
  const weighted = applied(store.gram, unitVector(store, current));
  const [units, contacts] = [unitsOf(store), store.contacts];
  const r = new Float64Array(store.patterns.length);
  for (let k = 0, at = 0; k < r.length; k++) {
    let sum = 0;
    for (let e = 0; e < contacts; e++, at++) sum += weighted[e] * units[at];
    r[k] = sum;
  }
  return r;
}

export function correlation(store, one, other) {
  if (!store.linear || !one || !other) return null;
  return dot(unitVector(store, one), applied(store.gram, unitVector(store, other)));
}

// The n nearest configurations [{place, r}], best first, the pattern itself left out.
export function nearest(store, pattern, current, n) {
  const own = store.placeOf.get(patternText(store, pattern)) ?? -1;
  const r = correlations(store, current);
  if (!r) return own < 0 || !store.near ? [] : keptNearest(store, own, n);
  const best = [];
  for (let place = 0; place < r.length; place++) {
    const value = r[place];
    if (place === own || (best.length === n && value <= best[n - 1].r)) continue;
    let k = Math.min(best.length, n - 1);
    while (k > 0 && best[k - 1].r < value) best[k] = best[--k];
    best[k] = { place, r: value };
  }
  return best;
}

function keptNearest(store, own, n) {
  const { rows, r, width } = store.near;
  const start = own * width;
  return Array.from(rows.subarray(start, start + Math.min(n, width)), (row, k) => ({
    place: store.rows.indexOf(row),
    r: r[start + k] / 1e6,
  })).filter((entry) => entry.place >= 0);
}

// -- fields in a section ----------------------------------------------------------------------

// Values (rows x columns) of "potential" V, "field" |E| V/m or "activating" V/m2.
export function fieldOf(section, kind, current) {
  const { rows, columns, values } = section[kind];
  const size = rows * columns;
  const parts = kind === "field" ? 3 : 1;
  const sums = new Float64Array(parts * size);
  for (let e = 0; e < current.length; e++) {
    const [amount, start] = [current[e], e * sums.length];
    if (amount) for (let k = 0; k < sums.length; k++) sums[k] += amount * values[start + k];
  }
  if (parts === 1) return sums;
  return sums.subarray(0, size).map((x, k) => Math.sqrt(x * x + sums[size + k] ** 2 + sums[2 * size + k] ** 2));
}

// -- words ------------------------------------------------------------------------------------

const PREFIXES = [[1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "\u00b5"], [1e-9, "n"]];

export function quantity(value, unit, digits = 3) {
  const size = Math.abs(value);
  const [factor, letter] = PREFIXES.find(([f]) => size >= f * 0.9995) ?? (size ? PREFIXES.at(-1) : [1, ""]);
  return `${Number((value / factor).toPrecision(digits))} ${letter}${unit}`.replace("-", "\u2212");
}

export function signed(text) {
  return text.replaceAll("-", "\u2212");
}
