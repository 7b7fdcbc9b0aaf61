// Watching a file by looking at it: that also works where an editor puts a new file in its place,
// and in folders of other machines or containers, which send no notifications. A look is one
// stat(); the file is read only when that has changed.
import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";
import {
  MAX_CONFIG_BYTES,
  readRegularFile,
  readRegularFileLater,
  stateOfFailed,
  whyUnreadable,
  type FileContent,
} from "../../../config/regular-file.ts";

const LOOK_MS = 500;
/**
 * File systems count time in steps of up to 2 s (FAT; most: some milliseconds). A rewrite within
 * the step of the one before leaves the same size and times, so the file is read at each look until
 * its stat() has been the same for longer than that.
 */
const SETTLED_MS = 2_500;
/** A file that is not there at so many looks is not one that is just being replaced. */
const ABSENT_LOOKS = 5;

/** A change that was found: the content, or why the file cannot be read. */
export type Found = FileContent | { readonly error: Error };

/**
 * `maxBytes` absent: the bound of a configuration. `seen`: the digest of the content that is in
 * force, or why the file could not be read, null if there is no file; absent: that of the content
 * at this moment.
 */
export interface WatchOptions {
  /** A larger file is not read, which is an error of it. */
  readonly maxBytes?: number;
  /** Content other than this is reported at the first look. */
  readonly seen?: string | null;
}

/**
 * Calls `changed` soon after the file has other content than that in force, until it is closed. One
 * call at a time: the next look waits for the end of the one before. A file that is gone for some
 * seconds is an error; before that it is taken for one that is being replaced.
 */
export function watchFile(
  file: string,
  changed: (found: Found) => void | Promise<void>,
  { maxBytes = MAX_CONFIG_BYTES, seen: initial = digestOf(file, maxBytes) }: WatchOptions = {},
): { close(): void } {
  let seen: string | null = initial;
  let stamp: string | undefined;
  let stampSince = 0;
  let absentLooks = 0;
  let settled = false; // whatever is written from now on changes the stamp
  let closed = false;
  let timer = setTimeout(look, LOOK_MS).unref();

  async function look(): Promise<void> {
    try {
      const found = await change();
      if (found && !closed) await changed(found);
    } finally {
      if (!closed) timer = setTimeout(look, LOOK_MS).unref();
    }
  }

  async function change(): Promise<Found | undefined> {
    const now = performance.now();
    try {
      const next = stampOf(await stat(file, { bigint: true }));
      absentLooks = 0;
      if (next !== stamp) {
        stamp = next;
        stampSince = now;
        settled = false;
      }
      if (settled) return undefined;
      const content = await readRegularFileLater(file, maxBytes);
      settled = now - stampSince > SETTLED_MS;
      return remember(content.digest) ? content : undefined;
    } catch (error) {
      const why = whyUnreadable(error);
      if (why === "ENOENT" && !isGone()) return undefined;
      return remember(why) ? { error: error as Error } : undefined;
    }
  }

  /** Whether a file that is not there at this look was there, and is not just being replaced. */
  function isGone(): boolean {
    stamp = undefined;
    absentLooks += 1;
    return seen !== null && absentLooks >= ABSENT_LOOKS;
  }

  /** Whether this is something else than what was seen before. */
  function remember(state: string): boolean {
    const isNew = state !== seen;
    seen = state;
    return isNew;
  }

  return {
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Two different contents of a file never have the same stamp, unless they were written within one
 * step of the file system's clock.
 */
const stampOf = ({ dev, ino, mode, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, mode, size, mtimeNs, ctimeNs].join();

function digestOf(file: string, maxBytes: number): string | null {
  try {
    return readRegularFile(file, maxBytes).digest;
  } catch (error) {
    return stateOfFailed(error);
  }
}
