// The file of a segment while its process writes it, with the claim beside it. Nothing is written
// once somebody has deleted, replaced or changed the file, or taken the segment over.
import { closeSync, fsync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { basename, dirname } from "node:path";
import { promisify } from "node:util";
import type { Clock } from "../../../core/clock.ts";
import { acquireSocketLock, inodeOf, syncToDisk } from "../../scale/data-files/index.ts";
import type { LogFault } from "./log-fault.ts";
import { socketOf } from "./segment-names.ts";

/**
 * A write looks at the claim if the last look was longer ago. To look costs more than to write, so
 * not every write does. Whoever takes a segment over waits for longer: TAKEOVER_MS.
 */
const LOOK_MS = 10;

/** The open file of a segment. Its methods throw what the system says. */
export interface SegmentFile {
  /** The file name. */
  readonly name: string;
  /** How many bytes this process has written to it. */
  size(): number;
  /** Throws if this process must not write to it any more. */
  look(): void;
  /** Adds a line to those that the next write() writes. */
  add(line: string): void;
  /** Writes all lines that were added, or throws. If it throws, the next call writes them. */
  write(): void;
  /** Brings everything written until now to the disk. */
  sync(): Promise<void>;
  /** Gives up the claim. Nothing can be written any more. */
  close(): void;
}

/**
 * Creates the file of a segment, with the claim of this process beside it. Resolves with undefined
 * if another process has claimed it; rejects with what the system says.
 */
export async function createSegmentFile(
  path: string,
  fault: LogFault,
  clock: Clock,
): Promise<SegmentFile | undefined> {
  const release = await acquireSocketLock(socketOf(path));
  if (!release) return undefined;
  try {
    // The claim's name in the folder must not reach the disk after the first lines.
    await syncToDisk(dirname(path));
    return openFile(path, release, fault, clock);
  } catch (error) {
    release();
    throw error;
  }
}

/** Throws if something has the name. */
function openFile(path: string, release: () => void, fault: LogFault, clock: Clock): SegmentFile {
  const name = basename(path);
  let fd = openSync(path, "ax", 0o600);
  // While the file is open, and its socket too, no other file gets their numbers.
  const inode = inodeOf(path);
  const socket = inodeOf(socketOf(path));
  const isHeld = (): boolean => socket !== undefined && inodeOf(socketOf(path)) === socket;
  let lookedAt = clock.monotonic();
  let lines = "";
  let size = 0;
  let synced = 0;

  function look(): void {
    fault.assertNotLost();
    lookedAt = clock.monotonic();
    const found = damageTo(path, inode, size);
    // Whoever takes a segment over adds lines to it.
    if (!isHeld() && (found === undefined || found === "changed")) {
      const detail =
        `another process took over ${name}: its socket is gone or another's. ` +
        "This process must end. Only processes of one machine may use a data_dir";
      throw fault.lose("spend_log_fenced", name, detail);
    }
    if (found === undefined) return;
    const detail =
      `${name} was ${found} while the gateway wrote it: ` +
      "stop the gateway, restore data_dir, run `books rebuild`, start again";
    throw fault.lose("spend_segment_broken", name, detail);
  }

  function assertMayWrite(): void {
    fault.assertNotLost();
    if (clock.monotonic() - lookedAt <= LOOK_MS) return;
    lookedAt = clock.monotonic();
    if (!isHeld()) look();
  }

  return {
    name,
    size: () => size,
    look,
    add(line) {
      lines += `${line}\n`;
    },
    write() {
      assertMayWrite();
      if (lines === "") return;
      try {
        // Node writes a string in less time than it takes to make a Buffer of it.
        let written = writeSync(fd, lines);
        const bytes = Buffer.byteLength(lines);
        while (written < bytes) written += writeSync(fd, Buffer.from(lines), written);
        size += bytes;
        lines = "";
      } catch (error) {
        // A full disk may have taken a part.
        ftruncateSync(fd, size);
        throw error;
      }
    },
    async sync() {
      const reached = size;
      if (reached > synced) await promisify(fsync)(fd);
      synced = reached;
    },
    close() {
      closeSync(fd);
      // The system gives the number of a closed descriptor to the next file that is opened.
      fd = -1;
      release();
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
