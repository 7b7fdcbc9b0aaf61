// The names in the folder of the spend log: segments, `YYYY-MM-DD.NNNN.jsonl`, and sockets. The
// process that writes a segment listens on the socket (`.sock`) beside it. If the socket does not
// answer, another process may take over the segment and put its own socket there. That is how the
// process that wrote it, if it is still alive, notices that it has lost the segment.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isLockHeld } from "../../scale/data-files/index.ts";
import { BooksFault, REPAIR } from "../days/index.ts";

const SEGMENT_NAME = /^\d{4}-\d\d-\d\d\.\d{4,}\.jsonl$/;

/** The socket of the process that writes a segment. */
export const socketOf = (segment: string): string => segment.replace(/jsonl$/, "sock");

/** Whether a live process, perhaps this one, answers at a segment's socket. */
export const hasWriter = (segment: string): Promise<boolean> => isLockHeld(socketOf(segment));

/** The name of a day's segment. */
export const segmentName = (day: string, number: number): string =>
  `${day}.${String(number).padStart(4, "0")}.jsonl`;

/** One more than the highest number among the names of the day. */
export function nextNumber(day: string, names: readonly string[]): number {
  const taken = names
    .filter((name) => name.startsWith(day))
    .map((name) => Number(name.split(".")[1]))
    .filter(Number.isSafeInteger); // Other files may be there, such as an archive of a day.
  return Math.max(0, ...taken) + 1;
}

/**
 * The names of the segments in a folder, oldest first. Throws a BooksFault if a folder or a link
 * has such a name, because following it may lead out of data_dir.
 */
export function segmentsIn(dir: string): string[] {
  const entries = readdirSync(dir, { withFileTypes: true });
  const named = entries.filter(({ name }) => SEGMENT_NAME.test(name));
  const other = named.find((entry) => !entry.isFile());
  if (other)
    throw new BooksFault(
      `${join(dir, other.name)} is not a file but has a segment's name: ${REPAIR}`,
    );
  return named.map(({ name }) => name).sort();
}
