// Segments of the spend log that are there under two names, as after a restore that went wrong:
// their requests would be billed twice. No other segment has the spend_id of its first line.
import type { Coverage } from "../days/index.ts";
import type { LogCursor } from "../records/index.ts";

/**
 * What is wrong with a segment that begins with the request `first`, as another one that `cursor`
 * or a closed day names. Undefined: none does.
 */
export function copyFault(
  name: string,
  first: string,
  coverage: Coverage,
  cursor: LogCursor,
): string | undefined {
  const listed = coverage.segments().map((other) => [other, coverage.of(other)[0]!] as const);
  const known = [...listed, ...Object.entries(cursor)];
  const copied = known.find(([other, begun]) => other !== name && begun.first === first);
  if (!copied || first === "") return undefined;
  return `begins with ${first} like ${copied[0]}: one is a copy of the other`;
}
