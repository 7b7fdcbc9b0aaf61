// Parses JSON texts from outside without keeping other requests waiting.
import { setImmediate as turnEnd } from "node:timers/promises";
import { jsonExcess } from "./json-bounds.ts";

/** From this many characters on, each step of the work has a turn of the event loop of its own. */
const LARGE_CHARS = 256 * 1024;

/**
 * Parses a text. If it is large, its values are counted first, and other work gets a turn of the
 * event loop before and after the parse. Rejects with a RangeError that says what the text has too
 * much of, or with the SyntaxError of JSON.parse.
 */
export async function parseLarge(text: string, maxValues: number): Promise<unknown> {
  if (text.length <= LARGE_CHARS) return JSON.parse(text);
  const excess = jsonExcess(text, maxValues);
  if (excess !== undefined) throw new RangeError(excess);
  await turnEnd();
  const json: unknown = JSON.parse(text);
  await turnEnd();
  return json;
}
