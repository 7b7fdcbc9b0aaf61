// Reads a streamed reply. EventDecoding is synchronous: it turns the texts of events into parts of
// the reply. The pump, the only one of the program, reads the bytes, pushes them through the
// decoding, and delivers one batch of parts per read. It reads nothing while the client has no room
// for the previous batch (backpressure).
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
  tooLarge,
  type ReportBug,
} from "./attempt-errors.ts";
import type { Deadlines } from "./deadlines.ts";

/** Takes a batch of parts. The promise, if there is one, resolves when there is room for more. */
export type TakeParts = (parts: readonly Part[]) => Promise<unknown> | undefined;

interface DecodingOptions {
  /** Counts each part. */
  readonly meter: Meter;
  /** Reports the dialect's bugs. */
  readonly reportBug: ReportBug;
  /** As slots.jsonExcess. Undefined: the values of an event have no bound. */
  readonly jsonExcess?: JsonExcess | undefined;
}

/** Decodes the events of one reply, and counts their parts. */
export class EventDecoding {
  /** The first error, of the provider or of this program. Undefined: there was none. */
  error: unknown;
  /** Content has arrived. */
  begun = false;
  /** The provider has stated a finish reason. Token figures may follow. */
  finished = false;
  /** The provider has ended the stream. Later bytes do not belong to the reply. */
  ended = false;
  /** Events that were skipped because they are not JSON. */
  unreadable = 0;
  #parts: Part[] = [];
  #contentParts = 0;
  /**
   * Characters of the events before the first content, from the first one whose parts are kept.
   * Some servers send long events without parts, such as the ids of all tokens of the prompt.
   */
  #silentChars = 0;
  #calls = 0;
  readonly #decoder: Decoder;
  readonly #options: DecodingOptions;

  constructor(decoder: Decoder, options: DecodingOptions) {
    this.#decoder = decoder;
    this.#options = options;
  }

