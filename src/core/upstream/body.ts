// The body of a provider's answer, read piece by piece or as a whole.
import { ownTurn } from "../turns.ts";
import type { TakePiece, UpstreamBody } from "./transport.ts";

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
 * As PassedBody.each, for any body, within the budget of a pass of the event loop. Resolves with
 * what `end` returns at the body's end.
 */
export function consume<T>(
  body: UpstreamBody,
  take: TakePiece,
  end: () => T | Promise<T>,
): Promise<T> {
  function takeNow(bytes: Uint8Array): ReturnType<TakePiece> {
    const startedAt = performance.now();
    const room = take(bytes);
    spend(performance.now() - startedAt);
    return room;
  }
  let turn: Promise<void> | undefined;
  function takeInTime(bytes: Uint8Array): ReturnType<TakePiece> {
    if (spentMs <= BUDGET_MS) return takeNow(bytes);
    turn = ownTurn();
    return turn.then(() => takeNow(bytes));
  }
  const read = "each" in body ? body.each(takeInTime) : iterate(body, takeInTime);
  // A piece that waits for its turn came before the failure.
  return read.then(end, (error) => Promise.resolve(turn).then(() => Promise.reject(error)));
}

/** As PassedBody.each. */
async function iterate(body: AsyncIterable<Uint8Array>, take: TakePiece): Promise<void> {
  const pieces = body[Symbol.asyncIterator]();
  try {
    for (let piece = await pieces.next(); !piece.done; ) {
      const room = take(piece.value);
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
 * Collects the pieces of a body, up to and with the one that makes it larger than `maxBytes`; the
 * rest is abandoned. `progress` is called with the size of each piece but that one.
 */
export function readAll(
  body: UpstreamBody,
  maxBytes: number,
  progress?: (bytes: number) => void,
): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const enough = new Error("the body is larger");
  const take = (bytes: Uint8Array): void => {
    size += bytes.length;
    pieces.push(bytes);
    if (size > maxBytes) throw enough;
    progress?.(bytes.length);
  };
  return consume(body, take, () => pieces).catch((error) => {
    if (error === enough) return pieces;
    throw error;
  });
}
