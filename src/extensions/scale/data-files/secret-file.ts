// Random values that a data_dir keeps for good, each in a file of its own that only the owner may
// read.
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readRegularFile } from "../../../config/regular-file.ts";
import { moveUnlessTaken } from "./replace-file.ts";

const MAX_BYTES = 1024;

/**
 * Reads a file of random hex digits. The first process that needs the file makes it; all others
 * read the same. `lastKnown` is what the file held before it was deleted; absent, new digits of
 * `bytes` bytes are drawn. Throws if the folder is missing, or the file can be neither read nor
 * made.
 */
export function readOrCreateHex(path: string, bytes: number, lastKnown?: string): string {
  if (!existsSync(path)) {
    const draft = `${path}.${randomBytes(6).toString("hex")}`;
    const digits = lastKnown ?? randomBytes(bytes).toString("hex");
    writeFileSync(draft, digits, { mode: 0o600, flush: true });
    moveUnlessTaken(draft, path);
  }
  return readRegularFile(path, MAX_BYTES).bytes.toString();
}

/**
 * Reads the key of system_fingerprint, 64 hex digits, and makes it if it is not there. Throws if
 * the file cannot be read, or holds anything else.
 */
export function fingerprintSecretOf(dataDir: string): string {
  const secret = readOrCreateHex(join(dataDir, "fingerprint-secret"), 32);
  if (!/^[0-9a-f]{64}$/.test(secret)) throw new Error("fingerprint-secret is not 64 hex digits");
  return secret;
}
