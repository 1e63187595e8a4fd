// The state of the page in its address: ?q=...&q2=...&r=0.8

const NAMES = { recall: "r", share: "share", budget: "budget", top_k: "top_k", score: "score" };

/** {query, other, knob, value}; the last two are null if the address does not contain them. */
export function readState() {
  const parameters = new URLSearchParams(location.search);
  const state = {
    query: (parameters.get("q") ?? "").trim(),
    other: (parameters.get("q2") ?? "").trim(),
    knob: null,
    value: null,
  };
  for (const [knob, name] of Object.entries(NAMES)) {
    const value = parameters.get(name);
    if (value !== null && value.trim() !== "" && Number.isFinite(Number(value))) {
      return { ...state, knob, value: Number(value) };
    }
  }
  return state;
}

/** Puts the state into the address; `isNew` makes a step that the back button undoes. */
export function writeState({ query, other, knob, value }, isNew) {
  const parameters = new URLSearchParams();
  if (query) parameters.set("q", query);
  if (other) parameters.set("q2", other);
  if (query && knob !== null && value !== null) parameters.set(NAMES[knob], String(value));
  const text = parameters.toString();
  const address = text ? `?${text}` : location.pathname;
  if (address === location.search || (!text && !location.search)) return;
  if (isNew) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
