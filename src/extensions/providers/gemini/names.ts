// Gemini refuses a function name that begins with a digit or a dash, so such a name gets a leading
// underscore. A name that begins with underscores and then a digit or a dash gets one more, so that
// names stay distinct.
const REFUSED = /^_*[\d-]/;

export const geminiName = (name: string): string => (REFUSED.test(name) ? `_${name}` : name);

/** The client's name for a function. */
export const clientName = (name: string): string =>
  name.startsWith("_") && REFUSED.test(name) ? name.slice(1) : name;
