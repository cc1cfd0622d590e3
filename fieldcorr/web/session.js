// The session page: two candidates, an answer, and nothing that the journal does not know.

import { correlation, currents, delivered, deliveredText, fieldOf, impedance, NO_STIMULATOR, openAhead, openSection, openStore, parsePattern, quantity, signed } from "./core.js";
import { arrayFrame, drawArray, el, STATES, words } from "./dom.js";
import { rankedList } from "./report.js";
import { colourScale, SectionView } from "./section.js";

const SIDES = ["Left", "Right"];
const KEYS = { ArrowLeft: "left", 1: "left", l: "left", ArrowRight: "right", 2: "right", r: "right", s: "same", k: "skip", u: "undo" };
const PARAMETERS = { pulse_width_us: "Pulse width, \u00b5s", rate_Hz: "Rate, Hz" };
const NUMBERS = ["amplitude", ...Object.keys(PARAMETERS)];
const EVERY = 1500; // ms between looks at the server
const SCALE = { least: 6.5, most: 9, axial: 1.55 }; // px per mm; the axial section is so many times as large
const AROUND = 345; // px of the window's height that are not pictures
const NARROW = 700; // px: here the style sheet makes pictures smaller

const page = { store: null, state: null, busy: false, ready: 0 };
const part = { doses: [] };

async function ask(path, options) {
  const response = await fetch(path, { ...options, redirect: "error" });
  if (response.status === 204) return null;
  const text = await response.text();
  if (!response.headers.get("content-type")?.startsWith("application/json")) throw new Error(text.trim());
  return JSON.parse(text);
}

// -- saying something -------------------------------------------------------------------------

// Say something and show what follows from it; returns whether it was recorded.
async function say(verb, list = [], meta = {}) {
  if (page.busy) return false;
  page.busy = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    const body = JSON.stringify({ lines: page.state.lines, verb, words: list, meta });
    const state = await ask("/say", { method: "POST", body, headers: { "content-type": "application/json" } });
    page.lost = false;
    show(state);
    tell(state.problem ?? state.told, Boolean(state.problem));
    return !state.problem;
  } catch (error) {
    // Whether it was recorded is not known here: the next look at the journal tells.
    page.state.lines = -1;
    tell(`No answer from fieldcorr: ${error.message}. What is in the journal is shown when it is back.`, true);
    return false;
  } finally {
    page.busy = false;
    document.body.removeAttribute("aria-busy");
  }
}

function typed(name) {
  const value = part[name].value.trim();
  return value && Number.isFinite(Number(value)) ? Number(value) : null;
}

function said(...names) {
  return Object.fromEntries(names.map((name) => [name, part[name].value.trim()]).filter(([, text]) => text));
}

function parameters() {
  const meta = said("rater", "note");
  for (const name of NUMBERS) {
    if (part[name].value.trim()) meta[name === "amplitude" ? `amplitude_${page.unit}` : name] = typed(name);
  }
  return meta;
}

// A text that was recorded has left its field; one that was not stays there.
async function sayOnce(name, ...words) {
  const before = part[name].value;
  if ((await say(...words)) && part[name].value === before) part[name].value = "";
}

// What takes something back says who and why.
function takeBack(verb, list = []) {
  return sayOnce("reason", verb, list, said("actor", "reason"));
}

function answer(verb) {
  if (verb === "undo") return takeBack("undo");
  if (!page.state.pair.length) return undefined;
  const wrong = NUMBERS.find((name) => part[name].value.trim() && typed(name) === null);
  if (wrong) return tell(`"${part[wrong].value}" is no number. Nothing was recorded.`, true);
  return sayOnce("note", verb, [], parameters());
}

function chosen(what, contact) {
  return what in { left: 1, right: 1, both: 1 } ? [what] : ["contact", contact + what];
}

function adverse() {
  const text = part.adverse.value.trim();
  if (!text) return tell("What was the adverse event? Nothing was recorded.", true);
  return sayOnce("adverse", "adverse", [...chosen(part.what.value, part.contact.value), ...text.split(/\s+/)], said("actor"));
}

function measure() {
  if (typed("ohm") === null) return tell("How many ohm? Nothing was recorded.", true);
  return sayOnce("ohm", "impedance", [part.of.value, part.ohm.value.trim()], said("actor"));
}

function tell(text, wrong = false) {
  part.told.textContent = text ?? "";
  part.told.className = wrong ? "told wrong" : "told";
}

// -- parts ------------------------------------------------------------------------------------

function field(name, label, attributes) {
  part[name] = el("input", { id: name, autocomplete: "off", ...attributes });
  return el("div", {}, el("label", { for: name }, label), part[name]);
}

