// Verifies a data_dir by its files alone, the public key, and what was kept elsewhere.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../../../core/hash.ts";
import type { DaysLine } from "../days/index.ts";
import {
  createFindings,
  proveBooks,
  readDayLines,
  type DayLine,
  type Findings,
  type GoneSegment,
  type ProofOptions,
  type DayProof,
  type SegmentProof,
} from "../proof/index.ts";
import { isHead, readKept, type Trust, type Verified } from "./kept.ts";
import { isSignedBy } from "./sign.ts";

/** What is proved of the records of a day. */
export interface DayVerification {
  /** `YYYY-MM-DD` in UTC. */
  readonly day: string;
  /** How many there are. */
  readonly records: number;
  /** Whether days.jsonl has exactly these. False: the day is open, or its records were changed. */
  readonly by_line: boolean;
  /** Records that are as the spend log has them. */
  readonly by_log: number;
}

/** What a verification found. `seal verify --json` prints it. */
export interface Verification extends Verified {
  /** The lines of closed days. */
  readonly heads: {
    readonly count: number;
    readonly from: string | null;
    readonly to: string | null;
  };
  /** Those that are there. */
  readonly segments: readonly SegmentProof[];
  /** Segments that days.jsonl names and that are not there any more. */
  readonly gone: readonly GoneSegment[];
  /** Null: the usage records are not in files of this folder, and nothing is said of them. */
  readonly days: readonly DayVerification[] | null;
  /** Settled requests that the projection had not copied yet when the verification began. */
  readonly awaited: number;
}

/** What is known of the books besides their files. */
export interface VerifyOptions extends Pick<ProofOptions, "records" | "mayBeGone"> {
  /** What comes from elsewhere. */
  readonly trust: Trust;
}

/** `records` absent: they may be in files of the folder. */
export async function verifyBooks(dataDir: string, options: VerifyOptions): Promise<Verification> {
  const { trust, mayBeGone } = options;
  const findings = createFindings();
  const dayLines = readDayLines(join(dataDir, "days.jsonl"), findings);
  const publicKey = checkSignatures(dayLines, trust.publicKey, findings);
  const kept = readKept(trust, publicKey, findings);
  for (const line of kept) compareKept(line, dayLines, findings);
  const { segments, gone, days } = await proveBooks({
    dataDir,
    dayLines,
    heads: kept.map(({ closed }) => closed).filter(isHead),
    records: options.records ?? (existsSync(join(dataDir, "usage")) ? "files" : undefined),
    mayBeGone,
    findings,
  });
  const list = findings.list();
  return {
    ok: list.length === 0 && dayLines.length + kept.length > 0,
    public_key: publicKey ?? null,
    key_stated: trust.publicKey !== undefined,
    heads: {
      count: dayLines.length,
      from: dayLines[0]?.closed.day ?? null,
      to: dayLines.at(-1)?.closed.day ?? null,
    },
    segments: [...segments.values()].map(({ proof }) => proof),
    gone,
    days: days?.map(dayVerification) ?? null,
    awaited: days?.reduce((sum, { counts }) => sum + counts.awaited, 0) ?? 0,
    findings: list,
  };
}

function dayVerification({ day, closed, counts, isProved }: DayProof): DayVerification {
  const records = counts.changed + counts.removed + counts.unchanged + counts.left;
  return { day, records, by_line: isProved && !!closed, by_log: counts.unchanged };
}

/** Returns the key of the signed lines, or the stated one. Undefined: nothing is signed. */
function checkSignatures(
  lines: readonly DayLine[],
  stated: string | undefined,
  findings: Findings,
): string | undefined {
  let key = stated;
  let wasSigned = false;
  for (const { text, closed, line } of lines) {
    const where = `days.jsonl, line ${line}`;
    const isSigned = closed.signature !== undefined;
    if (!isSigned && wasSigned) findings.add(where, "is not signed, and the line before is");
    if (isSigned && !isSignedBy(text, key ?? closed.public_key ?? ""))
      findings.add(where, "its signature is wrong: it was changed, or signed by another key");
    key ??= closed.public_key;
    wasSigned = isSigned;
  }
  const last = lines.at(-1);
  if (stated !== undefined && last && !wasSigned)
    findings.add(`days.jsonl, line ${last.line}`, "is not signed, and no line after it is");
  return key;
}

/** The line of a day that was kept stands in days.jsonl, and so does the line before a head. */
function compareKept(
  { text, closed }: DaysLine,
  lines: readonly DayLine[],
  findings: Findings,
): void {
  const number = isHead(closed) ? closed.number - 1 : closed.number;
  const hash = isHead(closed) ? closed.previous : sha256(text);
  const same = lines.find(({ line }) => line === number);
  if (hash === null || (same && sha256(same.text) === hash)) return;
  const what = same ? "is another one" : "is gone";
  findings.add(`days.jsonl, line ${number}`, `${what}: a head that was kept has it`);
}
