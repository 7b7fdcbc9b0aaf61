// Folders for tests. They go when the process of a test file ends: by then whatever worked in them has been closed.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];
process.on("exit", () => made.forEach((path) => rmSync(path, { recursive: true, force: true })));

/** A new, empty folder; `inMemory`, where the system has such a place, for tests that would wait for the disk a thousand times. */
export function folder({ inMemory = false } = {}): string {
  const path = mkdtempSync(join(inMemory && existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "chat-gateway-"));
  made.push(path);
  return path;
}
