// Reasoning that a model writes into its text, between two tags at the beginning.

const OPENINGS = ["<think>", "<mm:think>"] as const;
/** The tag of MiniMax, which cannot be ordinary text. */
const UNAMBIGUOUS = ["<mm:think>"] as const;

/** The most blanks that are held back because a tag may follow them. */
const MAX_BLANKS = 10_000;

interface SplitText {
  readonly text: string;
  readonly reasoning: string;
}
const EMPTY_SPLIT: SplitText = { text: "", reasoning: "" };

/**
 * Splits a text that arrives in any pieces. `isExpected`: the model thinks in tags, so `<think>`
 * counts, and blanks before a possible tag are held back. `isLast`: includes text held back.
 */
export function createThinkTagSplitter(
  isExpected: boolean,
): (piece: string, isLast: boolean) => SplitText {
  const openings: readonly string[] = isExpected ? OPENINGS : UNAMBIGUOUS;
  let state: "start" | "reasoning" | "text" = "start";
  /** The tag that ends the reasoning. */
  let closing = "";
  /** Text that may be a part of a tag, or end in one. */
  let held = "";

  /** Decides whether the text begins with a tag, once that is certain. */
  function start(isLast: boolean): void {
    const text = held.trimStart();
    const mayBegin = openings.some((opening) => opening.startsWith(text));
    if (mayBegin && held.length < MAX_BLANKS && !isLast) return;
    const opening = openings.find((opening) => text.startsWith(opening));
    state = opening ? "reasoning" : "text";
    if (!opening) return;
    held = text.slice(opening.length);
    closing = opening.replace("<", "</");
  }

  function takeText(): SplitText {
    const text = held;
    held = "";
    return { text, reasoning: "" };
  }

  function takeReasoning(isLast: boolean): SplitText {
    const end = held.indexOf(closing);
    if (end !== -1) {
      const split = { text: held.slice(end + closing.length), reasoning: held.slice(0, end) };
      held = "";
      state = "text";
      return split;
    }
    // The end of the text may be the beginning of the closing tag.
    const bracket = held.lastIndexOf("<");
    const mayClose = !isLast && bracket !== -1 && closing.startsWith(held.slice(bracket));
    const certain = mayClose ? bracket : held.length;
    const reasoning = held.slice(0, certain);
    held = held.slice(certain);
    return { text: "", reasoning };
  }

  return (piece, isLast) => {
    if (state === "text" && held === "") return { text: piece, reasoning: "" };
    held += piece;
    if (state === "start" && !isExpected && held.trim() === "") return takeText();
    if (state === "start") start(isLast);
    if (state === "text") return takeText();
    return state === "reasoning" ? takeReasoning(isLast) : EMPTY_SPLIT;
  };
}
