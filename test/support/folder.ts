// Folders for tests, and files in them. They go when the process of a test file ends: by then
// whatever worked in them has been closed.

import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];
process.on("exit", () =>
  made.forEach((path) => {
    rmSync(path, { recursive: true, force: true });
  }),
);

/**
 * A new, empty folder; `inMemory`, where the system has such a place, for tests that would wait for
 * the disk a thousand times.
 */
export function folder({ inMemory = false } = {}): string {
  const path = mkdtempSync(
    join(inMemory && existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "chat-gateway-"),
  );
  made.push(path);
  return path;
}

/**
 * Gives a file another text, all of it at once: somebody looks at it all the time, to whom half of
 * it would be a fault.
 */
export function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}
