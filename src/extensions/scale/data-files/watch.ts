// Watches a file by polling. That also works if an editor replaces the file, and in folders shared
// from other machines or containers, which send no notifications. A poll is one stat(); the file is
// read only when its result has changed.
import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";
import {
  MAX_CONFIG_BYTES,
  readRegularFileAsync,
  whyUnreadable,
  type FileContent,
} from "../../../config/regular-file.ts";

const POLL_MS = 500;
/**
 * File systems store times in steps of up to 2 s (FAT; most: some milliseconds). Two writes within
 * one step can leave the same size and times, so the file is read at each poll until its stat() has
 * been unchanged for longer than a step.
 */
const SETTLED_MS = 2_500;
/** A file counts as absent after this many polls in a row: a program may just be replacing it. */
const ABSENT_POLLS = 5;

/** What a poll read: the content of the file, or why it cannot be read. */
export type ReadResult = FileContent | { readonly error: Error };

export interface WatchOptions {
  /** A larger file is an error. Absent: MAX_CONFIG_BYTES. */
  readonly maxBytes?: number;
  /**
   * The digest of the active content, or why the file could not be read. Null: there is no file.
   * If the first poll finds another state, it calls `changed`.
   */
  readonly knownState: string | null;
}

/**
 * Calls `changed` soon after the content of the file changes, until the watcher is closed. Calls
 * never overlap: the next poll waits for the previous call. If the file existed, its absence at
 * ABSENT_POLLS polls in a row is an error.
 */
export function watchFile(
  file: string,
  changed: (found: ReadResult) => void | Promise<void>,
  { maxBytes = MAX_CONFIG_BYTES, knownState: initialState }: WatchOptions,
): { close(): void } {
  let knownState = initialState;
  let fingerprint: string | undefined;
  let unchangedSince = 0;
  let absentPolls = 0;
  let settled = false; // any further write changes the fingerprint
  let closed = false;
  let timer = setTimeout(poll, POLL_MS).unref();

  async function poll(): Promise<void> {
    try {
      const found = await change();
      if (found && !closed) await changed(found);
    } finally {
      if (!closed) timer = setTimeout(poll, POLL_MS).unref();
    }
  }

  async function change(): Promise<ReadResult | undefined> {
    const now = performance.now();
    try {
      const next = statFingerprint(await stat(file, { bigint: true }));
      absentPolls = 0;
      if (next !== fingerprint) {
        fingerprint = next;
        unchangedSince = now;
        settled = false;
      }
      if (settled) return undefined;
      const content = await readRegularFileAsync(file, maxBytes);
      settled = now - unchangedSince > SETTLED_MS;
      return remember(content.digest) ? content : undefined;
    } catch (error) {
      const why = whyUnreadable(error);
      if (why === "ENOENT" && !isGone()) return undefined;
      return remember(why) ? { error: error as Error } : undefined;
    }
  }

  /** Counts a poll without a file. Returns whether a file that existed before is deleted. */
  function isGone(): boolean {
    fingerprint = undefined;
    absentPolls += 1;
    return knownState !== null && absentPolls >= ABSENT_POLLS;
  }

  /** Stores the state. Returns whether it is a new one. */
  function remember(state: string): boolean {
    const isNew = state !== knownState;
    knownState = state;
    return isNew;
  }

  return {
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/** Changes with the content, unless two writes fall into one step of the file system's clock. */
const statFingerprint = ({ dev, ino, mode, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, mode, size, mtimeNs, ctimeNs].join();
