// Locks between processes on one machine. A lock is a Unix socket, which answers exactly as long as
// its process lives. It also answers processes in other containers, but not another machine, so a
// data_dir belongs to one machine.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname, join, relative } from "node:path";
import { systemClock, type Clock } from "../../../core/clock.ts";
import { randomHex } from "../../../core/ids.ts";
import { fail } from "../../../core/schema/checker.ts";
import { moveUnlessTaken, NEEDS, writeError } from "./replace-file.ts";

/** The most bytes of a socket's path: operating systems accept this many, or a few more. */
const MAX_SOCKET_PATH = 103;

/**
 * Connection errors that prove that no process listens. Others, such as a full queue, do not.
 */
const NO_LISTENER = ["ECONNREFUSED", "ENOENT", "ENOTSOCK"];

/** Another process held a lock for longer than the caller was ready to wait. */
export class BusyError extends Error {}

/** A lock, and how long to wait for it. */
interface LockOptions {
  /** The folder of the lock's sockets. It is created if it is missing. */
  readonly dir: string;
  /** The name of the lock. The sockets' names begin with it, and the BusyError names it. */
  readonly name: "books" | "keys";
  /**
   * How long to wait for the process that holds the lock, in milliseconds. Absent: a minute. 0: one
   * attempt.
   */
  readonly patienceMs?: number | undefined;
  /** Absent: the system's clock. */
  readonly clock?: Clock;
}

/**
 * Runs `work` while no other process holds the same lock. Throws a BusyError if the lock is not
 * free within `patienceMs`.
 *
 * Each process first opens a socket with a random name, and then looks for the sockets of others.
 * Of two processes the second sees the first, so two never work at once. If both open theirs at the
 * same moment, both close them and try again after a random pause. A socket that does not answer
 * was left by a dead process.
 */
export async function withLock<T>(options: LockOptions, work: () => Promise<T>): Promise<T> {
  const { dir, name, patienceMs = 60_000, clock = systemClock } = options;
  const deadline = clock.monotonic() + patienceMs;
  for (;;) {
    const begun = clock.monotonic();
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const socket = `${name}.${randomHex(6)}.sock`;
    const release = await acquireSocketLock(join(dir, socket));
    try {
      const isAlone = !(await hasRival(dir, name, socket));
      if (release && isAlone) return await work();
    } finally {
      release?.();
    }
    const ended = clock.monotonic();
    if (ended >= deadline) throw new BusyError(`another process is at work on the ${name}`);
    // On a busy machine an attempt is slow. With pauses shorter than an attempt, the next attempts
    // of two processes would collide again.
    const range = Math.max(80, 4 * (ended - begun));
    await new Promise<void>((resolve) => {
      clock.after(20 + range * Math.random(), resolve);
    });
  }
}

/** Whether another process holds a socket of the lock. Removes the sockets of dead processes. */
async function hasRival(dir: string, name: string, socket: string): Promise<boolean> {
  const others = readdirSync(dir)
    .filter((file) => file !== socket && file.startsWith(`${name}.`) && file.endsWith(".sock"))
    .map((file) => join(dir, file));
  const held = await Promise.all(others.map(isLockHeld));
  others.forEach((path, index) => {
    if (!held[index]) rmSync(path, { force: true });
  });
  return held.includes(true);
}

/**
 * The path itself or, if it is too long for a socket, relative to the working directory.
 * Undefined: both are too long.
 */
function shortPath(path: string): string | undefined {
  if (isShort(path)) return path;
  const fromHere = relative("", path); // throws where the working directory is gone
  return isShort(fromHere) ? fromHere : undefined;
}

const isShort = (path: string): boolean => Buffer.byteLength(path) <= MAX_SOCKET_PATH;

const socketPath = (path: string): string =>
  shortPath(path) ?? fail("invalid_value", tooLongText(path), ["data_dir"]);

function tooLongText(path: string): string {
  const shorter = Math.min(...[path, relative("", path)].map((text) => Buffer.byteLength(text)));
  return `is ${shorter - MAX_SOCKET_PATH} bytes too long for the sockets in it`;
}

/** Why the spend log's folder has a path too long for sockets in it. Undefined: it has not. */
export function whyTooLong(dir: string): string | undefined {
  const longest = join(dir, "books.000000000000.sock");
  return shortPath(longest) === undefined ? tooLongText(longest) : undefined;
}

/** Whether `path` exists. Throws the system's error if that cannot be determined. */
export const pathExists = (path: string): boolean => inodeOf(path) !== undefined;

/** The inode number of a file, which distinguishes it from a copy. Undefined: there is no file. */
export const inodeOf = (path: string): number | undefined =>
  statSync(path, { throwIfNoEntry: false })?.ino;

/**
 * Opens a socket at `path`, which answers until the returned function is called or the process
 * ends. Resolves with undefined if `path` exists already. Throws a ValidationError if the path is
 * too long for a socket.
 */
export async function acquireSocketLock(path: string): Promise<(() => void) | undefined> {
  socketPath(path);
  // The socket gets its final name only when it answers. Otherwise another process could take it
  // for the socket of a dead process.
  const draft = join(dirname(path), `${randomBytes(6).toString("hex")}.new`);
  const server = createServer((socket) => socket.destroy())
    .on("error", () => undefined)
    .unref();
  let isOurs = false;
  try {
    await once(server.listen({ path: socketPath(draft), exclusive: true }), "listening");
    if (moveUnlessTaken(draft, path)) {
      await assertAnswers(path);
      isOurs = true;
    }
  } catch (error) {
    throw writeError(error as Error, draft);
  } finally {
    if (!isOurs) server.close();
  }
  if (!isOurs) return undefined;
  const inode = inodeOf(path);
  return () => {
    // Meanwhile another process may have put its own socket at the path.
    if (inodeOf(path) === inode) rmSync(path, { force: true });
    server.close();
  };
}

/**
 * Removes a socket that does not answer under its final name, and throws: with some file systems of
 * FUSE, a hard link is another file, and then other processes would take its owner for dead.
 */
async function assertAnswers(path: string): Promise<void> {
  if (await isLockHeld(path)) return;
  rmSync(path, { force: true });
  throw new Error(`${path} does not answer; ${NEEDS}`);
}

/** Whether a live process answers at `path`. */
export async function isLockHeld(path: string): Promise<boolean> {
  const socket = connect(socketPath(path));
  try {
    await once(socket, "connect");
    return true;
  } catch (error) {
    return !NO_LISTENER.includes(String((error as NodeJS.ErrnoException).code));
  } finally {
    socket.destroy();
  }
}
