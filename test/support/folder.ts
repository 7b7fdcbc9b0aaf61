// Folders for tests. They go when the process of a test file ends: by then whatever worked in them has been closed.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];
process.on("exit", () => made.forEach((path) => rmSync(path, { recursive: true, force: true })));

/** A new, empty folder. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "chat-gateway-"));
  made.push(path);
  return path;
}
