// Parses large JSON texts from clients and providers. JSON.parse cannot pause, and the work on its
// result takes three times as long. So this work is cut into steps (turns.ts), and an extension can
// refuse a text before it is parsed.
import type { Steps } from "../turns.ts";
import { countValues } from "./containers.ts";

/**
 * The most values in a client's body, counted as the commas, opening brackets and opening braces
 * outside of strings. 100,000 messages with a role and a text have as many.
 */
export const MAX_BODY_VALUES = 300_000;
/**
 * The most values in a provider's reply or event: enough for the log probabilities of 20 tokens at
 * each of 4,000 positions.
 */
export const MAX_REPLY_VALUES = 600_000;
/** Texts of at most this many characters are processed without a pause. */
const LARGE_CHARS = 32 * 1024;
/** The estimated memory of one parsed value, in bytes. */
const VALUE_BYTES = 100;

/** Names the bound that a text exceeds: "more than 300000 values". Undefined: none. */
export type JsonExcess = (text: string, maxValues: number) => string | undefined;

/**
 * Bounds on the parsing of a text. `jsonExcess` undefined: there are none. `retain`: as
 * Exchange.retain, for the values of a large text.
 */
export type JsonBounds = { jsonExcess: JsonExcess | undefined; retain(bytes: number): void };

/** Whether a text is so long that the work on it is cut into steps. */
export const isLarge = (text: string): boolean => text.length > LARGE_CHARS;

/** The bound that a large text exceeds. Undefined: none, or `excess` is undefined. */
export const excessIn = (
  text: string,
  maxValues: number,
  excess: JsonExcess | undefined,
): string | undefined => (isLarge(text) ? excess?.(text, maxValues) : undefined);

/**
 * Parses a JSON text. Throws a RangeError with the message of `jsonExcess` if the text exceeds a
 * bound, or the SyntaxError of JSON.parse.
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
  // Counted in the same step: without a count, the values of waiting requests would be unbounded.
  if (isLarge(text)) retain(VALUE_BYTES * Math.min(maxValues, countValues(json, maxValues)));
  yield;
  return json;
}
