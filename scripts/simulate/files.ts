// The functions of node:fs and node:fs/promises that the program uses, on a simulated disk, for one
// process. A function that is not here is undefined, so a new call fails the simulation until the
// function is added.

import { Readable } from "node:stream";
import { constants } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { type Disk, type Inode, systemError } from "./disk.ts";
import { countOpen, type SimProcess, type Simulator } from "./simulator.ts";

/** What the functions work on. */
export interface FilesOptions {
  readonly sim: Simulator;
  readonly disk: Disk;
  readonly owner: SimProcess;
  /** Called before each change of the disk. It throws if the process dies at that change. */
  readonly beforeChange: (what: string) => void;
}

/** The last arguments of readSync(). `offset` is in the buffer, `position` in the file. */
type ReadPlace = readonly [offset: number, length: number, position: number];

type Data = string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<string>;

interface WriteOptions {
  readonly flag?: string;
  readonly flush?: boolean;
}

/** The result of stat(). */
const statsOf = ({ number, kind, content, changed, born }: Inode) => ({
  isFile: () => kind === "file",
  isDirectory: () => kind === "folder",
  isSymbolicLink: () => false,
  isFIFO: () => false,
  ino: number,
  size: content.length,
  mtimeMs: changed,
  mtimeNs: changed * 1e6,
  birthtimeMs: born,
});

async function bytesOf(data: Data): Promise<Buffer> {
  if (typeof data === "string" || data instanceof Uint8Array) return Buffer.from(data as string);
  const pieces: Buffer[] = [];
  for await (const piece of data) pieces.push(Buffer.from(piece as string));
  return Buffer.concat(pieces);
}

function createSyncCalls({ sim, disk, owner, beforeChange }: FilesOptions) {
  /** Open files, each with the last part of its path. Every write is an append. */
  const descriptors = new Map<number, { readonly name: string; readonly inode: Inode }>();
  let numbers = 3;

  function inodeAt(path: string, call: string): Inode {
    const inode = disk.find(resolve(path));
    if (!inode) throw systemError("ENOENT", call, path);
    return inode;
  }

  function create(path: string): Inode {
    const parent = disk.find(dirname(path));
    if (parent?.kind !== "folder") throw systemError("ENOENT", "open", path);
    return disk.create(path, "file");
  }

  function descriptor(fd: number) {
    const known = descriptors.get(fd);
    if (!known) throw systemError("EBADF", "fd");
    return known;
  }

  /** Flags that are numbers open a file for reading. */
  function openSync(path: string, flags: string | number = "r"): number {
    const full = resolve(path);
    const name = typeof flags === "string" ? flags : "r";
    const there = disk.find(full);
    if (there && name.includes("x")) throw systemError("EEXIST", "open", path);
    if (!there && name.startsWith("r")) throw systemError("ENOENT", "open", path);
    if (!there || name.startsWith("w")) beforeChange(`opens ${basename(path)}`);
    const inode = there ?? create(full);
    if (name.startsWith("w")) disk.truncate(inode, 0);
    numbers += 1;
    descriptors.set(numbers, { name: basename(path), inode });
    countOpen(owner, "file", 1);
    return numbers;
  }

  function closeSync(fd: number): void {
    descriptor(fd);
    descriptors.delete(fd);
    countOpen(owner, "file", -1);
  }

  function writeSync(fd: number, data: string | Uint8Array, from = 0): number {
    const { name, inode } = descriptor(fd);
    const bytes = Buffer.from(data as string).subarray(typeof data === "string" ? 0 : from);
    try {
      beforeChange(`writes ${bytes.length} bytes to ${name}`);
    } catch (error) {
      // The process dies in the middle of this write.
      disk.append(inode, bytes.subarray(0, sim.random.between(0, bytes.length)));
      throw error;
    }
    disk.append(inode, bytes);
    return bytes.length;
  }

  function readFileSync(path: string | number, options?: string | { encoding?: string }) {
    const inode = typeof path === "number" ? descriptor(path).inode : inodeAt(path, "open");
    if (inode.kind === "folder") throw systemError("EISDIR", "read");
    const encoding = typeof options === "string" ? options : options?.encoding;
    const bytes = Buffer.from(inode.content);
    return encoding === undefined ? bytes : bytes.toString(encoding as BufferEncoding);
  }

  function writeFileSync(path: string, data: string | Uint8Array, more: WriteOptions = {}): void {
    const fd = openSync(path, more.flag ?? "w");
    try {
      writeSync(fd, data);
      if (more.flush) disk.sync(descriptor(fd).inode);
    } finally {
      closeSync(fd);
    }
  }

  function statSync(path: string, { throwIfNoEntry = true } = {}) {
    const inode = throwIfNoEntry ? inodeAt(path, "stat") : disk.find(resolve(path));
    return inode && statsOf(inode);
  }

  function mkdirSync(path: string, options: { recursive?: boolean } = {}): void {
    const full = resolve(path);
    if (disk.find(full)) {
      if (options.recursive) return;
      throw systemError("EEXIST", "mkdir", path);
    }
    if (!disk.find(dirname(full))) {
      if (!options.recursive) throw systemError("ENOENT", "mkdir", path);
      mkdirSync(dirname(full), options);
    }
    beforeChange(`makes ${basename(path)}`);
    disk.create(full, "folder");
  }

  function remove(path: string, call: string): void {
    inodeAt(path, call);
    beforeChange(`removes ${basename(path)}`);
    disk.remove(resolve(path));
  }

  function truncate(inode: Inode, size: number): void {
    beforeChange("cuts a file");
    disk.truncate(inode, size);
  }

  return {
    inodeAt,
    syncNow: (fd: number): void => disk.sync(descriptor(fd).inode),
    constants,
    existsSync: (path: string) => disk.find(resolve(path)) !== undefined,
    statSync,
    lstatSync: statSync,
    fstatSync: (fd: number) => statsOf(descriptor(fd).inode),
    accessSync(path: string) {
      inodeAt(path, "access");
    },
    openSync,
    closeSync,
    writeSync,
    readSync(fd: number, buffer: Buffer, ...[offset, length, position]: ReadPlace) {
      const { content } = descriptor(fd).inode;
      return content.copy(buffer, offset, Math.min(position, content.length), position + length);
    },
    ftruncateSync: (fd: number, size = 0) => truncate(descriptor(fd).inode, size),
    truncateSync: (path: string, size = 0) => truncate(inodeAt(path, "truncate"), size),
    readFileSync,
    writeFileSync,
    appendFileSync: (path: string, data: string, options: WriteOptions = {}) =>
      writeFileSync(path, data, { ...options, flag: "a" }),
    renameSync(from: string, to: string) {
      beforeChange(`renames ${basename(to)}`);
      disk.link(inodeAt(from, "rename"), resolve(to));
      disk.remove(resolve(from));
    },
    linkSync(from: string, to: string) {
      if (disk.find(resolve(to))) throw systemError("EEXIST", "link", to);
      const inode = inodeAt(from, "link");
      beforeChange(`links ${basename(to)}`);
      disk.link(inode, resolve(to));
    },
    rmSync(path: string, { force = false } = {}) {
      if (!force || disk.find(resolve(path))) remove(path, "rm");
    },
    rmdirSync: (path: string) => remove(path, "rmdir"),
    mkdirSync,
    mkdtempSync(prefix: string) {
      const path = `${prefix}${sim.random.between(100_000, 999_999)}`;
      mkdirSync(path);
      return path;
    },
    readdirSync(path: string, { withFileTypes = false } = {}) {
      inodeAt(path, "readdir");
      const names = [...disk.namesIn(resolve(path))];
      if (!withFileTypes) return names;
      return names.map((name) => ({ ...statsOf(inodeAt(`${path}/${name}`, "readdir")), name }));
    },
  };
}

