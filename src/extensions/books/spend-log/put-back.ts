// Puts back a segment that was deleted, or replaced by an older copy, while its process writes it.
// The process still has the deleted file open, with all lines. Another segment that stands at the
// path by then is left as it is.
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { randomHex } from "../../../core/ids.ts";
import { parseSpendLine } from "./records.ts";

const NEWLINE = 10;

/** A file that has all lines again. */
export interface PutBack {
  /** The descriptor of the file at the path, open for reading and appending. */
  readonly fd: number;
  /** What was done, for the operator. */
  readonly outcome: string;
  /** How many bytes were missing. */
  readonly bytes: number;
  /** How many lines were missing. */
  readonly lines: number;
}

/** Reads an open file from its beginning to its end. */
function readAll(fd: number): Buffer {
  const bytes = Buffer.alloc(fstatSync(fd).size);
  let filled = 0;
  while (filled < bytes.length) {
    const read = readSync(fd, bytes, filled, bytes.length - filled, filled);
    if (read === 0) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}

/** Writes bytes at a position, or at the end of the file if that is null. */
function writeAll(fd: number, bytes: Buffer, position: number | null = null): void {
  let written = 0;
  while (written < bytes.length) {
    const at = position === null ? null : position + written;
    written += writeSync(fd, bytes, written, bytes.length - written, at);
  }
}

const errorCode = (error: unknown) => (error as NodeJS.ErrnoException).code;

/** Opens the file at `path`. Returns undefined if nothing is there. */
function openExisting(path: string, flags: number): number | undefined {
  try {
    return openSync(path, flags);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Writes a file beside `path`, brings it to the disk, and lets `place` give it its name. Returns it
 * open.
 */
function writeDraft(path: string, bytes: Buffer, place: (draft: string) => void): number {
  const draft = `${path}.${randomHex(12)}.new`;
  const fd = openSync(draft, "ax+", 0o600);
  try {
    writeAll(fd, bytes);
    fsyncSync(fd);
    place(draft);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Makes the file at `path`, all of it at once. Returns undefined if something has the name by now.
 */
function writeWhole(path: string, bytes: Buffer): number | undefined {
  try {
    return writeDraft(path, bytes, (draft) => linkSync(draft, path));
  } catch (error) {
    if (errorCode(error) === "EEXIST") return undefined;
    throw error;
  }
}

const textLines = (bytes: Buffer): string[] => bytes.toString("utf8").split(/(?<=\n)/);
function countLines(bytes: Buffer): number {
  let count = 0;
  for (const byte of bytes) if (byte === NEWLINE) count += 1;
  return count;
}
const firstLine = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.indexOf(NEWLINE) + 1);

const beginsWith = (whole: Buffer, start: Buffer): boolean =>
  start.length <= whole.length && whole.subarray(0, start.length).equals(start);

/**
 * Writes what a copy lacks at its end. It is written by position, not appended: a program that is
 * still writing the copy (cp) then writes the same bytes to the same places.
 */
function fillUp(path: string, missing: Buffer, position: number): void {
  const fd = openSync(path, constants.O_WRONLY);
  try {
    writeAll(fd, missing, position);
  } finally {
    closeSync(fd);
  }
}

/** Brings our lines into a file that begins as ours does and goes on otherwise. */
function merge(path: string, fd: number, ours: Buffer, present: Buffer): PutBack {
  const ourLines = textLines(ours);
  const known = new Set(ourLines);
  const presentLines = new Set(textLines(present));
  const missing = Buffer.from(ourLines.filter((line) => !presentLines.has(line)).join(""));
  const counts = { bytes: missing.length, lines: countLines(missing) };
  const hasOthers = [...presentLines].some(
    (line) => !known.has(line) && parseSpendLine(line) !== undefined,
  );
  if (!hasOthers) {
    const whole = writeDraft(path, ours, (draft) => renameSync(draft, path));
    closeSync(fd);
    return { fd: whole, outcome: "a damaged copy of it was replaced by the whole", ...counts };
  }
  // Another process took the copy for a dead process's and has settled requests in it. This
  // process's lines come after those, and so correct the usage records that may have been made of
  // them.
  ftruncateSync(fd, present.lastIndexOf(NEWLINE) + 1);
  writeAll(fd, missing);
  fsyncSync(fd);
  return { fd, outcome: "an older copy, which had been recovered, was filled up", ...counts };
}

/**
 * Brings all lines of the open file `source` into the file at `path`. Returns undefined, with
 * nothing done, if another segment stands there. The caller holds the segment's claim, so no other
 * process writes to the file.
 */
export function putBack(path: string, source: number): PutBack | undefined {
  const ours = readAll(source);
  const all = { bytes: ours.length, lines: countLines(ours) };
  const fd = openExisting(path, constants.O_RDWR | constants.O_APPEND);
  if (fd === undefined) {
    const made = writeWhole(path, ours);
    if (made === undefined) return putBack(path, source); // Another program was quicker.
    return { fd: made, outcome: "it was gone, and was written anew", ...all };
  }
  try {
    const present = readAll(fd);
    if (beginsWith(ours, present)) {
      const missing = ours.subarray(present.length);
      fillUp(path, missing, present.length);
      fsyncSync(fd);
      const outcome = "an older copy of it was filled up";
      return { fd, outcome, bytes: missing.length, lines: countLines(missing) };
    }
    if (ours.length > 0 && beginsWith(present, ours))
      return { fd, outcome: "a copy of it with more in it is gone on with", bytes: 0, lines: 0 };
    if (ours.length > 0 && firstLine(ours).equals(firstLine(present)))
      return merge(path, fd, ours, present);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  return undefined;
}

/**
 * Writes all lines of the open file `source` to a new segment. Returns undefined if something has
 * its name.
 */
export function carryOver(path: string, source: number): PutBack | undefined {
  const ours = readAll(source);
  const fd = writeWhole(path, ours);
  if (fd === undefined) return undefined;
  const outcome = "another segment stands in its place, and its lines were written to a new one";
  return { fd, outcome, bytes: ours.length, lines: countLines(ours) };
}
