// The items of a query: the best, the last before the cut, and the first below it.

import { endCosine, listedIndices } from "./laws.js";
import { element } from "./markup.js";
import { cosineText, items as itemsText, whole } from "./words.js";

const BEST = 12;
const LAST = 6;
// A gap hides at least this many items.
const GAP = 8;
// Items shown below the end, here and in the chart.
export const BELOW = 8;
const MORE = 100;

/**
 * Fills an ordered list.
 *
 * `opened` is the number of items shown beyond BEST; `onMore` is called to show more.
 */
export function fillList(root, data, stop, opened, onMore) {
  const indices = listedIndices(data, stop);
  const end = indices.length ? indices.at(-1) + 1 : 0;
  const rankOf = new Map(indices.map((index, at) => [index, at + 1]));
  const row = (index) => {
    const rank = rankOf.get(index);
    return itemRow(data, index, rank === undefined ? "missed" : "kept", rank);
  };
  const rows = (begin, until) => range(begin, until).map(row);
  const isWhole = indices.length === stop.count;
  const first = BEST + opened;
  const shown = [];
  if (stop.count < first + LAST + GAP) {
    shown.push(...rows(0, end));
  } else {
    // Missed items have no rank: the gap counts ranks.
    const until = indices[Math.min(first, indices.length) - 1] + 1;
    const again = isWhole ? indices[indices.length - LAST] : end;
    shown.push(...rows(0, until));
    shown.push(gapRow(stop.count - first - (isWhole ? LAST : 0), onMore));
    shown.push(...rows(again, end));
  }
  shown.push(cutRow(data, stop));
  if (isWhole && !stop.truncated) {
    const until = Math.min(end + BELOW, data.items.length);
    for (const index of range(end, until)) {
      shown.push(itemRow(data, index, "below", stop.count + index - end + 1));
    }
    const rest = data.catalogue - until;
    if (rest > 0 && until > end) shown.push(restRow(rest));
  }
  const digits = whole(Math.max(stop.count + BELOW, 10)).length;
  root.style.setProperty("--rank", `${digits * 0.85 + 0.6}ch`);
  root.replaceChildren(...shown);
}

/** The number of items that must be loaded to show the end of a list. */
export function needed(stop) {
  return stop.count + stop.missed.length + BELOW;
}

function range(begin, until) {
  return Array.from({ length: Math.max(until - begin, 0) }, (_, at) => begin + at);
}

function itemRow(data, index, kind, rank) {
  const { item_id: id, score, fields } = data.items[index];
  const names = data.columns.filter((name) => fields[name]);
  const title = names.includes("title") ? "title" : names[0];
  const others = names.filter((name) => name !== title);
  const note = kind === "missed" ? "not found by the index" : null;
  return element(
    "li",
    { class: kind },
    element("span", { class: "rank" }, rank === undefined ? "–" : whole(rank)),
    element(
      "span",
      { class: "what" },
      element("span", { class: "title" }, title === undefined ? id : fields[title]),
      element(
        "span",
        { class: "fields" },
        title === undefined ? null : element("span", { class: "id" }, id),
        ...others.map((name) => element("span", {}, `${name} ${fields[name]}`)),
        note && element("span", { class: "note" }, note),
      ),
    ),
    element("span", { class: "score" }, cosineText(score)),
  );
}

function gapRow(count, onMore) {
  const text = `${whole(count)} more`;
  const label = `Show ${whole(Math.min(count, MORE))} of ${itemsText(count)} in between`;
  const open = () => onMore(MORE);
  return element(
    "li",
    { class: "gap" },
    element("button", { type: "button", class: "plain", "aria-label": label, onclick: open }, text),
  );
}

function cutRow(data, stop) {
  const cosine = endCosine(data, stop);
  const where = cosine === null ? null : element("span", { class: "score" }, cosineText(cosine));
  return element("li", { class: "cut" }, element("span", {}, "The list ends here"), where);
}

function restRow(count) {
  return element("li", { class: "gap" }, element("span", {}, `${itemsText(count)} further down`));
}
