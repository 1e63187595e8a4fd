// The page: what was asked for, what the service says of it, and the knob that all panes share.

import { fetchExplanation, fetchStart, hasToken, saveReport, setToken, Unauthorised } from "./api.js";
import { viewOf } from "./chart.js";
import { Controls } from "./controls.js";
import { nearest } from "./laws.js";
import { needed } from "./list.js";
import { element, show } from "./markup.js";
import { Pane } from "./pane.js";
import { readState, writeState } from "./state.js";
import { KNOBS, items, knobText } from "./words.js";

// Items that come with a query at first; the few longer lists ask for the rest when they are shown.
const FIRST_LIMIT = 1000;
const LATER_MILLISECONDS = 250;

const byId = (id) => document.getElementById(id);
const form = byId("search");
const inputs = [byId("query"), byId("other")];
const panesRoot = byId("panes");
const panes = [];
let release = null;
let shown = { query: "", other: "", knob: null, value: null };
let running = new AbortController();
let later = 0;

const controls = new Controls(byId("controls"), { onMove: moved, onKnob: turned });

function problem(error) {
  if (error?.name === "AbortError") return;
  const needsToken = error instanceof Unauthorised;
  byId("token").hidden = !needsToken;
  show(byId("problem"), !error || needsToken ? null : error.message);
  if (needsToken) byId("bearer").focus();
}

/** Shows what the address asks for. */
async function open() {
  try {
    await knowRelease();
    const state = readState();
    inputs[0].value = state.query;
    inputs[1].value = state.other;
    if (state.query) await load(state);
    else clear();
  } catch (error) {
    problem(error);
  }
}

/** Asks for the queries of a state and shows them. */
async function load({ query, other, knob, value }, count = null) {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const texts = [query, other].filter(Boolean);
  const chosen = knob ?? release.default.knob;
  panes.forEach((pane) => pane.busy(true));
  try {
    const ask = (text) => fetchExplanation(text, chosen, firstLimit(), signal);
    let found = await Promise.all(texts.map(ask));
    // A new release may come between the two answers.
    if (new Set(found.map((data) => data.release)).size > 1) {
      found = await Promise.all(texts.map(ask));
    }
    problem(null);
    byId("start").hidden = true;
    fitPanes(found.length);
    found.forEach((data, at) => panes[at].load(data));
    const { stops, default: usual } = found[0];
    const fallback = chosen === usual.knob ? usual.value : stops[Math.floor(stops.length / 2)].value;
    const place =
      count === null
        ? nearest(stops, value ?? fallback)
        : nearest(stops, count, (stop) => stop.count);
    shown = { query, other, knob: chosen, value: stops[place].value };
    controls.show(found[0], place);
    update(place);
    document.title = texts.join(" · ");
    await knowRelease(found[0].release);
  } finally {
    if (signal === running.signal) panes.forEach((pane) => pane.busy(false));
  }
}

function firstLimit() {
  return Math.min(FIRST_LIMIT, release.limit);
}

function fitPanes(count) {
  while (panes.length < count) panes.push(new Pane(panesRoot));
  while (panes.length > count) panes.pop().remove();
  panesRoot.className = count > 1 ? "two" : "one";
}

function update(place) {
  const all = panes.map((pane) => pane.data);
  const view = viewOf(all);
  panes.forEach((pane) => pane.update(place, view));
  controls.tell(all);
  askLater();
}

function moved(place) {
  shown.value = controls.stops[place].value;
  update(place);
}

/** Another knob: begins where the first list is as long as it was. */
async function turned(knob) {
  const count = panes[0].data.stops[controls.place].count;
  try {
    await load({ ...shown, knob, value: null }, count);
    writeState(shown, true);
  } catch (error) {
    problem(error);
  }
}

/** Once the slider rests: keeps the address, and asks for items that a long list needs. */
function askLater() {
  clearTimeout(later);
  later = setTimeout(async () => {
    writeState(shown, false);
    try {
      await Promise.all(panes.map(lengthen));
    } catch (error) {
      problem(error);
    }
  }, LATER_MILLISECONDS);
}

async function lengthen(pane) {
  const { data } = pane;
  const wanted = Math.min(needed(data.stops[controls.place]), data.limit, data.catalogue);
  if (wanted <= data.items.length || data.items.length < firstLimit()) return;
  const { signal } = running;
  const found = await fetchExplanation(data.query, data.knob, data.limit, signal);
  if (signal.aborted || pane.data !== data || found.release !== data.release) return;
  pane.load(found);
  update(controls.place);
}

function clear() {
  running.abort();
  fitPanes(0);
  byId("controls").hidden = true;
  byId("start").hidden = release.examples.length === 0;
  document.title = "Explorer";
}

/** Asks for the release, unless it is known to be `version`. */
async function knowRelease(version = release?.release) {
  if (release !== null && version === release.release) return;
  release = await fetchStart();
  showRelease();
}

function showRelease() {
  const { knob, value } = release.default;
  const report = hasToken()
    ? element("button", { type: "button", class: "plain", onclick: save }, "Report")
    : element("a", { href: "/report" }, "Report");
  byId("release").replaceChildren(
    element("span", {}, `Release ${release.release}`),
    element("span", {}, items(release.catalogue)),
    element("span", {}, `${KNOBS[knob].name} ${knobText(knob, value)} by default`),
    report,
  );
  const { examples } = release;
  const pick = (query, other, text) =>
    element("button", { type: "button", class: "example", onclick: () => search(query, other) }, text);
  const pair = [examples[0], examples.at(-1)];
  byId("start").replaceChildren(
    element("p", {}, "Type a query to see where its list ends, or begin with one of these."),
    element("p", { class: "examples" }, ...examples.map((query) => pick(query, "", query))),
    examples.length > 1 ? element("p", {}, "A specific and a broad one, side by side:") : null,
    examples.length > 1
      ? element("p", { class: "examples" }, pick(...pair, `${pair[0]}  ·  ${pair[1]}`))
      : null,
  );
}

async function save() {
  try {
    await saveReport(release.release);
  } catch (error) {
    problem(error);
  }
}

async function search(query, other) {
  inputs[0].value = query;
  inputs[1].value = other;
  const next = { ...shown, query, other };
  try {
    await knowRelease();
    if (!query) clear();
    else await load(next);
    writeState(query ? shown : next, true);
  } catch (error) {
    problem(error);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const [query, other] = inputs.map((input) => input.value.trim());
  // One query alone is the first, whichever box it is in.
  search(query || other, query ? other : "");
});
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("bearer").value.trim());
  byId("bearer").value = "";
  problem(null);
  open();
});
addEventListener("popstate", open);
new ResizeObserver(() => panes.forEach((pane) => pane.data && pane.view && pane.draw())).observe(
  panesRoot,
);
open();
if (!readState().query) inputs[0].focus();
