// Reads a reply that comes as a stream of events. The decoding is synchronous: texts of events in,
// parts of the reply out. The only pump of the program reads the bytes, pushes them through the
// decoding as they come, and delivers one batch of parts per read. Nothing is read while the client
// has no room for the batch before (backpressure).
import type { Clock, Timer } from "../clock.ts";
import type { Cancel } from "../http/cancel.ts";
import { createEventReader } from "../http/event-reader.ts";
import type { Meter } from "../ledger/meter.ts";
import type { Part } from "../openai/parts.ts";
import type { Decoder } from "../providers/dialect.ts";
import { ProviderError } from "../providers/provider-error.ts";
import { excessIn, MAX_REPLY_VALUES, type JsonExcess } from "../schema/large-json.ts";
import { parseJson } from "../schema/untrusted-json.ts";
import { consume } from "../upstream/body.ts";
import { boundedParts, MAX_PARTS, tooMuch } from "./attempt-errors.ts";
import type { Deadlines } from "./deadlines.ts";

/** Takes a batch of parts. The promise, if there is one, resolves when there is room for more. */
export type TakeParts = (parts: readonly Part[]) => Promise<unknown> | undefined;

export interface EventDecoding {
  /**
   * Decodes events, and counts their parts. True: they have content, that is parts other than token
   * figures.
   */
  push(events: readonly string[]): boolean;
  /** Removes the parts that may be delivered, and returns them. None before the first content. */
  takeParts(): readonly Part[];
  /** The first error, of the provider or of this program. Undefined: there was none. */
  error(): unknown;
  /** Content has come. */
  hasBegun(): boolean;
  /** The provider has finished its reply; only figures may follow. */
  isFinished(): boolean;
  /**
   * The provider has ended the stream. Later bytes are no part of the reply, however they were cut.
   */
  isEnded(): boolean;
  /** Events that were skipped because they are not JSON. */
  unreadable(): number;
}

/** `decoder` is guarded (attempt-errors.ts). `jsonExcess` undefined: no event holds too much. */
export function createEventDecoding(
  decoder: Decoder,
  meter: Meter,
  jsonExcess?: JsonExcess,
): EventDecoding {
  let parts: Part[] = [];
  let contentParts = 0;
  let calls = 0;
  let unreadable = 0;
  let finished = false;
  let ended = false;
  let firstError: unknown;

  /** After an error only figures count: nothing more is delivered. */
  function accept(part: Part): void {
    if (firstError !== undefined && part.type !== "usage") return;
    meter.observe(part);
    parts.push(part);
    if (part.type === "usage" || (part.type === "native" && !part.content)) return;
    contentParts += 1;
    if (part.type === "finish") finished = true;
    if (part.type === "tool_call") calls += 1;
    if (calls > MAX_PARTS) throw tooMuch(`more than ${MAX_PARTS} tool calls`);
  }

  /** The parts of an event, or of the end. None if it is not JSON. */
  function partsOf(data: string): Part[] {
    if (ended) return decoder.done?.() ?? [];
    const excess = excessIn(data, MAX_REPLY_VALUES, jsonExcess);
    if (excess !== undefined) throw tooMuch(`an event with ${excess}`);
    const json = parseJson(data);
    if (json !== undefined) return decoder.push(json);
    unreadable += 1;
    return [];
  }

  /** False: decoding further events makes no sense, because of a bug of this program. */
  function decode(data: string): boolean {
    try {
      for (const part of boundedParts(partsOf(data))) accept(part);
      return true;
    } catch (error) {
      firstError ??= error;
      if (error instanceof ProviderError && error.usage)
        meter.observe({ type: "usage", usage: error.usage });
      return finished || (error instanceof ProviderError && error.cause === undefined);
    }
  }

  return {
    push(events) {
      const before = contentParts;
      for (const data of events) {
        ended = data === "[DONE]";
        if (!decode(data) || ended) break;
        // Asked after each event, so that it does not depend on how the bytes were cut.
        ended = decoder.ended?.() === true;
        if (ended) break;
      }
      return contentParts > before;
    },
    takeParts() {
      if (contentParts === 0) return [];
      const taken = parts;
      parts = [];
      return taken;
    },
    error: () => firstError,
    hasBegun: () => contentParts > 0,
    isFinished: () => finished,
    isEnded: () => ended,
    unreadable: () => unreadable,
  };
}

export interface PumpOptions {
  /**
   * Aborts the provider's answer. The pump aborts it itself where the answer does not end with the
   * reply.
   */
  readonly cancel: Cancel;
  /** Renewed by what arrives, and paused while the client has no room. */
  readonly deadlines: Deadlines;
  /** Times `closingMs`. */
  readonly clock: Clock;
  /**
   * Bytes of the whole stream. Infinity: no bound, because each piece goes to the client at once.
   */
  readonly maxBytes: number;
  /** As Exchange.retain, for a stream that is kept until its end, and for a large event. */
  readonly retain: (bytes: number) => void;
  /** Milliseconds for the answer to end after the reply has ended. */
  readonly closingMs: number;
}

/** Any read may end within an event, so its first 64 KB are not counted. */
const counted = (unfinished: number): number => Math.max(0, unfinished - 64 * 1024);

/**
 * Resolves at the end of the stream. Rejects with the reason of `cancel`, or with what went wrong,
 * after the parts before the failure were delivered.
 */
export function pump(
  body: AsyncIterable<Uint8Array>,
  decoding: EventDecoding,
  deliver: TakeParts,
  { cancel, deadlines, clock, maxBytes, retain, closingMs }: PumpOptions,
): Promise<void> {
  const events = createEventReader();
  let size = 0;
  /** Bytes of the event that has not ended. */
  let unfinished = 0;
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
    room?.catch(() => undefined); // once no code waits for room, its error does not matter
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
      const texts = events.push(bytes);
      const before = counted(unfinished);
      unfinished = texts.length > 0 ? 0 : unfinished + bytes.length;
      retain(maxBytes < Infinity ? bytes.length : counted(unfinished) - before);
      const room = take(texts);
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
