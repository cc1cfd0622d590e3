// The report: picker, heat map, table of configurations, session.

import { correlations, currentsOf, delivered, impedance, nearest, openStore, patternText, quantity, signed, unpackIntegers } from "./core.js";
import { el, smallArray, svg, table } from "./dom.js";
import { Picker } from "./picker.js";
import { themeOf } from "./section.js";

const PAGE = 25;

// -- r as a heat map --------------------------------------------------------------------------

async function heatMap(store, heat) {
  const r = await unpackIntegers(heat.r);
  const size = heat.rows.length;
  const canvas = el("canvas", { width: size, height: size, role: "img", "aria-label": `r of ${size} configurations with each other` });
  const told = el("p", { class: "screen", "aria-live": "polite" }, "Point at the map to read a pair.");
  const draw = () => {
    const colours = themeOf(canvas).signed;
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(size, size);
    const pixels = new Int32Array(image.data.buffer);
    for (let k = 0; k < r.length; k++) pixels[k] = colours[Math.round(127.5 * (1 + r[k] / heat.levels))];
    pen.putImageData(image, 0, 0);
  };
  const text = (k) => signed(store.texts[store.rows.indexOf(heat.rows[k])] ?? `row ${heat.rows[k]}`);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const [i, j] = [event.clientY - box.top, event.clientX - box.left].map((x) => Math.min(size - 1, Math.max(0, Math.floor((x / box.width) * size))));
    told.textContent = `${text(i)} with ${text(j)}: r = ${signed((r[i * size + j] / heat.levels).toFixed(2))}`;
  });
  const part = size < store.count ? `${size} of ${store.count} configurations, evenly spread` : `all ${size} configurations`;
  const side = el("div", {}, el("p", {}, `${part}, ordered so that similar ones stand together. Warm colours are r above 0, cold ones r below.`), told);
  return { element: el("div", { class: "heat" }, canvas, side), draw };
}

// -- the table of configurations --------------------------------------------------------------

function configurations(store, picker) {
  const flows = currentsOf(store);
  const ohms = flows.map((current) => impedance(store, current));
  const closest = new Map();
  const active = store.patterns.map((pattern) => pattern.reduce((n, sign) => n + (sign !== 0), 0));
  const doses = store.stimulation && store.patterns.map((pattern, k) => delivered(store, pattern, flows[k]));
  const most = (k, name) => Math.max(...doses[k].contacts.map((contact) => contact[name]));
  let [r, order, page, key, down] = [null, [], 0, "row", false];
  const keys = {
    row: (k) => store.rows[k],
    configuration: (k) => store.texts[k],
    contacts: (k) => active[k],
    impedance: (k) => ohms[k],
    ...(doses && {
      [`ceiling, ${store.stimulation.unit}`]: (k) => doses[k].ceiling,
      "charge density": (k) => most(k, "density"),
      "Shannon k": (k) => most(k, "k"),
    }),
    "r with the picked": (k) => (r ? -r[k] : 0),
  };
  const known = (value, digits) => (Number.isFinite(value) ? signed(String(Number(value.toPrecision(digits)))) : "\u2013");

  const body = el("tbody", {});
  const shown = el("span", { class: "quiet", role: "status" });
  const search = el("input", { type: "search", id: "search", placeholder: "5- 7+", oninput: () => refresh() });
  const heads = [...Object.keys(keys), "nearest"].map((name) => el("th", { scope: "col" },
    name in keys ? el("button", { type: "button", onclick: () => sort(name) }, name) : name));

  function sort(name) {
    [down, key] = [name === key && !down, name];
    refresh();
  }
  function refresh() {
    const wanted = search.value.replaceAll("\u2212", "-").split(/[\s,]+/).filter(Boolean);
    const fits = (text) => wanted.every((word) => text.split(" ").some((own) => own === word || own.slice(0, -1) === word));
    order = [...store.texts.keys()].filter((k) => fits(store.texts[k]));
    const value = keys[key];
    // What is not known stands last, whichever way.
    const lacks = (k) => Number(Number.isNaN(value(k)));
    const compared = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : a - b);
    order.sort((a, b) => lacks(a) - lacks(b) || (down ? compared(b, a) : compared(a, b)));
    turn(0);
    heads.forEach((head, k) => head.setAttribute("aria-sort", Object.keys(keys)[k] !== key ? "none" : down ? "descending" : "ascending"));
  }
  function turn(to) {
    page = Math.max(0, Math.min(to, Math.ceil(order.length / PAGE) - 1));
    const first = page * PAGE;
    body.replaceChildren(...order.slice(first, first + PAGE).map(row));
    shown.textContent = order.length ? `${first + 1} to ${Math.min(first + PAGE, order.length)} of ${order.length}` : "none found";
    back.disabled = page === 0;
    next.disabled = first + PAGE >= order.length;
  }
  function row(k) {
    if (!closest.has(k)) closest.set(k, nearest(store, store.patterns[k], flows[k], 1)[0]);
    const near = closest.get(k);
    const cells = [store.rows[k], el("button", { type: "button", onclick: () => { picker.set(store.patterns[k]); picker.element.scrollIntoView(); picked(); } }, signed(store.texts[k])),
      active[k], quantity(ohms[k], "\u03a9"), ...(doses ? [known(doses[k].ceiling, 4), known(most(k, "density"), 3), known(most(k, "k"), 3)] : []), r ? signed(r[k].toFixed(3)) : "\u2013",
      near ? `${signed(store.texts[near.place])} (${signed(near.r.toFixed(3))})` : "\u2013"];
    return el("tr", {}, cells.map((cell) => el("td", {}, cell)));
  }
  function picked() {
    r = correlations(store, picker.current);
    refresh();
  }
  const back = el("button", { type: "button", onclick: () => turn(page - 1) }, "\u2190 Back");
  const next = el("button", { type: "button", onclick: () => turn(page + 1) }, "Next \u2192");
  const tools = el("div", { class: "tools" },
    el("div", {}, el("label", { for: "search" }, "Contacts to look for, with a sign or without"), search),
    el("div", { class: "pages" }, back, shown, next));
  const partial = store.rows.length < store.count && el("p", { class: "notice" }, `This page holds ${store.rows.length} of ${store.count} configurations, evenly spread; nearest ones are those among them. The picker draws any pattern.`);
  const element = el("div", {}, partial || null, tools, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Configurations" },
    el("table", {}, el("thead", {}, el("tr", {}, heads)), body)));
  picked();
  return { element, picked };
}

