// The body of a provider's answer, read piece by piece or as a whole.
import { ownTurn } from "../turns.ts";

/**
 * Milliseconds for the pieces of all bodies together in one pass of the event loop. In a pass the
 * kernel hands over some 30 pieces of 64 KB of each connection. Beyond this budget each piece waits
 * for a turn of its own, and its connection is not read meanwhile.
 */
const BUDGET_MS = 10;

let spentMs = 0;

function spend(ms: number): void {
  const before = spentMs;
  spentMs += ms;
  if (before > BUDGET_MS || spentMs <= BUDGET_MS) return;
  setImmediate(() => {
    spentMs = 0;
  });
}

/**
 * Passes each piece of a body to `take`, and reads on when the promise resolves, if `take` returns
 * one. Resolves at the body's end. Rejects with the body's error, or with what `take` throws. The
 * rest of the body is abandoned then.
 */
export async function consume(
  body: AsyncIterable<Uint8Array>,
  take: (bytes: Uint8Array) => Promise<unknown> | undefined | void,
): Promise<void> {
  const pieces = body[Symbol.asyncIterator]();
  try {
    for (let piece = await pieces.next(); !piece.done; ) {
      if (spentMs > BUDGET_MS) await ownTurn();
      const startedAt = performance.now();
      const room = take(piece.value);
      spend(performance.now() - startedAt);
      const next = pieces.next();
      // One piece is asked for ahead, so that a failing body ends the waiting for room.
      if (room) await Promise.race([room, next.then(() => room)]);
      piece = await next;
    }
  } catch (error) {
    pieces.return?.().catch(() => undefined); // the first error counts
    throw error;
  }
}

/**
 * Collects the pieces of a body, up to and with the one that makes it larger than `maxBytes`.
 * `progress` is called with the size of each piece but that one.
 */
export function readAll(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  progress?: (bytes: number) => void,
): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    consume(body, (bytes) => {
      if (size > maxBytes) return; // the result is complete: the rest is thrown away
      size += bytes.length;
      pieces.push(bytes);
      if (size > maxBytes) resolve(pieces);
      else progress?.(bytes.length);
    }).then(() => resolve(pieces), reject);
  });
}
