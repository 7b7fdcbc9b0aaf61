// Reads pieces of files. Files are opened at once: what is known of a file costs some microseconds,
// and a turn through Node's threads ten times as much. What a file holds may come from a slow disk,
// so it is read in those threads.
import { closeSync, openSync, read } from "node:fs";
import { promisify } from "node:util";

const readPiece = promisify(read);

/** Does work on a file that is open for reading, and closes it. Rejects if there is none. */
export async function withDescriptor<T>(
  path: string,
  work: (fd: number) => Promise<T>,
): Promise<T> {
  const fd = openSync(path, "r");
  try {
    return await work(fd);
  } finally {
    closeSync(fd);
  }
}

/** The bytes from byte `from` on: `length` of them, or fewer where the file ends. */
export const readAt = (fd: number, from: number, length: number): Promise<Buffer> =>
  readInto(Buffer.allocUnsafe(length), fd, from);

/** Fills `bytes` with those from byte `from` on. Resolves with as many as the file has. */
export async function readInto(bytes: Buffer, fd: number, from: number): Promise<Buffer> {
  let filled = 0;
  while (filled < bytes.length) {
    const { bytesRead } = await readPiece(fd, bytes, filled, bytes.length - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}
