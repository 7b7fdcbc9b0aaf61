// The claim of a process on the segment that it writes: a socket beside it (`.sock`), which answers
// while the process lives. Whoever finds no answer may take the segment over, and puts a socket of
// its own there. The process that lost its socket sees that the file is another one, or none.
import { existsSync } from "node:fs";
import { acquireSocketLock, inodeOf, isLockHeld } from "../../data-files/index.ts";
import { socketOf } from "./segment-names.ts";

/** A process's claim on one segment. */
export interface SegmentClaim {
  /** Whether the socket is still there, and is this process's. */
  isHeld(): boolean;
  /** Gives up the claim. Leaves a socket of another process where it is. */
  release(): void;
}

/** Claims a segment. Resolves with undefined if its socket is there already. */
export async function claimSegment(path: string): Promise<SegmentClaim | undefined> {
  const socket = socketOf(path);
  const release = await acquireSocketLock(socket);
  if (!release) return undefined;
  // While this process listens, no other file gets the number of its socket.
  const inode = inodeOf(socket);
  return {
    isHeld: () => inode !== undefined && inodeOf(socket) === inode,
    release,
  };
}

/** Whether a live process, be it this one, answers at a segment's socket. */
export const hasWriter = async (segment: string): Promise<boolean> =>
  existsSync(socketOf(segment)) && (await isLockHeld(socketOf(segment)));
