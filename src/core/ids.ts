// Ids of our own, beyond guessing. To ask the operating system for 16 bytes takes longer than to
// write them down, so it is asked for many.
import { randomBytes } from "node:crypto";

let [pool, used] = [Buffer.alloc(0), 0];
/** So many random bytes, at most 4,096, in hexadecimal digits; none is ever given twice. */
export function randomHex(bytes: number): string {
  if (used + bytes > pool.length) [pool, used] = [randomBytes(4_096), 0];
  const from = used;
  used += bytes;
  return pool.toString("hex", from, used);
}
