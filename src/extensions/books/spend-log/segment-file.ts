// The open file of a segment: appending, bringing it to the disk, and noticing that somebody has
// deleted or changed it.
import {
  closeSync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  openSync,
  statSync,
  writeSync,
} from "node:fs";
import { promisify } from "node:util";
import type { PutBack } from "./put-back.ts";

/**
 * What must fit on the disk before requests are taken again. Blanks without a line end look like an
 * unfinished line.
 */
const PROBE = Buffer.alloc(64 * 1024, " ");

/** A segment's file while its process writes it. Every method throws what the system says. */
export interface SegmentFile {
  /** Appends bytes. Returns how many of them the disk took, at least one. */
  append(bytes: Buffer): number;
  /** How many bytes this process has appended. */
  appended(): number;
  /** Whether the file at the path was deleted, replaced or cut, or moved away with its folder. */
  isLost(): boolean;
  /**
   * How many bytes were cut off a file of which there is no other copy. The file counts as whole
   * without them from then on, so the next call returns 0.
   */
  takeOverwritten(): number;
  /** The descriptor of a file that has all lines. */
  source(): number;
  /** Goes on in a file that has all lines again. */
  continueIn(path: string, file: PutBack): void;
  /** Finds out whether something can be written. */
  probe(): void;
  /** Brings everything appended until now to the disk. */
  sync(): Promise<void>;
  /** The same, holding the event loop. */
  syncNow(): void;
  /** Nothing can be appended any more. */
  close(): void;
}

/** Creates the file of a segment. Throws if something has its name. */
export function createSegmentFile(initialPath: string): SegmentFile {
  let path = initialPath;
  let fd = openSync(path, "ax+", 0o600);
  const spare = createSpare();
  /** The least size, in bytes, of the file at the path. */
  let expected = 0;
  let appended = 0;
  let synced = 0;

  return {
    append(bytes) {
      const written = writeSync(fd, bytes);
      appended += written;
      expected += written;
      spare.append(bytes.subarray(0, written));
      return written;
    },
    appended: () => appended,
    isLost() {
      const found = statSync(path, { throwIfNoEntry: false });
      return found?.ino !== fstatSync(fd).ino || found.size < expected;
    },
    takeOverwritten() {
      const { size } = fstatSync(fd);
      if (spare.descriptor() !== undefined || size >= expected) return 0;
      const missing = expected - size;
      expected = size;
      return missing;
    },
    source: () => spare.descriptor() ?? fd,
    continueIn(nextPath, file) {
      const isDeleted = fstatSync(fd).nlink === 0;
      if (isDeleted && spare.descriptor() === undefined) spare.keep(fd);
      else closeSync(fd);
      path = nextPath;
      fd = file.fd;
      expected = fstatSync(fd).size;
      synced = 0;
    },
    probe() {
      // Another process may have taken this one for dead and added lines, so the size is asked for.
      const { size } = fstatSync(fd);
      try {
        writeWhole(fd, PROBE);
      } finally {
        ftruncateSync(fd, size);
      }
    },
    async sync() {
      const reached = appended;
      if (reached > synced) await promisify(fsync)(fd);
      synced = reached;
    },
    syncNow: () => fsyncSync(fd),
    close() {
      spare.drop();
      closeSync(fd);
      // The system gives the number of a closed descriptor to the next file that is opened.
      fd = -1;
    },
  };
}

/**
 * The deleted file of a segment that was put back. It goes on to get all lines, in case a program
 * that is still restoring the folder overwrites what was put back.
 */
interface Spare {
  /** Undefined if there is no such file. */
  descriptor(): number | undefined;
  keep(fd: number): void;
  append(bytes: Buffer): void;
  drop(): void;
}

function createSpare(): Spare {
  let spare: number | undefined;
  function drop(): void {
    if (spare !== undefined) closeSync(spare);
    spare = undefined;
  }
  return {
    descriptor: () => spare,
    keep(fd) {
      spare = fd;
    },
    append(bytes) {
      if (spare === undefined) return;
      try {
        writeWhole(spare, bytes);
      } catch {
        drop(); // It would lack these bytes. The segment itself has them.
      }
    },
    drop,
  };
}

function writeWhole(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}
