// Recovery "hold": nothing of a stream is shown until its provider has finished it, so that every
// failure before is an ordinary failed attempt.
import type { Part } from "../../../core/openai/parts.ts";
import type { attempt as plainAttempt } from "../../../core/routing/attempt.ts";
import { spoken, unusable } from "./spoken.ts";

type Attempt = typeof plainAttempt;

/**
 * What a part takes beside its text, in bytes. It is about what its event took on the wire, so that
 * a held stream has the same bound as a reply that is not streamed.
 */
const PART_BYTES = 100;

/** The same attempt, which delivers its batches after its end. */
export const buffering =
  (attempt: Attempt): Attempt =>
  async (chat, serving, deliver, options) => {
    const batches: (readonly Part[])[] = [];
    const { maxReplyBytes } = serving.model.provider;
    const tooLong = unusable(`a reply of more than ${maxReplyBytes} bytes cannot be held`);
    let bytes = 0;
    const keep = (parts: readonly Part[]): undefined => {
      const before = bytes;
      for (const part of parts) bytes += PART_BYTES + sizeOf(part);
      options.retain(bytes - before);
      if (bytes > maxReplyBytes) throw tooLong;
      batches.push(parts);
      if (options.cancel.aborted) throw options.cancel.reason; // there was no room for them
      return undefined;
    };
    try {
      await attempt(chat, serving, keep, options);
      // An attempt that had finished has dropped the error.
      if (bytes > maxReplyBytes) throw tooLong;
      for (const parts of batches) await deliver(parts);
    } catch (error) {
      throw bytes === 0 ? error : spoken(error, options.cancel);
    }
  };

function sizeOf(part: Part): number {
  if (part.type === "native") return JSON.stringify(part).length;
  return "text" in part ? Buffer.byteLength(part.text) : 0;
}
