// Detects segments that exist under two names, as after a faulty restore: their requests would be
// billed twice. Copies are recognized by the spend_id of the first line, which is unique.
import { closeSync, openSync, readSync } from "node:fs";
import { copyOfPart, type Coverage } from "../days/index.ts";
import type { SegmentCursor } from "../records/index.ts";

/** Enough bytes of a line to contain its spend_id. */
const HEAD_BYTES = 256;

/** The spend_id in the first line of a segment. Empty: it is not a line of the log. */
export const firstIdIn = (line: string): string =>
  copyOfPart(/"spend_id":"(\w+)"/.exec(line)?.[1] ?? "");

/** The spend_id of the first line of the segment at a path. Empty: it has no line yet. */
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

/** The spend_ids of first lines, by the names of segments. */
type Beginnings = Readonly<Record<string, Pick<SegmentCursor, "first">>>;

/**
 * Compares the segments `begun` with each other, with those of closed days, and with those that
 * were `copied`. Returns the ones that begin like another, each with a description of that fault.
 */
export function copyFaults(coverage: Coverage, begun: Beginnings, copied: Beginnings = {}) {
  const names = new Map<string, Set<string>>();
  const listed = coverage.segments().map((name) => [name, coverage.of(name)[0]!] as const);
  for (const [name, { first }] of [...listed, ...Object.entries({ ...copied, ...begun })])
    names.set(first, (names.get(first) ?? new Set()).add(name));
  return Object.entries(begun).flatMap(([name, { first }]) => {
    const other = [...names.get(first)!].find((each) => each !== name);
    if (other === undefined || first === "") return [];
    return [{ name, fault: `begins with ${first} like ${other}: one is a copy of the other` }];
  });
}