  /**
   * Decodes events, and counts their parts. Returns whether they have content: parts other than
   * token figures.
   */
  push(events: readonly string[]): boolean {
    const before = this.#contentParts;
    for (const data of events) {
      if (!this.#decode(data)) break;
      // Checked after each event, so that the result does not depend on how the bytes were cut.
      this.ended ||= this.#decoder.ended?.() === true;
      if (this.ended) break;
    }
    return this.#contentParts > before;
  }

  /** Removes the parts that may be delivered, and returns them. None before the first content. */
  takeParts(): readonly Part[] {
    if (!this.begun) return [];
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }

  /** Returns false if a bug of this program prevents decoding further events. */
  #decode(data: string): boolean {
    try {
      for (const part of boundedParts(this.#partsOf(data))) this.#accept(part);
      if (!this.begun && this.#parts.length > 0) this.#silentChars += data.length;
      if (this.#silentChars > 4 * 1024 * 1024) throw tooLarge("more than 4 MiB without content");
      return true;
    } catch (thrown) {
      const error = dialectError(thrown, this.#options.reportBug);
      this.error ??= error;
      if (error instanceof ProviderError && error.usage)
        this.#options.meter.observe({ type: "usage", usage: error.usage });
      return this.finished || error === thrown;
    }
  }

  /** The parts of an event or of `[DONE]`. None if the text is not JSON. */
  #partsOf(data: string): Part[] {
    if (data === "[DONE]") {
      this.ended = true;
      return this.#decoder.done?.() ?? [];
    }
    const excess = excessIn(data, MAX_REPLY_VALUES, this.#options.jsonExcess);
    if (excess !== undefined) throw tooLarge(`an event with ${excess}`);
    const json = parseJson(data);
    if (json !== undefined) return this.#decoder.push(json);
    this.unreadable += 1;
    return [];
  }

  /** After an error only token figures count; other parts are dropped. */
  #accept(part: Part): void {
    if (this.error !== undefined && part.type !== "usage") return;
    this.#options.meter.observe(part);
    this.#parts.push(part);
    if (part.type === "usage" || (part.type === "native" && !part.content)) return;
    this.begun = true;
    this.#contentParts += 1;
    if (part.type === "finish") this.finished = true;
    // Decoders keep the ids and names of calls, so each KiB of them counts like a call.
    if (part.type === "tool_call") this.#calls += 1 + ((part.id.length + part.name.length) >> 10);
    if (this.#calls > MAX_PARTS) throw tooLarge(`more than ${MAX_PARTS} tool calls`);
  }
}

export interface PumpOptions {
  /** Cuts the bytes into events. */
  readonly events: EventReader;
  /** Aborts the provider's response. The pump aborts it if it continues after the reply's end. */
  readonly cancel: Cancel;
  /** Extended when bytes or content arrive; paused while the client has no room. */
  readonly deadlines: Deadlines;
  /** Times `closingMs`. */
  readonly clock: Clock;
  /** Takes the parts of each read. Undefined: all stay in the decoding until the end. */
  readonly deliver: TakeParts | undefined;
  /** The most bytes of a stream that is kept until its end. */
  readonly maxBytes: number;
  /** As Exchange.retain, for a stream that is kept until its end, and for a large event. */
  readonly retain: (bytes: number) => void;
  /** How long the response may take to end after the reply has ended, in milliseconds. */
  readonly closingMs: number;
}

/** Any read may end inside an event, so the first 64 KiB of an unfinished one do not count. */
const counted = (unfinished: number): number => Math.max(0, unfinished - 64 * 1024);

/**
 * Resolves at the end of the stream. Rejects with the reason of `cancel`, or with the error of the
 * stream after the parts before it were delivered.
 */
export function pump(
  body: UpstreamBody,
  decoding: EventDecoding,
  { events, cancel, deadlines, clock, deliver, maxBytes, retain, closingMs }: PumpOptions,
): Promise<void> {
  const bound = deliver ? Infinity : maxBytes;
  let size = 0;
  /** Bytes of the unfinished event. */
  let unfinished = 0;
  let closing: Timer | undefined;

  /** Extends the deadline by the rules in deadlines.ts. */
  function renew(hasContent: boolean): void {
    if (cancel.aborted || decoding.ended || !decoding.begun) return;
    if (!decoding.finished) deadlines.restart("idle_ms");
    else if (hasContent) deadlines.restart("closing_ms");
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
    room?.catch(() => undefined); // Nobody may await it below: that is not an unhandled rejection.
    const error = decoding.error;
    if (error !== undefined && !decoding.finished) throw error;
    if (!room || decoding.ended) {
      renew(hasContent);
      return undefined;
    }
    deadlines.pause(); // While the client has no room, silence is not the provider's fault.
    return room.then(() => renew(true));
  }

  return new Promise((resolve, reject) => {
    // The built-in fetch does not report an abort that coincides with the last bytes of a body.
    cancel.onAbort(() => {
      if (!decoding.ended) reject(cancel.reason as Error);
    });

    function takeBytes(bytes: Uint8Array): Promise<void> | undefined {
      size += bytes.length;
      if (size > bound) throw tooLarge(`a reply of more than ${maxBytes} bytes`);
      if (decoding.ended) {
        cancel.abort(); // The provider sends more after the end: the connection cannot be reused.
        return undefined;
      }
      const texts = events.push(bytes);
      const before = counted(unfinished);
      unfinished = texts.length > 0 ? 0 : unfinished + bytes.length;
      retain(deliver ? counted(unfinished) - before : bytes.length);
      const room = take(texts);
      if (!decoding.ended) return room;
      resolve();
      // If the response ends soon, the connection can be reused. Otherwise close it.
      closing = clock.after(closingMs, () => cancel.abort());
      return undefined;
    }

    consume(body, takeBytes, () => (decoding.ended ? undefined : take(events.end())))
      .finally(() => closing?.cancel())
      .then(resolve, reject);
  });
}
