// The open file of a segment: appending, bringing it to the disk, and noticing that somebody has
// deleted, replaced or changed it.
import { closeSync, fsync, fsyncSync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { promisify } from "node:util";
import { inodeOf } from "../../data-files/index.ts";

/**
 * What must fit on the disk before requests are taken again. Blanks without a line end look like an
 * unfinished line.
 */
const PROBE = Buffer.alloc(64 * 1024, " ");

/** A segment's file while its process writes it. Every method throws what the system says. */
export interface SegmentFile {
  /** Appends lines. What the disk does not take of them is written before the next lines. */
  append(lines: string): void;
  /** How many bytes the file has. */
  size(): number;
  /** What somebody has done to the file at the path. Undefined: it is as this process wrote it. */
  damage(): "deleted" | "replaced" | "changed" | undefined;
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
export function createSegmentFile(path: string): SegmentFile {
  let fd = openSync(path, "ax", 0o600);
  // While the file is open, no other file gets its number.
  const inode = inodeOf(path);
  let size = 0;
  let synced = 0;
  let unwritten: Buffer = Buffer.alloc(0);

  /** Node writes a string in less time than it takes to make a Buffer of it. */
  function writeText(text: string): void {
    let written = 0;
    try {
      written = writeSync(fd, text);
      size += written;
    } finally {
      if (written < Buffer.byteLength(text)) unwritten = Buffer.from(text).subarray(written);
    }
  }

  return {
    append(lines) {
      if (unwritten.length > 0) unwritten = Buffer.concat([unwritten, Buffer.from(lines)]);
      else writeText(lines);
      while (unwritten.length > 0) {
        const written = writeSync(fd, unwritten);
        size += written;
        unwritten = unwritten.subarray(written);
      }
    },
    size: () => size,
    damage() {
      const found = statSync(path, { throwIfNoEntry: false });
      if (!found) return "deleted";
      if (found.ino !== inode) return "replaced";
      return found.size === size ? undefined : "changed";
    },
    probe() {
      try {
        for (let at = 0; at < PROBE.length; ) at += writeSync(fd, PROBE, at);
      } finally {
        ftruncateSync(fd, size);
      }
    },
    async sync() {
      const reached = size;
      if (reached > synced) await promisify(fsync)(fd);
      synced = reached;
    },
    syncNow: () => fsyncSync(fd),
    close() {
      closeSync(fd);
      // The system gives the number of a closed descriptor to the next file that is opened.
      fd = -1;
    },
  };
}
