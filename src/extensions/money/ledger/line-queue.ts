// Lines on their way into a segment. All lines of one turn of the event loop leave in one write, and
// a write that the disk cuts short goes on where it stopped.
import type { ApiError } from "../../../core/openai/errors.ts";

/** The lines that wait to be written to one segment. */
export interface LineQueue {
  /**
   * Adds an open line. Resolves when the file has it, with all others of this turn. Rejects with
   * the 503 if the write failed.
   */
  open(line: string): Promise<void>;
  /** Adds a settle line. Resolves when the file has it, be it at a later attempt. */
  settle(line: string): Promise<void>;
  /**
   * Writes everything that waits. Throws what the system says; the next call goes on where this one
   * stopped.
   */
  flush(): void;
  /** Resolves every settle() that waits, although its line could not be written. */
  releaseReplies(): void;
}

/** Where the lines of a queue go, and who hears of them. */
export interface LineSink {
  /** Writes bytes. Returns how many of them were taken, at least one. Throws if it cannot. */
  readonly write: (bytes: Buffer) => number;
  /** Gets the error of each write that fails. Returns the 503. */
  readonly failed: (error: unknown) => ApiError;
  /** So many settle lines have been written. */
  readonly settled: (lines: number) => void;
}

/** A promise that all requests share that wait for the same write. */
interface SharedPromise {
  readonly promise: Promise<void>;
  resolve(): void;
  reject(error: ApiError): void;
}

function createSharedPromise(): SharedPromise {
  let ends = { resolve: (): void => undefined, reject: (_: ApiError): void => undefined };
  const promise = new Promise<void>((resolve, reject) => {
    ends = { resolve, reject };
  });
  return { promise, resolve: ends.resolve, reject: ends.reject };
}

/** An empty queue. */
export function createLineQueue({ write, failed, settled }: LineSink): LineQueue {
  /** The lines of this turn. */
  let lines = "";
  let isScheduled = false;
  /** What the disk did not take. */
  let unwritten: Buffer | undefined;
  /** Of the open lines of this turn. Undefined: there are none. */
  let opened: SharedPromise | undefined;
  /** Of all settle lines that wait, of this turn and of turns that failed. */
  let replies: SharedPromise | undefined;
  let settles = 0;

  function writeAll(): void {
    if (unwritten) {
      unwritten = Buffer.concat([unwritten, Buffer.from(lines)]);
    } else {
      // Node writes a string without making a Buffer of it, which would take longer than the rest.
      const text = lines;
      const written = write(text);
      if (written < Buffer.byteLength(text)) unwritten = Buffer.from(text).subarray(written);
    }
  }

  function releaseReplies(): void {
    const released = replies;
    replies = undefined;
    released?.resolve();
  }

  function flush(): void {
    const requests = opened; // Requests that come from here on wait for the next write.
    opened = undefined;
    try {
      writeAll();
    } catch (error) {
      const refusal = failed(error);
      requests?.reject(refusal);
      throw error;
    }
    requests?.resolve();
    if (settles > 0) settled(settles);
    settles = 0;
    releaseReplies();
  }

  function endTurn(): void {
    isScheduled = false;
    try {
      flush();
    } catch {
      // Whoever waits knows, and the log tries again.
    }
  }

  function add(line: string): void {
    lines += `${line}\n`;
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(endTurn);
  }

  return {
    open(line) {
      add(line);
      opened ??= createSharedPromise();
      return opened.promise;
    },
    settle(line) {
      add(line);
      settles += 1;
      replies ??= createSharedPromise();
      return replies.promise;
    },
    flush,
    releaseReplies,
  };
}
