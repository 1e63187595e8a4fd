// The law of a query, its items and the background over one axis of cosines, with the end of the list.

import { best, density, endCosine, listedIndices, relevance } from "./laws.js";
import { BELOW } from "./list.js";
import { shape } from "./markup.js";
import { cosineText, superscript, whole } from "./words.js";

const LEFT = 44;
const RIGHT = 12;
const LAW = { top: 44, bottom: 190 };
const RUG = { top: 196, bottom: 210 };
const BACKGROUND = { top: 242, bottom: 318 };
const HEIGHT = 366;
// Range of the axis of relevance, in decades.
const SHALLOWEST = 2;
const DEEPEST = 6;

/** The axes that fit all the data of `panes`, so that they can be compared. */
export function viewOf(panes) {
  const lows = panes.flatMap((data) => [
    data.background.edges[0] ?? -1,
    data.items.at(Math.min(30, data.items.length - 1))?.score ?? 1,
  ]);
  const highs = panes.flatMap((data) => [data.background.edges.at(-1) ?? 1, best(data)]);
  const low = Math.max(Math.floor(Math.min(...lows) * 20) / 20, -1);
  const high = Math.min(Math.ceil((Math.max(...highs) + 0.005) * 20) / 20, 1);
  const depths = panes.flatMap((data) =>
    data.stops
      .filter((stop) => !stop.truncated && stop.threshold !== null)
      .map((stop) => -Math.log10(relevance(data, stop.threshold))),
  );
  const deepest = Math.ceil(Math.max(SHALLOWEST, ...depths.filter(Number.isFinite)));
  // Above 4, only every second decade has a label, and the last one must have one.
  const depth = deepest > 4 ? 2 * Math.ceil(deepest / 2) : deepest;
  return { low, high, depth: Math.min(depth, DEEPEST) };
}

/** Draws the chart into an <svg> and replaces its content. */
export function drawChart(svg, data, stop, view, width) {
  const right = width - RIGHT;
  const across = (cosine) => {
    const part = (cosine - view.low) / (view.high - view.low);
    return round(LEFT + Math.min(Math.max(part, 0), 1) * (right - LEFT));
  };
  const cut = endCosine(data, stop);
  const parts = [
    ...(cut === null ? [] : band(across(cut), right)),
    ...axis(view, across, right),
    ...law(data, view, across),
    ...rug(data, stop, view, across),
    ...background(data, view, across, cut),
    ...(cut === null ? [] : cutLine(data, view, across, cut, width)),
  ];
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.setAttribute("height", HEIGHT);
  svg.replaceChildren(...parts);
}

/** The content of the chart in words, for screen readers. */
export function describe(data, stop) {
  const cut = endCosine(data, stop);
  const ends = cut === null ? "" : ` The list ends at cosine ${cosineText(cut)}.`;
  const held = data.clicks.length ? ` Held-out clicks, circles: ${data.clicks.length}.` : "";
  const peak = 2 * (data.background_alpha / (data.background_alpha + data.background_beta)) - 1;
  return (
    `Relevance as a function of the cosine. The best item is at ${cosineText(best(data))}, the ` +
    `relevant items are around ${cosineText(2 * (data.alpha / (data.alpha + data.beta)) - 1)}, ` +
    `most items around ${cosineText(peak)}.${ends}${held}`
  );
}

/** The part of both charts that belongs to the list. */
function band(x, right) {
  const size = { x, width: round(right - x) };
  return [
    shape("rect", { class: "band", ...size, y: LAW.top, height: RUG.bottom + 4 - LAW.top }),
    shape("rect", { class: "band", ...size, ...upright(BACKGROUND) }),
  ];
}

function axis(view, across, right) {
  const parts = [];
  const step = view.high - view.low > 0.9 ? 0.2 : 0.1;
  const { bottom } = BACKGROUND;
  for (let tick = Math.ceil(view.low / step - 1e-9); tick * step <= view.high + 1e-9; tick += 1) {
    const x = across(tick * step);
    const d = `M${x} ${LAW.top}V${LAW.bottom}M${x} ${BACKGROUND.top}V${bottom}`;
    const anchor = x > right - 8 ? "end" : "middle";
    const text = { x, y: bottom + 17, "text-anchor": anchor };
    parts.push(shape("path", { class: "grid", d }));
    // The first label may overlap the name of the axis.
    if (x > LEFT + 10) parts.push(shape("text", text, number(tick * step)));
  }
  parts.push(
    shape("text", { x: 0, y: bottom + 17 }, "cosine"),
    shape("path", { class: "axis", d: `M${LEFT} ${bottom}H${right}` }),
  );
  return [...parts, ...context(view, right)];
}

/** A thin line from -1 to 1 that marks the range of the axis. */
function context(view, right) {
  const y = HEIGHT - 8;
  const [begin, end] = [LEFT + 4, right - 14];
  const at = (cosine) => round(begin + ((cosine + 1) / 2) * (end - begin));
  const text = (x, anchor, content) =>
    shape("text", { x, y: y + 4, "text-anchor": anchor, class: "small" }, content);
  return [
    text(begin - 7, "end", "−1"),
    text(end + 7, "start", "1"),
    shape("path", { class: "context", d: `M${begin} ${y}H${end}` }),
    shape("path", { class: "window", d: `M${at(view.low)} ${y}H${at(view.high)}` }),
  ];
}

