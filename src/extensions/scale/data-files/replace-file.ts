// Atomic changes of files: a reader never sees an incomplete file, and a process that dies never
// leaves one.
import { linkSync, rmSync } from "node:fs";
import { open, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** The content of a file, whole or piece by piece. */
export type Content = string | Iterable<Uint8Array> | AsyncIterable<string>;

/**
 * Replaces a file's content, all of it or none, and flushes it to the disk. Only the owner may read
 * the file. The caller makes sure that no other process replaces it at the same time.
 */
export async function replaceFile(path: string, content: Content): Promise<void> {
  await rename(await writeDraft(path, content), path);
  await syncToDisk(dirname(path));
}

/**
 * Writes the new content of a file to a draft beside it, and returns the path of the draft. Removes
 * the draft if that fails, because the disk may be full.
 */
export async function writeDraft(path: string, content: Content): Promise<string> {
  const draft = `${path}.new`;
  try {
    await writeFile(draft, content, { mode: 0o600, flush: true });
    return draft;
  } catch (error) {
    rmSync(draft, { force: true });
    throw writeError(error as Error, draft);
  }
}

/** What `data_dir` must be on. Not all file systems of networks, containers and FUSE suffice. */
export const NEEDS = "data_dir needs a file system with Unix sockets and hard links";

/**
 * Adds to an error what it does not say: the path after a write or a flush, because only errors of
 * opening name it, and what the file system lacks.
 */
export function writeError(error: NodeJS.ErrnoException, path: string): Error {
  const { syscall = "", code = "" } = error;
  if (["write", "fsync"].includes(syscall)) error.message += ` ${path}`;
  if (["listen", "link"].includes(syscall) && ["EPERM", "ENOSYS", "ENOTSUP"].includes(code))
    error.message += `; ${NEEDS}`;
  return error;
}

/** Flushes a file's content, or a folder's names, to the disk, to survive a power failure. */
export async function syncToDisk(path: string): Promise<void> {
  const file = await open(path);
  try {
    await file.sync();
  } catch (error) {
    throw writeError(error as Error, path);
  } finally {
    await file.close();
  }
}

/**
 * Moves the file at `draft` to `path`. If `path` exists, leaves it as it is, unlike a rename, and
 * returns false. Removes the draft in any case.
 */
export function moveUnlessTaken(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  } finally {
    rmSync(draft, { force: true });
  }
  return true;
}
