// Reads files line by line, in batches, so that a file of any size takes the same memory.
import { createReadStream } from "node:fs";

/** About 500 requests of the spend log. */
const BATCH_BYTES = 512 * 1024;

/** Consecutive whole lines of a file. */
export interface LineBatch {
  /** Without their line ends. */
  readonly lines: readonly string[];
  /** The bytes of these lines in the file, line ends included. */
  readonly bytes: Buffer;
}

/** Copies a part of a line. The part itself would keep its whole batch in memory. */
export const copyOfPart = (part: string): string => Buffer.from(part).toString();

/** Which part of a file to read. */
export interface ReadOptions {
  /** The first byte. Absent: 0. */
  readonly from?: number | undefined;
  /** The byte before which reading ends. Absent: the end of the file. */
  readonly to?: number | undefined;
}

/** Yields whole lines. A last line without a line end is left out: its write is not complete. */
export async function* readLines(
  path: string,
  { from = 0, to = Infinity }: ReadOptions = {},
): AsyncGenerator<LineBatch> {
  if (from >= to) return;
  let rest = Buffer.alloc(0);
  const stream = createReadStream(path, { start: from, end: to - 1, highWaterMark: BATCH_BYTES });
  for await (const chunk of stream) {
    const bytes = Buffer.concat([rest, chunk as Buffer]);
    const whole = bytes.lastIndexOf("\n") + 1;
    rest = bytes.subarray(whole);
    if (whole === 0) continue;
    const lines = bytes.toString("utf8", 0, whole - 1).split("\n");
    yield { lines, bytes: bytes.subarray(0, whole) };
  }
}
