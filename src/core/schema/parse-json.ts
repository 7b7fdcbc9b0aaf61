// JSON.parse for texts from outside that may be large.
import { setImmediate as turnEnd } from "node:timers/promises";
import { jsonExcess } from "./json-bounds.ts";

/** From this many characters on, each step of the work is a turn of the event loop of its own. */
const LARGE_CHARS = 256 * 1024;

/**
 * Parses a JSON text. The contents of a large one are counted first (json-bounds.ts), and other
 * work has a turn of the event loop before and after the parse. Rejects with a RangeError whose
 * message says what is too much, or with the SyntaxError of JSON.parse.
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
