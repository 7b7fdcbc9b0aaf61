// Lines on their way into a segment: all lines of one turn of the event loop leave in one write.
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
  /** How many open lines, written or waiting, have no settle line in the file. */
  unsettled(): number;
  /** Resolves when none is unsettled. Only the last call counts. */
  whenSettled(): Promise<void>;
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

/**
 * An empty queue. `append` writes lines, or throws and puts what was not written before the next
 * lines. `check` throws if nothing may be written now. `failed` gets the error of each write that
 * fails, and returns the 503.
 */
export function createLineQueue(
  append: (lines: string) => void,
  check: () => void,
  failed: (error: unknown) => ApiError,
): LineQueue {
  /** The lines of this turn. */
  let lines = "";
  let isScheduled = false;
  /** Of the open lines of this turn. Undefined: there are none. */
  let opened: SharedPromise | undefined;
  /** Of all settle lines that wait, of this turn and of turns that failed. */
  let replies: SharedPromise | undefined;
  /** Settle lines that wait. */
  let settles = 0;
  let unsettled = 0;
  let allSettled = (): void => undefined;

  function releaseReplies(): void {
    const released = replies;
    replies = undefined;
    released?.resolve();
  }

  function flush(): void {
    const requests = opened; // Requests that come from here on wait for the next write.
    opened = undefined;
    try {
      check();
      const text = lines;
      lines = "";
      append(text);
    } catch (error) {
      const refusal = failed(error);
      requests?.reject(refusal);
      throw error;
    }
    requests?.resolve();
    unsettled -= settles;
    settles = 0;
    releaseReplies();
    if (unsettled === 0) allSettled();
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
      unsettled += 1;
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
    unsettled: () => unsettled,
    whenSettled: () =>
      new Promise((resolve) => {
        allSettled = resolve;
        if (unsettled === 0) resolve();
      }),
  };
}
