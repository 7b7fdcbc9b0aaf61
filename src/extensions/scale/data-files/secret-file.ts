// Random values that a data_dir keeps permanently, each in a file that only the owner may read: its
// id, and a secret. Also a fingerprint that distinguishes a data_dir from its copies.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { readRegularFile, whyUnreadable } from "../../../config/regular-file.ts";
import { sha256 } from "../../../core/hash.ts";
import { moveUnlessTaken, writeError } from "./replace-file.ts";

const MAX_BYTES = 1024;

/**
 * Reads a file of `bytes` random bytes as hex digits. The first process that needs the file creates
 * it, and all processes read the same digits. Throws if the folder is missing, if the file can be
 * neither read nor created, or if it holds anything else: with an empty id, the records of all
 * gateways in a database would look like those of this one.
 */
export function readOrCreateHex(path: string, bytes: number): string {
  if (!existsSync(path)) {
    const draft = `${path}.${randomBytes(6).toString("hex")}`;
    try {
      writeFileSync(draft, randomBytes(bytes).toString("hex"), { mode: 0o600, flush: true });
      moveUnlessTaken(draft, path);
    } catch (error) {
      throw writeError(error as Error, draft);
    } finally {
      rmSync(draft, { force: true });
    }
  }
  const digits = textOf(path);
  if (digits.length === 2 * bytes && /^[0-9a-f]+$/.test(digits)) return digits;
  throw new Error(`${path} is not ${2 * bytes} hexadecimal digits: restore it from a backup`);
}

function textOf(path: string): string {
  try {
    return readRegularFile(path, MAX_BYTES).bytes.toString();
  } catch (error) {
    throw new Error(`${path} cannot be read: ${whyUnreadable(error)}`);
  }
}

/**
 * The secret from which the keys of an installation are derived: 64 hex digits in the file
 * `fingerprint-secret`, which is created if it is missing. If it cannot be read or created,
 * `failed` is called with the reason, and a random secret is returned instead.
 */
export function installationSecret(dataDir: string, failed: (reason: string) => void): Buffer {
  try {
    return Buffer.from(readOrCreateHex(join(dataDir, "fingerprint-secret"), 32), "hex");
  } catch (error) {
    failed((error as Error).message);
    return randomBytes(32);
  }
}

/** On Linux, an id that changes at each boot and is the same in all containers of a machine. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/**
 * The id of a data_dir: 32 hex digits in the file `gateway-id`, which never change. The spend_ids
 * of its requests begin with the first eight. Throws as readOrCreateHex() does.
 */
export const gatewayInstanceId = (dataDir: string): string =>
  readOrCreateHex(join(dataDir, "gateway-id"), 16);

/**
 * A hash that distinguishes this data_dir from a copy of it, here or on another machine. It changes
 * when the machine boots, and when the folder moves to another file system. Throws as
 * gatewayInstanceId() does.
 */
export function dataDirFingerprint(dataDir: string): string {
  gatewayInstanceId(dataDir);
  const { ino, birthtimeMs } = statSync(join(dataDir, "gateway-id"));
  const system = existsSync(BOOT_ID) ? readFileSync(BOOT_ID, "utf8") : hostname();
  return sha256(`${system} ${ino} ${Math.floor(birthtimeMs)}`).slice(0, 32);
}
