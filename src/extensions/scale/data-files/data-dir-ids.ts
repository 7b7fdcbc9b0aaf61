// The two ids of a data_dir: a name for good, and a sign by which a copy of it is recognised.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { readOrCreateHex } from "./secret-file.ts";

/** Linux: the same in all containers of a running machine. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/**
 * The 32 hex digits in `gateway-id`, which name a data_dir for good. The spend_ids of its requests
 * begin with the first eight. Throws if data_dir is missing, or the file can be neither read nor
 * made.
 */
export const gatewayInstanceId = (dataDir: string): string =>
  readOrCreateHex(join(dataDir, "gateway-id"), 16);

/**
 * A text that tells this data_dir from a copy of it, here or on another machine. It changes when
 * the machine starts anew, and when the folder moves to another file system. Throws as
 * gatewayInstanceId does.
 */
export function placeOf(dataDir: string): string {
  gatewayInstanceId(dataDir);
  const { ino, birthtimeMs } = statSync(join(dataDir, "gateway-id"));
  const system = existsSync(BOOT_ID) ? readFileSync(BOOT_ID, "utf8") : hostname();
  return createHash("sha256")
    .update(`${system} ${ino} ${Math.floor(birthtimeMs)}`)
    .digest("hex")
    .slice(0, 32);
}
