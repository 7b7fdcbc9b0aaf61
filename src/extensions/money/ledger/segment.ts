// The requests of a segment that this process writes. All lines of one turn of the event loop leave
// in one write.
import type { LogFault } from "./log-fault.ts";
import type { SegmentFile } from "./segment-file.ts";

/** A segment that this process writes. */
export interface Segment {
  /** Its file. */
  readonly file: SegmentFile;
  /**
   * Adds an open line. Resolves when the file has it, with all others of this turn. Rejects with
   * the 503 if the write failed.
   */
  open(line: string): Promise<void>;
  /** Adds a settle line. Resolves when the file has it, perhaps after failed attempts. */
  settle(line: string): Promise<void>;
  /** How many requests have an open line, written or waiting, and no settle line in the file. */
  unsettled(): number;
  /** Resolves when no request is unsettled. Only the promise of the last call resolves. */
  whenSettled(): Promise<void>;
  /** Writes everything that waits. Throws what the system says. */
  flush(): void;
  /**
   * Writes what waits, closes the file and gives up the claim. If writing fails, replies that wait
   * for their settle line are released all the same. Resolves when the lines are on the disk.
   */
  close(): Promise<void>;
}

/** The promise of one write, which all requests with a line in it share. */
interface SharedPromise {
  readonly promise: Promise<void>;
  resolve(): void;
  reject(error: Error): void;
}

function createSharedPromise(): SharedPromise {
  let ends = { resolve: (): void => undefined, reject: (_: Error): void => undefined };
  const promise = new Promise<void>((resolve, reject) => {
    ends = { resolve, reject };
  });
  return { promise, ...ends };
}

/** A segment without requests. */
export function createSegment(file: SegmentFile, fault: LogFault): Segment {
  let isScheduled = false;
  /** Resolves when the open lines of this turn are written. Undefined: there are none. */
  let opened: SharedPromise | undefined;
  /** What settle() returned for lines that are not written, of this turn or of failed writes. */
  let replies: SharedPromise | undefined;
  /** Settle lines that are not written yet. */
  let settles = 0;
  let unsettled = 0;
  let allSettled = (): void => undefined;

  function releaseReplies(): void {
    const released = replies;
    replies = undefined;
    released?.resolve();
  }

  function flush(): void {
    const requests = opened; // Later requests wait for the next write.
    opened = undefined;
    try {
      file.write();
    } catch (error) {
      const refusal = fault.failed(error);
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
      // flush() has rejected the open lines. Settle lines wait: the log tries again.
    }
  }

  function add(line: string): void {
    file.add(line);
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(endTurn);
  }

  return {
    file,
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
    unsettled: () => unsettled,
    whenSettled: () =>
      new Promise((resolve) => {
        allSettled = resolve;
        if (unsettled === 0) resolve();
      }),
    flush,
    async close() {
      try {
        if (file.size() > 0) file.look();
        flush();
        await file.sync();
      } catch (error) {
        fault.failed(error);
        releaseReplies();
      }
      file.close();
    },
  };
}
