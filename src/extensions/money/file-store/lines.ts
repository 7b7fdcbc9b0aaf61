// The lines of the days' files: in the order of the file or of the log, as texts or as records.
import { parseUsageLine, type UsageFilter, type UsageRecord } from "../records/index.ts";
import { readLines } from "../days/index.ts";

/** Some lines of a file, and where they stand. */
export interface FileLines {
  /** Without their line ends. `line`: the first line of the file has 1. */
  readonly lines: readonly { readonly text: string; readonly line: number }[];
  /** The same as they stand there. */
  readonly bytes: Buffer;
}

/** Some bytes of the file of a day, whose records come from one segment. */
interface Run {
  readonly segment: string;
  readonly from: number;
  to: number;
  /** The number of its first line. */
  readonly line: number;
}

/**
 * The lines in the first bytes of the file of a day, in the order of the log: within a segment the
 * file has it already.
 */
export async function* orderedLines(path: string, to: number): AsyncIterable<FileLines> {
  const runs = await runsIn(path, to);
  runs.sort((one, other) => compareTexts(one.segment, other.segment));
  for (const run of runs) {
    let { line } = run;
    for await (const { lines, bytes } of readLines(path, run)) {
      const first = line;
      line += lines.length;
      yield { lines: lines.map((text, index) => ({ text, line: first + index })), bytes };
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
function segmentIn(line: string): string {
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
