// A segment of the spend log while its process writes it. All lines of one turn of the event loop
// leave in one write, and a write that the disk cuts short goes on where it stopped.
import { setImmediate as turnEnd } from "node:timers/promises";
import { basename } from "node:path";
import type { ApiError } from "../../../core/openai/errors.ts";
import type { Sealing, SegmentChain } from "../sealing.ts";
import { carryOver, putBack, type PutBack } from "./put-back.ts";
import type { OpenRecord, SettleRecord } from "./records.ts";
import type { SegmentClaim } from "./segment-claim.ts";
import { createSegmentFile } from "./segment-file.ts";

/** The two lines of one request. */
export interface SpendEntry {
  /** The open line. */
  readonly record: OpenRecord;
  /**
   * Resolves when the operating system has the open line. Rejects with the 503 if it could not be
   * written.
   */
  readonly opened: Promise<void>;
  /** Writes the settle line. Resolves when the operating system has it, however long that takes. */
  settle(record: SettleRecord): Promise<void>;
}

/** A segment that this process writes. */
export interface Segment {
  /** Its file name. It changes if another segment has taken the name. */
  name(): string;
  /** How many bytes this process has written to it. */
  size(): number;
  /** How many requests have an open line, written or waiting, and no settle line. */
  unsettled(): number;
  /** Resolves when no request is unsettled. */
  whenSettled(): Promise<void>;
  /** Adds the open line of a request. */
  open(record: OpenRecord): SpendEntry;
  /** Whether the file at its path was deleted, replaced or cut. */
  isLost(): boolean;
  /**
   * How many bytes were cut off in the file's place, so that nothing has them any more. Reported
   * once.
   */
  takeOverwritten(): number;
  /**
   * Puts all lines back where they were. If another segment stands there, writes them to the one
   * that `reserve` claims. Throws what the system says.
   */
  restore(reserve: () => Promise<SegmentClaim>): Promise<PutBack>;
  /** Shows that this process is alive. Resolves with true if part of the claim had been deleted. */
  renewClaim(): Promise<boolean>;
  /** Writes what waits, and finds out whether more could be written. Throws if not. */
  retry(): void;
  /** Brings everything written until now to the disk. */
  sync(): Promise<void>;
  /**
   * Writes what waits, closes the file and gives up the claim. Replies that still wait for the disk
   * are let go.
   */
  close(): void;
}

/**
 * Creates the segment that was claimed. `failed` gets the error of each write that fails, and
 * returns the 503. `sealing` undefined: its lines are not sealed.
 */
export function openSegment(
  initialClaim: SegmentClaim,
  failed: (error: unknown) => ApiError,
  sealing?: Sealing,
): Segment {
  let claim = initialClaim;
  const name = (): string => basename(claim.path);
  const file = createSegmentFile(claim.path);
  const chain = sealing?.begin(name);
  const queue = createLineQueue(file.append, failed, chain);
  const settled = createCountdown();

  async function settle(record: SettleRecord): Promise<void> {
    await queue.appendEventually(record);
    settled.subtract();
  }

  return {
    name,
    size: file.appended,
    unsettled: settled.count,
    whenSettled: settled.whenZero,
    open(record) {
      settled.add();
      return { record, opened: queue.append(record), settle };
    },
    isLost: file.isLost,
    takeOverwritten: file.takeOverwritten,
    async restore(reserve) {
      // Between the reading of the lines and the change of the file nothing else runs, so that no
      // line goes to the old file meanwhile.
      if (await claim.restore()) {
        const restored = putBack(claim.path, file.source());
        if (restored) {
          file.continueIn(claim.path, restored);
          return restored;
        }
        claim.abandon();
      }
      for (;;) {
        const next = await reserve();
        const restored = carryOver(next.path, file.source());
        if (!restored) {
          next.release();
          continue;
        }
        claim.release();
        claim = next;
        file.continueIn(claim.path, restored);
        return restored;
      }
    },
    renewClaim: () => claim.renew(),
    retry() {
      queue.flush();
      file.probe();
    },
    sync: file.sync,
    close() {
      try {
        queue.flush();
        file.syncNow();
      } catch (error) {
        failed(error);
        queue.releaseReplies();
      }
      file.close();
      if (settled.count() === 0) chain?.close();
      if (settled.count() === 0) claim.removeFile();
      else claim.abandon();
      claim.release();
    },
  };
}

/** Lines on their way into a file. */
interface LineQueue {
  /**
   * Adds a line. Resolves when the file has it, with all others of this turn; rejects with the 503
   * if it failed.
   */
  append(record: object): Promise<void>;
  /** Adds a line. Resolves when the file has it, be it at a later attempt. */
  appendEventually(record: object): Promise<void>;
  /**
   * Writes everything that waits. Throws what the system says; the next call goes on where this one
   * stopped.
   */
  flush(): void;
  /** Resolves every appendEventually() that waits, although its line could not be written. */
  releaseReplies(): void;
}

function createLineQueue(
  write: (bytes: Buffer) => number,
  failed: (error: unknown) => ApiError,
  chain: SegmentChain | undefined,
): LineQueue {
  /** The lines of this turn. */
  let waiting = "";
  /** What the disk did not take. */
  let unwritten: Buffer = Buffer.alloc(0);
  let turn: Promise<void> | undefined;
  /** Replies that wait for their lines to be written. */
  let held: (() => void)[] = [];

  function releaseReplies(): void {
    const replies = held;
    held = [];
    for (const release of replies) release();
  }

  function flush(): void {
    turn = undefined; // Lines that come from here on wait for the next write.
    const lines = Buffer.from(waiting);
    unwritten = unwritten.length === 0 ? lines : Buffer.concat([unwritten, lines]);
    waiting = "";
    while (unwritten.length > 0) unwritten = unwritten.subarray(write(unwritten));
    releaseReplies();
  }

  function append(record: object): Promise<void> {
    const text = JSON.stringify(record);
    waiting += `${chain ? chain.seal(text) : text}\n`;
    turn ??= turnEnd()
      .then(flush)
      .catch((error) => Promise.reject(failed(error)));
    return turn;
  }

  const hold = (): Promise<void> =>
    new Promise((resolve) => {
      held.push(resolve);
    });

  return {
    append,
    appendEventually: (record) => append(record).catch(hold),
    flush,
    releaseReplies,
  };
}

/** A count of which somebody may wait until it is 0. */
function createCountdown() {
  let count = 0;
  let waiting: (() => void)[] = [];
  return {
    count: (): number => count,
    add(): void {
      count += 1;
    },
    subtract(): void {
      count -= 1;
      if (count > 0) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    whenZero: (): Promise<void> =>
      new Promise((resolve) => {
        if (count === 0) resolve();
        else waiting.push(resolve);
      }),
  };
}
