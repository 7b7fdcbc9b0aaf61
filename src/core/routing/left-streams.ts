// Streams that their clients left after something of them was delivered. The provider is read on for a short time (`leave_ms`), so that
// the finish and the usage that are on their way are still billed: leaving just before the end must not be cheaper than staying.
// Nothing of what comes is kept or delivered. The request's place in flight is free meanwhile; its books are settled in the end.
import type { Part } from "../openai/parts.ts";

/** How much of one stream is read on, in characters of its parts: as much as sockets hold of a stream that was held up by a client that
 * did not read. A provider that sends more in so short a time has no end in sight. */
export const MAX_READ_ON_CHARS = 16 * 1024 * 1024;
/** Characters of what a provider says, as far as it may be long. */
export const charsIn = (parts: readonly Part[]): number =>
  parts.reduce((sum, part) => sum + ("text" in part ? part.text.length : 0), 0);

/** All streams of one process that are read on. */
export interface LeftStreams {
  /**
   * Calls `end` after `ms`, or when the gateway closes, whichever is first, unless the function that it returns is called before.
   * Calls it at once if `ms` is not more than 0, if `most` streams are read on already, or if the gateway is closing.
   */
  readOn(ms: number, most: number, end: () => void): () => void;
  /** Ends all of them; from now on none is read on. */
  close(): void;
}

export function createLeftStreams(): LeftStreams {
  const ends = new Set<() => void>();
  let closed = false;
  return {
    readOn(ms, most, end) {
      if (closed || ms <= 0 || ends.size >= most) {
        end();
        return () => undefined;
      }
      const forget = (): void => {
        clearTimeout(timer);
        ends.delete(endNow);
      };
      const endNow = (): void => {
        forget();
        end();
      };
      const timer = setTimeout(endNow, ms);
      ends.add(endNow);
      return forget;
    },
    close() {
      closed = true;
      for (const endNow of ends) endNow();
    },
  };
}
