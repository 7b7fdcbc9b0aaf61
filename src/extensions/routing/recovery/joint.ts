// Joins the text of a continuation to the text that was shown before the stream broke. It is pure:
// parts in, the parts to show out. An exact repetition is dropped. If it is uncertain whether a
// text is a repetition, the attempt is refused: a doubled or missing word would falsify the reply.
import type { Part } from "../../../core/openai/parts.ts";
import { unusable } from "./breaker-blame.ts";

/** A repetition of at least so many characters is no coincidence. */
const MIN_REPETITION = 20;
/** An overlap of fewer characters, and less than a word, is a coincidence: "bal" and "loon". */
const MIN_DOUBT = 4;
/** At most so many characters of an attempt are held back to compare them. */
const MAX_COMPARED = 200;
/** The most blanks that an attempt may begin with. */
const MAX_BLANKS = 1_000;

const refused = (why: string): Error => unusable(`the stream cannot be joined: ${why}`);

/**
 * The part of the shown text that a model is asked to continue: without blanks at its end, which
 * many servers remove, and without half of a surrogate pair.
 */
export const beginningOf = (shown: string): string =>
  shown.replace(/[\uD800-\uDBFF]$/, "").trimEnd();

/**
 * Joins an attempt that was asked to continue `beginningOf(shown)`. Both functions return what can
 * be shown now. Both throw a ProviderError if the attempt cannot be used, and on each later call.
 */
export function joinAfter(shown: string) {
  const beginning = beginningOf(shown);
  let held = "";
  /** Shown text that the attempt must repeat before anything new. Undefined: not known yet. */
  let due: string | undefined;
  let joined = false;

  function advance(isOver: boolean): readonly Part[] {
    const words = held.trimStart();
    if (held.length - words.length > MAX_BLANKS) throw refused("it says nothing but blanks");
    // More text may show that it is a repetition.
    const isOpen = words.length < MAX_COMPARED && beginning.includes(words);
    if (due === undefined && isOpen && !isOver) return [];
    // The model did not get the blanks at the end, so it must produce them again.
    due ??= repetition(beginning, held) + shown.slice(beginning.length);
    const again = held.slice(0, due.length);
    if (!due.startsWith(again)) throw refused("it leaves out a part of what was shown");
    due = due.slice(again.length);
    held = held.slice(again.length);
    joined = held.trim() !== "";
    // A server that takes the beginning for a complete reply adds nothing either.
    if (isOver && !joined) throw refused("it adds nothing to what was shown");
    return joined ? [{ type: "text", text: held }] : [];
  }

  /** The text of the attempt has ended. */
  const end = (): readonly Part[] => (joined ? [] : advance(true));

  /** Takes the next part. Drops reasoning: its place is before the text. */
  function take(part: Part): readonly Part[] {
    if (part.type === "tool_call" || part.type === "refusal") return [...end(), part];
    if (part.type !== "text") return part.type === "tool_arguments" ? [part] : [];
    if (joined) return [{ type: "text", text: part.text }];
    held += part.text;
    return advance(false);
  }

  return { take, end };
}

/**
 * The end of `beginning`, perhaps all of it, that the continuation repeats. "": it repeats nothing.
 * Throws if that is uncertain.
 */
function repetition(beginning: string, continuation: string): string {
  const text = beginning.trimStart();
  const words = continuation.trimStart().slice(0, MAX_COMPARED);
  const startsWithBlank = /^\s/.test(continuation);
  const isInside = words.length >= MIN_REPETITION && text.includes(words);
  const place = isInside ? text.indexOf(words) : text.length - overlap(text, words);
  const repeated = text.slice(place);
  const lastWord = /\S*$/.exec(text.slice(-MIN_DOUBT))![0];
  if (repeated.length < lastWord.length) {
    const firstWord = /^\S+\s?/.exec(text)![0];
    const start = words.slice(0, MIN_REPETITION);
    const isAnother = text.startsWith(start) || (!startsWithBlank && start.startsWith(firstWord));
    if (isAnother) throw refused("it is another answer, or none");
    return "";
  }
  const start = repeated.slice(0, MIN_REPETITION);
  const both = text + start;
  // In a line of dashes the same text begins at every position.
  const isUnique = both.indexOf(start) === place && both.indexOf(start, place + 1) === text.length;
  const isLong = repeated.length >= MIN_REPETITION || (place === 0 && /\s/.test(text));
  // After a blank the reply may really contain that line twice.
  if (startsWithBlank || !isUnique || !isLong) throw refused("it may repeat what was shown");
  return repeated;
}

/** How many characters at the beginning of `words` are also the end of `text`. */
function overlap(text: string, words: string): number {
  let length = words.length;
  while (!text.endsWith(words.slice(0, length))) length -= 1;
  return length;
}
