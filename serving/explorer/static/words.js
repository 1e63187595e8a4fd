// Numbers and sentences.

import { best, relevance } from "./laws.js";

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
// A float32 cosine that stands for the score of an item strays by less.
const ROUNDING = 1e-6;

export const KNOBS = {
  recall: { name: "Recall", label: "Share of the relevant to keep", digits: 2 },
  budget: { name: "Budget", label: "Items a query, on average", digits: 0 },
  top_k: { name: "Top k", label: "Items of every query", digits: 0 },
  score: { name: "Score", label: "Least cosine", digits: 2 },
};

export function whole(number) {
  return WHOLE.format(number);
}

export function cosineText(cosine) {
  return cosine.toFixed(3).replace("-", "−");
}

/** The value of a knob as its box shows it: no more digits than it has, no fewer than usual. */
export function knobText(knob, value) {
  const usual = value.toFixed(KNOBS[knob].digits);
  return Number(usual) === value ? usual : String(value);
}

/** "24 items". */
export function items(count) {
  return `${whole(count)} ${count === 1 ? "item" : "items"}`;
}

/** "2.3 times", "12%" or "1/150"; `of` goes between a part and its whole. */
export function times(ratio, of = "") {
  if (ratio >= 1) return `${SHORT.format(ratio)} times`;
  if (ratio >= 0.01) return `${SHORT.format(ratio * 100)}%${of}`;
  const part = 1 / ratio;
  if (part >= 1e6) return `10${superscript(-Math.round(Math.log10(part)))}${of}`;
  return `1/${whole(Number(part.toPrecision(2)))}${of}`;
}

export function superscript(number) {
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  return [...String(number)].map((each) => (each === "-" ? "⁻" : digits[each])).join("");
}

/** How much of what is relevant a list is expected to hold, or null where nothing is promised. */
export function promise(data, stop) {
  if (stop.expected_recall === null) return null;
  const share = `${Math.round(stop.expected_recall * 100)}%`;
  if (stop.truncated) return `Without the limit it would hold about ${share} of what is relevant.`;
  const asked = data.knob === "recall" ? stop.value - stop.expected_recall : 0;
  const reach = { "-1": ", the least there is", 0: "", 1: ", the most that can be promised" };
  const bound = Math.abs(asked) < 0.005 ? 0 : Math.sign(asked);
  return `Expected to hold ${share} of what is relevant${reach[bound]}.`;
}

/** Why the list ends where it ends. */
export function reason(data, stop) {
  if (!data.items.length) return "The catalogue has no items.";
  const { count, threshold, truncated } = stop;
  if (truncated && count < data.limit) return "Ends early: the index looks no further for one query.";
  if (truncated) {
    const before = threshold === null ? "" : `, before its cosine of ${cosineText(threshold)}`;
    return `Ends at ${items(count)}, the limit${before}.`;
  }
  if (isFloor(data, stop)) {
    const floor = data.floor === 1 ? "the best item" : items(data.floor);
    return `Ends after ${floor}, which every query gets.`;
  }
  return REASONS[data.policy](data, stop, `every ${kind(data)}`);
}

/** The rule behind the reason, where there is more to say. */
export function rule(data, stop) {
  if (stop.threshold === null || stop.truncated || isFloor(data, stop)) return null;
  if (!["level", "level_head"].includes(data.policy)) return null;
  const value = data.knob === "recall" ? knobText("recall", stop.value) : whole(stop.value);
  const at = `At ${data.knob} ${value}`;
  return (
    `${at} every ${kind(data)} ends at ${times(Math.exp(stop.cutoff), " of")} its own level, ` +
    "a mean of the relevance of all items."
  );
}

const REASONS = {
  level: byRelevance,
  level_head: byRelevance,
  cdf: byRelevance,
  score: (data, stop, all) => `Ends at cosine ${cosineText(stop.threshold ?? -1)}, as ${all} does.`,
  gap: (data, stop, all) =>
    `Ends at cosine ${cosineText(stop.threshold ?? -1)}, ${cosineText(-stop.cutoff)} below the ` +
    `best item, as ${all} does.`,
  top_k: (data, stop, all) => `Ends after ${items(stop.count)}, as ${all} does.`,
  nucleus: (data, stop, all) =>
    `Ends where its items hold ${SHORT.format(-Math.expm1(stop.cutoff) * 100)}% of the relevance ` +
    `of the whole catalogue, as ${all} does.`,
};

function byRelevance(data, stop) {
  if (stop.threshold === null) return "Ends nowhere: every cosine passes.";
  const ratio = times(relevance(data, stop.threshold));
  return (
    `Ends at cosine ${cosineText(stop.threshold)}: below it, the model rates an item less than ` +
    `${ratio} as relevant as the best.`
  );
}

function isFloor(data, stop) {
  const last = data.items[stop.count - 1];
  if (stop.count === 0) return data.floor > 0 && stop.threshold >= best(data) - ROUNDING;
  if (stop.count > data.floor || stop.threshold === null || !last) return false;
  return Math.abs(stop.threshold - last.score) < ROUNDING;
}

/** Which queries the same cut-off holds for: recall has one for each stratum. */
function kind(data) {
  return data.knob === "recall" ? `${data.stratum} query` : "query";
}
