// Streams that their clients left after something of them was delivered. The provider is read on
// for a short time (`leave_ms`), so that the finish and the usage that are on their way are still
// billed: leaving just before the end must not be cheaper than staying. Nothing of what comes is
// kept or delivered. The request's concurrency slot is free meanwhile; it is settled in the ledger
// at the end.
import type { Clock, Timer } from "../clock.ts";
import type { Meter } from "../ledger/meter.ts";
import type { Part } from "../openai/parts.ts";

/**
 * Characters of one stream that are read on: as much as sockets hold of a stream that was held up
 * by a client that did not read. A provider that sends more in so short a time has no end in sight.
 */
const MAX_READ_ON_CHARS = 16 * 1024 * 1024;

export interface ReadOnOptions {
  /** Milliseconds. If it is not more than 0, the stream ends at once. */
  readonly ms: number;
  /** If so many streams are read on already, the stream ends at once. */
  readonly maxStreams: number;
  /** Ends the stream. */
  readonly end: () => void;
}

/** One stream that is read on. */
export interface LeftStream {
  /**
   * Takes what came. Ends the stream once `meter` has its final figures, or once too much has come.
   */
  observe(parts: readonly Part[], meter: Meter): void;
  /** The stream has ended by itself. */
  forget(): void;
}

/** All streams of one process that are read on. */
export interface LeftStreams {
  /** Ends the stream after its time, or when the gateway closes, whichever is first. */
  readOn(options: ReadOnOptions): LeftStream;
  /** Ends all streams. From now on none is read on. */
  close(): void;
}

/** The characters of parts, as far as there may be many. */
const charsIn = (parts: readonly Part[]): number =>
  parts.reduce((sum, part) => sum + ("text" in part ? part.text.length : 0), 0);

export function createLeftStreams(clock: Clock): LeftStreams {
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
