// The lines of the days' files in the order of the log, and which of their records are looked for.
import {
  parseUsageLine,
  type UsageBatch,
  type UsageLine,
  type UsageFilter,
  type UsageRecord,
} from "../records/index.ts";
import { BooksFault, readLines } from "../days/index.ts";

/** Some bytes of the file of a day, whose records come from one segment. */
interface Run {
  readonly segment: string;
  readonly from: number;
  to: number;
  /** The number of its first line. */
  readonly line: number;
}

/** What a line of the file says. */
export const parseLine = (text: string): UsageLine => ({ text, record: parseUsageLine(text) });

/**
 * The lines in the first bytes of the file of a day, in the order of the log: within a segment the
 * file has it already.
 */
export async function* orderedLines(path: string, to: number): AsyncIterable<UsageBatch> {
  const runs = await runsIn(path, to);
  runs.sort((one, other) => compareTexts(one.segment, other.segment));
  for (const run of runs) {
    let { line } = run;
    for await (const { lines, bytes } of readLines(path, run)) {
      yield { lines: lines.map(parseLine), first: line, bytes };
      line += lines.length;
    }
  }
}

/** The first bytes of a file, in their order. Each pass leaves a run of each segment. */
async function runsIn(path: string, to: number): Promise<Run[]> {
  const runs: Run[] = [];
  let from = 0;
  let line = 1;
  for await (const { lines, bytes } of readLines(path, { to })) {
    let at = 0;
    for (const text of lines) {
      const segment = segmentIn(text);
      // Of the bytes, not of the text: bytes that are no UTF-8 are longer in the text.
      const next = bytes.indexOf("\n", at) + 1;
      const last = runs.at(-1);
      if (last?.segment === segment) last.to = from + next;
      else runs.push({ segment, from: from + at, to: from + next, line });
      at = next;
      line += 1;
    }
    from += at;
  }
  return runs;
}

const SEGMENT = '"log":{"segment":"';

/**
 * The segment from which the record of a line comes, without parsing the line. Inside of a text
 * quotes are escaped, so the name of a member is never found in one.
 */
function segmentIn(line: string): string {
  const at = line.lastIndexOf(SEGMENT) + SEGMENT.length;
  return line.slice(at, line.indexOf('"', at));
}

/** By UTF-16 code units, as the names in a folder are sorted. */
export function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** The record of a line. Throws if it has none. */
export function recordOf(path: string, { text, record }: UsageLine): UsageRecord {
  if (record) return record;
  throw new BooksFault(`${path} holds a line that is no usage record: ${text.slice(0, 80)}`);
}

/** What records are looked for by. */
const SOUGHT = ["account", "model", "key_id", "provider"] as const;

type Sought = { readonly [column in (typeof SOUGHT)[number]]: string | null };

/** Whether a record, or a sum of records, matches a filter, but for its days. */
export function matcherOf(filter: UsageFilter): (columns: Sought) => boolean {
  const sought = SOUGHT.filter((name) => filter[name] !== undefined);
  return (columns) => sought.every((name) => (columns[name] ?? "") === filter[name]);
}

/**
 * Whether the text of a line may have a record that matches a filter. Most lines are passed over,
 * so only the others are parsed.
 */
export function textMatcherOf(filter: UsageFilter): (text: string) => boolean {
  // A record of which nobody served has no provider.
  const columns = { ...filter, provider: filter.provider === "" ? null : filter.provider };
  const members = SOUGHT.filter((name) => columns[name] !== undefined).map(
    (name) => `"${name}":${JSON.stringify(columns[name])}`,
  );
  return (text) => members.every((member) => text.includes(member));
}