/** The modules node:fs and node:fs/promises of one process. */
export function createFiles(options: FilesOptions) {
  const { sim, owner } = options;
  const { inodeAt, syncNow, ...sync } = createSyncCalls(options);

  /** Makes a call as Node's thread pool does: it takes effect and returns after a delay. */
  function later<T>(what: string, call: () => T): Promise<T> {
    return new Promise((resolveCall, reject) => {
      const ms = 0.02 + 0.4 * sim.random.random();
      sim.after(ms, owner, what, () => {
        try {
          resolveCall(call());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  async function writeFile(path: string, data: Data, more: WriteOptions = {}): Promise<void> {
    const bytes = await bytesOf(data);
    await later(`writes ${basename(path)}`, () => sync.writeFileSync(path, bytes, more));
  }

  /** Each piece has the content of the file at the time when the piece is read. */
  function createReadStream(
    path: string,
    { start = 0, end = Infinity, highWaterMark = 65_536 } = {},
  ): Readable {
    async function* pieces() {
      for (let at = start; ; ) {
        const piece = await later(`reads ${basename(path)}`, () => {
          const { content } = inodeAt(path, "open");
          return Buffer.from(content.subarray(at, Math.min(at + highWaterMark, end + 1)));
        });
        if (piece.length === 0) return;
        at += piece.length;
        yield piece;
      }
    }
    return Readable.from(pieces(), { objectMode: false });
  }

  const promises = {
    async open(path: string, flags?: string | number) {
      const fd = await later(`opens ${basename(path)}`, () => sync.openSync(path, flags));
      return {
        fd,
        stat: () => later("stat", () => sync.fstatSync(fd)),
        sync: () => later("sync", () => syncNow(fd)),
        readFile: () => later("read", () => sync.readFileSync(fd)),
        close: () => later("close", () => sync.closeSync(fd)),
      };
    },
    stat: (path: string, more?: object) => later("stat", () => sync.statSync(path, more)),
    writeFile,
    appendFile: (path: string, data: Data, more: WriteOptions = {}) =>
      writeFile(path, data, { ...more, flag: "a" }),
    truncate: (path: string, size = 0) => later("truncate", () => sync.truncateSync(path, size)),
    rename: (from: string, to: string) =>
      later(`renames ${basename(to)}`, () => sync.renameSync(from, to)),
  };

  function fsync(fd: number, done: (error: unknown) => void): void {
    later("sync", () => syncNow(fd)).then(() => done(null), done);
  }

  return { fs: { ...sync, fsync, createReadStream, promises }, promises };
}
