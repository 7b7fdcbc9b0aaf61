// Reads a reply that comes as a stream of events. The decoding is synchronous: texts of events in,
// parts of the reply out. The only pump of the program reads the bytes, pushes them through the
// decoding as they come, and delivers one batch of parts per read. Nothing is read while the client
// has no room for the batch before (backpressure).
import type { Clock, Timer } from "../clock.ts";
import type { Cancel } from "../http/cancel.ts";
import type { Meter } from "../ledger/meter.ts";
import type { Part } from "../openai/parts.ts";
import type { EventReader } from "../http/event-reader.ts";
import type { Decoder } from "../providers/dialect.ts";
import { ProviderError } from "../providers/provider-error.ts";
import { excessIn, MAX_REPLY_VALUES, type JsonExcess } from "../schema/large-json.ts";
import { parseJson } from "../schema/untrusted-json.ts";
import { consume } from "../upstream/body.ts";
import type { UpstreamBody } from "../upstream/transport.ts";
import {
  boundedParts,
  dialectError,
  MAX_PARTS,
  tooMuch,
  type ReportBug,
} from "./attempt-errors.ts";
import type { Deadlines } from "./deadlines.ts";

/** Takes a batch of parts. The promise, if there is one, resolves when there is room for more. */
export type TakeParts = (parts: readonly Part[]) => Promise<unknown> | undefined;

/** What the decoding of a stream is made of. */
interface DecodingOptions {
  /** Counts each part. */
  readonly meter: Meter;
  /** Hears of the dialect's bugs. */
  readonly reportBug: ReportBug;
  /** Undefined: no event holds too much. */
  readonly jsonExcess?: JsonExcess | undefined;
}

/** Decodes the events of one reply, and counts their parts. */
export class EventDecoding {
  /** The first error, of the provider or of this program. Undefined: there was none. */
  error: unknown;
  /** Content has come. */
  begun = false;
  /** The provider has finished its reply; only figures may follow. */
  finished = false;
  /**
   * The provider has ended the stream. Later bytes are no part of the reply, however they were cut.
   */
  ended = false;
  /** Events that were skipped because they are not JSON. */
  unreadable = 0;
  #parts: Part[] = [];
  #contentParts = 0;
  #calls = 0;
  readonly #decoder: Decoder;
  readonly #options: DecodingOptions;

  constructor(decoder: Decoder, options: DecodingOptions) {
    this.#decoder = decoder;
    this.#options = options;
  }

