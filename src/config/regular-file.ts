// Files at paths that an operator names: configuration, created keys, certificates, secrets. Only
// regular files are read, up to a bound: opening a FIFO blocks until another process writes to it,
// a device may never end, and a huge file would hold the event loop or exhaust the memory.
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  statSync,
  type Stats,
} from "node:fs";
import { open, stat } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";

const MIB = 1024 ** 2;
/** The largest file of each kind, in bytes. 256 MiB of keys.json are some 900,000 keys. */
export const MAX_CONFIG_BYTES = 16 * MIB;
export const MAX_KEYS_BYTES = 256 * MIB;
export const MAX_CERTIFICATE_BYTES = MIB;
export const MAX_SECRET_BYTES = MIB / 16;

/**
 * With O_NONBLOCK open() does not wait, should a FIFO take the file's place between stat() and
 * open().
 */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK;
const DIGEST_STEP_BYTES = MIB; // hashed in one turn of the event loop: about a millisecond

/**
 * The bytes of a file, and their SHA-256, which tells whether a later reading finds something else.
 */
export interface FileContent {
  /** All of the file, which is no larger than the reader allowed. */
  readonly bytes: Buffer;
  /** In lower-case hexadecimal. */
  readonly digest: string;
}

function assertReadable(stats: Stats, maxBytes: number): void {
  if (stats.isDirectory()) throw new Error("EISDIR");
  if (!stats.isFile()) throw new Error(`it is ${kindOf(stats)}, not a regular file`);
  if (stats.size > maxBytes) throw tooLarge(maxBytes);
}

const tooLarge = (maxBytes: number): Error => new Error(`it has more than ${maxBytes} bytes`);

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return "a FIFO";
  return stats.isSocket() ? "a socket" : "a device";
}

/**
 * Why a file could not be read: a system error code, or what it is instead of a readable file.
 * Never anything that stands in it.
 */
export const whyUnreadable = (error: unknown): string =>
  (error as NodeJS.ErrnoException).code ?? (error as Error).message;

/**
 * Reads a file at once, for the start of the process and for commands. whyUnreadable() tells the
 * reason of an error.
 */
export function readRegularFile(path: string, maxBytes: number): FileContent {
  assertReadable(statSync(path), maxBytes);
  const fd = openSync(path, READ_ONLY);
  try {
    assertReadable(fstatSync(fd), maxBytes);
    const bytes = readFileSync(fd);
    if (bytes.length > maxBytes) throw tooLarge(maxBytes);
    return { bytes, digest: createHash("sha256").update(bytes).digest("hex") };
  } finally {
    closeSync(fd);
  }
}

/** The same without holding the event loop, however large the file is. */
export async function readRegularFileLater(path: string, maxBytes: number): Promise<FileContent> {
  assertReadable(await stat(path), maxBytes);
  const file = await open(path, READ_ONLY);
  try {
    assertReadable(await file.stat(), maxBytes);
    const bytes = await file.readFile();
    if (bytes.length > maxBytes) throw tooLarge(maxBytes);
    const hash = createHash("sha256");
    for (let at = 0; at < bytes.length; at += DIGEST_STEP_BYTES) {
      hash.update(bytes.subarray(at, at + DIGEST_STEP_BYTES));
      await nextTurn();
    }
    return { bytes, digest: hash.digest("hex") };
  } finally {
    await file.close();
  }
}
