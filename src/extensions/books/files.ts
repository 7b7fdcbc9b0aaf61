// Files of the books: read in lines from anywhere to anywhere, in batches, in flat memory, however large; replaced as a whole.
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  createReadStream,
  existsSync,
  linkSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open, rename, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { hostname } from "node:os";
import { dirname, join, relative } from "node:path";
import {
  MAX_KEYS_BYTES,
  readRegularFile,
  whyUnreadable,
  type FileContent,
} from "../../core/config/regular-file.ts";
import { fail } from "../../core/schema/checker.ts";

const BATCH_BYTES = 512 * 1024; // some 500 requests of the spend log
/** Whole lines of the bytes `from` up to `to`, and where each batch ends; not a last one without its end: it is being written, or torn. */
export async function* readLines(
  path: string,
  from = 0,
  to = Infinity,
  batchBytes = BATCH_BYTES,
): AsyncGenerator<{ readonly lines: readonly string[]; readonly end: number }> {
  if (from >= to) return;
  let rest = Buffer.alloc(0);
  let end = from;
  for await (const chunk of createReadStream(path, {
    start: from,
    end: to - 1,
    highWaterMark: batchBytes,
  })) {
    const bytes = Buffer.concat([rest, chunk as Buffer]);
    const whole = bytes.lastIndexOf("\n") + 1;
    rest = bytes.subarray(whole);
    end += whole;
    if (whole > 0) yield { lines: bytes.toString("utf8", 0, whole - 1).split("\n"), end };
  }
}

/** What stands in a file as JSON; `absent` if reading it fails with one of `codes`. Throws a ValidationError if it fails otherwise. */
export function readJson(path: string, absent: unknown, codes: readonly string[]): unknown {
  let content: FileContent;
  try {
    content = readRegularFile(path, MAX_KEYS_BYTES);
  } catch (error) {
    return codes.includes(whyUnreadable(error)) ? absent : failUnreadable(path, error);
  }
  return parseJsonFile(path, textIn(content.bytes));
}

/** Throws the ValidationError of a file that could not be read. */
export const failUnreadable = (path: string, error: unknown): never =>
  fail("invalid_value", `cannot read ${path}: ${whyUnreadable(error)}`);

/** The text in a file's bytes, without a byte order mark. */
export const textIn = (bytes: Buffer): string => bytes.toString("utf8").replace(/^\ufeff/, "");

/** The text of the file at `path` as JSON. Throws a ValidationError that tells where it is none. */
export function parseJsonFile(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as Error;
    // V8 quotes the file around the fault, which may be a key: the place is told or, of a token, for which V8 states none, its first character.
    const token = /^Unexpected token '.'/su.exec(message)?.[0];
    const lines = text
      .slice(0, Number(/position (\d+)/.exec(message)?.[1] ?? text.length))
      .split("\n");
    return fail(
      "invalid_value",
      `${path} is not JSON: ${token ?? `the fault is at line ${lines.length}, column ${lines.at(-1)!.length + 1}`}`,
    );
  }
}

/** New content, all of it or none. The caller sees to it that nobody else does this at the same time. Only the owner may read it. */
export async function replaceFile(path: string, content: string): Promise<void> {
  await writeFile(`${path}.new`, content, { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
  await syncToDisk(dirname(path));
}

/** What stands in a file, or was made or renamed in a folder, outlives a power failure from here on. */
export async function syncToDisk(path: string): Promise<void> {
  const file = await open(path);
  await file.sync().finally(() => file.close());
}

/** Gives what is at `draft` its name, unless there is something of that name: unlike a rename it leaves that alone, and says so. */
function claim(draft: string, name: string): boolean {
  try {
    linkSync(draft, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  } finally {
    rmSync(draft, { force: true });
  }
  return true;
}

/** Random bytes, as hex digits, that a file of data_dir holds for good. Whichever process needs them first makes them; all others read
 * the same. `known`: what the file held before it was deleted. Only the owner may read the file. Throws if the folder is not there, or
 * the file can be neither read nor made. */
function madeOnce(dataDir: string, name: string, bytes: number, known?: string): string {
  const file = join(dataDir, name);
  if (!existsSync(file)) {
    const draft = `${file}.${randomBytes(6).toString("hex")}`;
    writeFileSync(draft, known ?? randomBytes(bytes).toString("hex"), { mode: 0o600, flush: true });
    claim(draft, file);
  }
  return readRegularFile(file, 1024).bytes.toString();
}

/** 32 hex digits that name a data_dir for good. The spend_ids of its requests begin with some of them. `known`: what they are, for
 * the case that the file was deleted. */
export const gatewayInstanceId = (dataDir: string, known?: string): string =>
  madeOnce(dataDir, "gateway-id", 16, known);

/** The key of system_fingerprint: 64 hex digits. Throws if the file holds something else, such as nothing. */
export function fingerprintSecretOf(dataDir: string): string {
  const secret = madeOnce(dataDir, "fingerprint-secret", 32);
  if (!/^[0-9a-f]{64}$/.test(secret)) throw new Error("fingerprint-secret is not 64 hex digits");
  return secret;
}

/** A text that tells this data_dir from a copy of it, here or on another machine. It changes when the machine starts anew and when the
 * folder is moved to another file system. */
export function placeOf(dataDir: string): string {
  gatewayInstanceId(dataDir);
  const { ino, birthtimeMs } = statSync(join(dataDir, "gateway-id"));
  const system = existsSync(BOOT_ID) ? readFileSync(BOOT_ID, "utf8") : hostname();
  return createHash("sha256")
    .update(`${system} ${ino} ${Math.floor(birthtimeMs)}`)
    .digest("hex")
    .slice(0, 32);
}
/** Linux: the same in all containers of a running machine. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

// Which process is at work on a file, and is it still alive? A Unix socket tells: it answers as long as its process lives,
// however that ends, in another container too, but not on another machine: a data_dir belongs to one.

/** The path, or if it is too long the way from here: systems take 104 bytes or a little more for a socket's. */
const socketPath = (path: string): string =>
  [path, relative("", path)].find((each) => Buffer.byteLength(each) < 104) ??
  fail(
    "invalid_value",
    `is ${Buffer.byteLength(path) - 103} bytes too long for the sockets in it`,
    ["data_dir"],
  );

/** Undefined where nothing is. */
export const inodeOf = (path: string): number | undefined =>
  statSync(path, { throwIfNoEntry: false })?.ino;

/** Answers at `path` until it is released or the process ends; undefined if the path is taken. */
export async function acquireSocketLock(path: string): Promise<(() => void) | undefined> {
  const draft = join(dirname(path), `${randomBytes(6).toString("hex")}.new`); // it gets its name when it answers already, or it might be taken for dead
  socketPath(path);
  const server = createServer((socket) => socket.destroy())
    .on("error", () => undefined)
    .unref();
  await once(server.listen({ path: socketPath(draft), exclusive: true }), "listening");
  if (!claim(draft, path)) {
    server.close();
    return undefined;
  }
  const inode = inodeOf(path);
  return () => {
    if (inodeOf(path) === inode) rmSync(path, { force: true }); // not what another process has made of that name since
    server.close();
  };
}

export async function isLockHeld(path: string): Promise<boolean> {
  const socket = connect(socketPath(path));
  // Any other error, such as too many waiting to be answered, is no proof of death.
  const isDead = ({ code }: NodeJS.ErrnoException) =>
    ["ECONNREFUSED", "ENOENT", "ENOTSOCK"].includes(String(code));
  return await once(socket, "connect")
    .then(
      () => true,
      (error) => !isDead(error),
    )
    .finally(() => socket.destroy());
}
