// The claim of a process on the segment that it writes, by which other processes see that it is
// alive. A claim is two files beside the segment: a socket (`.sock`), which answers, and the claim
// file (`.open`), which stays until every request in the segment is settled. If somebody deletes
// the socket, the claim file still shows the process: it is touched once a second, and holds the
// number of its own inode, which a copy of it does not have.
import { existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { systemClock } from "../../../core/clock.ts";
import { acquireSocketLock, inodeOf, isLockHeld, syncToDisk } from "../../data-files/index.ts";
import { claimFileOf, socketOf } from "./segment-names.ts";

/** A process that has not touched its claim file for so long is dead, or stands still. */
const FRESH_MS = 15_000;

// The times of claim files are compared with those that the file system sets, so they are the
// machine's own.
const now = (): number => systemClock.now();

/** A process's claim on one segment. */
export interface SegmentClaim {
  /** The segment's path. */
  readonly path: string;
  /**
   * Makes socket and claim file anew if somebody has deleted or replaced them. Resolves with false
   * if another process answers at the socket: then this one has lost its claim.
   */
  restore(): Promise<boolean>;
  /**
   * Shows that the process is alive. Resolves with true if socket or claim file had to be made
   * anew. If another process has taken the socket, the claim file alone goes on to show this one.
   */
  renew(): Promise<boolean>;
  /** Leaves the segment, with unsettled requests, to the next recovery. */
  abandon(): void;
  /** Removes the claim file: every request in the segment is settled. */
  removeFile(): void;
  /** Gives up the socket. */
  release(): void;
}

/** Claims a segment. Resolves with undefined if another process has claimed it. */
export async function claimSegment(path: string): Promise<SegmentClaim | undefined> {
  const release = await acquireSocketLock(socketOf(path));
  if (!release) return undefined;
  try {
    writeClaimFile(claimFileOf(path));
    // A power failure must not leave the segment without its claim file.
    await syncToDisk(dirname(path));
    return createClaim(path, release);
  } catch (error) {
    release();
    throw error;
  }
}

function createClaim(path: string, releaseSocket: () => void): SegmentClaim {
  const socketPath = socketOf(path);
  const file = claimFileOf(path);
  let release = releaseSocket;
  let inode = inodeOf(socketPath);

  async function restore(): Promise<boolean> {
    const found = inodeOf(socketPath);
    if (inode === undefined || found !== inode) {
      // A copy of a socket answers nobody.
      if (found !== undefined && !(await isLockHeld(socketPath)))
        rmSync(socketPath, { force: true });
      const acquired = await acquireSocketLock(socketPath);
      if (!acquired) return false;
      release();
      release = acquired;
      inode = inodeOf(socketPath);
    }
    writeClaimFile(file);
    return true;
  }

  return {
    path,
    restore,
    async renew() {
      const hasFile = touch(file);
      if (!hasFile) writeClaimFile(file);
      const found = inodeOf(socketPath);
      if (found !== undefined && found === inode) return !hasFile;
      if (await restore()) return true;
      release();
      release = () => undefined;
      inode = inodeOf(socketPath);
      return true;
    },
    abandon() {
      // Emptying takes no room on a full disk.
      if (existsSync(file)) writeFileSync(file, "");
    },
    removeFile: () => rmSync(file, { force: true }),
    release: () => release(),
  };
}

/** Writes a claim file: the inode of the file itself. */
function writeClaimFile(path: string): void {
  writeFileSync(path, "");
  writeFileSync(path, String(statSync(path).ino));
}

/** Sets a file's time to now. Returns false if the file is gone. */
function touch(path: string): boolean {
  if (!existsSync(path)) return false;
  const seconds = now() / 1_000;
  utimesSync(path, seconds, seconds);
  return true;
}

/** Whether the process that made a claim file has touched it of late, in this very place. */
function isFresh(file: string): boolean {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat || Math.abs(now() - stat.mtimeMs) > FRESH_MS) return false;
  return readFileSync(file, "utf8") === String(stat.ino);
}

/** Whether the process that writes a segment is alive. */
export async function hasWriter(segment: string): Promise<boolean> {
  const socket = socketOf(segment);
  if (await isLockHeld(socket)) return true;
  return !existsSync(socket) && isFresh(claimFileOf(segment));
}
