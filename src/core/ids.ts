// Ids that cannot be guessed. Random bytes are drawn in blocks: a call to the operating system for
// 16 bytes costs more than formatting them.
import { randomBytes } from "node:crypto";

let pool = Buffer.alloc(0);
let used = 0;

/** Returns `bytes` (at most 4,096) fresh random bytes in hexadecimal digits. */
export function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    pool = randomBytes(4_096);
    used = 0;
  }
  used += bytes;
  return pool.toString("hex", used - bytes, used);
}