  /**
   * Decodes events, and counts their parts. True: they have content, that is parts other than token
   * figures.
   */
  push(events: readonly string[]): boolean {
    const before = this.#contentParts;
    for (const data of events) {
      if (!this.#decode(data)) break;
      // Asked after each event, so that it does not depend on how the bytes were cut.
      this.ended ||= this.#decoder.ended?.() === true;
      if (this.ended) break;
    }
    return this.#contentParts > before;
  }

  /** Removes the parts that may be delivered, and returns them. None before the first content. */
  takeParts(): readonly Part[] {
    if (!this.begun) return [];
    const taken = this.#parts;
    this.#parts = [];
    return taken;
  }

  /** False: decoding further events makes no sense, because of a bug of this program. */
  #decode(data: string): boolean {
    try {
      for (const part of boundedParts(this.#partsOf(data))) this.#accept(part);
      return true;
    } catch (thrown) {
      const error = dialectError(thrown, this.#options.reportBug);
      this.error ??= error;
      if (error instanceof ProviderError && error.usage)
        this.#options.meter.observe({ type: "usage", usage: error.usage });
      return this.finished || error === thrown;
    }
  }

  /** The parts of an event, or of the end. None if it is not JSON. */
  #partsOf(data: string): Part[] {
    if (data === "[DONE]") {
      this.ended = true;
      return this.#decoder.done?.() ?? [];
    }
    const excess = excessIn(data, MAX_REPLY_VALUES, this.#options.jsonExcess);
    if (excess !== undefined) throw tooMuch(`an event with ${excess}`);
    const json = parseJson(data);
    if (json !== undefined) return this.#decoder.push(json);
    this.unreadable += 1;
    return [];
  }

  /** After an error only figures count: nothing more is delivered. */
  #accept(part: Part): void {
    if (this.error !== undefined && part.type !== "usage") return;
    this.#options.meter.observe(part);
    this.#parts.push(part);
    if (part.type === "usage" || (part.type === "native" && !part.content)) return;
    this.begun = true;
    this.#contentParts += 1;
    if (part.type === "finish") this.finished = true;
    if (part.type === "tool_call") this.#calls += 1;
    if (this.#calls > MAX_PARTS) throw tooMuch(`more than ${MAX_PARTS} tool calls`);
  }
}

export interface PumpOptions {
  /** Cuts the bytes into events. */
  readonly events: EventReader;
  /**
   * Aborts the provider's answer. The pump aborts it itself where the answer does not end with the
   * reply.
   */
  readonly cancel: Cancel;
  /** Renewed by what arrives, and paused while the client has no room. */
  readonly deadlines: Deadlines;
  /** Times `closingMs`. */
  readonly clock: Clock;
  /** Takes the parts of each read. Undefined: all stay in the decoding until the end. */
  readonly deliver: TakeParts | undefined;
  /** Bytes of a stream whose parts stay until the end. */
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
  body: UpstreamBody,
  decoding: EventDecoding,
  { events, cancel, deadlines, clock, deliver, maxBytes, retain, closingMs }: PumpOptions,
): Promise<void> {
  const bound = deliver ? Infinity : maxBytes;
  let size = 0;
  /** Bytes of the event that has not ended. */
  let unfinished = 0;
  let closing: Timer | undefined;

  /**
   * Moves the deadline. Before the first content nothing moves it, and after the reply's finish
   * only content does.
   */
  function renew(hasContent: boolean): void {
    if (cancel.aborted || decoding.ended || !decoding.begun) return;
    if (!decoding.finished) deadlines.streaming();
    else if (hasContent) deadlines.closing();
  }

  /**
   * Decodes and delivers. Throws the error of these events, unless the reply was finished before.
   */
  function take(texts: readonly string[]): Promise<void> | undefined {
    // A piece may have waited for its turn while a deadline ended the attempt. Another model may
    // have been asked since.
    if (cancel.aborted) throw cancel.reason;
    const hasContent = decoding.push(texts);
    const parts = deliver ? decoding.takeParts() : [];
    const room = parts.length > 0 ? deliver?.(parts) : undefined;
    room?.catch(() => undefined); // once no code waits for room, its error does not matter
    const error = decoding.error;
    if (error !== undefined && !decoding.finished) throw error;
    if (!room || decoding.ended) {
      renew(hasContent);
      return undefined;
    }
    deadlines.pause(); // the provider is not to blame for silence while the client has no room
    return room.then(() => renew(true));
  }

  return new Promise((resolve, reject) => {
    // The built-in fetch says nothing of an abort that comes with the last bytes of a body.
    cancel.onAbort(() => {
      if (!decoding.ended) reject(cancel.reason as Error);
    });

    function takeBytes(bytes: Uint8Array): Promise<void> | undefined {
      size += bytes.length;
      if (size > bound) throw tooMuch(`a reply of more than ${maxBytes} bytes`);
      if (decoding.ended) {
        cancel.abort(); // the provider goes on after the end: its connection is of no further use
        return undefined;
      }
      const texts = events.push(bytes);
      const before = counted(unfinished);
      unfinished = texts.length > 0 ? 0 : unfinished + bytes.length;
      retain(deliver ? counted(unfinished) - before : bytes.length);
      const room = take(texts);
      if (!decoding.ended) return room;
      resolve();
      // The connection can be used again if the answer ends soon. Otherwise it is closed.
      closing = clock.after(closingMs, () => cancel.abort());
      return undefined;
    }

    consume(body, takeBytes, () => (decoding.ended ? undefined : take(events.end())))
      .finally(() => closing?.cancel())
      .then(resolve, reject);
  });
}
