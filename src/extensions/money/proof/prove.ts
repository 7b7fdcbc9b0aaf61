// The proof of the books, of which `audit`, `seal verify` and `books rebuild` are fronts: segments
// against the lines of closed days, then the records of each day against segments or, once these
// are gone, against the line of the day. Line against line: day-lines.ts.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createCoverage, type ClosedDay, type Coverage } from "../days/index.ts";
import { segmentsIn, strangersIn } from "../ledger/index.ts";
import type { UsageStore } from "../records/index.ts";
import type { DayLine } from "./day-lines.ts";
import type { Findings } from "./findings.ts";
import { headListings, proveHead } from "./heads.ts";
import type { Comparison } from "./compare-day.ts";
import { proveDay, type DayProof } from "./prove-day.ts";
import { proveSegment, type ProvedSegment } from "./prove-segment.ts";
import { sourceOfFiles, sourceOfStore, type RecordSource } from "./record-source.ts";
import { createTotals, type ProofTotals } from "./totals.ts";

export interface ProofOptions {
  /** The absolute path of data_dir. */
  readonly dataDir: string;
  /** The lines of closed days. */
  readonly dayLines: readonly DayLine[];
  /** Heads that were kept. Absent: there are none. */
  readonly heads?: readonly ClosedDay[];
  /** Where the usage records are. Absent: elsewhere, and only segments are proved. */
  readonly records?: "files" | UsageStore | undefined;
  /** Whether a segment may be gone whose last line is on this day. Absent: any may. */
  readonly mayBeGone?: ((day: string) => boolean) | undefined;
  /** Told of all that is wrong. */
  readonly findings: Findings;
}

/**
 * A segment that days.jsonl names and that is gone: deleted after spend.keep_days, or by somebody.
 */
export interface GoneSegment {
  /** Its path in data_dir. */
  readonly file: string;
  /** How many lines days.jsonl has of it. */
  readonly lines: number;
  /** The line that has the last of these. */
  readonly by: string;
}

export interface BooksProof {
  /** Those that are there, by name, in their order. */
  readonly segments: Segments;
  /** Those that are not. */
  readonly gone: readonly GoneSegment[];
  /** In their order. Undefined: the records are elsewhere. */
  readonly days: readonly DayProof[] | undefined;
  /** What all days come to. */
  readonly totals: ProofTotals;
}

type Segments = ReadonlyMap<string, ProvedSegment>;

/** Proves the books, and reports what is wrong. */
export async function proveBooks(options: ProofOptions): Promise<BooksProof> {
  const { dataDir, dayLines, heads = [], findings } = options;
  const spendDir = join(dataDir, "spend");
  const closedDays = dayLines.map(({ closed }) => closed);
  const coverage = createCoverage(closedDays);
  // What grows first is read last, so that a gateway that runs meanwhile makes no finding.
  const source = await openSource(options);
  const segments = new Map<string, ProvedSegment>();
  const hasLog = existsSync(spendDir);
  for (const text of hasLog ? strangersIn(spendDir) : []) findings.add("spend", text);
  for (const name of hasLog ? segmentsIn(spendDir) : []) {
    const listings = [...coverage.of(name), ...headListings(heads, name)];
    const segment = { name, spendDir, listings, cursor: source?.cursor[name] };
    segments.set(name, await proveSegment(segment, coverage, findings));
  }
  for (const segment of segments.values())
    checkUnsettled(segment, closedDays.at(-1)?.day ?? "", findings);
  const gone = findGone(options, source, coverage, segments);
  const totals = createTotals();
  if (!source) return { segments, gone, days: undefined, totals };
  const comparison: Comparison = { spendDir, segments, coverage, source, findings };
  const days: DayProof[] = [];
  for (const day of daysOf(source, closedDays, segments)) {
    const closed = closedDays.find((line) => line.day === day);
    days.push(await proveDay(day, closed, comparison, totals));
  }
  for (const head of heads) await proveHead(head, closedDays, source, findings);
  return { segments, gone, days, totals };
}

/** The records as they are now. Undefined: they are elsewhere. */
async function openSource(options: ProofOptions): Promise<RecordSource | undefined> {
  const { dataDir, dayLines, records, findings } = options;
  if (records === "files") return sourceOfFiles(dataDir, dayLines, findings);
  return records && (await sourceOfStore(records));
}

/** All days that are closed, or have records, or should have some. */
function daysOf(
  source: RecordSource,
  closedDays: readonly ClosedDay[],
  segments: Segments,
): readonly string[] {
  const settled = [...segments.values()].flatMap(({ days }) => [...days.keys()]);
  return [...new Set([...closedDays.map(({ day }) => day), ...source.days, ...settled])].sort();
}

/** A request of a closed day is settled, or the day would not be closed. */
function checkUnsettled(
  { proof: { file }, unsettled }: ProvedSegment,
  lastDay: string,
  findings: Findings,
): void {
  for (const { spend_id: id, time, line } of unsettled) {
    const day = time.slice(0, 10);
    if (day <= lastDay)
      findings.add(`${file}, line ${line}`, `${id}: opened on ${day}, never settled`);
  }
}

/**
 * Segments that are gone. Those that are deleted after keep_days are the oldest, by the last line
 * that names them, and the cursor does not name them any more.
 */
function findGone(
  { mayBeGone = () => true, findings }: ProofOptions,
  source: RecordSource | undefined,
  coverage: Coverage,
  segments: Segments,
): readonly GoneSegment[] {
  const listed = coverage.segments().map((name) => coverage.of(name).at(-1)!);
  const oldest = listed
    .filter(({ segment, bytes }) => segments.get(segment)?.size === bytes)
    .map(({ day }) => day)
    .sort()[0];
  const gone = listed.filter(({ segment }) => !segments.has(segment));
  const copied = Object.entries(source?.cursor ?? {}).filter(([, { bytes }]) => bytes > 0);
  const wanted = [
    ...copied.map(([name]) => name).filter((name) => !segments.has(name)),
    ...gone
      .filter(({ day }) => day >= (oldest ?? "9999") || !mayBeGone(day))
      .map(({ segment }) => segment),
  ];
  for (const name of [...new Set(wanted)].sort()) {
    const by = coverage.of(name).at(-1)?.by ?? "the cursor of the usage records";
    findings.add(`spend/${name}`, `is not there: ${by} has it`);
  }
  return gone.map(({ segment, lines, by }) => ({ file: `spend/${segment}`, lines, by }));
}
