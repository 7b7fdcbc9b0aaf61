// The synchronous half of reading a stream: the texts of events in, parts of the reply out.
import type { Meter } from "../ledger/meter.ts";
import type { Part } from "../openai/parts.ts";
import { ProviderError } from "../providers/provider-error.ts";
import type { Decoder } from "../providers/dialect.ts";
import { jsonExcess, MAX_REPLY_VALUES } from "../schema/json-bounds.ts";
import { parseJson } from "../schema/untrusted-json.ts";
import { boundedParts, MAX_PARTS, tooMuch } from "./attempt-errors.ts";

export interface EventDecoding {
  /**
   * Decodes events, and counts their parts. True: they have content, that is parts other than token
   * figures.
   */
  push(events: readonly string[]): boolean;
  /** Removes the parts that may be delivered, and returns them. None before the first content. */
  takeParts(): readonly Part[];
  /**
   * What went wrong first, in the provider's words or in a bug of this program. Undefined: nothing.
   */
  error(): unknown;
  /** Content has come. */
  hasBegun(): boolean;
  /** The provider has finished its reply; only figures may follow. */
  isFinished(): boolean;
  /**
   * The provider has said that nothing will follow. What does follow is no part of the reply,
   * however the bytes were cut.
   */
  isEnded(): boolean;
  /** Events that were skipped because they are not JSON. */
  unreadable(): number;
}

/** `decoder` contains its own exceptions (guard.ts). */
export function createEventDecoding(decoder: Decoder, meter: Meter): EventDecoding {
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
    if (part.type === "usage") return;
    contentParts += 1;
    if (part.type === "finish") finished = true;
    if (part.type !== "tool_call") return;
    calls += 1;
    if (calls > MAX_PARTS) throw tooMuch(`more than ${MAX_PARTS} tool calls`);
  }

  /** False: decoding further events makes no sense, because of a bug of this program. */
  function decode(data: string): boolean {
    try {
      const excess = jsonExcess(data, MAX_REPLY_VALUES);
      if (excess !== undefined) throw tooMuch(`an event with ${excess}`);
      const json = parseJson(data);
      if (json === undefined) unreadable += 1;
      else for (const part of boundedParts(decoder.push(json))) accept(part);
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
        if (ended || !decode(data)) break;
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
