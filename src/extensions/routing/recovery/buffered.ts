// Recovery "hold": the client sees nothing of a stream until the provider has finished it. Any
// failure before that is an ordinary failed attempt, so the next candidate is asked.
import type { Part } from "../../../core/openai/parts.ts";
import type { Attempt } from "../../../core/routing/attempt.ts";
import { unusableReply, withoutBreakerBlame } from "./breaker-blame.ts";

/**
 * The bytes that count for each part in addition to its text: about the size of its event on the
 * wire. So max_reply_bytes limits a held stream as it limits a reply that is not streamed.
 */
const PART_BYTES = 100;

/**
 * The same attempt, but it delivers its batches only when the reply is finished. Throws a
 * ProviderError if the reply is longer than max_reply_bytes.
 */
export const bufferAttempt =
  (attempt: Attempt): Attempt =>
  async (chat, serving, deliver, options) => {
    const batches: (readonly Part[])[] = [];
    const { maxReplyBytes } = serving.model.provider;
    const tooLong = unusableReply(`a reply of more than ${maxReplyBytes} bytes cannot be held`);
    let bytes = 0;
    const buffer = (parts: readonly Part[]): undefined => {
      const before = bytes;
      for (const part of parts) bytes += PART_BYTES + sizeOf(part);
      options.retain(bytes - before);
      if (bytes > maxReplyBytes) throw tooLong;
      batches.push(parts);
      if (options.cancel.aborted) throw options.cancel.reason; // retain() cancels if memory is full
      return undefined;
    };
    try {
      await attempt(chat, serving, buffer, options);
      // attempt() ignores what deliver() throws once the reply has finished, so check again.
      if (bytes > maxReplyBytes) throw tooLong;
      for (const parts of batches) await deliver(parts);
    } catch (error) {
      throw bytes === 0 ? error : withoutBreakerBlame(error, options.cancel);
    }
  };

function sizeOf(part: Part): number {
  if (part.type === "native") return JSON.stringify(part).length;
  return "text" in part ? Buffer.byteLength(part.text) : 0;
}