// -- the session ------------------------------------------------------------------------------

export function rankedList(store, ranked) {
  return el("ol", { class: "ranked" }, ranked.map((row, k) => {
    const pattern = store.patterns[store.placeOf.get(row.text)];
    const figures = row.estimate === undefined ? null : `estimate ${row.estimate.toFixed(2)} \u00b1 ${row.radius.toFixed(2)}, n = ${Number(row.count.toFixed(1))}`;
    return el("li", {}, el("b", {}, `${k + 1}. ${signed(row.text)}`), pattern && smallArray(store, pattern, 190), figures && el("span", { class: "quiet" }, figures));
  }));
}

// How many configurations were left after every answer, as steps.
function narrowing(left) {
  const [width, height, edge] = [640, 220, 44];
  const most = Math.max(...left);
  const x = (k) => edge + (k / Math.max(1, left.length - 1)) * (width - edge - 12);
  const y = (value) => 12 + (1 - value / most) * (height - 48);
  const path = left.map((value, k) => (k ? `H${x(k).toFixed(1)}V${y(value).toFixed(1)}` : `M${x(0)} ${y(value)}`)).join("");
  const label = (text, at, down, anchor) => svg("text", { x: at, y: down, "text-anchor": anchor }, text);
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Configurations left after every answer: from ${left[0]} to ${left.at(-1)}` },
    svg("path", { class: "axis", d: `M${edge} 12V${y(0)}H${width - 12}`, fill: "none" }), svg("path", { class: "step", d: path }),
    label(String(most), edge - 6, y(most) + 4, "end"), label("0", edge - 6, y(0) + 4, "end"),
    label("answers", (width + edge) / 2, height - 4, "middle"), label(String(left.length - 1), width - 12, height - 18, "end"));
}

function session(store, told) {
  const answers = told.answers.map((a) => [a.number, a.time.replace("T", " ").slice(0, 19), signed(a.left), signed(a.right), a.void ? `${a.answer} (void)` : a.answer, a.rater, a.more]);
  return [
    el("h3", {}, "Ranked result: the set counts, not the first rank"), rankedList(store, told.ranked),
    el("h3", {}, "Configurations left after every answer"), narrowing(told.left),
    el("h3", {}, "Raters"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Raters" }, table(["rater", "answers", "left better", "right better", "same", "skipped"], told.raters)),
    ...told.figures.map((line) => el("p", {}, line)),
    ...(told.decisions.length ? [el("h3", {}, "Exclusions, adverse events, voids and undos"),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Decisions" }, table(["line", "time (UTC)", "entry", "what", "actor", "reason"], told.decisions.map((row) => row.map((cell, k) => (k === 3 ? signed(cell) : cell)))))] : []),
    el("h3", {}, `Every answer that was not taken back: ${answers.length}`),
    el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Answers" }, table(["", "time (UTC)", "left", "right", "answer", "rater", "more"], answers)),
  ];
}

// -- start ------------------------------------------------------------------------------------

// What can wait: after what was pressed is on the screen, once for several presses.
function later(act) {
  let waiting = null;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(act, 120);
  };
}

export async function startReport() {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const store = await openStore(page.data);
  const hook = { picked: () => {} };
  const best = page.session?.ranked[0]?.text;
  const picker = new Picker(store, { pattern: store.patterns[store.placeOf.get(best)], changed: () => hook.picked() });
  document.getElementById("picker").replaceChildren(picker.element);
  if (page.session) document.getElementById("session").append(...session(store, page.session));
  await picker.drawFields();
  await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
  document.body.dataset.drawn = patternText(store, picker.pattern);
  const heat = await heatMap(store, page.heat);
  document.getElementById("heat").replaceChildren(heat.element);
  const list = configurations(store, picker);
  hook.picked = later(list.picked);
  document.getElementById("configurations").replaceChildren(list.element);
  const draw = () => { heat.draw(); return picker.drawFields(); };
  heat.draw();
  for (const when of ["beforeprint", "afterprint"]) addEventListener(when, draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", heat.draw);
  document.body.dataset.ready = patternText(store, picker.pattern);
}
