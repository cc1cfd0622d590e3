// The picker: press contacts of the array, and see currents, fields and neighbours at once.

import { currents, delivered, driveFactor, fieldOf, impedance, nearest, NO_STIMULATOR, openAhead, openSection, parsePattern, patternText, quantity, signed } from "./core.js";
import { arrayFrame, drawArray, el, pressAreas, STATES, table, words } from "./dom.js";
import { colourScale, drawColourBar, KINDS, SectionView } from "./section.js";

const NEXT = { 0: -1, "-1": 1, 1: 0 };
const KEYS = { "-": -1, "\u2212": -1, "+": 1, "=": 1, 0: 0, Delete: 0, Backspace: 0 };
const TARGET = 44; // px, the least size of what is pressed
const AXIAL = { scale: 21, most: 480 }; // px per mm, and px in all

let made = 0;

// A scale in px per mm at which the press areas of the array are large enough, within reason.
function arrayScale(store) {
  const least = Math.min(...pressAreas(store, arrayFrame(store, 1)).filter(Boolean).flatMap((a) => [a[2], a[3]]));
  return Math.max(8, Math.min(13, (1.005 * TARGET) / least));
}

export class Picker {
  constructor(store, { pattern = null, changed = () => {} } = {}) {
    this.store = store;
    this.changed = changed;
    this.id = `picker-${++made}`;
    this.kind = "potential";
    this.turn = 0;
    this.unit = store.stimulation?.unit ?? (store.drive.mode === "voltage" ? "V" : "mA");
    this.amplitude = store.stimulation?.planned ?? 1;
    this.planes = { axial: [], sagittal: [] };
    store.sections.forEach((section) => this.planes[section.plane].push(section));
    this.at = { axial: 0, sagittal: 0 };
    const sagittal = this.planes.sagittal[0];
    this.frame = arrayFrame(store, arrayScale(store), sagittal?.up);
    this.element = el("div", { class: "picker" }, this.arrayPart(), sagittal && this.fieldParts(), this.sidePart());
    this.set(pattern ?? store.patterns[Math.floor(store.patterns.length / 2)] ?? new Int8Array(store.contacts));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawFields());
  }

  // -- parts ----------------------------------------------------------------------------------

  arrayPart() {
    const areas = pressAreas(this.store, this.frame);
    this.drawing = el("div", {});
    this.buttons = areas.map((area, e) => area && el("button", {
      type: "button",
      class: "press",
      style: { left: `${area[0]}px`, top: `${area[1]}px`, width: `${area[2]}px`, height: `${area[3]}px` },
      onclick: () => this.change(e, NEXT[this.pattern[e]]),
      onkeydown: (event) => this.key(event, e),
    }));
    const box = { width: `${this.frame.width}px`, height: `${this.frame.height}px` };
    this.caseButton = this.store.case && el("button", {
      type: "button", class: "case", onclick: () => {
        const e = this.store.names.indexOf(this.store.case);
        this.change(e, NEXT[this.pattern[e]]);
      },
    });
    return el("div", { class: "part array-part" },
      el("div", { class: "sides", "aria-hidden": "true" }, el("span", {}, "L"), el("span", {}, "rostral \u2191"), el("span", {}, "R")),
      el("div", { class: "array-box", style: box, role: "group", "aria-label": "Contacts of the array" }, this.drawing, this.buttons),
      this.caseButton);
  }

  fieldParts() {
    const view = (plane, scale) => {
      const canvas = el("canvas", { class: "section", role: "img" });
      canvas.addEventListener("pointermove", (event) => this.probe(event, plane));
      canvas.addEventListener("pointerleave", () => (this.probed.textContent = this.hint));
      this.views = { ...this.views, [plane]: new SectionView(canvas, scale) };
      const slider = el("input", {
        type: "range", min: 0, max: this.planes[plane].length - 1, step: 1, id: `${this.id}-${plane}`,
        oninput: (event) => { this.at[plane] = Number(event.target.value); this.drawFields(); },
      });
      const label = el("label", { for: `${this.id}-${plane}` });
      this.sliders = { ...this.sliders, [plane]: { slider, label } };
      return el("div", { class: `part ${plane}-part` }, el("div", { class: "place" }, label, slider), canvas);
    };
    const choices = Object.entries(KINDS).map(([kind, { name }]) => el("label", { class: "choice" },
      el("input", {
        type: "radio", name: `${this.id}-kind`, value: kind, checked: kind === this.kind,
        onchange: () => { this.kind = kind; this.drawFields(); },
      }), name));
    this.bar = el("canvas", { class: "bar", "aria-hidden": "true" });
    this.ends = [0, 1, 2].map(() => el("span", {}));
    this.hint = `0 V is the ${this.store.zero}. Point at a section to read a value.`;
    this.probed = el("p", { class: "quiet probe" }, this.hint);
    const [from, to] = this.planes.axial[0].across;
    const scale = Math.min(AXIAL.scale, AXIAL.most / (to - from));
    const axial = view("axial", scale);
    axial.style.width = `${(to - from) * scale}px`;
    axial.append(
      el("fieldset", { class: "choices" }, el("legend", { class: "hidden" }, "What the sections show"), choices),
      el("div", { class: "scale" }, this.bar, el("div", { class: "ends" }, this.ends)), this.probed);
    return [view("sagittal", this.frame.scale), axial];
  }

  sidePart() {
    this.input = el("input", {
      id: `${this.id}-text`, class: "text", autocomplete: "off", spellcheck: "false",
      onchange: () => this.typed(),
    });
    this.problem = el("p", { class: "problem", role: "alert" });
    this.figures = el("div", { class: "figures" });
    this.list = el("div", { class: "nearest" });
    this.status = el("p", { class: "hidden", role: "status" });
    const amplitude = el("input", {
      id: `${this.id}-amplitude`, type: "number", min: 0, step: "any", value: this.amplitude, class: "amplitude",
      oninput: (event) => {
        const value = Number(event.target.value);
        if (!(value > 0)) return;
        this.amplitude = value;
        this.show();
      },
    });
    return el("div", { class: "part side-part" },
      el("div", { class: "fields" },
        el("div", {}, el("label", { for: `${this.id}-text` }, "Configuration"), this.input),
        el("div", {}, el("label", { for: `${this.id}-amplitude` }, `Amplitude, ${this.unit}`), amplitude)),
      this.problem, this.figures, this.list,
      el("p", { class: "quiet" }, "Research software, not a medical device."), this.status);
  }

  // -- what people do -------------------------------------------------------------------------

  key(event, e) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in KEYS) this.change(e, KEYS[event.key]);
    else if (event.key.startsWith("Arrow")) this.move(event.key, e);
    else return;
    event.preventDefault();
  }

  move(key, e) {
    const place = (button) => [button.offsetLeft + button.offsetWidth / 2, button.offsetTop + button.offsetHeight / 2];
    const [x, y] = place(this.buttons[e]);
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
    const cost = (button) => {
      const [u, v] = place(button);
      const along = (u - x) * dx + (v - y) * dy;
      return along > 1 ? along + 3 * Math.abs((u - x) * dy + (v - y) * dx) : Infinity;
    };
    const best = this.buttons.filter((b) => b && cost(b) < Infinity).sort((a, b) => cost(a) - cost(b))[0];
    best?.focus();
  }

  typed() {
    try {
      this.set(parsePattern(this.store, this.input.value));
      this.changed(patternText(this.store, this.pattern));
    } catch (error) {
      this.problem.textContent = error.message;
    }
  }

  change(contact, sign) {
    const pattern = Int8Array.from(this.pattern);
    pattern[contact] = sign;
    this.set(pattern);
    this.changed(patternText(this.store, pattern));
  }

  probe(event, plane) {
    const view = this.views[plane];
    const box = view.canvas.getBoundingClientRect();
    const share = view.size[0] / box.width;
    const value = view.values && view.valueAt((event.clientX - box.left) * share, (event.clientY - box.top) * share);
    this.probed.textContent = value === null ? this.hint : `${KINDS[this.kind].name} here: ${quantity(value, KINDS[this.kind].unit)}`;
  }

  // -- what is shown --------------------------------------------------------------------------

  set(pattern) {
    this.pattern = Int8Array.from(pattern);
    this.current = currents(this.store, this.pattern);
    this.problem.textContent = "";
    this.input.value = patternText(this.store, this.pattern);
    if (this.current) this.follow();
    this.show();
  }

  // The sections go where the current is strongest; of equal ones, to the cathode.
  follow() {
    let best = -1;
    this.store.corners.forEach((corners, e) => {
      const size = Math.abs(this.current[e]) * (this.pattern[e] < 0 ? 1.001 : 1);
      if (corners && (best < 0 || size > this.strength)) [best, this.strength] = [e, size];
    });
    const [x, z] = [0, 1].map((axis) => this.store.corners[best].reduce((sum, c) => sum + c[axis] / 4, 0));
    for (const [plane, where] of [["axial", z], ["sagittal", x]]) {
      const gaps = this.planes[plane].map((section) => Math.abs(section.at - where));
      this.at[plane] = Math.max(0, gaps.indexOf(Math.min(...gaps)));
    }
  }

  show() {
    const { store, pattern } = this;
    this.drawing.replaceChildren(drawArray(store, pattern, this.frame));
    this.buttons.forEach((button, e) => {
      if (!button) return;
      button.setAttribute("aria-pressed", String(pattern[e] !== 0));
      button.setAttribute("aria-label", `contact ${store.names[e]}: ${STATES[pattern[e]]}`);
    });
    if (this.caseButton) {
      const sign = pattern[store.names.indexOf(store.case)];
      this.caseButton.textContent = `${store.case}: ${STATES[sign]}`;
      this.caseButton.setAttribute("aria-pressed", String(sign !== 0));
    }
    this.showFigures();
    this.drawFields();
  }

  showFigures() {
    const { store, pattern, current, amplitude } = this;
    if (!current) {
      this.figures.replaceChildren(el("p", { class: "quiet" }, "A cathode and an anode at least: press a contact once for a cathode, twice for an anode."));
      this.list.replaceChildren();
      this.status.textContent = words(store, pattern);
      return;
    }
    const rows = [];
    const factor = driveFactor(store, current, amplitude);
    pattern.forEach((sign, e) => sign && rows.push([this.sign(e), STATES[sign], quantity(factor * current[e], "A")]));
    const ohm = quantity(impedance(store, current), "\u03a9");
    const row = store.placeOf.get(patternText(store, pattern));
    const partial = store.rows.length < store.count;
    this.figures.replaceChildren(
      el("p", { class: "fact" }, el("span", {}, "Impedance, modelled"), el("b", {}, ohm)),
      el("p", { class: "fact" }, el("span", {}, "In the store"), el("b", {}, row !== undefined ? `row ${store.rows[row]}` : partial ? "not on this page" : "no")),
      table(["contact", "", "current, modelled"], rows), ...this.deliveredParts());
    const near = nearest(store, pattern, current, 8);
    this.list.replaceChildren(el("h3", {}, partial ? `Nearest of the ${store.rows.length} on this page, of ${store.count} in the store` : "Nearest in the store"), ...near.map(({ place, r }) => el("button", {
      type: "button", class: "near", onclick: () => { this.set(store.patterns[place]); this.changed(store.texts[place]); },
    }, el("span", { class: "bar-of-r", style: { width: `${Math.max(0, 100 * r)}%` } }),
    el("span", { class: "name" }, signed(store.texts[place])), el("span", { class: "r" }, signed(r.toFixed(3))))));
    if (!near.length) this.list.append(el("p", { class: "quiet" }, "r of this store is not linear in the currents: it is known for stored configurations only."));
    this.status.textContent = `${words(store, pattern)}. ${ohm}. ${near.length ? `Nearest ${store.texts[near[0].place]}, r ${near[0].r.toFixed(3)}.` : ""}`;
  }

  sign(e) {
    return this.store.names[e] + (this.pattern[e] > 0 ? "+" : "\u2212");
  }

  // What is delivered by measured impedance or current, and only then.
  deliveredParts() {
    const { store } = this;
    if (!store.stimulation) return [el("p", { class: "quiet" }, NO_STIMULATOR)];
    const found = delivered(store, this.pattern, this.current, { amplitude: this.amplitude });
    if (found.reason) return [el("p", { class: "problem" }, `Charge is not known: ${found.reason}.`)];
    const short = (x) => signed(String(Number(x.toPrecision(3))));
    const above = this.amplitude > found.ceiling;
    return [
      el("h3", {}, `Delivered at ${this.amplitude} ${this.unit}, ${store.stimulation.pulse_width_us} \u00b5s, by ${store.stimulation.control === "current" ? "the current set" : "measured impedance"}`),
      store.stimulation.control === "voltage" && el("p", { class: "fact" }, el("span", {}, "Impedance, measured"), el("b", {}, quantity(found.impedance, "\u03a9"))),
      el("p", { class: "fact" }, el("span", {}, "Amplitude ceiling"), el("b", {}, `${short(found.ceiling)} ${this.unit}`)),
      above && el("p", { class: "problem", role: "alert" }, `${this.amplitude} ${this.unit} is above the ceiling.`),
      table(["contact", "mA", "\u00b5C", "\u00b5C/cm\u00b2", "k"], found.contacts.map(({ contact, mA, charge, density, k }) => [this.sign(contact), ...[mA, charge, density].map(short), signed(k.toFixed(2))])),
      el("p", { class: "quiet" }, store.stimulation.split === "worst" ? "Each contact may carry the whole current of its polarity." : "Contacts share the current as modelled.",
        " Per phase; research figures, no standard is claimed."),
    ].filter(Boolean);
  }

  async drawFields() {
    if (!this.views?.axial.canvas.isConnected) return;
    const turn = ++this.turn;
    const planes = Object.keys(this.views);
    const sections = await Promise.all(planes.map((plane) => openSection(this.planes[plane][this.at[plane]], this.kind)));
    if (turn !== this.turn) return;
    const factor = this.current && driveFactor(this.store, this.current, this.amplitude);
    const current = this.current?.map((x) => x * factor) ?? new Float64Array(this.store.contacts);
    const pictures = sections.map((section) => ({ section, values: fieldOf(section, this.kind, current) }));
    const colours = colourScale(this.kind, pictures);
    planes.forEach((plane, k) => {
      const { section, values } = pictures[k];
      this.views[plane].draw(section, values, colours, this.pattern, this.store);
      const { slider, label } = this.sliders[plane];
      slider.value = this.at[plane];
      const side = plane === "axial" ? "rostral" : "left";
      label.textContent = `${plane === "axial" ? "Axial" : "Sagittal"}, ${side} ${signed(String(Math.round(section.at * 10) / 10 || 0))} mm`;
      this.views[plane].canvas.setAttribute("aria-label", `${KINDS[this.kind].name} of ${words(this.store, this.pattern)} in the ${label.textContent} section`);
    });
    drawColourBar(this.bar, colours).forEach((text, k) => (this.ends[k].textContent = text));
    this.ahead ??= openAhead(this.store.sections);
  }
}
