// The lines of the days' files: in the order of the file or of the log, as texts or as records.
import { parseUsageLine, type UsageFilter, type UsageRecord } from "../records/index.ts";
import { readLines } from "../days/index.ts";

/** Some lines of a file. */
export type Texts = AsyncIterable<readonly string[]>;

/** Some bytes of the file of a day, whose records come from one segment. */
interface Run {
  readonly segment: string;
  readonly from: number;
  to: number;
}

/** The lines in the first bytes of a file. */
export async function* linesIn(path: string, to: number): Texts {
  for await (const { lines } of readLines(path, { to })) yield lines;
}

/** The same in the order of the log: within a segment the file has it already. */
export async function* linesByLog(path: string, to: number): Texts {
  const runs = await runsIn(path, to);
  runs.sort((one, other) => compareTexts(one.segment, other.segment));
  for (const run of runs) for await (const { lines } of readLines(path, run)) yield lines;
}

/** The first bytes of a file, in their order. Each pass leaves a run of each segment. */
async function runsIn(path: string, to: number): Promise<Run[]> {
  const runs: Run[] = [];
  for await (const lines of linesIn(path, to))
    for (const line of lines) {
      const segment = segmentIn(line);
      const last = runs.at(-1);
      const from = last?.to ?? 0;
      const end = from + Buffer.byteLength(line) + 1;
      if (last?.segment === segment) last.to = end;
      else runs.push({ segment, from, to: end });
    }
  return runs;
}

/** By UTF-16 code units, as the names in a folder are sorted. */
export function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** The record of a line. Throws if it has none. */
export function recordIn(path: string, line: string): UsageRecord {
  const record = parseUsageLine(line);
  if (record) return record;
  throw new Error(`${path} holds a line that is no usage record: ${line.slice(0, 80)}`);
}

// Most lines are passed over, so they are not parsed. Inside of a text quotes are escaped, so the
// name of a member is never found in one.

const SEGMENT = '"log":{"segment":"';

/** The segment from which the record of a line comes. */
export function segmentIn(line: string): string {
  const at = line.lastIndexOf(SEGMENT) + SEGMENT.length;
  return line.slice(at, line.indexOf('"', at));
}

/** What records are looked for by. */
export const SOUGHT = ["account", "model", "key_id", "provider"] as const;

/** Whether the record of a line matches a filter, but for its days. */
export function lineMatcher(filter: UsageFilter): (line: string) => boolean {
  // A record of which nobody served has no provider.
  const columns = { ...filter, provider: filter.provider === "" ? null : filter.provider };
  const members = SOUGHT.filter((name) => columns[name] !== undefined).map(
    (name) => `"${name}":${JSON.stringify(columns[name])}`,
  );
  return (line) => members.every((member) => line.includes(member));
}
