// Writes the body of a request to a provider, and reads the body of its response, piece by piece or
// as a whole.
import { addPiece } from "../pieces.ts";
import { waitForTurn } from "../turns.ts";
import type { TakePiece, UpstreamBody } from "./transport.ts";

/** Half of a character as JSON.stringify writes it: an escape whose backslash is not escaped. */
const HALF = /\\ud[89a-f]..(?<=(?<!\\)(?:\\\\)*\\u....)/g;

/**
 * The JSON text of a request. Halves of characters, which clients leave where they cut a text, are
 * replaced by U+FFFD: Anthropic, DeepSeek, vLLM and others refuse the whole request for one.
 */
export const bodyText = (fields: object): string => JSON.stringify(fields).replace(HALF, "\ufffd");

/**
 * The milliseconds that the pieces of all bodies together may take in one turn of the event loop,
 * in which Node may read some 30 pieces of 64 KB from each connection. Beyond this budget each
 * piece waits for a turn of its own, and its connection is paused meanwhile.
 */
const BUDGET_MS = 10;

let spentMs = 0;

function takeNow(take: TakePiece, bytes: Uint8Array): ReturnType<TakePiece> {
  const [startedAt, before] = [performance.now(), spentMs];
  const room = take(bytes);
  spentMs += performance.now() - startedAt;
  if (before <= BUDGET_MS && spentMs > BUDGET_MS) setImmediate(() => (spentMs = 0));
  return room;
}

/**
 * As PushBody.each, for any body, within the budget of a turn of the event loop. At the body's
 * end, resolves with the result of `end`.
 */
export function consume<T>(
  body: UpstreamBody,
  take: TakePiece,
  end: () => T | Promise<T>,
): Promise<T> {
  let turn: Promise<void> | undefined;
  function takeInTime(bytes: Uint8Array): ReturnType<TakePiece> {
    if (spentMs <= BUDGET_MS) return takeNow(take, bytes);
    turn = waitForTurn();
    return turn.then(() => takeNow(take, bytes));
  }
  const read = "each" in body ? body.each(takeInTime) : iterate(body, takeInTime);
  // A waiting piece arrived before the failure, so it is delivered first.
  return read.then(end, (error) => Promise.resolve(turn).then(() => Promise.reject(error)));
}

/** As PushBody.each, except that a failure is noticed only once there is room. */
async function iterate(body: AsyncIterable<Uint8Array>, take: TakePiece): Promise<void> {
  for await (const piece of body) await take(piece);
}

/**
 * The text of a body, up to and including the piece that makes it larger than `maxBytes`. The rest
 * is abandoned.
 */
export async function readAll(body: UpstreamBody, maxBytes: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  const enough = new Error("the body is larger");
  let size = 0;
  function take(bytes: Uint8Array): void {
    size += bytes.length;
    addPiece(pieces, bytes);
    if (size > maxBytes) throw enough;
  }
  await consume(body, take, () => undefined).catch((error) => {
    if (error !== enough) throw error;
  });
  return Buffer.concat(pieces).toString();
}
