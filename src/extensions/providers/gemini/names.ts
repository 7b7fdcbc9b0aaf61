// Gemini refuses a function whose name begins with a digit or a dash: it gets an underscore before
// it. So does a name that has underscores there already, so that all can be told apart.
const REFUSED = /^_*[\d-]/;

export const geminiName = (name: string): string => (REFUSED.test(name) ? `_${name}` : name);

/** The client's name for a function. */
export const clientName = (name: string): string =>
  name.startsWith("_") && REFUSED.test(name) ? name.slice(1) : name;
