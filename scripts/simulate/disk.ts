// The disk of the world: one tree of files. What was written is with the operating system, and so
// survives a process; only what was synced survives a power failure, as on a journaling file system.
// It can be full, and syncing can fail.

import type { Simulator } from "./simulator.ts";

/** A file, a folder or a socket. Names are kept by the disk, so one inode may have several. */
export interface Inode {
  readonly number: number;
  readonly kind: "file" | "folder" | "socket";
  content: Buffer;
  /** The content as a power failure leaves it. */
  durable: Buffer;
  /** Milliseconds since 1970. */
  changed: number;
  readonly born: number;
}

export type Disk = ReturnType<typeof createDisk>;

export const systemError = (code: string, call: string, path = ""): NodeJS.ErrnoException =>
  Object.assign(new Error(`${code}: ${call} '${path}'`), { code, syscall: call, path });

const EMPTY = Buffer.alloc(0);

/** `numbersFrom`: files of several disks of a world have different numbers. */
export function createDisk(sim: Simulator, numbersFrom = 1) {
  const { random, between } = sim.random;
  let names = new Map<string, Inode>();
  let durableNames = new Map<string, Inode>();
  /** What happened to names since the last sync, in order. */
  let journal: ((tree: Map<string, Inode>) => void)[] = [];
  /** Nothing more can be written; the share of syncs that fail. */
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

  /** The content of a file after a power failure: all that was synced, and perhaps more. */
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
    /** Gives an inode a further name, in the place of what has it. */
    link: (inode: Inode, path: string) => change((tree) => tree.set(path, inode)),
    remove: (path: string) => change((tree) => tree.delete(path)),
    /** Puts bytes behind those of a file. Throws ENOSPC, after a part of them, if the disk is full. */
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
    /** Brings the content of a file, and all names, to the disk. Throws EIO if that fails. */
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
