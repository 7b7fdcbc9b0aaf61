// Reads lines of a month's file, in pieces that keep the event loop for a millisecond at most.
import type { RequestQuery } from "../../usage-records/index.ts";
import { readAt, readInto } from "./read-file.ts";

/** So many bytes are read at once: about 150 records. */
const PIECE_BYTES = 128 * 1024;
/** A single line is read with so many bytes, and with more if it is longer. */
const LINE_BYTES = 2 * 1024;
/** So many pieces of memory are kept for the next searches. */
const MOST_SPARE = 4;
const NEWLINE = 10;

/** A part of a file that is open for reading. */
export interface FilePart {
  /** The descriptor of the file. */
  readonly fd: number;
  /** The first byte. */
  readonly from: number;
  /** The first byte that does not belong to it any more. */
  readonly to: number;
}

/** The first whole lines of a part, as bytes. Empty if no line of it has an end. */
export async function wholeLines(
  { fd, from, to }: FilePart,
  piece: Buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, to - from)),
): Promise<Buffer> {
  for (let bytes: Buffer = piece; ; bytes = Buffer.allocUnsafe(bytes.length * 2)) {
    const wanted = bytes.subarray(0, Math.min(bytes.length, to - from));
    const read = await readInto(wanted, fd, from);
    const end = read.lastIndexOf(NEWLINE) + 1;
    if (end > 0 || read.length < bytes.length) return read.subarray(0, end);
  }
}

/** Resolves with the lines of a part that have a request id, the latest first. */
export type LineSearch = (part: FilePart, query: RequestQuery) => Promise<string[]>;

/**
 * A search that reads line by line. It keeps the memory that it reads into: with a new piece for
 * each search the collector of garbage would run several times as often.
 */
export function createLineSearch(): LineSearch {
  const spare: Buffer[] = [];
  return async (part, query) => {
    if (part.from === part.to) return [];
    const piece = spare.pop() ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
    try {
      return await linesWith(part, query, piece);
    } finally {
      if (spare.length < MOST_SPARE) spare.push(piece);
    }
  };
}

async function linesWith(
  { fd, from, to }: FilePart,
  { requestId, account }: RequestQuery,
  piece: Buffer,
): Promise<string[]> {
  // Inside of texts quotes are escaped, so this is not found in one.
  const id = Buffer.from(`"gateway_request_id":${JSON.stringify(requestId)}`);
  const owner = account === undefined ? "" : `"account":${JSON.stringify(account)}`;
  const found: string[] = [];
  for (let at = from; at < to; ) {
    const lines = await wholeLines({ fd, from: at, to }, piece);
    if (lines.length === 0) break;
    for (let place = lines.indexOf(id); place >= 0; ) {
      const end = lines.indexOf(NEWLINE, place);
      const line = lines.toString("utf8", lines.lastIndexOf(NEWLINE, place) + 1, end);
      if (line.includes(owner)) found.push(line);
      place = lines.indexOf(id, end);
    }
    at += lines.length;
  }
  return found.reverse();
}

/** The line that begins at byte `offset`. */
export async function lineAt(fd: number, offset: number): Promise<string> {
  for (let length = LINE_BYTES; ; length *= 4) {
    const bytes = await readAt(fd, offset, length);
    const end = bytes.indexOf(NEWLINE);
    if (end >= 0 || bytes.length < length)
      return bytes.toString("utf8", 0, end < 0 ? bytes.length : end);
  }
}
