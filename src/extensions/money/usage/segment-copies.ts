// Segments of the spend log that are there under two names, as after a restore that went wrong:
// their requests would be billed twice. No other segment has the spend_id of its first line.
import { closeSync, openSync, readSync } from "node:fs";
import type { Coverage } from "../days/index.ts";
import type { SegmentCursor } from "../records/index.ts";

/** What a line of the log can take, up to its spend_id. */
const HEAD_BYTES = 256;

/** The spend_id in the first line of a segment. Empty: that is no line of the log. */
export const firstIdIn = (line: string): string => /"spend_id":"(\w+)"/.exec(line)?.[1] ?? "";

/** The spend_id of the first line of the segment at a path. Empty: it has none yet. */
export function firstIdOf(path: string): string {
  const head = Buffer.alloc(HEAD_BYTES);
  const fd = openSync(path, "r");
  try {
    readSync(fd, head, 0, HEAD_BYTES, 0);
  } finally {
    closeSync(fd);
  }
  return firstIdIn(head.toString());
}

/** How segments begin, by their names. */
type Beginnings = Readonly<Record<string, Pick<SegmentCursor, "first">>>;

/**
 * What is wrong with a segment that begins with the request `first`. Undefined: no other one that
 * is known begins with it.
 */
type CopyFault = (name: string, first: string) => string | undefined;

/** Compares segments with those that `begun` or a closed day names. */
export function copyFaults(coverage: Coverage, begun: Beginnings): CopyFault {
  const names = new Map<string, Set<string>>();
  const listed = coverage.segments().map((name) => [name, coverage.of(name)[0]!] as const);
  for (const [name, { first }] of [...listed, ...Object.entries(begun)])
    names.set(first, (names.get(first) ?? new Set()).add(name));
  return (name, first) => {
    const other = [...(names.get(first) ?? [])].find((each) => each !== name);
    if (other === undefined || first === "") return undefined;
    return `begins with ${first} like ${other}: one is a copy of the other`;
  };
}
