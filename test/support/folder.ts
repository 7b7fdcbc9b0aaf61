// Temporary folders for tests. They are removed when the process of a test file ends, because then
// everything that uses them has been closed.

import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];
process.on("exit", () =>
  made.forEach((path) => {
    rmSync(path, { recursive: true, force: true });
  }),
);

/** Creates an empty folder. `inMemory`: in /dev/shm if that exists, for tests with many writes. */
export function folder({ inMemory = false } = {}): string {
  const path = mkdtempSync(
    join(inMemory && existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "chat-gateway-"),
  );
  made.push(path);
  return path;
}

/** Replaces a file atomically, for files that a gateway watches. */
export function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}
