// One query: the length of its list, why the list ends, a chart and the items.

import { describe, drawChart } from "./chart.js";
import { fillList } from "./list.js";
import { element, shape, show } from "./markup.js";
import { items, expectation, reason, rule } from "./words.js";

const NARROWEST = 280;

export class Pane {
  constructor(root) {
    this.data = null;
    this.opened = 0;
    this.heading = element("h2");
    this.kind = element("p", { class: "kind" });
    this.count = element("p", { class: "count", role: "status" });
    this.expectation = element("p", { class: "expectation" });
    this.reason = element("p", { class: "reason" });
    this.rule = element("p", { class: "rule" });
    this.svg = shape("svg", { class: "chart", role: "img" });
    this.list = element("ol", { class: "items", "aria-label": "Items" });
    this.node = element(
      "article",
      { class: "pane" },
      element(
        "div",
        { class: "summary" },
        element("div", { class: "head" }, this.heading, this.kind),
        element("div", { class: "outcome" }, this.count, this.expectation),
        element("div", { class: "why" }, this.reason, this.rule),
        element("div", { class: "figure" }, this.svg),
      ),
      this.list,
    );
    root.append(this.node);
  }

  remove() {
    this.node.remove();
  }

  /** Takes the data of a query; `update` draws them. */
  load(data) {
    if (this.data?.query !== data.query) this.opened = 0;
    this.data = data;
    this.node.classList.toggle("brief", ["score", "top_k"].includes(data.policy));
    this.heading.textContent = data.query;
    this.kind.textContent = `${data.stratum} query, temperature ${data.tau.toPrecision(2)}`;
  }

  busy(isBusy) {
    this.node.setAttribute("aria-busy", String(isBusy));
  }

  update(index, view) {
    const stop = this.data.stops[index];
    Object.assign(this, { index, view });
    this.count.textContent = items(stop.count);
    show(this.expectation, expectation(stop));
    show(this.reason, reason(this.data, stop));
    show(this.rule, rule(this.data, stop));
    this.draw();
    this.fill();
  }

  draw() {
    const stop = this.data.stops[this.index];
    const width = Math.max(Math.round(this.svg.parentElement.clientWidth), NARROWEST);
    drawChart(this.svg, this.data, stop, this.view, width);
    this.svg.setAttribute("aria-label", describe(this.data, stop));
  }

  fill() {
    fillList(this.list, this.data, this.data.stops[this.index], this.opened, (more) => {
      this.opened += more;
      this.fill();
      this.list.querySelector(".gap button")?.focus();
    });
  }
}
