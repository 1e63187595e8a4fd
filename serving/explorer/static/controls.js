// The choice of a knob and its value, shared by all panes.

import { nearest } from "./laws.js";
import { element } from "./markup.js";
import { KNOBS, knobText, whole } from "./words.js";

export class Controls {
  /** Calls `onMove` with the index of a stop, and `onKnob` with the name of the chosen knob. */
  constructor(root, { onMove, onKnob }) {
    this.root = root;
    this.onMove = onMove;
    this.stops = [];
    this.index = 0;
    this.radios = Object.entries(KNOBS).map(([knob, { name }]) => {
      const change = () => onKnob(knob);
      const radio = element("input", { type: "radio", name: "knob", value: knob, onchange: change });
      return element("label", {}, radio, element("span", {}, name));
    });
    this.label = element("label", { for: "slider" });
    this.slider = element("input", {
      id: "slider",
      type: "range",
      min: 0,
      step: 1,
      oninput: () => this.moveTo(Number(this.slider.value)),
    });
    this.box = element("input", {
      id: "value",
      type: "text",
      inputmode: "decimal",
      autocomplete: "off",
      onchange: () => this.typed(),
      onkeydown: (event) => this.stepped(event),
    });
    this.reset = element("button", { type: "button", class: "plain", onclick: () => this.toDefault() });
    // Shown on narrow screens, where the panes scroll out of sight; hidden from screen readers.
    this.counts = element("p", { class: "counts", "aria-hidden": "true" });
    root.append(
      element("fieldset", { class: "knobs" }, element("legend", {}, "End lists by"), ...this.radios),
      element("div", { class: "turn" }, this.label, this.slider, this.box, this.reset, this.counts),
    );
  }

  /** Shows the stops of a knob, which all panes share. */
  show(data, index) {
    this.knob = data.knob;
    this.default = data.default;
    this.stops = data.stops;
    for (const label of this.radios) {
      const radio = label.querySelector("input");
      radio.checked = radio.value === data.knob;
    }
    const { label } = KNOBS[data.knob];
    this.label.textContent = label;
    this.box.setAttribute("aria-label", label);
    this.slider.max = this.stops.length - 1;
    this.reset.hidden = data.default.knob !== data.knob;
    this.reset.textContent = `Default ${knobText(data.default.knob, data.default.value)}`;
    this.root.hidden = false;
    this.set(index);
  }

  set(index) {
    this.index = index;
    const text = knobText(this.knob, this.stops[index].value);
    this.slider.value = index;
    this.slider.setAttribute("aria-valuetext", text);
    this.box.value = text;
    this.reset.disabled = this.stops[index].value === this.default.value;
  }

  /** Shows the lengths of the lists, as in "6m ladder 24 · phone 940". */
  showCounts(panes) {
    const lengths = panes.map(({ query, stops }) => `${query} ${whole(stops[this.index].count)}`);
    this.counts.textContent = lengths.join(" · ");
  }

  moveTo(index) {
    this.set(Math.min(Math.max(index, 0), this.stops.length - 1));
    this.onMove(this.index);
  }

  typed() {
    const value = Number(this.box.value.trim().replace(",", "."));
    const known = this.box.value.trim() !== "" && Number.isFinite(value);
    this.moveTo(known ? nearest(this.stops, value) : this.index);
  }

  stepped(event) {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.moveTo(this.index + step);
  }

  toDefault() {
    this.moveTo(nearest(this.stops, this.default.value));
    this.slider.focus();
  }
}