function choice(name, label, options) {
  part[name] = el("select", { id: name }, options.map(([value, text]) => el("option", { value }, text)));
  return el("div", {}, el("label", { for: name }, label), part[name]);
}

function button(text, key, act, kind = "") {
  return el("button", { type: "button", class: kind, onclick: act, "aria-keyshortcuts": key || null }, text);
}

function build() {
  part.told = el("p", { class: "told", role: "status" });
  part.where = el("p", { class: "where" });
  part.bar = el("progress", { max: 1, value: 0, "aria-label": "Comparisons done of those planned" });
  part.warning = el("p", { class: "notice" });
  part.question = el("div", { class: "question" });
  part.change = el("div", { class: "change" });
  part.clock = el("span", { class: "clock" });
  part.answers = el("div", { class: "answers", role: "group", "aria-label": "Which one was better?" },
    button("Left better", "ArrowLeft", () => answer("left"), "main"), button("Same", "S", () => answer("same"), "main"),
    button("Right better", "ArrowRight", () => answer("right"), "main"),
    button("Skip", "K", () => answer("skip")), button("Undo", "U", () => answer("undo")));
  part.history = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Last answers" });
  part.belief = el("details", { class: "card" }, el("summary", {}, "What the engine believes"), (part.ranked = el("div", {})));
  part.end = el("section", { class: "card", hidden: true });
  const names = page.store.names.map((name) => [name, name]);
  const whats = [["left", "the left configuration"], ["right", "the right configuration"], ["both", "both"],
    ["-", "a contact as cathode"], ["+", "a contact as anode"], ["", "a contact at all"]];
  return [
    el("header", { class: "top" }, el("div", {}, el("h1", {}, "Session"), part.where), part.bar),
    el("p", { class: "quiet" }, "Research software, not a medical device: check every configuration before it is delivered."),
    part.warning, part.end,
    el("section", { class: "card asking", "aria-label": "The two candidates" }, part.question, part.change),
    (part.dock = el("div", { class: "dock" }, part.told, part.answers)),
    el("div", { class: "two" },
      el("section", { class: "card" }, el("h2", {}, "With the next answer"),
        el("div", { class: "grid" }, field("amplitude", `Amplitude, ${page.unit}`, { inputmode: "decimal", oninput: showDoses }),
          Object.entries(PARAMETERS).map(([name, label]) => field(name, label, { inputmode: "decimal", oninput: showDoses })),
          field("rater", "Rater", {}), field("washout", "Wash-out, s", { inputmode: "numeric", value: localStorage.getItem("washout") ?? "0", onchange: (e) => localStorage.setItem("washout", e.target.value) })),
        field("note", "Note", { maxlength: 500 }),
        el("div", { class: "row" }, button("Keep the note now", "", () => part.note.value.trim() && sayOnce("note", "note", [part.note.value])), part.clock)),
      el("section", { class: "card" }, el("h2", {}, "Never propose"),
        el("div", { class: "grid" }, choice("what", "What", whats), choice("contact", "Contact", names)),
        el("p", { class: "quiet" }, "A safety exclusion, no loss: it can be taken back at any time."),
        el("div", { class: "row" }, ...["exclude", "include"].map((verb) => button(verb === "exclude" ? "Exclude" : "Include again", "", () => say(verb, chosen(part.what.value, part.contact.value))))),
        el("div", { class: "apart" }, field("adverse", "Adverse event", { maxlength: 500 })),
        el("div", { class: "row" }, button("Keep the event and exclude at once", "", adverse)))),
    el("div", { class: "two" },
      el("section", { class: "card" }, el("h2", {}, "Last answers"),
        el("div", { class: "grid" }, field("actor", "Led by", {}), field("reason", "Reason for undo or void", { maxlength: 500 })), part.history),
      el("section", { class: "card" }, el("h2", {}, "Measured impedance"),
        el("div", { class: "grid" }, choice("of", "Of", [["left", "the left configuration"], ["right", "the right configuration"], ...page.store.names.map((name) => [name, `contact ${name}`])]), field("ohm", "Ohm", { inputmode: "decimal" })),
        el("p", { class: "quiet" }, page.store.stimulation ? "Charges and ceilings follow from it at once. A contact is measured against the case." : NO_STIMULATOR),
        el("div", { class: "row" }, button("Keep", "", measure)))),
    part.belief,
  ];
}

// -- showing ----------------------------------------------------------------------------------

