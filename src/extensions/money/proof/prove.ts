// The proof of the books, of which `audit`, `seal verify` and `books rebuild` are fronts. Line
// against line in days.jsonl is proved before (chain.ts); this proves segments against these lines,
// and records against segments or, once these are gone, against these lines.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { segmentsIn, strangersIn } from "../ledger/index.ts";
import type { ClosedDay } from "../days/index.ts";
import type { UnsettledRequest } from "../usage/index.ts";
import { createCoverage, type Coverage, type Listing } from "../days/index.ts";
import type { Findings } from "./findings.ts";
import { createJoin } from "./join.ts";
import type { ProofTotals } from "./judge.ts";
import { proveSegment, type SegmentProof } from "./prove-segment.ts";
import type { RecordSource } from "./record-source.ts";

export interface ProofOptions {
  readonly spendDir: string;
  /** The closed days. */
  readonly days: readonly ClosedDay[];
  /** What heads that were kept say of segments. Absent: there are none. */
  readonly kept?: readonly Listing[];
  /** Undefined: the records are elsewhere, and only segments are proved. */
  readonly source: RecordSource | undefined;
  /**
   * "copied": what was copied. "all": what comes after is read too, and awaited by the records.
   * "rebuild": all of it must be in the records, whatever the cursor says.
   */
  readonly reads: "copied" | "all" | "rebuild";
  /** Whether a segment may be gone whose last line is on this day. Absent: any may. */
  readonly mayBeGone?: (day: string) => boolean;
  readonly findings: Findings;
  readonly totals: ProofTotals;
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
  readonly segments: readonly SegmentProof[];
  readonly gone: readonly GoneSegment[];
  /** Settled requests that were not copied yet. */
  readonly awaited: number;
  /** Requests that were opened and not settled. */
  readonly unsettled: readonly UnsettledRequest[];
  /** How far each segment was read. */
  readonly cursor: RecordSource["cursor"];
}

/** Proves the books, and reports what is wrong. */
export async function proveBooks(options: ProofOptions): Promise<BooksProof> {
  const { spendDir, days, source, reads, findings, totals, kept = [] } = options;
  const coverage = createCoverage(days);
  const hasLog = existsSync(spendDir);
  const names = hasLog ? segmentsIn(spendDir) : [];
  for (const text of hasLog ? strangersIn(spendDir) : []) findings.add("spend", text);
  const present = new Set(names);
  const closed = new Map(days.map((day) => [day.day, day]));
  const pairing = source && createJoin({ source, coverage, closed, present, findings, totals });
  const gone = findGone(options, coverage, present);
  const segments: SegmentProof[] = [];
  const unsettled: UnsettledRequest[] = [];
  const cursors: Record<string, RecordSource["cursor"][string]> = {};
  let awaited = 0;
  for (const name of names) {
    const cursor = reads === "rebuild" ? undefined : source?.cursor[name];
    const listings = coverage.of(name);
    const covered = listings.at(-1)?.bytes ?? 0;
    checkCursor(options, name, listings.at(-1));
    const all = [...listings, ...kept.filter(({ segment }) => segment === name)];
    const segment = {
      name,
      path: join(spendDir, name),
      listings: all.sort((one, other) => one.bytes - other.bytes),
      cursor,
      dueBytes: reads === "rebuild" ? Infinity : Math.max(covered, cursor?.bytes ?? 0),
      readsOn: reads === "all",
    };
    const { proof, reader } = await proveSegment(segment, pairing, findings);
    segments.push(proof);
    for (const request of reader.unsettled()) {
      unsettled.push(request);
      checkUnsettled(name, request, days.at(-1)?.day, findings);
    }
    cursors[name] = reader.cursor();
    awaited += (await pairing?.endSegment(name, reader.cursor().lines)) ?? 0;
  }
  await pairing?.finish();
  return { segments, gone, awaited, unsettled, cursor: cursors };
}

/** A request of a closed day is settled, or the day would not be closed. */
function checkUnsettled(
  segment: string,
  { spend_id: id, time, line }: UnsettledRequest,
  lastDay: string | undefined,
  findings: Findings,
): void {
  const day = time.slice(0, 10);
  if (lastDay === undefined || day > lastDay) return;
  findings.add(`spend/${segment}, line ${line}`, `${id}: opened on ${day}, never settled`);
}

/** The cursor has everything that a closed day has. */
function checkCursor(
  { source, reads, findings, mayBeGone }: ProofOptions,
  name: string,
  listed: Listing | undefined,
): void {
  if (!source || reads === "rebuild") return;
  const bytes = source.cursor[name]?.bytes ?? 0;
  // The cursor forgets a segment before that is deleted.
  const isForgotten = bytes === 0 && listed !== undefined && mayBeGone?.(listed.day);
  if (!listed || bytes >= listed.bytes || isForgotten) return;
  const what = `${listed.by} has ${listed.bytes} bytes of it, `;
  findings.add(`spend/${name}`, `${what}and the cursor of the records ${bytes}`);
}

/**
 * Segments that are gone. Those that are deleted after keep_days are the oldest, by the last line
 * that names them, and the cursor does not name them any more.
 */
function findGone(
  { spendDir, source, mayBeGone = () => true, findings }: ProofOptions,
  coverage: Coverage,
  present: ReadonlySet<string>,
): readonly GoneSegment[] {
  const lastOf = (segment: string): Listing => coverage.of(segment).at(-1)!;
  const isDone = (segment: string): boolean =>
    statSync(join(spendDir, segment)).size === lastOf(segment).bytes;
  const kept = coverage.segments().filter((name) => present.has(name) && isDone(name));
  const oldest = kept.map((name) => lastOf(name).day).sort()[0] ?? "9999";
  const absent = coverage.segments().filter((name) => !present.has(name));
  const copied = Object.entries(source?.cursor ?? {}).filter(([, { bytes }]) => bytes > 0);
  const missing = new Set(copied.map(([name]) => name).filter((name) => !present.has(name)));
  for (const name of absent)
    if (lastOf(name).day >= oldest || !mayBeGone(lastOf(name).day)) missing.add(name);
  for (const name of [...missing].sort())
    findings.add(
      `spend/${name}`,
      `is not there: ${coverage.of(name).at(-1)?.by ?? "the cursor of the usage records"} has it`,
    );
  return absent.map(lastOf).map(({ segment, lines, by }) => ({
    file: `spend/${segment}`,
    lines,
    by,
  }));
}
