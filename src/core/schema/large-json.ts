// JSON texts from outside. A parse cannot be interrupted, and the work on what it yields takes
// three times as long. So the work on a large text is cut into turns of the event loop, and an
// extension may refuse what the text holds before it is parsed.
import { setImmediate as turnEnd } from "node:timers/promises";

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
/** A shorter text can hold nothing that takes long. */
const LARGE_CHARS = 256 * 1024;

/**
 * What in a text is more than should be parsed, in words: "more than 300000 values". Undefined:
 * nothing.
 */
export type JsonExcess = (text: string, maxValues: number) => string | undefined;

/** Whether a text is so long that each step of the work on it gets a turn of its own. */
export const isLarge = (text: string): boolean => text.length > LARGE_CHARS;

/** What is too much in a text. Undefined: nothing, or `excess` is undefined. */
export const excessIn = (
  text: string,
  maxValues: number,
  excess: JsonExcess | undefined,
): string | undefined => (isLarge(text) ? excess?.(text, maxValues) : undefined);

/**
 * Parses a JSON text; other work has a turn before and after the parse of a large one. Rejects with
 * a RangeError whose message is what `excess` says, or with the SyntaxError of JSON.parse.
 * `excess` undefined: nothing is refused.
 */
export async function parseLarge(
  text: string,
  maxValues: number,
  excess: JsonExcess | undefined,
): Promise<unknown> {
  if (!isLarge(text)) return JSON.parse(text);
  const found = excessIn(text, maxValues, excess);
  if (found !== undefined) throw new RangeError(found);
  await turnEnd();
  const json: unknown = JSON.parse(text);
  await turnEnd();
  return json;
}
