// Reads the body of a provider's response, piece by piece or as a whole.
import { Readable } from "node:stream";
import { setImmediate as turnEnd } from "node:timers/promises";

/**
 * After a piece that took this long to process, other connections get a turn of the event loop. The
 * kernel hands over some 30 pieces of 64 KB in one turn.
 */
const LONG_MS = 10;

/** The promise, if there is one, resolves when there is room for the next piece. */
export type TakePiece = (bytes: Uint8Array) => Promise<unknown> | undefined | void;

/**
 * Hands over a body piece by piece. Resolves at its end; rejects with what the body or `take`
 * throws. It listens to Node's own streams, because iterating over one costs more than everything
 * else that is done with a piece.
 */
export function consume(body: AsyncIterable<Uint8Array>, take: TakePiece): Promise<void> {
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
        stream.removeAllListeners("data"); // More pieces may arrive in this turn.
        reject(error);
      }
    });
    stream.on("end", resolve).on("error", reject);
  });
}

/**
 * Reads the pieces of a body, up to and with the one that makes it larger than `maxBytes`; the rest
 * is thrown away. `progress` is called for every other piece. Rejects as `consume` does.
 */
export function readAll(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  progress?: () => void,
): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    const take = (bytes: Uint8Array): void => {
      if (size > maxBytes) return;
      size += bytes.length;
      pieces.push(bytes);
      if (size > maxBytes) resolve(pieces);
      else progress?.();
    };
    consume(body, take).then(() => resolve(pieces), reject);
  });
}
