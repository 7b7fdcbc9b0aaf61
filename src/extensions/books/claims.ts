// The mark beside a segment that is written (`.open`), by which a process that writes it can be recognised when somebody has deleted
// its socket: the process touches the mark once a second, and the mark names its own inode, which a copy of it does not have.
import { existsSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";

const TENDED_MS = 15_000; // a process that has not touched its mark for so long is dead, or stands still

/** Writes the mark: the inode of its own file, by which a copy of it is told from the original. */
export function writeMark(path: string): void {
  writeFileSync(path, "");
  writeFileSync(path, String(statSync(path).ino));
}

/** Leaves the mark to whoever recovers the segment. */
export function abandon(path: string): void {
  if (existsSync(path)) writeFileSync(path, ""); // which takes no room on a full disk
}

/** Whether the process that made a mark has touched it of late, and in this very place: a copy's process is elsewhere. Both times
 * are of the machine's own clock. */
export function isTended(mark: string): boolean {
  const stat = statSync(mark, { throwIfNoEntry: false });
  if (!stat || Math.abs(Date.now() - stat.mtimeMs) > TENDED_MS) return false;
  return readFileSync(mark, "utf8") === String(stat.ino);
}

/** Says that the mark's process is alive; false if the mark is gone. */
export function touch(path: string): boolean {
  if (!existsSync(path)) return false;
  const seconds = Date.now() / 1_000;
  utimesSync(path, seconds, seconds);
  return true;
}