function law(data, view, across) {
  const top = best(data);
  const lowest = lastInside(data, view);
  const steps = 120;
  const line = Array.from({ length: steps + 1 }, (_, at) => lowest + ((top - lowest) * at) / steps);
  const point = (cosine) => `${across(cosine)} ${heightOf(relevance(data, cosine), view)}`;
  const parts = [title("Relevance, relative to the best item", LAW.top - 27)];
  for (let depth = 0; depth <= view.depth; depth += view.depth > 4 ? 2 : 1) {
    const y = heightOf(10 ** -depth, view);
    parts.push(
      shape("path", { class: "grid", d: `M${LEFT} ${y}H${across(view.high)}` }),
      shape("text", { x: LEFT - 7, y: y + 4, "text-anchor": "end" }, power(depth)),
    );
  }
  return [...parts, shape("path", { class: "law", d: `M${line.map(point).join("L")}` })];
}

/** The lowest cosine at which the law is still inside the chart. */
function lastInside(data, view) {
  let [low, high] = [view.low, best(data)];
  if (relevance(data, low) >= 10 ** -view.depth) return low;
  for (let step = 0; step < 40; step += 1) {
    const middle = (low + high) / 2;
    if (relevance(data, middle) < 10 ** -view.depth) low = middle;
    else high = middle;
  }
  return high;
}

function rug(data, stop, view, across) {
  const indices = listedIndices(data, stop);
  const end = indices.length ? indices.at(-1) + 1 : 0;
  const kept = new Set(indices);
  const marks = { kept: [], below: [] };
  data.items.slice(0, end + (stop.truncated ? 0 : BELOW)).forEach(({ score }, at) => {
    if (score < view.low) return;
    marks[kept.has(at) ? "kept" : "below"].push(`M${across(score)} ${RUG.top}V${RUG.bottom}`);
  });
  const draw = (kind) => {
    // One mark per pixel: most of a thousand items lie together.
    const d = [...new Set(marks[kind])].join("");
    return d ? [shape("path", { class: `rug ${kind}`, d })] : [];
  };
  return [...draw("below"), ...draw("kept")];
}

function background(data, view, across, cut) {
  const { edges, counts } = data.background;
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!total) return [];
  const bin = edges[1] - edges[0] || 1;
  const steps = 160;
  const indices = Array.from(
    { length: steps + 1 },
    (_, at) => view.low + ((view.high - view.low) * at) / steps,
  );
  const densities = density(data.background_alpha, data.background_beta, indices);
  const relevant = density(data.alpha, data.beta, indices);
  const heights = counts.map((count) => count / total / bin);
  const peak = Math.max(...densities, ...heights);
  const up = (density) =>
    round(BACKGROUND.bottom - (density / peak) * (BACKGROUND.bottom - BACKGROUND.top));
  const every = `${whole(data.catalogue)} items`;
  const subject = total < data.catalogue ? `${whole(total)} of ${every}` : `All ${every}`;
  const name = `Beta(${parameter(data.background_alpha)}, ${parameter(data.background_beta)})`;
  const law = `Beta(${parameter(data.alpha)}, ${parameter(data.beta)})`;
  const clicks = data.clicks.length ? `; \u25cb ${data.clicks.length} clicks` : "";
  const parts = [
    title(`${subject}, ${name}; relevant, ${law}${clicks}`, BACKGROUND.top - 10),
  ];
  heights.forEach((height, at) => {
    const [left, width] = [across(edges[at]), across(edges[at + 1]) - across(edges[at])];
    const isKept = cut !== null && (edges[at] + edges[at + 1]) / 2 >= cut;
    const y = up(height);
    const size = { x: left, y, width: round(Math.max(width - 1, 0.5)), height: BACKGROUND.bottom - y };
    parts.push(shape("rect", { class: isKept ? "bar kept" : "bar", ...size }));
  });
  const line = indices.map((cosine, at) => `${across(cosine)} ${up(densities[at])}`).join("L");
  parts.push(shape("path", { class: "background", d: `M${line}` }));
  // The relevant items are few: their law has a height of its own.
  const scale = peak / Math.max(...relevant);
  const own = indices.map((cosine, at) => `${across(cosine)} ${up(scale * relevant[at])}`).join("L");
  parts.push(shape("path", { class: "law", d: `M${own}` }));
  for (const cosine of data.clicks.filter((each) => each >= view.low)) {
    parts.push(shape("circle", { class: "click", cx: across(cosine), cy: BACKGROUND.bottom, r: 3 }));
  }
  return parts;
}

function cutLine(data, view, across, cut, width) {
  const x = across(cut);
  const ratio = relevance(data, cut);
  const atEnd = x > width - 40;
  const text = { x: atEnd ? x + 4 : x, y: LAW.top - 7, "text-anchor": atEnd ? "end" : "middle" };
  const { top, bottom } = BACKGROUND;
  const parts = [
    shape("path", { class: "cut", d: `M${x} ${LAW.top}V${RUG.bottom + 4}M${x} ${top}V${bottom}` }),
    shape("text", { class: "cut", ...text }, cosineText(cut)),
  ];
  if (ratio <= 1 && ratio >= 10 ** -view.depth) {
    parts.push(shape("circle", { class: "crossing", cx: x, cy: heightOf(ratio, view), r: 4.5 }));
  }
  return parts;
}

function heightOf(ratio, view) {
  const depth = Math.min(Math.max(-Math.log10(ratio), 0), view.depth);
  return round(LAW.top + (depth / view.depth) * (LAW.bottom - LAW.top));
}

function upright({ top, bottom }) {
  return { y: top, height: bottom - top };
}

function title(text, y) {
  return shape("text", { class: "title", x: 0, y }, text);
}

function parameter(value) {
  return String(Number(value.toPrecision(3)));
}

function power(depth) {
  return ["best", "1/10", "1/100"][depth] ?? `10${superscript(-depth)}`;
}

function number(cosine) {
  return cosine.toFixed(1).replace("-0.0", "0.0").replace("-", "−");
}

function round(index) {
  return Math.round(index * 10) / 10;
}
