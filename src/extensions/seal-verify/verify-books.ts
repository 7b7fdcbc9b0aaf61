// Verifies a data_dir by its files alone: heads, segments, trees and usage records.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { segmentsIn } from "../books/index.ts";
import type { Mark } from "../usage-records/index.ts";
import { type HeadLine, sealsDir, type SettledLine } from "../seals/index.ts";
import { createFindings, type Findings } from "./findings.ts";
import { collectDetails, type DetailsCollection } from "./closed-details.ts";
import { createOpenRecords, expectedRecords } from "./day-leaves.ts";
import { verifyBytes, verifyCounted } from "./month-bytes.ts";
import { collectOlderRecords } from "./older-records.ts";
import { verifyHeads, type Trust } from "./verify-heads.ts";
import {
  monthsInFiles,
  verifyRecords,
  type MonthProof,
  type RecordSource,
} from "./verify-records.ts";
import { collectUnnamedLines } from "./unnamed-lines.ts";
import {
  verifySegments,
  type GoneSegment,
  type SegmentProof,
  type TakeSettled,
} from "./verify-segments.ts";

/** What a verification found. `seal verify --json` prints it. */
export interface Verification {
  /** Whether there is a head or a sealed line, and nothing was found wrong. */
  readonly ok: boolean;
  /** The public key, 64 hexadecimal digits. Null: nothing is signed. */
  readonly public_key: string | null;
  /** Whether the caller has stated the public key. If not, it is that of the files themselves. */
  readonly key_stated: boolean;
  readonly heads: {
    readonly count: number;
    readonly from: string | null;
    readonly to: string | null;
  };
  readonly segments: readonly SegmentProof[];
  /** Segments that heads name and that are not there any more. */
  readonly gone: readonly GoneSegment[];
  /** Null: the usage records are not in files of this folder, and nothing is said of them. */
  readonly months: readonly MonthProof[] | null;
  /** Settled requests that the usage sync had not copied yet when the verification began. */
  readonly awaited: number;
  readonly findings: readonly string[];
}

/** Usage records outside of data_dir, from the first day on that must be proved. */
export type OtherRecords = (firstDay: string) => Promise<RecordSource>;

/** Verifies a data_dir. `other`: where the usage records are. Absent: in its files. */
export async function verifyBooks(
  dataDir: string,
  trust: Trust,
  other?: OtherRecords,
): Promise<Verification> {
  const findings = createFindings();
  const dir = sealsDir(dataDir);
  const spendDir = join(dataDir, "spend");
  // What grows first is read last, so that a gateway that runs meanwhile makes no finding.
  const { heads, publicKey, named } = verifyHeads(dir, trust, findings);
  const source = other
    ? await other(firstSegmentDay(spendDir))
    : monthsInFiles(dataDir, heads, findings);
  const lastDay = heads.at(-1)?.head.day ?? "";
  const open = createOpenRecords(lastDay);
  const details = detailsOf(source, lastDay);
  const awaited = createAwaited(source?.marks ?? []);
  const unnamed = collectUnnamedLines(heads);
  const take: TakeSettled = (settled, segment) => {
    open.take(settled);
    details.take(settled);
    awaited.take(settled, segment.first);
    unnamed.take(settled, segment);
  };
  const { segments, gone } = await verifySegments({ spendDir, named, findings }, take);
  const expected = await expectedRecords({ dir, heads, findings }, await open.sorted());
  unnamed.report(expected.isSealed, findings);
  const older = collectOlderRecords(heads);
  const evidence = { expected, details: await details.sorted(), older, isAwaited: awaited.has };
  await verifyFiles(source, heads, findings);
  const months = source ? await verifyRecords(source, evidence, findings) : [];
  await older.report(spendDir, findings);
  const isSealed = heads.length > 0 || segments.some(({ sealed }) => sealed > 0);
  const list = findings.list();
  return {
    ok: list.length === 0 && isSealed,
    public_key: publicKey ?? null,
    key_stated: trust.publicKey !== undefined,
    heads: spanOf(heads),
    segments,
    gone,
    months: source ? months : null,
    awaited: source ? awaited.count() : 0,
    findings: list,
  };
}

/** Compares the files of months with the bytes that heads have of them. */
async function verifyFiles(
  source: RecordSource | undefined,
  heads: readonly HeadLine[],
  findings: Findings,
): Promise<void> {
  const hadFiles = heads.some(({ head }) => head.months.length > 0);
  if (!source && hadFiles) findings.add("usage", "is not there, and heads have files in it");
  if (!source?.files) return;
  verifyCounted(source.files, heads, findings);
  for (const file of source.files) await verifyBytes(file, heads, findings);
}

const spanOf = (heads: readonly HeadLine[]): Verification["heads"] => ({
  count: heads.length,
  from: heads[0]?.head.day ?? null,
  to: heads.at(-1)?.head.day ?? null,
});

/**
 * The details of closed days that no head has byte for byte: those in files that were written anew,
 * and those of the last day, whose head may have been made before all of them were copied.
 */
function detailsOf(source: RecordSource | undefined, lastDay: string): DetailsCollection {
  const anew = new Set(
    source?.months.flatMap(({ month, bytes }) => (bytes.writtenAnew ? [month] : [])),
  );
  return collectDetails(
    (day) => day === lastDay || (day < lastDay && anew.has(day.slice(0, "YYYY-MM".length))),
  );
}

/** The day of the first segment that is there. The epoch if there is none. */
const firstSegmentDay = (spendDir: string): string =>
  (existsSync(spendDir) ? segmentsIn(spendDir)[0]?.slice(0, 10) : undefined) ?? "1970-01-01";

/** Records that the usage sync had not copied when the verification began. */
function createAwaited(marks: readonly Mark[]) {
  const positions = new Map<string, number>();
  for (const { identity, position } of marks) {
    if (identity === null) continue;
    positions.set(identity, Math.max(position, positions.get(identity) ?? 0));
  }
  const ids = new Set<string>();
  return {
    take({ record, end }: SettledLine, first: string): void {
      if (end > (positions.get(first) ?? 0)) ids.add(record.usage_id);
    },
    count: (): number => ids.size,
    has: (usageId: string): boolean => ids.has(usageId),
  };
}
