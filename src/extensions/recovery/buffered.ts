// Recovery "hold": nothing of a stream is shown until its provider has finished it, so that every
// failure before is an ordinary failed attempt.
import type { Part } from "../../core/openai/parts.ts";
import { ProviderError } from "../../core/providers/provider-error.ts";
import type { attempt as plainAttempt } from "../../core/routing/attempt.ts";
import { spoken } from "./spoken.ts";

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
    let bytes = 0;
    const keep = (parts: readonly Part[]): undefined => {
      const before = bytes;
      for (const part of parts) bytes += PART_BYTES + sizeOf(part);
      options.retain(bytes - before);
      if (bytes > maxReplyBytes) throw tooLong(maxReplyBytes);
      batches.push(parts);
      if (options.cancel.aborted) throw options.cancel.reason; // there was no room for them
      return undefined;
    };
    try {
      await attempt(chat, serving, keep, options);
    } catch (error) {
      throw bytes === 0 ? error : spoken(error, options.cancel);
    }
    // An attempt that had finished has dropped the error.
    if (bytes > maxReplyBytes) throw tooLong(maxReplyBytes);
    try {
      for (const parts of batches) await deliver(parts);
    } catch (error) {
      throw spoken(error, options.cancel);
    }
  };

function sizeOf(part: Part): number {
  if (part.type === "native") return JSON.stringify(part).length;
  return "text" in part ? Buffer.byteLength(part.text) : 0;
}

const tooLong = (bytes: number): ProviderError =>
  new ProviderError("upstream_error", `a reply of more than ${bytes} bytes cannot be held`, {
    fromContent: true,
    permanent: true,
  });
