// Files at paths that an operator names: configuration, created keys, certificates, secrets. Only
// regular files are read, up to a bound: opening a FIFO blocks until another process writes to it,
// a device may never end, and a huge file would hold the event loop or exhaust the memory. Errors
// never quote the file.
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import { sha256 } from "../core/hash.ts";
import { fail } from "../core/schema/checker.ts";

const MIB = 1024 ** 2;
/** The largest file of each kind, in bytes. 256 MiB of keys.json are some 900,000 keys. */
export const MAX_CONFIG_BYTES = 16 * MIB;
export const MAX_KEYS_BYTES = 256 * MIB;
export const MAX_CERTIFICATE_BYTES = MIB;
export const MAX_SECRET_BYTES = MIB / 16;

/** With O_NONBLOCK, open() does not wait for the other end of a FIFO. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * The bytes of a file, and their SHA-256, by which a later change is detected.
 */
export interface FileContent {
  /** The whole file, which is no larger than the reader's bound. */
  readonly bytes: Buffer;
  /** The SHA-256, in lower-case hexadecimal. */
  readonly digest: string;
}

function assertReadable(stats: Stats, maxBytes: number): void {
  if (stats.isDirectory()) throw new Error("EISDIR");
  const kind = stats.isFIFO() ? "a FIFO" : "a device";
  if (!stats.isFile()) throw new Error(`it is ${kind}, not a regular file`);
  if (stats.size > maxBytes) throw tooLarge(maxBytes);
}

const tooLarge = (maxBytes: number): Error => new Error(`it has more than ${maxBytes} bytes`);

/** Throws an Error if the file has grown beyond the bound since it was opened. */
function contentOf(bytes: Buffer, maxBytes: number): FileContent {
  if (bytes.length > maxBytes) throw tooLarge(maxBytes);
  return { bytes, digest: sha256(bytes) };
}

/**
 * Why a file could not be read: a system error code, or what it is instead of a readable file.
 * Never any of its content.
 */
export const whyUnreadable = (error: unknown): string =>
  (error as NodeJS.ErrnoException).code ?? (error as Error).message;

/**
 * The state of a file that could not be read, by which a later change is detected: the reason.
 * Null: there is no file.
 */
export function unreadableState(error: unknown): string | null {
  const why = whyUnreadable(error);
  return why === "ENOENT" ? null : why;
}

/** Throws a ValidationError for a file that could not be read. */
export const failUnreadable = (path: string, error: unknown): never =>
  fail("invalid_value", `cannot read ${path}: ${whyUnreadable(error)}`);

/**
 * Reads a file synchronously, for the start of the process and for commands. whyUnreadable()
 * returns the reason of an error.
 */
export function readRegularFile(path: string, maxBytes: number): FileContent {
  const fd = openSync(path, READ_ONLY);
  try {
    assertReadable(fstatSync(fd), maxBytes);
    return contentOf(readFileSync(fd), maxBytes);
  } finally {
    closeSync(fd);
  }
}

/** Reads a file without blocking the event loop. whyUnreadable() returns the reason of an error. */
export async function readRegularFileAsync(path: string, maxBytes: number): Promise<FileContent> {
  const file = await open(path, READ_ONLY);
  try {
    assertReadable(await file.stat(), maxBytes);
    return contentOf(await file.readFile(), maxBytes);
  } finally {
    await file.close();
  }
}

/** Decodes a file's bytes as UTF-8, without a byte order mark. */
export const textIn = (bytes: Buffer): string => bytes.toString("utf8").replace(/^\ufeff/, "");

/** Parses the text of the file at `path`. Throws a ValidationError that says where the fault is. */
export function parseJsonFile(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const fault = describeFault(text, (error as Error).message);
    return fail("invalid_value", `${path} is not JSON: ${fault}`);
  }
}

/** The longest text, in characters, in which an unexpected token is searched for: some 0.1 s. */
const MAX_SEARCHED = 1_000_000;

const TOKEN = /^Unexpected token '.'/su;

/**
 * Says where a text stops being JSON. V8's message quotes the text around the fault, which may be a
 * key, so only the position is repeated. For an unexpected token V8 states no position: it is
 * searched for or, in a larger text, the token's first character is quoted instead.
 */
function describeFault(text: string, message: string): string {
  const token = TOKEN.exec(message)?.[0];
  if (token !== undefined && text.length > MAX_SEARCHED) return token;
  const stated = Number(/position (\d+)/.exec(message)?.[1] ?? text.length);
  const position = token === undefined ? stated : unexpectedTokenIn(text);
  const lines = text.slice(0, position).split("\n");
  const column = (lines.at(-1)?.length ?? 0) + 1;
  return `the fault is at line ${lines.length}, column ${column}`;
}

/** The index of the unexpected token, found by bisection: it ends the shortest part with one. */
function unexpectedTokenIn(text: string): number {
  let without = 0;
  let having = text.length;
  while (having - without > 1) {
    const middle = Math.floor((without + having) / 2);
    if (hasUnexpectedToken(text.slice(0, middle))) having = middle;
    else without = middle;
  }
  return without;
}

function hasUnexpectedToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return TOKEN.test((error as Error).message);
  }
}
