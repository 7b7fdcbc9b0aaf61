// Questions to the admin listener, and nobody else.

/** An address that has a password in it is none that fetch takes. */
export const here = (path) => location.origin + path;

/** The path with those members of `query` that are set. */
export function withQuery(path, query) {
  const set = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  const text = new URLSearchParams(set).toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The JSON of an answer. Throws an Error with the message of the listener. */
export async function getJson(path, options = {}) {
  const response = await fetch(here(path), options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body;
}

export const sendJson = (path, method, body) =>
  getJson(path, {
    method,
    headers: { "Content-Type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
  });

export async function getText(path) {
  const response = await fetch(here(path));
  if (!response.ok) throw new Error("This page cannot be read.");
  return await response.text();
}
