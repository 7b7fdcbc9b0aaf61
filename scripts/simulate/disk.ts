// A simulated disk with one tree of files, like a journaling file system. What was written survives
// the end of the process; only what was synced survives a power failure. The disk can be full, and
// a sync can fail.

import type { Simulator } from "./simulator.ts";

/** A file, a folder or a socket. The disk maps names to inodes: an inode may have several names. */
export interface Inode {
  readonly number: number;
  readonly kind: "file" | "folder" | "socket";
  content: Buffer;
  /** The content that was synced. */
  durable: Buffer;
  /** In milliseconds since 1970. */
  changed: number;
  readonly born: number;
}

/** The disk of one machine. */
export type Disk = ReturnType<typeof createDisk>;

/** An error as Node's system calls throw it. */
export const systemError = (code: string, call: string, path = ""): NodeJS.ErrnoException =>
  Object.assign(new Error(`${code}: ${call} '${path}'`), { code, syscall: call, path });

const EMPTY = Buffer.alloc(0);

/** `numbersFrom`: the first inode number, by which the files of several disks differ. */
export function createDisk(sim: Simulator, numbersFrom = 1) {
  const { random, between } = sim.random;
  let names = new Map<string, Inode>();
  let durableNames = new Map<string, Inode>();
  /** Changes of names since the last sync, in order. */
  let journal: ((tree: Map<string, Inode>) => void)[] = [];
  /** `isFull`: writes fail. `failingSyncs`: the share of syncs that fail. */
  const faults = { isFull: false, failingSyncs: 0 };
  let number = numbersFrom;

  function change(apply: (tree: Map<string, Inode>) => void): void {
    apply(names);
    journal.push(apply);
  }

  function create(path: string, kind: Inode["kind"]): Inode {
    number += 1;
    const now = sim.wallClock();
    const made = { number, kind, content: EMPTY, durable: EMPTY, changed: now, born: now };
    change((tree) => tree.set(path, made));
    return made;
  }

  create("/", "folder");

  /** The content of a file after a power failure: at least what was synced. */
  function survivor({ content, durable }: Inode): Buffer {
    const isLonger = content.length >= durable.length;
    const hasGrown = isLonger && content.subarray(0, durable.length).equals(durable);
    if (hasGrown) return content.subarray(0, between(durable.length, content.length));
    return random() < 0.5 ? content : durable;
  }

  return {
    faults,
    find: (path: string): Inode | undefined => names.get(path),
    /** The names in a folder, sorted. */
    namesIn(path: string): readonly string[] {
      const prefix = path === "/" ? "/" : `${path}/`;
      return [...names.keys()]
        .filter((name) => name.startsWith(prefix) && name.length > prefix.length)
        .map((name) => name.slice(prefix.length))
        .filter((name) => !name.includes("/"))
        .sort();
    },
    create,
    /** Gives an inode another name. What had that name before loses it. */
    link: (inode: Inode, path: string) => change((tree) => tree.set(path, inode)),
    remove: (path: string) => change((tree) => tree.delete(path)),
    /** Appends bytes to a file. If the disk is full, it appends a part and throws ENOSPC. */
    append(inode: Inode, bytes: Buffer): void {
      const fits = faults.isFull ? Math.min(bytes.length, between(0, 40)) : bytes.length;
      inode.content = Buffer.concat([inode.content, bytes.subarray(0, fits)]);
      inode.changed = sim.wallClock();
      if (fits < bytes.length) throw systemError("ENOSPC", "write");
    },
    truncate(inode: Inode, size: number): void {
      inode.content = Buffer.concat([inode.content.subarray(0, size)], size);
      inode.changed = sim.wallClock();
    },
    /** Syncs the content of a file, and all names. Throws EIO if that fails. */
    sync(inode: Inode): void {
      if (random() < faults.failingSyncs) throw systemError("EIO", "fsync");
      inode.durable = inode.content;
      for (const apply of journal) apply(durableNames);
      journal = [];
    },
    /** Loses what was not synced. */
    loseUnsynced(): void {
      for (const apply of journal.slice(0, between(0, journal.length))) apply(durableNames);
      journal = [];
      names = new Map(durableNames);
      durableNames = new Map(names);
      for (const inode of new Set(names.values())) {
        inode.content = survivor(inode);
        inode.durable = inode.content;
      }
    },
  };
}
