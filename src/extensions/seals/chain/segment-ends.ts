// The first and the last line of a segment, without reading what is between them.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";

/** Longer than almost every line. A longer line is read in more steps. */
const STEP_BYTES = 16 * 1024;
const NEWLINE = 10;

function withFile<T>(path: string, work: (fd: number) => T): T {
  const fd = openSync(path, "r");
  try {
    return work(fd);
  } finally {
    closeSync(fd);
  }
}

function readAt(fd: number, from: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const read = readSync(fd, bytes, filled, length - filled, from + filled);
    if (read === 0) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}

/** The first line without its end. Undefined if it has none yet. */
export const firstLine = (path: string): string | undefined =>
  withFile(path, (fd) => {
    const { size } = fstatSync(fd);
    for (let length = STEP_BYTES; ; length *= 2) {
      const bytes = readAt(fd, 0, Math.min(length, size));
      const end = bytes.indexOf(NEWLINE);
      if (end >= 0) return bytes.toString("utf8", 0, end);
      if (length >= size) return undefined;
    }
  });

/** The spend_id of a line of the spend log. "": it has none. */
export const spendIdIn = (line: string): string =>
  asString(asObject(parseJson(line))["spend_id"]) ?? "";

/** The spend_id of the first line, by which the segment is known under any name. "": none. */
export const firstSpendId = (path: string): string => spendIdIn(firstLine(path) ?? "");

/**
 * The last line that ends at byte `end` or before, without its end. `end` absent: that of the file.
 * Undefined if there is none.
 */
export const lastLine = (path: string, end = Infinity): string | undefined =>
  withFile(path, (fd) => {
    const size = Math.min(end, fstatSync(fd).size);
    for (let length = STEP_BYTES; ; length *= 2) {
      const from = Math.max(0, size - length);
      const bytes = readAt(fd, from, size - from);
      const lineEnd = bytes.lastIndexOf(NEWLINE);
      const lineStart = lineEnd > 0 ? bytes.lastIndexOf(NEWLINE, lineEnd - 1) : -1;
      const isWhole = lineEnd >= 0 && (lineStart >= 0 || from === 0);
      if (isWhole) return bytes.toString("utf8", lineStart + 1, lineEnd);
      if (from === 0) return undefined;
    }
  });
