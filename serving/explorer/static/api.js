// Requests to the service that the page came from.

const KEY = "pebr-token";

export class Unauthorised extends Error {}

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

function headers() {
  return hasToken() ? { authorization: `Bearer ${sessionStorage.getItem(KEY)}` } : {};
}

async function request(path, signal) {
  let response;
  try {
    response = await fetch(path, { headers: headers(), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not respond.");
  }
  if (response.status === 401) throw new Unauthorised("The service requires a token.");
  if (!response.ok) throw new Error(await messageOf(response));
  return response;
}

async function messageOf(response) {
  try {
    return sentence((await response.json()).error.message);
  } catch {
    return `The service returned status ${response.status}.`;
  }
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The release, and example queries. */
export async function fetchStart() {
  return (await request("/v1/explain/start")).json();
}

/** The data that the page draws for a query. */
export async function fetchExplanation(query, knob, limit, signal) {
  const parameters = new URLSearchParams({ query, knob, limit });
  return (await request(`/v1/explain?${parameters}`, signal)).json();
}

/** Saves the report: a plain link cannot carry a token. */
export async function saveReport(version) {
  const content = await (await request("/report")).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = `report-${version}.html`;
  link.click();
  URL.revokeObjectURL(link.href);
}
