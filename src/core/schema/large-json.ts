// JSON texts from outside. A parse cannot be interrupted, and the work on what it yields takes
// three times as long. So the work on a large text is cut into steps (turns.ts), and an extension
// may refuse what the text holds before it is parsed.
import type { Steps } from "../turns.ts";
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
const LARGE_CHARS = 32 * 1024;
/** The memory of one value of a parsed text, beside the text. */
const VALUE_BYTES = 100;

/**
 * What in a text is more than should be parsed, in words: "more than 300000 values". Undefined:
 * nothing.
 */
export type JsonExcess = (text: string, maxValues: number) => string | undefined;

/**
 * The bounds of the parsing of a text. `jsonExcess` undefined: it may hold anything. `retain`: as
 * Exchange.retain, for the values of a large text.
 */
export type JsonBounds = { jsonExcess: JsonExcess | undefined; retain(bytes: number): void };

/** Whether a text is so long that the work on it is done in turns. */
export const isLarge = (text: string): boolean => text.length > LARGE_CHARS;

/** The bound that a text exceeds. Undefined: none, or `excess` is undefined. */
export const excessIn = (
  text: string,
  maxValues: number,
  excess: JsonExcess | undefined,
): string | undefined => (isLarge(text) ? excess?.(text, maxValues) : undefined);

/**
 * Parses a JSON text, in steps if it is large. Throws a RangeError whose message is what
 * `jsonExcess` says, or the SyntaxError of JSON.parse.
 */
export function* parseText(
  text: string,
  maxValues: number,
  { jsonExcess, retain }: JsonBounds,
): Steps<unknown> {
  const found = excessIn(text, maxValues, jsonExcess);
  if (found !== undefined) throw new RangeError(found);
  yield;
  const json: unknown = JSON.parse(text);
  // In the same step: values that wait for their turn, uncounted, would have no bound.
  if (isLarge(text)) retain(VALUE_BYTES * Math.min(maxValues, countValues(json, maxValues)));
  yield;
  return json;
}
