// The body of a provider's answer, read piece by piece or as a whole.
import { Readable } from "node:stream";
import { setImmediate as turnEnd } from "node:timers/promises";

/**
 * After a piece that kept the reader busy for this many milliseconds, other work has a turn: the
 * kernel hands over some 30 pieces of 64 KB in one turn of the event loop.
 */
const LONG_MS = 10;

/**
 * Passes each piece of a body to `take`, and pauses the body until the promise resolves if `take`
 * returns one. Resolves at the body's end. Rejects with the body's error, or with what `take`
 * throws. Node's own streams are read through events: iterating over one costs more than all other
 * work on a piece.
 */
export function consume(
  body: AsyncIterable<Uint8Array>,
  take: (bytes: Uint8Array) => Promise<unknown> | undefined | void,
): Promise<void> {
  const stream = body instanceof Readable ? body : Readable.from(body);
  return new Promise<void>((resolve, reject) => {
    stream.on("data", (bytes: Buffer) => {
      try {
        const startedAt = performance.now();
        let room = take(bytes);
        if (!room && performance.now() - startedAt > LONG_MS) room = turnEnd();
        if (!room) return;
        stream.pause();
        room.then(() => stream.resume(), reject);
      } catch (error) {
        stream.removeAllListeners("data"); // more data may come in this very turn
        reject(error);
      }
    });
    stream.on("end", resolve).on("error", reject);
  });
}

/**
 * Collects the pieces of a body, up to and with the one that makes it larger than `maxBytes`.
 * `progress` is called after every other piece.
 */
export function readAll(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  progress?: () => void,
): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    consume(body, (bytes) => {
      if (size > maxBytes) return; // the result is complete: the rest is thrown away
      size += bytes.length;
      pieces.push(bytes);
      if (size > maxBytes) resolve(pieces);
      else progress?.();
    }).then(() => resolve(pieces), reject);
  });
}
