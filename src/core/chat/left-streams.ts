// Streams that their clients left after something of them was delivered. An extension may read the
// provider on for a short time, so that the final figures are still billed.
import type { Meter } from "../ledger/meter.ts";
import type { Part } from "../openai/parts.ts";

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
}

/** Without an extension such a stream ends at once, and what was not counted is estimated. */
export const noLeftStreams: LeftStreams = {
  readOn({ end }) {
    end();
    return { observe: () => undefined, forget: () => undefined };
  },
};
