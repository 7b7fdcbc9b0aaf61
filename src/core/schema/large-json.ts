// JSON texts from outside. A parse cannot be interrupted, and the work on what it yields takes
// three times as long. So the work on a large text is cut into steps (turns.ts), and an extension
// may refuse what the text holds before it is parsed.
import { countValues } from "./containers.ts";

/**
 * The most values in a client's body: its commas and its opening brackets and braces, outside of
 * strings. 100,000 messages of a role and a text have as many.
 */
export const MAX_BODY_VALUES = 300_000;
/**
 * The most values in a provider's reply or event: log probabilities of 20 tokens at each of 4,000
 * positions.
 */
export const MAX_REPLY_VALUES = 600_000;
/** A hundred shorter texts at once hold nothing that takes long. */
export const LARGE_CHARS = 32 * 1024;
/** The memory of one value of a parsed text, beside the text. */
const VALUE_BYTES = 100;

/**
 * What in a text is more than should be parsed, in words: "more than 300000 values". Undefined:
 * nothing.
 */
export type JsonExcess = (text: string, maxValues: number) => string | undefined;

/** Whether a text is so long that the work on it is done in turns. */
export const isLarge = (text: string): boolean => text.length > LARGE_CHARS;

/** The bound that a text exceeds. Undefined: none, or `excess` is undefined. */
export const excessIn = (
  text: string,
  maxValues: number,
  excess: JsonExcess | undefined,
): string | undefined => (isLarge(text) ? excess?.(text, maxValues) : undefined);

/** The memory of the values of a parsed text, of which there are at most so many. */
export const valueBytes = (json: unknown, maxValues: number): number =>
  VALUE_BYTES * Math.min(maxValues, countValues(json, maxValues));
