// Numbers and sentences of the page.

import { best, relevance } from "./laws.js";

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
// Rounding errors of float32 cosines are smaller.
const ROUNDING = 1e-6;

export const KNOBS = {
  recall: { name: "Recall", label: "Share of relevant items to keep", digits: 2 },
  share: { name: "Share", label: "Share of this query's relevant items to keep", digits: 2 },
  budget: { name: "Budget", label: "Items per query, on average", digits: 0 },
  top_k: { name: "Top k", label: "Items per query", digits: 0 },
  score: { name: "Score", label: "Lowest cosine", digits: 2 },
};

export function whole(number) {
  return WHOLE.format(number);
}

export function cosineText(cosine) {
  return cosine.toFixed(3).replace("-", "−");
}

/** The value of a knob with its usual number of digits, or with all its digits if it has more. */
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

/** The expected recall of a list, or null if the knob or the query has none. */
export function expectation(stop) {
  if (stop.expected_recall === null) return null;
  const percent = stop.expected_recall * 100;
  const share = `${percent < 10 ? Number(percent.toPrecision(2)) : Math.round(percent)}%`;
  if (stop.truncated) return `Without the limit, it would contain about ${share} of the relevant items.`;
  return `Expected to contain ${share} of the relevant items.`;
}

/** Why the list ends where it ends. */
export function reason(data, stop) {
  if (!data.items.length) return "The catalogue has no items.";
  const { count, threshold, truncated } = stop;
  if (data.unfamiliar && !["top_k", "score"].includes(data.knob)) {
    return `Ends after ${items(count)}: the model knows nothing of this query.`;
  }
  if (truncated && count < data.limit) return "Ends early: the index returns no more items for one query.";
  if (truncated) {
    const before = threshold === null ? "" : `, above its threshold of ${cosineText(threshold)}`;
    return `Ends at the limit of ${items(count)}${before}.`;
  }
  if (isFloor(data, stop)) {
    const floor = data.floor === 1 ? "the best item" : items(data.floor);
    return `Ends after ${floor}, the minimum for every query.`;
  }
  return REASONS[data.policy](data, stop, `like every ${kind(data)}`);
}

/** The rule behind the reason, or null if the reason says it all. */
export function rule(data, stop) {
  if (stop.threshold === null || stop.truncated || isFloor(data, stop)) return null;
  if (!["level", "level_sample"].includes(data.policy)) return null;
  const value = data.knob === "recall" ? knobText("recall", stop.value) : whole(stop.value);
  return (
    `At ${data.knob} ${value}, every ${kind(data)} ends at ` +
    `${times(Math.exp(stop.cutoff), " of")} its own level, a mean of the relevance of all items.`
  );
}

const REASONS = {
  level: byRelevance,
  level_sample: byRelevance,
  cdf: byRelevance,
  cdf_pdf: byRelevance,
  share: (data, stop) =>
    `Ends at cosine ${cosineText(stop.threshold ?? -1)}: by the law of this query, ` +
    `${SHORT.format((stop.expected_recall ?? 1) * 100)}% of its relevant items are above it.`,
  score: (data, stop, all) => `Ends at cosine ${cosineText(stop.threshold ?? -1)}, ${all}.`,
  gap: (data, stop, all) =>
    `Ends at cosine ${cosineText(stop.threshold ?? -1)}, ${cosineText(-stop.cutoff)} below the ` +
    `best item, ${all}.`,
  top_k: (data, stop, all) => `Ends after ${items(stop.count)}, ${all}.`,
  nucleus: (data, stop, all) =>
    `Ends where its items hold ${SHORT.format(-Math.expm1(stop.cutoff) * 100)}% of the relevance ` +
    `of the whole catalogue, ${all}.`,
};

function byRelevance(data, stop) {
  if (stop.threshold === null) return "Does not end: every cosine is above the threshold.";
  const ratio = times(relevance(data, stop.threshold));
  return (
    `Ends at cosine ${cosineText(stop.threshold)}: the model rates items below it less than ` +
    `${ratio} as relevant as the best item.`
  );
}

function isFloor(data, stop) {
  const last = data.items[stop.count - 1];
  if (stop.count === 0) return data.floor > 0 && stop.threshold >= best(data) - ROUNDING;
  if (stop.count > data.floor || stop.threshold === null || !last) return false;
  return Math.abs(stop.threshold - last.score) < ROUNDING;
}

/** The queries that share a cut-off: for recall, a stratum may have one of its own. */
function kind(data) {
  return data.knob === "recall" ? `${data.stratum} query` : "query";
}
