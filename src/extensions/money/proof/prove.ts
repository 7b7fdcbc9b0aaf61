// The proof of the books, of which `audit`, `seal verify` and `books rebuild` are fronts: segments
// against the lines of closed days, then the records of each day against segments or, once these
// are gone, against the line of the day. Line against line: day-lines.ts.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createCoverage, type ClosedDay, type Coverage } from "../days/index.ts";
import { segmentsIn } from "../ledger/index.ts";
import type { LogCursor, UsageStore } from "../records/index.ts";
import type { DayLine } from "./day-lines.ts";
import type { Findings } from "./findings.ts";
import { headListings, proveHead } from "./heads.ts";
import type { Comparison } from "./compare-day.ts";
import { proveDay, type DayProof } from "./prove-day.ts";
import { proveSegment, type ProvedSegment } from "./prove-segment.ts";
import { sourceOfFiles, sourceOfStore } from "./record-source.ts";
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
  /** Whether a segment whose last listing is on this day may be gone. Absent: any may. */
  readonly mayBeGone?: ((day: string) => boolean) | undefined;
  /** Receives everything that is wrong. */
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
  const { dataDir, dayLines, heads = [], records, findings } = options;
  const spendDir = join(dataDir, "spend");
  const closedDays = dayLines.map(({ closed }) => closed);
  const coverage = createCoverage(closedDays);
  const lastDay = closedDays.at(-1)?.day ?? "";
  // The log grows before the records, so it is read after them: then a running gateway causes no
  // finding.
  const source =
    records === "files"
      ? sourceOfFiles(dataDir, closedDays, findings)
      : records && (await sourceOfStore(records, closedDays));
  const segments = new Map<string, ProvedSegment>();
  const hasLog = existsSync(spendDir);
  for (const name of hasLog ? segmentsIn(spendDir) : []) {
    const listings = [...coverage.of(name), ...headListings(heads, name)];
    const known = { name, spendDir, listings, cursor: source?.cursor[name], lastDay };
    segments.set(name, await proveSegment(known, coverage, findings));
  }
  const gone = findGone(options, source?.cursor ?? {}, coverage, segments);
  const totals = createTotals();
  if (!source) return { segments, gone, days: undefined, totals };
  const comparison: Comparison = { spendDir, segments, coverage, source, findings };
  const settled = [...segments.values()].flatMap((segment) => [...segment.days.keys()]);
  const days: DayProof[] = [];
  for (const day of [...new Set([...source.days, ...settled])].sort()) {
    const closed = closedDays.find((line) => line.day === day);
    days.push(await proveDay(day, closed, comparison, totals));
  }
  for (const head of heads) await proveHead(head, closedDays, source, findings);
  return { segments, gone, days, totals };
}

/**
 * Segments that are gone. Those that are deleted after keep_days are the oldest, by the last line
 * that names them, and the cursor does not name them any more.
 */
function findGone(
  { mayBeGone = () => true, findings }: ProofOptions,
  cursor: LogCursor,
  coverage: Coverage,
  segments: Segments,
): readonly GoneSegment[] {
  const listed = coverage.segments().map((name) => coverage.of(name).at(-1)!);
  const whole = listed.filter(({ segment, bytes }) => segments.get(segment)?.size === bytes);
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
