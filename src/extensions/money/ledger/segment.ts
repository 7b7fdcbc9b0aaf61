// The requests of a segment that this process writes. All lines of one turn of the event loop leave
// in one write.
import { setImmediate as endOfTurn } from "node:timers/promises";
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

/** What the lines of one turn of the event loop wait for. */
interface Turn {
  /** Resolves when they are written; rejects with the 503. */
  readonly opened: Promise<void>;
  /** Resolves when they are written, perhaps by a later turn. */
  readonly settled: Promise<void>;
}

/** A segment without requests. */
export function createSegment(file: SegmentFile, fault: LogFault): Segment {
  /** Undefined: no line was added in this turn. */
  let turn: Turn | undefined;
  /** Release the replies whose settle lines could not be written. */
  let replies: (() => void)[] = [];
  /** Settle lines that are not written yet. */
  let settles = 0;
  let unsettled = 0;
  let allSettled = (): void => undefined;

  function releaseReplies(): void {
    for (const release of replies) release();
    replies = [];
  }

  function flush(): void {
    file.write();
    unsettled -= settles;
    settles = 0;
    releaseReplies();
    if (unsettled === 0) allSettled();
  }

  function add(line: string): Turn {
    file.add(line);
    turn ??= createTurn();
    return turn;
  }

  function createTurn(): Turn {
    const opened = new Promise<void>((resolve, reject) => {
      setImmediate(() => {
        turn = undefined;
        try {
          flush();
          resolve();
        } catch (error) {
          reject(fault.failed(error));
        }
      });
    });
    const settled = opened.catch(() => new Promise<void>((resolve) => replies.push(resolve)));
    return { opened, settled };
  }

  return {
    file,
    open(line) {
      unsettled += 1;
      return add(line).opened;
    },
    settle(line) {
      settles += 1;
      return add(line).settled;
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
        await endOfTurn(); // Then the last settle lines have failed too.
        releaseReplies();
      }
      file.close();
    },
  };
}
