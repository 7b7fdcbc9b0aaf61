// Joins the text of a continuation to the text that was shown before the stream broke. The joiner
// does no I/O: it takes parts and returns the parts to show. An exact repetition of shown text is
// dropped. If it is uncertain whether text is a repetition, the attempt is rejected: a doubled or
// missing word would falsify the reply.
import type { Part } from "../../../core/openai/parts.ts";
import { unusableReply } from "./breaker-blame.ts";

/** An overlap of at least this many characters is a deliberate repetition. */
const MIN_REPETITION = 20;
/**
 * An overlap shorter than the last word, or than this many of its characters, is chance: "bal" and
 * "loon". Any overlap between that and MIN_REPETITION is uncertain.
 */
const MIN_UNCERTAIN = 4;
/** The most characters of an attempt that are held back to find a repetition. */
const MAX_COMPARED = 200;
/** The most blanks at the beginning of an attempt. */
const MAX_BLANKS = 1_000;

const joinError = (why: string): Error => unusableReply(`the stream cannot be joined: ${why}`);

/**
 * The part of the shown text that a model is given to continue: without the blanks at the end,
 * which many servers remove, and without half a surrogate pair.
 */
export const prefillOf = (shown: string): string => shown.replace(/[\uD800-\uDBFF]$/, "").trimEnd();

/**
 * Joins a reply that continues `prefillOf(shown)`. Both functions return the parts that can be
 * shown now. They throw a ProviderError if the reply cannot be joined; later calls then throw too.
 */
export function createJoiner(shown: string) {
  const prefill = prefillOf(shown);
  /** Text that was received and not shown yet. */
  let held = "";
  /** Shown text that the model must still repeat before new text. Undefined: not decided yet. */
  let toRepeat: string | undefined;
  let joined = false;

  function advance(isOver: boolean): readonly Part[] {
    const text = held.trimStart();
    if (held.length - text.length > MAX_BLANKS) throw joinError("it says nothing but blanks");
    // The text may be the start of a repetition, so wait for more.
    const mayRepeat = text.length < MAX_COMPARED && prefill.includes(text);
    if (toRepeat === undefined && mayRepeat && !isOver) return [];
    // The prefill lacks the blanks at the end of the shown text, so the model repeats them.
    toRepeat ??= repetition(prefill, held) + shown.slice(prefill.length);
    const repeated = held.slice(0, toRepeat.length);
    if (!toRepeat.startsWith(repeated)) throw joinError("it leaves out a part of what was shown");
    toRepeat = toRepeat.slice(repeated.length);
    held = held.slice(repeated.length);
    joined = held.trim() !== "";
    // A server that takes the prefill for a complete reply adds nothing, and has not continued it.
    if (isOver && !joined) throw joinError("it adds nothing to what was shown");
    return joined ? [{ type: "text", text: held }] : [];
  }

  /** Call at the end of the reply's text: decides about the text that is still held. */
  const flush = (): readonly Part[] => (joined ? [] : advance(true));

  /** Joins the next part. Drops reasoning, which would belong before the shown text. */
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
 * Returns the end of the prefill, perhaps all of it, that the continuation repeats. "": it repeats
 * nothing. Throws a ProviderError if that is uncertain.
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
  // In a line of dashes, for example, the same text begins at every position, so no place is sure.
  const isUnique = both.indexOf(start) === place && both.indexOf(start, place + 1) === text.length;
  const isLong = repeated.length >= MIN_REPETITION || (place === 0 && /\s/.test(text));
  // After a blank, the answer may really contain the same text twice.
  if (startsWithBlank || !isUnique || !isLong) throw joinError("it may repeat what was shown");
  return repeated;
}

/** The number of characters at the beginning of `next` that are also the end of `text`. */
function overlap(text: string, next: string): number {
  let length = next.length;
  while (!text.endsWith(next.slice(0, length))) length -= 1;
  return length;
}
