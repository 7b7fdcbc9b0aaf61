// Joins the text of a continuation to the text that was shown before the stream broke. It is pure:
// parts in, the parts to show out. An exact repetition of shown text is dropped. If it is uncertain
// whether a text is a repetition, the attempt is rejected: a doubled or missing word would falsify
// the reply.
import type { Part } from "../../../core/openai/parts.ts";
import { unusableReply } from "./breaker-blame.ts";

/** Text that repeats at least so many characters does so on purpose. */
const MIN_REPETITION = 20;
/**
 * Text that repeats fewer characters, and less than the last word, does so by chance: "bal" and
 * "loon". Anything between this and MIN_REPETITION is uncertain.
 */
const MIN_UNCERTAIN = 4;
/** The most characters of an attempt that are held back for the comparison. */
const MAX_COMPARED = 200;
/** The most blanks at the beginning of an attempt. */
const MAX_BLANKS = 1_000;

const joinError = (why: string): Error => unusableReply(`the stream cannot be joined: ${why}`);

/**
 * The part of the shown text that a model gets to continue. It lacks the blanks at the end, which
 * many servers remove, and half of a surrogate pair.
 */
export const prefillOf = (shown: string): string => shown.replace(/[\uD800-\uDBFF]$/, "").trimEnd();

/**
 * Joins a reply that continues `prefillOf(shown)`. Both functions return the parts that can be
 * shown now, and throw a ProviderError if the reply cannot be joined. Then later calls throw too.
 */
export function createJoiner(shown: string) {
  const prefill = prefillOf(shown);
  /** Text that was received and not shown yet. */
  let held = "";
  /** Shown text that must still be repeated before new text. Undefined: not decided yet. */
  let toRepeat: string | undefined;
  let joined = false;

  function advance(isOver: boolean): readonly Part[] {
    const text = held.trimStart();
    if (held.length - text.length > MAX_BLANKS) throw joinError("it says nothing but blanks");
    // It may be a repetition: only more text can tell.
    const mayRepeat = text.length < MAX_COMPARED && prefill.includes(text);
    if (toRepeat === undefined && mayRepeat && !isOver) return [];
    // The prefill lacks the blanks at the end of the shown text, so the model repeats them.
    toRepeat ??= repetition(prefill, held) + shown.slice(prefill.length);
    const repeated = held.slice(0, toRepeat.length);
    if (!toRepeat.startsWith(repeated)) throw joinError("it leaves out a part of what was shown");
    toRepeat = toRepeat.slice(repeated.length);
    held = held.slice(repeated.length);
    joined = held.trim() !== "";
    // A server that takes the prefill for a complete reply adds nothing either.
    if (isOver && !joined) throw joinError("it adds nothing to what was shown");
    return joined ? [{ type: "text", text: held }] : [];
  }

  /** Ends the text of the reply. */
  const flush = (): readonly Part[] => (joined ? [] : advance(true));

  /** Joins the next part. Drops reasoning, whose place would be before the shown text. */
  function transform(part: Part): readonly Part[] {
    if (part.type === "tool_call" || part.type === "refusal") return [...flush(), part];
    if (part.type !== "text") return part.type === "tool_arguments" ? [part] : [];
    if (joined) return [{ type: "text", text: part.text }];
    held += part.text;
    return advance(false);
  }

  return { transform, flush };
}

/**
 * Finds the end of the prefill, perhaps all of it, that the continuation repeats. "": it repeats
 * nothing. Throws if that is uncertain.
 */
function repetition(prefill: string, continuation: string): string {
  const text = prefill.trimStart();
  const compared = continuation.trimStart().slice(0, MAX_COMPARED);
  const startsWithBlank = /^\s/.test(continuation);
  const isInside = compared.length >= MIN_REPETITION && text.includes(compared);
  const place = isInside ? text.indexOf(compared) : text.length - overlap(text, compared);
  const repeated = text.slice(place);
  const lastWord = /\S*$/.exec(text.slice(-MIN_UNCERTAIN))![0];
  if (repeated.length < lastWord.length) {
    const firstWord = /^\S+\s?/.exec(text)![0];
    const start = compared.slice(0, MIN_REPETITION);
    const isNewAnswer = text.startsWith(start) || (!startsWithBlank && start.startsWith(firstWord));
    if (isNewAnswer) throw joinError("it is another answer, or none");
    return "";
  }
  const start = repeated.slice(0, MIN_REPETITION);
  const both = text + start;
  // In a line of dashes, for example, the same text begins at every position.
  const isUnique = both.indexOf(start) === place && both.indexOf(start, place + 1) === text.length;
  const isLong = repeated.length >= MIN_REPETITION || (place === 0 && /\s/.test(text));
  // After a blank, the answer may really contain that line twice.
  if (startsWithBlank || !isUnique || !isLong) throw joinError("it may repeat what was shown");
  return repeated;
}

/** The number of characters at the beginning of `next` that are also the end of `text`. */
function overlap(text: string, next: string): number {
  let length = next.length;
  while (!text.endsWith(next.slice(0, length))) length -= 1;
  return length;
}
