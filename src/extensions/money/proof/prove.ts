// Compares the books: segments of the spend log with the lines of closed days, then the records of
// each day with the segments or, once these are deleted, with the line of the day.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { BooksContext } from "../books/index.ts";
import { createCoverage, keptFrom, type ClosedDay } from "../days/index.ts";
import { segmentsIn } from "../ledger/index.ts";
import type { UsageLine, UsageStore } from "../records/index.ts";
import {
  copyFaults,
  createRecordAdder,
  differencesFrom,
  hasFileStore,
  isExpired,
} from "../usage/index.ts";
import { readDayLines } from "./day-lines.ts";
import type { Findings } from "./findings.ts";
import { proveDay, type DayProof } from "./prove-day.ts";
import { proveSegment, type Log, type ProvedSegment, type SegmentProof } from "./prove-segment.ts";
import { openFileSource, openStoreSource, type RecordSource } from "./record-source.ts";

/** The books to prove. */
export interface BooksToProve {
  /** The absolute path of data_dir. */
  readonly dataDir: string;
  /** Where the usage records are. Undefined: out of reach, so only segments are proved. */
  readonly records: "files" | UsageStore | undefined;
  /**
   * Whether the gateway may have deleted segments that are kept from this day on (keptFrom).
   * Absent: it may have deleted any.
   */
  readonly isExpired?: (day: string) => boolean;
}

/** The books of a configuration. */
export const booksToProve = ({ books, config }: BooksContext): BooksToProve => ({
  dataDir: books.dataDir,
  records: hasFileStore(config) ? "files" : books.store,
  isExpired: (day) => isExpired(books, day),
});

/**
 * A segment that days.jsonl lists and that is not there: the gateway deleted it after
 * spend.keep_days, or somebody else did. `by` names the last line that lists it, and `lines` is the
 * number of its lines there. `seal verify --json` prints it.
 */
type GoneSegment = Pick<SegmentProof, "file" | "lines" | "by">;

export interface BooksProof {
  /** The segments that are there, by name, in their order. */
  readonly segments: ReadonlyMap<string, ProvedSegment>;
  /** The segments that are not there. */
  readonly goneSegments: readonly GoneSegment[];
  /** For each segment that exists under two names, a sentence that says so. */
  readonly copies: readonly string[];
  /** In their order. Undefined: the records are out of reach. */
  readonly days: readonly DayProof[] | undefined;
}

/** Names a head in findings. */
const headName = ({ made_at }: ClosedDay): string => `the head that was kept, of ${made_at}`;

/** Proves books, and reports what is wrong. `heads`: those that somebody kept elsewhere. */
export async function proveBooks(
  { dataDir, records, isExpired }: BooksToProve,
  findings: Findings,
  dayLines = readDayLines(dataDir, findings),
  heads: readonly ClosedDay[] = [],
): Promise<BooksProof> {
  const spendDir = join(dataDir, "spend");
  const closedDays = dayLines.map(({ closed }) => closed);
  const coverage = createCoverage(closedDays);
  const headCoverage = createCoverage(heads, (head) => `${headName(head)},`);
  // A running gateway writes the log before the records. So open the records first: then each of
  // them has its request in the log.
  const source =
    records === "files"
      ? openFileSource(dataDir, closedDays, findings)
      : records && (await openStoreSource(records));
  const segments = new Map<string, ProvedSegment>();
  const log: Log = {
    spendDir,
    coverage,
    listings: (name) =>
      [...coverage.of(name), ...headCoverage.of(name)].sort((a, b) => a.bytes - b.bytes),
    cursor: source?.cursor ?? {},
    findings,
    segments,
  };
  const segmentNames = existsSync(spendDir) ? segmentsIn(spendDir) : [];
  for (const name of segmentNames) segments.set(name, await proveSegment(name, log));
  const ends = Object.fromEntries([...segments].map(([name, { end }]) => [name, end]));
  const copies = copyFaults(coverage, ends).map(({ name, fault }) => {
    findings.add(`spend/${name}`, fault);
    return `${join(spendDir, name)} ${fault}`;
  });
  const goneSegments = findGoneSegments(log, isExpired);
  if (!source) return { segments, goneSegments, copies, days: undefined };
  const bookedDays = [...segments.values()].flatMap((segment) => [...segment.days.keys()]);
  const all = [...closedDays.map(({ day }) => day), ...source.days, ...bookedDays];
  const dayNames = [...new Set(all)].sort();
  const days: DayProof[] = [];
  for (const day of dayNames) {
    const closed = closedDays.find((line) => line.day === day);
    days.push(await proveDay(day, closed, log, source));
  }
  for (const head of heads) {
    const before = closedDays.filter(({ number }) => number < head.number);
    const after = before.at(-1)?.day ?? "";
    const since = dayNames.filter((day) => day > after);
    const differences = await differencesFromHead(head, before, since, source);
    const problem = `are not those of ${headName(head)}: ${differences.join(", ")}`;
    if (differences.length > 0)
      findings.add(`the usage records after ${after || "the beginning"}`, problem);
  }
  return { segments, goneSegments, copies, days };
}

/**
 * Compares the records of `days` with a head. The head covers those whose log lines it lists, or a
 * line of days.jsonl `before` it.
 */
async function differencesFromHead(
  head: ClosedDay,
  before: readonly ClosedDay[],
  days: readonly string[],
  source: RecordSource,
): Promise<readonly string[]> {
  const coverage = createCoverage([...before, head]);
  const isCovered = ({ record }: UsageLine): boolean =>
    record?.log !== undefined &&
    (coverage.of(record.log.segment).at(-1)?.lines ?? 0) >= record.log.line;
  const adder = createRecordAdder();
  for (const day of days)
    for await (const { lines } of source.linesOf(day))
      adder.add({ lines: lines.filter(isCovered) });
  return differencesFrom(head, adder.result());
}

/**
 * Finds the segments that are not there, and reports those that the gateway cannot have deleted. It
 * deletes the oldest, by keptFrom, and takes them out of the cursor.
 */
function findGoneSegments(
  { coverage, cursor, findings, segments }: Log,
  isExpired = (_day: string): boolean => true,
): readonly GoneSegment[] {
  const listed = coverage.segments().map((name) => coverage.of(name).at(-1)!);
  const whole = listed.filter(({ segment, bytes }) => segments.get(segment)?.end.bytes === bytes);
  const oldest = whole.map(keptFrom).sort()[0] ?? "9999";
  const gone: GoneSegment[] = [];
  for (const name of [...new Set([...coverage.segments(), ...Object.keys(cursor)])].sort()) {
    if (segments.has(name)) continue;
    const last = coverage.of(name).at(-1);
    const isTooYoung = last && (keptFrom(last) >= oldest || !isExpired(keptFrom(last)));
    const by = last?.by ?? "the cursor of the usage records";
    if (isTooYoung || (cursor[name]?.bytes ?? 0) > 0)
      findings.add(`spend/${name}`, `is not there: ${by} has it`);
    if (last) gone.push({ file: `spend/${name}`, lines: last.lines, by });
  }
  return gone;
}