function show(state) {
  const before = page.state;
  const pairChanged = state.pair && String(before?.pair) !== String(state.pair);
  const numberChanged = state.number !== before?.number;
  if (!state.pair) return; // only a problem
  page.state = state;
  const { progress } = state;
  part.where.textContent = (state.done ? "" : `Comparison ${state.number}: `) + `${progress.duels} of ${progress.horizon} done, ${progress.duels ? `${progress.left} of ` : ""}${progress.allowed} configurations${progress.duels ? " left" : ""}` +
    (progress.excluded ? `, ${progress.excluded} excluded` : "");
  part.bar.value = progress.duels / progress.horizon;
  part.warning.textContent = [state.warning, state.torn ? "An unfinished line of the journal does not count; its pair is asked again." : ""].filter(Boolean).join(". ");
  part.warning.hidden = !part.warning.textContent;
  if (!before) Object.assign(part.rater, { value: state.rater });
  if (!before) Object.assign(part.actor, { value: state.actor });
  if (page.store.stimulation) page.store.stimulation.impedance_ohm = state.impedance_ohm;
  if (pairChanged) showPair();
  else showDoses();
  if (pairChanged || numberChanged) page.ready = performance.now() + 1000 * (Number(part.washout.value) || 0);
  part.answers.querySelectorAll("button").forEach((b, k) => (b.disabled = k < 4 && !state.pair.length));
  part.dock.classList.toggle("over", state.done);
  showHistory();
  part.belief.hidden = !state.ranked || state.done;
  if (state.ranked) {
    const sure = Object.entries(state.belief).map(([name, value]) => el("p", {}, `${name}: ${value}`));
    sure.push(...state.figures.map((line) => el("p", {}, `rater: ${line}`)));
    part.ranked.replaceChildren(...sure, el("p", { class: "quiet" }, "The set counts, not the first rank."), rankedList(page.store, state.ranked));
  }
  showEnd();
  document.body.dataset.ready = String(state.lines);
}

function showHistory() {
  const rows = page.state.history.map((past) => el("tr", {},
    el("td", {}, String(past.number)), el("td", {}, past.pair.map(signed).join(" | ")),
    el("td", {}, past.void ? `${past.answer} (void)` : past.answer),
    el("td", {}, past.void || past.answer === "skip" ? "" : el("button", { type: "button", "aria-label": `Answer ${past.number} does not count`, onclick: () => takeBack("void", [String(past.number)]) }, "void"))));
  part.history.replaceChildren(rows.length ? el("table", {}, el("tbody", {}, rows)) : el("p", { class: "quiet" }, "No answer yet."));
}

function showEnd() {
  part.end.hidden = !page.state.done;
  if (!page.state.done) return;
  part.end.replaceChildren(el("h2", {}, "The session has ended"),
    el("p", {}, el("a", { href: "/report", target: "_blank", rel: "noopener" }, "Open the report"), " and save it from the browser; the journal has everything."),
    rankedList(page.store, page.state.ranked ?? []));
}

// What differs between the two, in words.
function changes(store, left, right) {
  const parts = [];
  left.forEach((sign, e) => sign !== right[e] && parts.push(el("li", {}, el("b", {}, `Contact ${store.names[e]}`), ` ${STATES[sign]} \u2192 ${STATES[right[e]]}`)));
  return parts;
}

// Pixels per mm at which the pictures of a candidate stand side by side, above the answers.
function fitting(store) {
  if (innerWidth <= NARROW) return SCALE.most;
  const { width, height } = arrayFrame(store, 1, store.sections.at(-1)?.up);
  const span = (plane) => store.sections.filter((s) => s.plane === plane).slice(0, 1).reduce((_, s) => s.across[1] - s.across[0], 0);
  const room = part.question.clientWidth / 2 - 60; // less the gaps
  const scale = Math.min(room / (width + span("sagittal") + SCALE.axial * span("axial")), (innerHeight - AROUND) / height);
  return Math.max(SCALE.least, Math.min(SCALE.most, scale));
}

async function showPair() {
  const { store, state } = page;
  if (!state.pair.length) {
    part.question.replaceChildren(el("p", {}, "Nothing left to ask. Undo goes back."));
    part.change.replaceChildren();
    return;
  }
  const patterns = state.pair.map((text) => parsePattern(store, text));
  const flows = patterns.map((pattern) => currents(store, pattern));
  const r = correlation(store, ...flows);
  const scale = fitting(store);
  const frame = arrayFrame(store, scale, store.sections.at(-1)?.up);
  page.pair = { patterns, flows };
  const canvases = patterns.map(() => ["sagittal", "axial"].map((plane) => el("canvas", { class: `section ${plane}`, role: "img" })));
  part.question.replaceChildren(...patterns.map((pattern, k) => el("article", { class: "candidate", "aria-label": SIDES[k] },
    el("h2", {}, el("span", { class: "side" }, SIDES[k]), el("span", { class: "name" }, signed(state.pair[k]))),
    el("p", { class: "quiet" }, `Modelled impedance ${quantity(impedance(store, flows[k]), "\u03a9")}`),
    (part.doses[k] = el("p", { class: "dose" })),
    el("div", { class: "pictures" }, drawArray(store, pattern, frame, patterns[1 - k]), store.sections.length ? canvases[k] : null))));
  part.change.replaceChildren(el("h3", {}, "From left to right"), el("ul", {}, changes(store, ...patterns)),
    el("p", { class: "quiet" }, r === null ? "" : `r of the two: ${signed(r.toFixed(3))}. Potential for 1 ${store.drive.mode === "voltage" ? "V" : "A"}, one colour scale for all four sections.`));
  showDoses();
  if (store.sections.length) await drawPair(patterns, flows, canvases, { sagittal: scale, axial: SCALE.axial * scale });
}

