// Segments of the spend log that are there under two names, as after a restore that went wrong:
// their requests would be billed twice. No other segment has the spend_id of its first line.
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { BooksFault, MENDING, type Coverage } from "../days/index.ts";

/** What a line of the log can take, up to its spend_id. */
const HEAD_BYTES = 256;

/** The spend_id of a segment's first line. Empty: it has none yet. */
function firstIdOf(path: string): string {
  const head = Buffer.alloc(HEAD_BYTES);
  const fd = openSync(path, "r");
  try {
    readSync(fd, head, 0, HEAD_BYTES, 0);
  } finally {
    closeSync(fd);
  }
  return firstIdIn(head.toString());
}

/** The spend_id in the first line of a segment. Empty: that is no line of the log. */
export const firstIdIn = (line: string): string => /"spend_id":"(\w+)"/.exec(line)?.[1] ?? "";

/**
 * Segments of a folder that begin with the same request as another one, which is there or which a
 * closed day names. Each comes with what is wrong, for the operator.
 */
export function copiesIn(
  spendDir: string,
  names: readonly string[],
  coverage: Coverage,
): ReadonlyMap<string, string> {
  const ids = new Map(coverage.segments().map((name) => [name, coverage.of(name)[0]!.first]));
  for (const name of names) ids.set(name, firstIdOf(join(spendDir, name)));
  const byId = new Map<string, string>();
  const copies = new Map<string, string>();
  const note = (name: string, id: string, other: string): unknown =>
    copies.set(name, `begins with ${id} like ${other}: one is a copy of the other`);
  for (const [name, id] of ids) {
    if (!id) continue; // the line of an earlier build has none
    const other = byId.get(id);
    byId.set(id, name);
    if (other === undefined) continue;
    note(name, id, other);
    note(other, id, name);
  }
  return copies;
}

/**
 * Throws a BooksFault if a segment is a copy. `concerns`: the segments whose requests would be
 * billed now; absent: all.
 */
export function refuseCopies(
  spendDir: string,
  names: readonly string[],
  coverage: Coverage,
  concerns = (_name: string): boolean => true,
): void {
  for (const [name, what] of copiesIn(spendDir, names, coverage))
    if (concerns(name)) throw new BooksFault(`${join(spendDir, name)} ${what}: ${MENDING}`);
}
