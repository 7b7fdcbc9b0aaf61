// A segment of the spend log that was deleted, or replaced by an older copy, while a process writes it: the process still has the
// deleted file open, so that all of its lines can be put back. What stands at the path by then is left as it is if it is not ours.
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
import { randomHex } from "../../core/ids.ts";
import { parseSpendLine } from "./records.ts";

const NEWLINE = 10;

/** What was done. */
export interface PutBack {
  /** Open for reading and appending; the file at the path. */
  readonly fd: number;
  /** In words, for the operator. */
  readonly outcome: string;
  /** What was missing, and is there again. */
  readonly bytes: number;
  readonly lines: number;
}

/** All that stands in an open file. */
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

function writeAll(fd: number, bytes: Buffer, position: number | null = null): void {
  let written = 0;
  while (written < bytes.length) {
    const at = position === null ? null : position + written;
    written += writeSync(fd, bytes, written, bytes.length - written, at);
  }
}

const errorCode = (error: unknown) => (error as NodeJS.ErrnoException).code;

/** Opens what is at `path`, and makes nothing; undefined if nothing is there. */
function openExisting(path: string, flags: number): number | undefined {
  try {
    return openSync(path, flags);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Writes a whole file beside `path`, to the disk, and lets `place` give it its name; the file stays open. */
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

/** Makes the file at `path`, all of it at once; undefined if something has that name by now. */
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

/** Whether `whole` begins with `start`. */
const beginsWith = (whole: Buffer, start: Buffer): boolean =>
  start.length <= whole.length && whole.subarray(0, start.length).equals(start);

/** Fills up a copy that ends too early. By position, not by appending: a program that is still writing that copy (cp) then
 * writes the same bytes to the same places. */
function fillUp(path: string, missing: Buffer, position: number): void {
  const fd = openSync(path, constants.O_WRONLY);
  try {
    writeAll(fd, missing, position);
  } finally {
    closeSync(fd);
  }
}

/** Makes a file that begins as ours does, and goes on in another way, hold all of our lines. */
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
  // Another process took the copy for a dead process's and has settled requests in it. What this process says of them comes
  // after that, and so corrects what the usage records may have by now.
  ftruncateSync(fd, present.lastIndexOf(NEWLINE) + 1);
  writeAll(fd, missing);
  fsyncSync(fd);
  return { fd, outcome: "an older copy, which had been recovered, was filled up", ...counts };
}

/** Brings what is at `path` to hold all that stands in the open file `source`. Undefined, with nothing done, if another segment
 * stands there. The caller holds the segment's socket, so that no other process writes to what is there. */
export function putBack(path: string, source: number): PutBack | undefined {
  const ours = readAll(source);
  const all = { bytes: ours.length, lines: countLines(ours) };
  const fd = openExisting(path, constants.O_RDWR | constants.O_APPEND);
  if (fd === undefined) {
    const made = writeWhole(path, ours);
    if (made === undefined) return putBack(path, source); // somebody was quicker
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

/** Writes all that stands in the open file `source` to a new segment; undefined if something has that name. */
export function carryOver(path: string, source: number): PutBack | undefined {
  const ours = readAll(source);
  const fd = writeWhole(path, ours);
  if (fd === undefined) return undefined;
  const outcome = "another segment stands in its place, and its lines were written to a new one";
  return { fd, outcome, bytes: ours.length, lines: countLines(ours) };
}