// What both candidates may have, and have at what is typed; a warning above a ceiling.
function showDoses() {
  const { store, state, pair } = page;
  if (!store.stimulation || !state?.pair.length || !pair) return;
  const setting = { amplitude: typed("amplitude"), pulseWidth: typed("pulse_width_us") };
  pair.patterns.forEach((pattern, k) => {
    const found = delivered(store, pattern, pair.flows[k], setting);
    const above = found.amplitude > found.ceiling;
    part.doses[k].textContent = deliveredText(store, found) + (above ? " ABOVE THE CEILING." : "");
    part.doses[k].className = above || Number.isNaN(found.ceiling) ? "dose problem" : "dose";
  });
}

// Both candidates in the sections where the first one's current is strongest, in common colours.
async function drawPair(patterns, flows, canvases, scales) {
  const { store } = page;
  const strongest = flows.map((flow) => flow.reduce((best, x, e) => (store.corners[e] && Math.abs(x) > Math.abs(flow[best]) ? e : best), 0));
  const pick = (plane, axis, k) => {
    const where = store.corners[strongest[k]].reduce((sum, c) => sum + c[axis] / 4, 0);
    return store.sections.filter((s) => s.plane === plane).sort((a, b) => Math.abs(a.at - where) - Math.abs(b.at - where))[0];
  };
  const pictures = [];
  for (const k of [0, 1]) {
    for (const [n, plane, axis] of [[0, "sagittal", 0], [1, "axial", 1]]) {
      const section = await openSection(pick(plane, axis, k));
      pictures.push({ section, values: fieldOf(section, "potential", flows[k]), canvas: canvases[k][n], pattern: patterns[k], scale: scales[plane], side: SIDES[k] });
    }
  }
  page.ahead ??= openAhead(store.sections);
  const colours = colourScale("potential", pictures);
  for (const { section, values, canvas, pattern, scale, side } of pictures) {
    if (!canvas.isConnected) return;
    new SectionView(canvas, scale).draw(section, values, colours, pattern, store);
    canvas.setAttribute("aria-label", `${side}: potential of ${words(store, pattern)}, ${section.plane} section at ${section.at.toFixed(1)} mm`);
  }
}

// -- life -------------------------------------------------------------------------------------

async function look() {
  if (page.busy) return;
  try {
    const state = await ask(`/state?lines=${page.state.lines}`);
    if (page.lost) tell("Connected again.");
    page.lost = false;
    if (state && !page.busy && state.lines !== page.state.lines) {
      if (page.state.lines >= 0) tell("The session went on in another window.");
      show(state);
    }
  } catch (error) {
    page.lost = true;
    tell(`No connection to fieldcorr: ${error.message}. Nothing that was acknowledged is lost.`, true);
  }
}

function tick() {
  const left = Math.ceil((page.ready - performance.now()) / 1000);
  part.clock.textContent = left > 0 ? `Wash-out: ${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}` : "";
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input, select, summary")) return;
  const verb = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!verb) return;
  event.preventDefault();
  answer(verb);
}

async function start() {
  const root = document.getElementById("session");
  try {
    const [data, state] = await Promise.all([ask("/data"), ask("/state")]);
    page.store = await openStore(data);
    page.unit = page.store.stimulation?.unit ?? "mA";
    root.replaceChildren(...build());
    show(state);
    document.title = `Session ${state.journal}`;
  } catch (error) {
    root.replaceChildren(el("p", { class: "notice" }, `The page cannot begin: ${error.message}`));
    throw error;
  }
  addEventListener("keydown", key);
  for (const state of ["prefers-color-scheme: dark", "orientation: portrait"]) matchMedia(`(${state})`).addEventListener("change", showPair);
  setInterval(look, EVERY);
  setInterval(tick, 250);
}

start();
