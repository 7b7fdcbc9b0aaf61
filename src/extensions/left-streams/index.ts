// Reads on streams that their clients left after something of them was delivered. The provider has
// a short time (`leave_ms`), so that the finish and the usage that are on their way are still
// billed: leaving just before the end must not be cheaper than staying. Nothing of what comes is
// kept or delivered. The request's concurrency slot is free meanwhile; it is settled in the ledger
// at the end.
import type { LeftStreams } from "../../core/chat/left-streams.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import type { Extension } from "../../core/extension/extension.ts";
import type { Part } from "../../core/openai/parts.ts";

/**
 * Characters of one stream that are read on: as much as sockets hold of a stream that was held up
 * by a client that did not read. A provider that sends more in so short a time has no end in sight.
 */
const MAX_READ_ON_CHARS = 16 * 1024 * 1024;

export const extension: Extension = {
  name: "left-streams",
  start({ clock }) {
    const leftStreams = createLeftStreams(clock);
    // Closed before the ledger, which waits for the settlements of these streams.
    return { leftStreams, close: leftStreams.close };
  },
};

export interface ClosableLeftStreams extends LeftStreams {
  /** Ends all streams. From now on none is read on. */
  close(): void;
}

/** The characters of parts, as far as there may be many. */
const charsIn = (parts: readonly Part[]): number =>
  parts.reduce((sum, part) => sum + ("text" in part ? part.text.length : 0), 0);

export function createLeftStreams(clock: Clock): ClosableLeftStreams {
  const ends = new Set<() => void>();
  let closed = false;

  return {
    readOn({ ms, maxStreams, end }) {
      let chars = 0;
      let timer: Timer | undefined;
      function forget(): void {
        timer?.cancel();
        ends.delete(endNow);
      }
      function endNow(): void {
        forget();
        end();
      }
      if (closed || ms <= 0 || ends.size >= maxStreams) end();
      else {
        timer = clock.after(ms, endNow);
        ends.add(endNow);
      }
      return {
        observe(parts, meter) {
          chars += charsIn(parts);
          if (meter.isFinal() || chars > MAX_READ_ON_CHARS) end();
        },
        forget,
      };
    },
    close() {
      closed = true;
      for (const endNow of ends) endNow();
    },
  };
}
