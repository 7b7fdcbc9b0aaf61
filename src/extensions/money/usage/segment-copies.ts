// Segments of the spend log that are there under two names, as after a restore that went wrong:
// their requests would be billed twice. No other segment has the spend_id of its first line.
import type { Coverage } from "../days/index.ts";
import type { LogCursor } from "../records/index.ts";

/**
 * What is wrong with a segment that begins with the request `first`. Undefined: no other one that
 * is known begins with it.
 */
type CopyFault = (name: string, first: string) => string | undefined;

/** Compares segments with those that `cursor` or a closed day names. */
export function copyFaults(coverage: Coverage, cursor: LogCursor): CopyFault {
  const names = new Map<string, Set<string>>();
  const listed = coverage.segments().map((name) => [name, coverage.of(name)[0]!] as const);
  for (const [name, { first }] of [...listed, ...Object.entries(cursor)])
    names.set(first, (names.get(first) ?? new Set()).add(name));
  return (name, first) => {
    const other = [...(names.get(first) ?? [])].find((each) => each !== name);
    if (other === undefined || first === "") return undefined;
    return `begins with ${first} like ${other}: one is a copy of the other`;
  };
}
