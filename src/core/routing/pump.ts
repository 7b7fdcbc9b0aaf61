// The only pump: reads the bytes of a stream, pushes them through the decoding as they come, and
// delivers one batch of parts per read. Nothing is read while the client has no room for the batch
// before (backpressure).
import type { Clock, Timer } from "../clock.ts";
import type { Cancel } from "../http/cancel.ts";
import { createEventReader } from "../http/event-reader.ts";
import type { Part } from "../openai/parts.ts";
import { consume } from "../upstream/body.ts";
import { tooMuch } from "./attempt-errors.ts";
import type { Deadlines } from "./deadlines.ts";
import type { EventDecoding } from "./event-decoding.ts";

/** Takes a batch of parts. The promise, if there is one, resolves when there is room for more. */
export type TakeParts = (parts: readonly Part[]) => Promise<unknown> | undefined;

export interface PumpOptions {
  /**
   * Aborts the provider's answer. The pump aborts it itself where the answer does not end with the
   * reply.
   */
  readonly cancel: Cancel;
  readonly deadlines: Deadlines;
  readonly clock: Clock;
  /**
   * Bytes of the whole stream. Infinity: no bound, because each piece goes to the client at once.
   */
  readonly maxBytes: number;
  /** Milliseconds for the answer to end after the reply has ended. */
  readonly closingMs: number;
}

/**
 * Resolves at the end of the stream. Rejects with the reason of `cancel`, or with what went wrong,
 * after what came before was delivered.
 */
export function pump(
  body: AsyncIterable<Uint8Array>,
  decoding: EventDecoding,
  deliver: TakeParts,
  { cancel, deadlines, clock, maxBytes, closingMs }: PumpOptions,
): Promise<void> {
  const events = createEventReader();
  let size = 0;
  let closing: Timer | undefined;

  /**
   * Moves the deadline. Before the first content nothing moves it, and after the reply's finish
   * only content does.
   */
  function renew(hasContent: boolean): void {
    if (decoding.isEnded() || !decoding.hasBegun()) return;
    if (!decoding.isFinished()) deadlines.streaming();
    else if (hasContent) deadlines.closing();
  }

  /**
   * Decodes and delivers. Throws the error of these events, unless the reply was finished before.
   */
  function take(texts: readonly string[]): Promise<void> | undefined {
    const hasContent = decoding.push(texts);
    const parts = decoding.takeParts();
    const room = parts.length > 0 ? deliver(parts) : undefined;
    room?.catch(() => undefined); // where nobody waits for room any more, its error does not matter
    const error = decoding.error();
    if (error !== undefined && !decoding.isFinished()) throw error;
    if (!room || decoding.isEnded()) {
      renew(hasContent);
      return undefined;
    }
    deadlines.pause(); // the provider is not to blame for silence while the client has no room
    return room.then(() => renew(true));
  }

  return new Promise((resolve, reject) => {
    // The built-in fetch says nothing of an abort that comes with the last bytes of a body.
    cancel.onAbort(() => {
      if (!decoding.isEnded()) reject(cancel.reason as Error);
    });

    function takeBytes(bytes: Uint8Array): Promise<void> | undefined {
      size += bytes.length;
      if (size > maxBytes) throw tooMuch(`a reply of more than ${maxBytes} bytes`);
      if (decoding.isEnded()) {
        cancel.abort(); // the provider goes on after the end: its connection is of no further use
        return undefined;
      }
      const room = take(events.push(bytes));
      if (!decoding.isEnded()) return room;
      resolve();
      // The connection can be used again if the answer ends soon. Otherwise it is closed.
      closing = clock.after(closingMs, () => cancel.abort());
      return undefined;
    }

    consume(body, takeBytes)
      .finally(() => closing?.cancel())
      .then(() => (decoding.isEnded() ? undefined : take(events.end())))
      .then(resolve, reject);
  });
}
