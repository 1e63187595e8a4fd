// The knob: which one, and how far it is turned. All panes share it.

import { nearest } from "./laws.js";
import { element } from "./markup.js";
import { KNOBS, knobText, whole } from "./words.js";

export class Controls {
  /** Calls `onMove` with the place of a stop, and `onKnob` with the name of another knob. */
  constructor(root, { onMove, onKnob }) {
    this.root = root;
    this.onMove = onMove;
    this.stops = [];
    this.place = 0;
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
    // Beside the slider where the panes are out of sight; those who hear the page hear the panes.
    this.counts = element("p", { class: "counts", "aria-hidden": "true" });
    root.append(
      element("fieldset", { class: "knobs" }, element("legend", {}, "End lists by"), ...this.radios),
      element("div", { class: "turn" }, this.label, this.slider, this.box, this.reset, this.counts),
    );
  }

  /** Shows the stops of a knob; both panes have the same. */
  show(data, place) {
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
    this.set(place);
  }

  set(place) {
    this.place = place;
    const text = knobText(this.knob, this.stops[place].value);
    this.slider.value = place;
    this.slider.setAttribute("aria-valuetext", text);
    this.box.value = text;
    this.reset.disabled = this.stops[place].value === this.default.value;
  }

  /** Says how long the lists are, as in "6m ladder 24 · phone 940". */
  tell(panes) {
    const lengths = panes.map(({ query, stops }) => `${query} ${whole(stops[this.place].count)}`);
    this.counts.textContent = lengths.join(" · ");
  }

  moveTo(place) {
    this.set(Math.min(Math.max(place, 0), this.stops.length - 1));
    this.onMove(this.place);
  }

  typed() {
    const value = Number(this.box.value.trim().replace(",", "."));
    const known = this.box.value.trim() !== "" && Number.isFinite(value);
    this.moveTo(known ? nearest(this.stops, value) : this.place);
  }

  stepped(event) {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.moveTo(this.place + step);
  }

  toDefault() {
    this.moveTo(nearest(this.stops, this.default.value));
    this.slider.focus();
  }
}
