// The names in the folder of the spend log: segments, `YYYY-MM-DD.NNNN.jsonl`, and beside each
// segment that a process writes its socket (`.sock`), which answers while the process lives. If it
// does not answer, another process may take the segment over and puts its own socket there. The
// process that lost its socket notices that the file is another one, or is gone.
import { existsSync, readdirSync, statSync, type Dirent } from "node:fs";
import { join } from "node:path";
import { isLockHeld } from "../../scale/data-files/index.ts";

const SEGMENT_NAME = /^\d{4}-\d\d-\d\d\.\d{4,}\.jsonl$/;

/** The socket of the process that writes a segment. */
export const socketOf = (segment: string): string => segment.replace(/jsonl$/, "sock");

/** Whether a live process, perhaps this one, answers at a segment's socket. */
export const hasWriter = async (segment: string): Promise<boolean> =>
  existsSync(socketOf(segment)) && (await isLockHeld(socketOf(segment)));

/** The name of a day's segment. */
export const segmentName = (day: string, number: number): string =>
  `${day}.${String(number).padStart(4, "0")}.jsonl`;

/** The next number that no name of the day has. */
export function nextNumber(day: string, names: readonly string[]): number {
  const taken = names
    .filter((name) => name.startsWith(day))
    .map((name) => Number(name.split(".")[1]))
    .filter(Number.isSafeInteger); // Other files may be there, such as an archive of a day.
  return Math.max(0, ...taken) + 1;
}

/** The names of the segments in a folder, oldest first. */
export const segmentsIn = (dir: string): string[] => namesIn(dir, true);

/** A sentence for each entry of a folder that is named like a segment but is no regular file. */
export const notRegularFiles = (dir: string): string[] =>
  namesIn(dir, false).map(
    (name) =>
      `${join(dir, name)} is named like a segment of the spend log, but is no regular file: ` +
      "it cannot be read, and should be moved away",
  );

/** What is named like a segment, oldest first: the regular files, or everything else. */
function namesIn(dir: string, files: boolean): string[] {
  return readdirSync(dir, { withFileTypes: true })
    .filter(({ name }) => SEGMENT_NAME.test(name))
    .filter((entry) => (entry.isFile() || isLinkToFile(dir, entry)) === files)
    .map(({ name }) => name)
    .sort();
}

function isLinkToFile(dir: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return false;
  try {
    return statSync(join(dir, entry.name)).isFile();
  } catch {
    return false; // The link leads nowhere, or to itself.
  }
}
