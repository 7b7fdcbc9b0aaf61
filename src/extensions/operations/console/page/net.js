// Questions to the admin listener, and nobody else.

/** The path with those members of `query` that are set. */
export function withQuery(path, query) {
  const set = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  const text = new URLSearchParams(set).toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The address of the story of a request. */
export const storyOf = (id) => `#requests/${encodeURIComponent(id)}`;

/** As fetch does it. An address that has a password in it is none that fetch takes. */
export const ask = (path, options) => fetch(location.origin + path, options);

/** The JSON of an answer. Throws an Error with the message of the listener. */
export async function getJson(path, options) {
  const response = await ask(path, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body;
}

export const sendJson = (path, method, body) =>
  getJson(path, {
    method,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

export async function getText(path) {
  const response = await ask(path);
  if (!response.ok) throw new Error("This page cannot be read.");
  return await response.text();
}

/**
 * A function that loads something and draws it. Of loads that overlap only the last is drawn, or its
 * fault told.
 */
export function view({ load, draw, fail }) {
  let last = 0;
  return async (...wanted) => {
    last += 1;
    const mine = last;
    try {
      const loaded = await load(...wanted);
      if (mine === last) draw(loaded, ...wanted);
    } catch (error) {
      if (mine === last) fail(error.message);
    }
  };
}
