// The page: reads the address, fetches data, and updates the panes.

import { fetchExplanation, fetchStart, hasToken, saveReport, setToken, Unauthorised } from "./api.js";
import { viewOf } from "./chart.js";
import { Controls } from "./controls.js";
import { nearest } from "./laws.js";
import { needed } from "./list.js";
import { element, show } from "./markup.js";
import { Pane } from "./pane.js";
import { readState, writeState } from "./state.js";
import { KNOBS, items, knobText } from "./words.js";

// Items of the first response; longer lists fetch the rest when they are shown.
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

const controls = new Controls(byId("controls"), { onMove: moveTo, onKnob: chooseKnob });

function showProblem(error) {
  if (error?.name === "AbortError") return;
  const needsToken = error instanceof Unauthorised;
  byId("token").hidden = !needsToken;
  show(byId("problem"), !error || needsToken ? null : error.message);
  if (needsToken) byId("bearer").focus();
}

/** Shows the state of the address, unless the user searches for something else meanwhile. */
async function open() {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const state = readState();
  inputs[0].value = state.query;
  inputs[1].value = state.other;
  try {
    await fetchRelease();
    if (signal.aborted) return;
    if (state.query) await load(state);
    else clear();
  } catch (error) {
    showProblem(error);
  }
}

/** Fetches and shows the queries of a state; `count` chooses the stop by list length. */
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
    // The release may have changed between the two responses.
    if (new Set(found.map((data) => data.release)).size > 1) {
      found = await Promise.all(texts.map(ask));
    }
    showProblem(null);
    byId("start").hidden = true;
    fitPanes(found.length);
    found.forEach((data, at) => panes[at].load(data));
    const { stops, default: usual } = found[0];
    const fallback = chosen === usual.knob ? usual.value : stops[Math.floor(stops.length / 2)].value;
    const index =
      count === null
        ? nearest(stops, value ?? fallback)
        : nearest(stops, count, (stop) => stop.count);
    shown = { query, other, knob: chosen, value: stops[index].value };
    controls.show(found[0], index);
    update(index);
    document.title = texts.join(" · ");
    await fetchRelease(found[0].release);
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

function update(index) {
  const all = panes.map((pane) => pane.data);
  const view = viewOf(all);
  panes.forEach((pane) => pane.update(index, view));
  controls.showCounts(all);
  fetchLater();
}

function moveTo(index) {
  shown.value = controls.stops[index].value;
  update(index);
}

/** Starts the new knob where the first list keeps its length. */
async function chooseKnob(knob) {
  const count = panes[0].data.stops[controls.index].count;
  try {
    await load({ ...shown, knob, value: null }, count);
    writeState(shown, true);
  } catch (error) {
    showProblem(error);
  }
}

/** Once the slider rests, updates the address and fetches the items that long lists need. */
function fetchLater() {
  clearTimeout(later);
  later = setTimeout(async () => {
    writeState(shown, false);
    try {
      await Promise.all(panes.map(lengthen));
    } catch (error) {
      showProblem(error);
    }
  }, LATER_MILLISECONDS);
}

async function lengthen(pane) {
  const { data } = pane;
  const wanted = Math.min(needed(data.stops[controls.index]), data.limit, data.catalogue);
  if (wanted <= data.items.length || data.items.length < firstLimit()) return;
  const { signal } = running;
  const found = await fetchExplanation(data.query, data.knob, data.limit, signal);
  if (signal.aborted || pane.data !== data || found.release !== data.release) return;
  pane.load(found);
  update(controls.index);
}

function clear() {
  running.abort();
  fitPanes(0);
  byId("controls").hidden = true;
  byId("start").hidden = release.examples.length === 0;
  document.title = "Explorer";
}

/** Fetches the release, unless `version` is already shown. */
async function fetchRelease(version = release?.release) {
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
    element("p", {}, "Type a query to see where its list ends, or try an example:"),
    element("p", { class: "examples" }, ...examples.map((query) => pick(query, "", query))),
    examples.length > 1 ? element("p", {}, "Compare a specific query with a broad one:") : null,
    examples.length > 1
      ? element("p", { class: "examples" }, pick(...pair, `${pair[0]}  ·  ${pair[1]}`))
      : null,
  );
}

async function save() {
  try {
    await saveReport(release.release);
  } catch (error) {
    showProblem(error);
  }
}

async function search(query, other) {
  running.abort();
  inputs[0].value = query;
  inputs[1].value = other;
  const next = { ...shown, query, other };
  try {
    await fetchRelease();
    if (!query) clear();
    else await load(next);
    writeState(query ? shown : next, true);
  } catch (error) {
    showProblem(error);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const [query, other] = inputs.map((input) => input.value.trim());
  // A single query is the first one, whichever box it is in.
  search(query || other, query ? other : "");
});
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("bearer").value.trim());
  byId("bearer").value = "";
  showProblem(null);
  open();
});
addEventListener("popstate", open);
new ResizeObserver(() => panes.forEach((pane) => pane.data && pane.view && pane.draw())).observe(
  panesRoot,
);
open();
if (!readState().query) inputs[0].focus();
