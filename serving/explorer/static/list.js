// The items of a query: the best, the last before the cut, and the first below it.

import { cutOf, listed } from "./laws.js";
import { element } from "./markup.js";
import { cosineText, items as itemsText, whole } from "./words.js";

const BEST = 12;
const LAST = 6;
// Fewer are not worth a gap.
const GAP = 8;
// Also what the chart shows of them.
export const BELOW = 8;
const MORE = 100;

/**
 * Fills an ordered list.
 *
 * `opened` is how many more of the best are shown than at first; `onMore` is called to open more.
 */
export function fillList(root, data, stop, opened, onMore) {
  const places = listed(data, stop);
  const end = places.length ? places.at(-1) + 1 : 0;
  const rankOf = new Map(places.map((place, at) => [place, at + 1]));
  const row = (place) => {
    const rank = rankOf.get(place);
    return itemRow(data, place, rank === undefined ? "missed" : "kept", rank);
  };
  const rows = (begin, until) => range(begin, until).map(row);
  const isWhole = places.length === stop.count;
  const first = BEST + opened;
  const shown = [];
  if (stop.count < first + LAST + GAP) {
    shown.push(...rows(0, end));
  } else {
    // Whole ranks of the list, so that what is missing is counted right.
    const until = places[Math.min(first, places.length) - 1] + 1;
    const again = isWhole ? places[places.length - LAST] : end;
    shown.push(...rows(0, until));
    shown.push(gapRow(stop.count - first - (isWhole ? LAST : 0), onMore));
    shown.push(...rows(again, end));
  }
  shown.push(cutRow(data, stop));
  if (isWhole && !stop.truncated) {
    const until = Math.min(end + BELOW, data.items.length);
    for (const place of range(end, until)) {
      shown.push(itemRow(data, place, "below", stop.count + place - end + 1));
    }
    const rest = data.catalogue - until;
    if (rest > 0 && until > end) shown.push(restRow(rest));
  }
  const digits = whole(Math.max(stop.count + BELOW, 10)).length;
  root.style.setProperty("--rank", `${digits * 0.85 + 0.6}ch`);
  root.replaceChildren(...shown);
}

/** How many items a list needs loaded so that its end can be shown. */
export function needed(stop) {
  return stop.count + stop.missed.length + BELOW;
}

function range(begin, until) {
  return Array.from({ length: Math.max(until - begin, 0) }, (_, at) => begin + at);
}

function itemRow(data, place, kind, rank) {
  const { item_id: id, score, fields } = data.items[place];
  const names = data.columns.filter((name) => fields[name] !== null && fields[name] !== "");
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
  const cosine = cutOf(data, stop);
  const where = cosine === null ? null : element("span", { class: "score" }, cosineText(cosine));
  return element("li", { class: "cut" }, element("span", {}, "The list ends here"), where);
}

function restRow(count) {
  return element("li", { class: "gap" }, element("span", {}, `${itemsText(count)} further away`));
}
