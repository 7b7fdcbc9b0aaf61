// Reasoning that stands in the text: `<think>…</think>` at its beginning, for models that are flagged so. WIRE.md 6.
const [OPEN, CLOSE] = ["<think>", "</think>"];

/** Text in any pieces to what of it is the answer and what is reasoning; all that is held back comes with the `last` piece. */
export function createThinkSplitter() {
  let held = "";
  let state: "before" | "inside" | "after" = "before";
  return (piece: string, last: boolean): [text: string, reasoning: string] => {
    held += piece;
    if (state === "before") {
      const begun = held.trimStart();
      if (OPEN.startsWith(begun) && !last) return ["", ""]; // it may still become the tag
      state = begun.startsWith(OPEN) ? "inside" : "after";
      if (state === "inside") held = begun.slice(OPEN.length);
    }
    let reasoning = "";
    if (state === "inside") {
      const end = held.indexOf(CLOSE);
      if (end !== -1) state = "after";
      // What the pieces so far end with may be the beginning of the tag.
      const open = last ? 0 : [...CLOSE].findLastIndex((_, at) => at > 0 && held.endsWith(CLOSE.slice(0, at)));
      reasoning = held.slice(0, end === -1 ? held.length - Math.max(0, open) : end);
      held = end === -1 ? held.slice(reasoning.length) : held.slice(end + CLOSE.length);
    }
    const text = state === "after" ? held : "";
    if (state === "after") held = "";
    return [text, reasoning];
  };
}
