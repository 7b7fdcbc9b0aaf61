// Reasoning that a model writes into its text, between `<think>` and `</think>` at the beginning.

const OPEN = "<think>";
const CLOSE = "</think>";
/** The most blanks that are held back because a tag may follow them. */
const MAX_BLANKS = 10_000;

interface SplitText {
  readonly text: string;
  readonly reasoning: string;
}
const NOTHING: SplitText = { text: "", reasoning: "" };

/** Splits a text that arrives in any pieces. `isLast`: what is held back is returned too. */
export function createThinkTagSplitter(): (piece: string, isLast: boolean) => SplitText {
  let state: "start" | "reasoning" | "text" = "start";
  /** Text that may be, or end in, a part of a tag. */
  let held = "";

  /** Decides whether the text begins with the tag, once that is certain. */
  function start(isLast: boolean): void {
    const text = held.trimStart();
    if (OPEN.startsWith(text) && held.length < MAX_BLANKS && !isLast) return;
    state = text.startsWith(OPEN) ? "reasoning" : "text";
    if (state === "reasoning") held = text.slice(OPEN.length);
  }

  function takeText(): SplitText {
    const text = held;
    held = "";
    return { text, reasoning: "" };
  }

  function takeReasoning(isLast: boolean): SplitText {
    const end = held.indexOf(CLOSE);
    if (end !== -1) {
      const split = { text: held.slice(end + CLOSE.length), reasoning: held.slice(0, end) };
      held = "";
      state = "text";
      return split;
    }
    // What the text ends with may be the beginning of the closing tag.
    const bracket = held.lastIndexOf("<");
    const mayClose = !isLast && bracket !== -1 && CLOSE.startsWith(held.slice(bracket));
    const certain = mayClose ? bracket : held.length;
    const reasoning = held.slice(0, certain);
    held = held.slice(certain);
    return { text: "", reasoning };
  }

  return (piece, isLast) => {
    held += piece;
    if (state === "start") start(isLast);
    if (state === "text") return takeText();
    return state === "reasoning" ? takeReasoning(isLast) : NOTHING;
  };
}
