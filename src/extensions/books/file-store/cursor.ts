// The text of `usage/cursor.json`: how much of each month counts, and how far each segment of the
// spend log was copied.
import type { Mark } from "../../usage-records/index.ts";
import { asCount, asObject } from "../../../core/schema/untrusted-json.ts";

/** What cursor.json says. */
export interface Cursor {
  /** How far each segment of the spend log was copied. */
  readonly marks: readonly Mark[];
  /** How many bytes of each month's file count. */
  readonly months: ReadonlyMap<string, number>;
  /** How often each month was written anew. What is remembered of a month is void after that. */
  readonly rewritten: ReadonlyMap<string, number>;
  /** Months whose new files, beside the old ones, count already. */
  readonly replacing: readonly string[];
}

/** Reads the parsed file. Whatever is missing or malformed counts as empty. */
export function parseCursor(json: unknown): Cursor {
  const { segments, months, rewritten, replacing } = asObject(json);
  return {
    marks: Object.entries(asObject(segments)).flatMap(([name, value]) => parseMarks(name, value)),
    months: parseCounts(months),
    rewritten: parseCounts(rewritten),
    replacing: Array.isArray(replacing) ? replacing.map(String) : [],
  };
}

const parseCounts = (value: unknown): ReadonlyMap<string, number> =>
  new Map(Object.entries(asObject(value)).map(([name, count]) => [name, asCount(count) ?? 0]));

/** The marks of a segment. Versions that knew segments by name only wrote a number. */
function parseMarks(segment: string, value: unknown): Mark[] {
  if (asCount(value) !== undefined)
    return [{ segment, identity: null, position: Number(value), tail: "", recovered: false }];
  const list = Array.isArray(value) ? (value as unknown[]) : [];
  return list.map(asObject).map(({ identity, position, tail, recovered }) => ({
    segment,
    identity: String(identity),
    position: asCount(position) ?? 0,
    tail: String(tail),
    recovered: recovered === true,
  }));
}

/** The text of the file. */
export function formatCursor({ marks, months, rewritten, replacing }: Cursor): string {
  const segments = new Map<string, Omit<Mark, "segment">[] | number>();
  for (const { segment, ...mark } of marks) {
    const list = segments.get(segment);
    if (mark.identity === null) segments.set(segment, mark.position);
    else segments.set(segment, [...(Array.isArray(list) ? list : []), mark]);
  }
  return JSON.stringify({
    segments: Object.fromEntries(segments),
    months: Object.fromEntries(months),
    ...(rewritten.size > 0 && { rewritten: Object.fromEntries(rewritten) }),
    ...(replacing.length > 0 && { replacing }),
  });
}
