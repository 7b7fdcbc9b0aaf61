// A segment while its process writes it: the file, the claim beside it, and the queue of lines. All
// lines of one turn of the event loop are one write; after a failed write they stay in the queue.
// Nothing is written once another process has deleted, replaced, changed or taken over the file.
import { closeSync, fsync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { basename, dirname } from "node:path";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { promisify } from "node:util";
import type { Clock } from "../../../core/clock.ts";
import {
  acquireSocketLock,
  inodeOf,
  syncToDisk,
  writeError,
} from "../../scale/data-files/index.ts";
import { REPAIR } from "../days/index.ts";
import { socketOf } from "./segment-names.ts";

/**
 * A write checks the claim if the last check is older than this. A check costs more than a write,
 * so not every write makes one. A process that takes over a segment waits longer: TAKEOVER_MS.
 */
const CLAIM_CHECK_MS = 10;

/** What a segment needs from the log. */
export interface SegmentOptions {
  /** Measures the time since the last check of the claim. */
  readonly clock: Clock;
  /**
   * Called once, when the process must stop writing to the segment: another process took it over,
   * or its file was deleted, replaced or changed. Every later write throws `loss`, whose message is
   * for the operator.
   */
  lost(event: "spend_log_fenced" | "spend_segment_broken", segment: string, loss: Error): void;
  /** Called when lines could not be written. Returns the 503 for their requests. */
  failed(error: unknown): Error;
}

/** The open lines of one turn of the event loop. */
export interface OpenedLines {
  /**
   * Resolves when they are written. Rejects with the 503 if the write failed. The lines stay in the
   * queue even then, because their requests are settled too.
   */
  readonly written: Promise<void>;
  /** Whether `written` was rejected. */
  isRefused: boolean;
}

/** A segment that this process writes. Its methods throw the errors of the file system. */
export interface Segment {
  /** The file name. */
  readonly name: string;
  /** How many bytes this process has written to it. */
  size(): number;
  /** Throws if this process must stop writing to it. */
  assertOwned(): void;
  /**
   * Adds an open line, which is written together with all others of this turn of the event loop:
   * under load that is faster than one write for each.
   */
  open(line: string): OpenedLines;
  /** Adds a settle line. Resolves when it is written, perhaps after failed attempts. */
  settle(line: string): Promise<void>;
  /** How many requests have an open line, written or queued, but no written settle line. */
  unsettled(): number;
  /** Resolves when no request is unsettled. Only the promise of the last call resolves. */
  whenSettled(): Promise<void>;
  /** Writes the queued lines. */
  flush(): void;
  /** Flushes everything written so far to the disk. */
  sync(): Promise<void>;
  /**
   * Writes the queued lines, closes the file and gives up the claim. Resolves when the lines are on
   * the disk. If writing fails, replies that wait for their settle line are released nevertheless.
   */
  close(): Promise<void>;
}

/**
 * Creates the file of a segment, with the claim of this process beside it. Resolves with undefined
 * if another process has claimed it. Rejects with the errors of the file system.
 */
export async function beginSegment(
  path: string,
  options: SegmentOptions,
): Promise<Segment | undefined> {
  const release = await acquireSocketLock(socketOf(path));
  if (!release) return undefined;
  try {
    // The folder's entry of the claim must be on the disk before the first lines.
    await syncToDisk(dirname(path));
    return openSegment(path, release, options);
  } catch (error) {
    release();
    throw error;
  }
}

/** The open lines of the present turn, which are not written yet. */
interface PendingLines extends OpenedLines {
  resolve(): void;
  reject(refusal: Error): void;
}

function createPendingLines(): PendingLines {
  let settle!: Pick<PendingLines, "resolve" | "reject">;
  const written = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { written, ...settle, isRefused: false };
}

/** Throws if a file of this name exists. */
function openSegment(path: string, release: () => void, options: SegmentOptions): Segment {
  const { append, ...file } = openFile(path, options);
  /** The queued lines. */
  let lines = "";
  /** Functions that release the replies whose settle lines are queued. */
  let replies: (() => void)[] = [];
  /** Undefined: this turn has no open line yet. */
  let pending: PendingLines | undefined;
  let isScheduled = false;
  let unsettled = 0;
  let allSettled = (): void => undefined;

  function releaseWaiting(): void {
    for (const reply of replies) reply();
    replies = [];
    lines = "";
    if (unsettled === 0) allSettled();
  }

  function flush(): void {
    if (lines === "") return;
    append(lines);
    releaseWaiting();
  }

  /** The lines of a turn are one write. */
  function add(line: string): void {
    lines += `${line}\n`;
    if (!isScheduled) setImmediate(writeTurn);
    isScheduled = true;
  }

  function writeTurn(): void {
    const opening = pending;
    pending = undefined;
    isScheduled = false;
    try {
      flush();
      opening?.resolve();
    } catch (error) {
      const refusal = options.failed(error);
      if (opening) opening.isRefused = true;
      opening?.reject(refusal);
    }
  }

  return {
    ...file,
    open(line) {
      unsettled += 1;
      add(line);
      pending ??= createPendingLines();
      return pending;
    },
    settle: (line) =>
      new Promise((resolve) => {
        replies.push(() => {
          unsettled -= 1;
          resolve();
        });
        add(line);
      }),
    unsettled: () => unsettled,
    whenSettled: () =>
      new Promise((resolve) => {
        allSettled = resolve;
        if (unsettled === 0) resolve();
      }),
    flush,
    async close() {
      try {
        if (file.size() > 0) file.assertOwned();
        flush();
        await file.sync();
      } catch (error) {
        options.failed(error);
        await endOfTurn(); // The write of this turn's own lines has failed too by then.
        releaseWaiting();
      }
      file.close();
      release();
    },
  };
}

/** The file of a segment, which refuses writes once the claim is lost or the file is damaged. */
function openFile(path: string, { clock, lost }: SegmentOptions) {
  const name = basename(path);
  const fd = openSync(path, "ax", 0o600);
  // As long as the file and its socket are open, no other file gets their inode numbers.
  const inode = inodeOf(path);
  const claim = inodeOf(socketOf(path));
  /** Why nothing may be written any more. */
  let loss: Error | undefined;
  let checkedAt = clock.monotonic();
  let size = 0;
  let synced = 0;

  function assertOwned(): void {
    if (loss) throw loss;
    checkedAt = clock.monotonic();
    const damage = damageTo(path, inode, size);
    const isHeld = claim !== undefined && inodeOf(socketOf(path)) === claim;
    if (isHeld && damage === undefined) return;
    // A process that takes over a segment adds lines to it, so "changed" is no damage then.
    const isTaken = !isHeld && (damage === undefined || damage === "changed");
    loss = new Error(isTaken ? takenOver(name) : broken(name, damage));
    lost(isTaken ? "spend_log_fenced" : "spend_segment_broken", name, loss);
    throw loss;
  }

  return {
    name,
    size: () => size,
    assertOwned,
    append(lines: string): void {
      if (loss || clock.monotonic() - checkedAt > CLAIM_CHECK_MS) assertOwned();
      try {
        // Writing a string is faster than converting it to a Buffer first.
        let written = writeSync(fd, lines);
        const bytes = Buffer.byteLength(lines);
        while (written < bytes) written += writeSync(fd, Buffer.from(lines), written);
        size += bytes;
      } catch (error) {
        // A full disk may have accepted a part of the lines.
        ftruncateSync(fd, size);
        throw writeError(error as Error, path);
      }
    },
    async sync(): Promise<void> {
      const reached = size;
      if (reached === synced) return;
      await promisify(fsync)(fd).catch((error: Error) => {
        throw writeError(error, path);
      });
      synced = reached;
    },
    close(): void {
      // No later write may use the descriptor: the system gives its number to the next open file.
      loss ??= new Error(`${name} is closed`);
      closeSync(fd);
    },
  };
}

/** How a file of this inode and size was damaged. Undefined: it is intact. */
function damageTo(path: string, inode: number | undefined, size: number): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) return "deleted";
  if (found.ino !== inode) return "replaced";
  return found.size === size ? undefined : "changed";
}

const takenOver = (name: string): string =>
  `another process took over ${name}: its socket is gone or was replaced. ` +
  "This process must end. Only processes of one machine may use a data_dir";

const broken = (name: string, damage: string | undefined): string =>
  `${name} was ${damage} while the gateway wrote it: ${REPAIR}`;
