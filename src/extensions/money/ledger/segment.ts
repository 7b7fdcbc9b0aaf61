// A segment while its process writes it: the file, the claim beside it, and the lines that wait for
// the end of a turn of the event loop, or for a disk that takes none. Nothing is written once
// somebody has deleted, replaced or changed the file, or taken the segment over.
import { closeSync, fsync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { basename, dirname } from "node:path";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { promisify } from "node:util";
import type { Clock } from "../../../core/clock.ts";
import { acquireSocketLock, inodeOf, syncToDisk } from "../../scale/data-files/index.ts";
import { socketOf } from "./segment-names.ts";

/**
 * A write looks at the claim if the last look was longer ago. To look costs more than to write, so
 * not every write does. Whoever takes a segment over waits for longer: TAKEOVER_MS.
 */
const LOOK_MS = 10;

/** What a segment needs of the log. */
export interface SegmentOptions {
  /** Tells when to look at the claim. */
  readonly clock: Clock;
  /**
   * Called once, when nothing may be written to the segment any more: another process took it over,
   * or somebody deleted, replaced or changed its file. Every later write throws `loss`, whose
   * message is for the operator.
   */
  lost(event: "spend_log_fenced" | "spend_segment_broken", segment: string, loss: Error): void;
  /** Called when lines could not be written. Returns the 503 for the request that this concerns. */
  failed(error: unknown): Error;
}

/** The open lines of one turn of the event loop. */
export interface OpenedLines {
  /**
   * Resolves when the file has them. Rejects with the 503 if the write failed. The lines wait then:
   * their requests are settled too.
   */
  readonly written: Promise<void>;
  /** Whether `written` was rejected. */
  isRefused: boolean;
}

/** A segment that this process writes. Its methods throw what the system says. */
export interface Segment {
  /** The file name. */
  readonly name: string;
  /** How many bytes this process has written to it. */
  size(): number;
  /** Throws if this process must not write to it any more. */
  look(): void;
  /**
   * Adds an open line, which is written with all others of this turn of the event loop: under load
   * that takes less time than a write for each.
   */
  open(line: string): OpenedLines;
  /** Adds a settle line. Resolves when the file has it, perhaps after failed attempts. */
  settle(line: string): Promise<void>;
  /** How many requests have an open line, written or waiting, and no settle line in the file. */
  unsettled(): number;
  /** Resolves when no request is unsettled. Only the promise of the last call resolves. */
  whenSettled(): Promise<void>;
  /** Writes the lines that wait. */
  flush(): void;
  /** Brings everything written until now to the disk. */
  sync(): Promise<void>;
  /**
   * Writes what waits, closes the file and gives up the claim. If writing fails, replies that wait
   * for their settle line are released all the same. Resolves when the lines are on the disk.
   */
  close(): Promise<void>;
}

/**
 * Creates the file of a segment, with the claim of this process beside it. Resolves with undefined
 * if another process has claimed it; rejects with what the system says.
 */
export async function beginSegment(
  path: string,
  options: SegmentOptions,
): Promise<Segment | undefined> {
  const release = await acquireSocketLock(socketOf(path));
  if (!release) return undefined;
  try {
    // The claim's name in the folder must not reach the disk after the first lines.
    await syncToDisk(dirname(path));
    return openSegment(path, release, options);
  } catch (error) {
    release();
    throw error;
  }
}

/** The open lines that are to be written in this turn. */
interface Begun extends OpenedLines {
  resolve(): void;
  reject(refusal: Error): void;
}

function beginOpening(): Begun {
  let settle!: Pick<Begun, "resolve" | "reject">;
  const written = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { written, ...settle, isRefused: false };
}

/** Throws if something has the name. */
function openSegment(path: string, release: () => void, options: SegmentOptions): Segment {
  const { append, ...file } = openFile(path, options);
  /** The lines that wait. */
  let lines = "";
  /** Release the replies whose settle lines wait. */
  let replies: (() => void)[] = [];
  /** Undefined: this turn has no open line yet. */
  let begun: Begun | undefined;
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
    const opening = begun;
    begun = undefined;
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
      begun ??= beginOpening();
      return begun;
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
        if (file.size() > 0) file.look();
        flush();
        await file.sync();
      } catch (error) {
        options.failed(error);
        await endOfTurn(); // Then the last lines have failed too.
        releaseWaiting();
      }
      file.close();
      release();
    },
  };
}

/** The file, as long as this process may write to it. */
function openFile(path: string, { clock, lost }: SegmentOptions) {
  const name = basename(path);
  const fd = openSync(path, "ax", 0o600);
  // While the file is open, and its socket too, no other file gets their numbers.
  const inode = inodeOf(path);
  const claim = inodeOf(socketOf(path));
  /** Why nothing may be written any more. */
  let loss: Error | undefined;
  let lookedAt = clock.monotonic();
  let size = 0;
  let synced = 0;

  function look(): void {
    if (loss) throw loss;
    lookedAt = clock.monotonic();
    const damage = damageTo(path, inode, size);
    const isHeld = claim !== undefined && inodeOf(socketOf(path)) === claim;
    if (isHeld && damage === undefined) return;
    // Whoever takes a segment over adds lines to it.
    const isTaken = !isHeld && (damage === undefined || damage === "changed");
    loss = new Error(isTaken ? takenOver(name) : broken(name, damage));
    lost(isTaken ? "spend_log_fenced" : "spend_segment_broken", name, loss);
    throw loss;
  }

  return {
    name,
    size: () => size,
    look,
    append(lines: string): void {
      if (loss || clock.monotonic() - lookedAt > LOOK_MS) look();
      try {
        // Node writes a string in less time than it takes to make a Buffer of it.
        let written = writeSync(fd, lines);
        const bytes = Buffer.byteLength(lines);
        while (written < bytes) written += writeSync(fd, Buffer.from(lines), written);
        size += bytes;
      } catch (error) {
        // A full disk may have taken a part.
        ftruncateSync(fd, size);
        throw error;
      }
    },
    async sync(): Promise<void> {
      const reached = size;
      if (reached > synced) await promisify(fsync)(fd);
      synced = reached;
    },
    close(): void {
      // The system gives the number of a closed descriptor to the next file that is opened.
      loss ??= new Error(`${name} is closed`);
      closeSync(fd);
    },
  };
}

/** What somebody has done to a file of this inode and size. Undefined: nothing. */
function damageTo(path: string, inode: number | undefined, size: number): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) return "deleted";
  if (found.ino !== inode) return "replaced";
  return found.size === size ? undefined : "changed";
}

const takenOver = (name: string): string =>
  `another process took over ${name}: its socket is gone or another's. ` +
  "This process must end. Only processes of one machine may use a data_dir";

const broken = (name: string, damage: string | undefined): string =>
  `${name} was ${damage} while the gateway wrote it: ` +
  "stop the gateway, restore data_dir, run `books rebuild`, start again";
