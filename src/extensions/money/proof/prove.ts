// The proof of the books, of which `audit`, `seal verify` and `books rebuild` are fronts: segments
// against the lines of closed days, then the records of each day against segments or, once these
// are gone, against the line of the day. Line against line: day-lines.ts.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { BooksContext } from "../books/index.ts";
import { createCoverage, type ClosedDay } from "../days/index.ts";
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
import { sourceOfFiles, sourceOfStore, type RecordSource } from "./record-source.ts";

/** The books to prove. */
export interface BooksToProve {
  /** The absolute path of data_dir. */
  readonly dataDir: string;
  /** Where the usage records are. Undefined: elsewhere, and only segments are proved. */
  readonly records: "files" | UsageStore | undefined;
  /** Whether a segment whose last listing is on this day may be gone. Absent: any may. */
  readonly mayBeGone?: (day: string) => boolean;
}

/** The books of a configuration. */
export const booksToProve = ({ books, config }: BooksContext): BooksToProve => ({
  dataDir: books.dataDir,
  records: hasFileStore(config) ? "files" : books.store,
  mayBeGone: (day) => isExpired(books, day),
});

/**
 * A segment that days.jsonl names and that is gone, deleted after spend.keep_days or by somebody:
 * how many lines days.jsonl has of it, and by which line. `seal verify --json` prints it.
 */
type GoneSegment = Pick<SegmentProof, "file" | "lines" | "by">;

export interface BooksProof {
  /** Those that are there, by name, in their order. */
  readonly segments: ReadonlyMap<string, ProvedSegment>;
  /** Those that are not. */
  readonly gone: readonly GoneSegment[];
  /** Of each segment that is there under two names, in its own sentence. */
  readonly copies: readonly string[];
  /** In their order. Undefined: the records are elsewhere. */
  readonly days: readonly DayProof[] | undefined;
}

/** A head, for the auditor. */
const nameOf = ({ made_at }: ClosedDay): string => `the head that was kept, of ${made_at}`;

/** Proves books, and reports what is wrong. `heads`: those that were kept. */
export async function proveBooks(
  { dataDir, records, mayBeGone }: BooksToProve,
  findings: Findings,
  dayLines = readDayLines(dataDir, findings),
  heads: readonly ClosedDay[] = [],
): Promise<BooksProof> {
  const spendDir = join(dataDir, "spend");
  const closedDays = dayLines.map(({ closed }) => closed);
  const coverage = createCoverage(closedDays);
  const kept = createCoverage(heads, (head) => `${nameOf(head)},`);
  // The log grows before the records, so it is read after them: then a running gateway causes no
  // finding.
  const source =
    records === "files"
      ? sourceOfFiles(dataDir, closedDays, findings)
      : records && (await sourceOfStore(records));
  const segments = new Map<string, ProvedSegment>();
  const log: Log = {
    spendDir,
    coverage,
    listings: (name) =>
      [...coverage.of(name), ...kept.of(name)].sort((one, other) => one.bytes - other.bytes),
    cursor: source?.cursor ?? {},
    findings,
    segments,
  };
  const there = existsSync(spendDir) ? segmentsIn(spendDir) : [];
  for (const name of there) segments.set(name, await proveSegment(name, log));
  const ends = Object.fromEntries([...segments].map(([name, { end }]) => [name, end]));
  const copyFault = copyFaults(coverage, ends);
  const copies = Object.entries(ends).flatMap(([name, { first }]) => {
    const fault = copyFault(name, first);
    if (fault !== undefined) findings.add(`spend/${name}`, fault);
    return fault === undefined ? [] : `${join(spendDir, name)} ${fault}`;
  });
  const gone = findGone(log, mayBeGone);
  if (!source) return { segments, gone, copies, days: undefined };
  const settled = [...segments.values()].flatMap((segment) => [...segment.days.keys()]);
  const all = [...closedDays.map(({ day }) => day), ...source.days, ...settled];
  const names = [...new Set(all)].sort();
  const days: DayProof[] = [];
  for (const day of names) {
    const closed = closedDays.find((line) => line.day === day);
    days.push(await proveDay(day, closed, log, source));
  }
  for (const head of heads) {
    const before = closedDays.filter(({ number }) => number < head.number);
    const after = before.at(-1)?.day ?? "";
    const since = names.filter((day) => day > after);
    const unequal = await differencesFromHead(head, before, since, source);
    const what = `are not those of ${nameOf(head)}: ${unequal.join(", ")}`;
    if (unequal.length > 0)
      findings.add(`the usage records after ${after || "the beginning"}`, what);
  }
  return { segments, gone, copies, days };
}

/** Compares the records that a head has: of lines that it or a line before it names. */
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
 * Segments that are gone. Those that are deleted after keep_days are the oldest, by the last line
 * that names them, and the cursor does not name them any more.
 */
function findGone(
  { coverage, cursor, findings, segments }: Log,
  mayBeGone = (_day: string): boolean => true,
): readonly GoneSegment[] {
  const listed = coverage.segments().map((name) => coverage.of(name).at(-1)!);
  const whole = listed.filter(({ segment, bytes }) => segments.get(segment)?.end.bytes === bytes);
  const oldest = whole.map(({ day }) => day).sort()[0] ?? "9999";
  const gone: GoneSegment[] = [];
  for (const name of [...new Set([...coverage.segments(), ...Object.keys(cursor)])].sort()) {
    if (segments.has(name)) continue;
    const last = coverage.of(name).at(-1);
    const isYoung = last && (last.day >= oldest || !mayBeGone(last.day));
    const by = last?.by ?? "the cursor of the usage records";
    if (isYoung || (cursor[name]?.bytes ?? 0) > 0)
      findings.add(`spend/${name}`, `is not there: ${by} has it`);
    if (last) gone.push({ file: `spend/${name}`, lines: last.lines, by });
  }
  return gone;
}
