// Simulates a process that dies while it changes files. The chosen change writes only the first
// half of its bytes, and every later change fails.

import fs from "node:fs";
import promises, { type FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

class Died extends Error {}

type Call = (...args: any[]) => any;

/** For each function, the index of the argument with the bytes. Undefined: it writes none. */
const SYNC: Readonly<Record<string, number | undefined>> = {
  writeFileSync: 1,
  appendFileSync: 1,
  truncateSync: undefined,
  renameSync: undefined,
};
const ASYNC: typeof SYNC = {
  writeFile: 1,
  appendFile: 1,
  rename: undefined,
  truncate: undefined,
};
const HANDLE: typeof SYNC = { appendFile: 0, write: 0, truncate: undefined };

type Bytes = string | Uint8Array;
type Pieces = Iterable<Bytes> | AsyncIterable<Bytes>;

const half = (bytes: Bytes): Bytes => bytes.slice(0, Math.floor(bytes.length / 2));

/** The first half of the first piece. */
async function* beginning(pieces: Pieces): AsyncGenerator<Bytes> {
  for await (const piece of pieces) {
    yield half(piece);
    return;
  }
}

const halfOf = (content: Bytes | Pieces): Bytes | Pieces =>
  typeof content === "string" || content instanceof Uint8Array ? half(content) : beginning(content);

/**
 * Runs work that dies at the change with the number `last`, counted from 0. Resolves with true if
 * the work ended after fewer changes, else with false.
 */
export async function dyingAt(last: number, work: () => Promise<unknown>): Promise<boolean> {
  let changes = 0;
  const saved: (() => void)[] = [];

  function wrap(target: any, names: typeof SYNC): void {
    for (const [name, bytesAt] of Object.entries(names)) {
      const original: Call = target[name];
      saved.push(() => {
        target[name] = original;
      });
      target[name] = function (this: unknown, ...args: any[]) {
        const now = changes;
        changes += 1;
        if (now < last) return original.apply(this, args);
        if (now > last || bytesAt === undefined) throw new Died();
        args[bytesAt] = halfOf(args[bytesAt]);
        const result = original.apply(this, args);
        if (!(result instanceof Promise)) throw new Died();
        return result.then(() => {
          throw new Died();
        });
      };
    }
  }

  wrap(fs, SYNC);
  wrap(promises, ASYNC);
  const { rmSync } = fs;
  const { open } = promises;
  // Only the removal of a .jsonl file counts. Sockets can be removed even after the process's
  // death, because a dead process holds no lock.
  fs.rmSync = (path, options) => {
    if (String(path).endsWith(".jsonl") && changes++ >= last) throw new Died();
    rmSync(path, options);
  };
  promises.open = async (...args) => {
    const handle: FileHandle = await open(...args);
    wrap(handle, HANDLE);
    return handle;
  };
  syncBuiltinESMExports();
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof Died)) throw error;
    return false;
  } finally {
    for (const restore of saved) restore();
    fs.rmSync = rmSync;
    promises.open = open;
    syncBuiltinESMExports();
  }
}
