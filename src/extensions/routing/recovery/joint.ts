// How the text of another attempt is joined to the text that was shown before a stream broke. It is
// pure: parts in, the parts to be shown out. An exact repetition is dropped. What may or may not be
// one is refused, because a doubled or missing word would be a lie about the reply.
import type { Part } from "../../../core/openai/parts.ts";
import { unusable } from "./spoken.ts";

/** So many characters, said once more, are no coincidence. */
const MIN_REPETITION = 20;
/** Fewer than so many, if they are less than a word, are a coincidence: "bal" and "loon". */
const MIN_DOUBT = 4;
/** At most so many characters of an attempt are compared before anything of it is shown. */
const MAX_COMPARED = 200;
/** Blanks before a word. */
const MAX_BLANKS = 1_000;

const refused = (why: string): Error => unusable(`the stream cannot be joined: ${why}`);

/**
 * The part of a text that a model is asked to go on from: without blanks at its end, which many
 * servers remove, and without half of a character.
 */
export const beginningOf = (shown: string): string =>
  shown.replace(/[\uD800-\uDBFF]$/, "").trimEnd();

/**
 * Joins an attempt that was asked to continue from `beginningOf(shown)`. Both functions return what
 * can be shown now. They throw a ProviderError where the attempt cannot be used, then at each call.
 */
export function joinAfter(shown: string) {
  const beginning = beginningOf(shown);
  let held = "";
  /** What has to come before anything new, because it was shown. Undefined: not known yet. */
  let due: string | undefined;
  let joined = false;

  function advance(isOver: boolean): readonly Part[] {
    const words = held.trimStart();
    if (held.length - words.length > MAX_BLANKS) throw refused("it says nothing but blanks");
    // More may yet show that it repeats something.
    const isOpen = words.length < MAX_COMPARED && beginning.includes(words);
    if (due === undefined && isOpen && !isOver) return [];
    // The model has not seen the last blanks, so that it says them too.
    due ??= repetition(beginning, held) + shown.slice(beginning.length);
    const again = held.slice(0, due.length);
    if (!due.startsWith(again)) throw refused("it leaves out a part of what was shown");
    due = due.slice(again.length);
    held = held.slice(again.length);
    joined = held.trim() !== "";
    // A server that takes the beginning for a complete reply also adds nothing.
    if (isOver && !joined) throw refused("it adds nothing to what was shown");
    return joined ? [{ type: "text", text: held }] : [];
  }

  /** No further text comes. */
  const end = (): readonly Part[] => (joined ? [] : advance(true));

  /** Takes the next part. Reasoning has its place before the text, and is not shown after it. */
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
 * The end of `beginning` that an attempt repeats, be it all of it. "": it repeats nothing. Throws
 * where that is not certain.
 */
function repetition(beginning: string, said: string): string {
  const text = beginning.trimStart();
  const words = said.trimStart().slice(0, MAX_COMPARED);
  const isApart = /^\s/.test(said);
  const isPart = words.length >= MIN_REPETITION && text.includes(words);
  const place = isPart ? text.indexOf(words) : text.length - overlap(text, words);
  const repeated = text.slice(place);
  const lastWord = /\S*$/.exec(text.slice(-MIN_DOUBT))![0];
  if (repeated.length < lastWord.length) {
    const firstWord = /^\S+\s?/.exec(text)![0];
    const start = words.slice(0, MIN_REPETITION);
    const isAnother = text.startsWith(start) || (!isApart && start.startsWith(firstWord));
    if (isAnother) throw refused("it is another answer, or none");
    return "";
  }
  const start = repeated.slice(0, MIN_REPETITION);
  const both = text + start;
  // In a line of dashes the same text begins at every place.
  const isUnique = both.indexOf(start) === place && both.indexOf(start, place + 1) === text.length;
  const isLong = repeated.length >= MIN_REPETITION || (place === 0 && /\s/.test(text));
  // After a blank it may be a line that is to be said twice.
  if (isApart || !isUnique || !isLong) throw refused("it may repeat what was shown");
  return repeated;
}

/** How many characters at the beginning of `words` are also the end of `text`. */
function overlap(text: string, words: string): number {
  let length = words.length;
  while (!text.endsWith(words.slice(0, length))) length -= 1;
  return length;
}
