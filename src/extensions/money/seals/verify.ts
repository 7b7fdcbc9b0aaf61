// Verifies a data_dir by its files alone, the public key, and what was kept elsewhere.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { compareHeadRecords, compareKept, verifyChain, type Trust } from "./chain.ts";
import {
  createFindings,
  proveBooks,
  sourceOfFiles,
  type GoneSegment,
  type ProofOptions,
  type ProofTotals,
  type RecordSource,
  type SegmentProof,
} from "../proof/index.ts";

/** What is proved of the records of a day. */
export interface DayProof {
  readonly day: string;
  readonly records: number;
  /** Whether days.jsonl has exactly these. False: the day is open, or its records were changed. */
  readonly by_line: boolean;
  /** Records that are as the spend log has them. */
  readonly by_log: number;
}

/** What a verification found. `seal verify --json` prints it. */
export interface Verification {
  /** Whether a day is closed, or a head was kept, and nothing was found wrong. */
  readonly ok: boolean;
  /** The public key, 64 hexadecimal digits. Null: nothing is signed. */
  readonly public_key: string | null;
  /** Whether the caller has stated the public key. If not, it is that of the files themselves. */
  readonly key_stated: boolean;
  /** The lines of closed days. */
  readonly heads: {
    readonly count: number;
    readonly from: string | null;
    readonly to: string | null;
  };
  readonly segments: readonly SegmentProof[];
  /** Segments that days.jsonl names and that are not there any more. */
  readonly gone: readonly GoneSegment[];
  /** Null: the usage records are not in files of this folder, and nothing is said of them. */
  readonly days: readonly DayProof[] | null;
  /** Settled requests that the projection had not copied yet when the verification began. */
  readonly awaited: number;
  readonly findings: readonly string[];
}

/** What is known of the books besides their files. */
export interface VerifyOptions {
  readonly trust: Trust;
  /** The usage records, if they are not in the files. */
  readonly source?: RecordSource;
  /** The usage records must be there. Absent: they may be elsewhere. */
  readonly hasRecords?: boolean;
  readonly mayBeGone?: ProofOptions["mayBeGone"];
}

export async function verifyBooks(dataDir: string, options: VerifyOptions): Promise<Verification> {
  const { trust, mayBeGone } = options;
  const findings = createFindings();
  // What grows first is read last, so that a gateway that runs meanwhile makes no finding.
  const chain = verifyChain(join(dataDir, "days.jsonl"), trust, findings);
  const kept = compareKept(chain, trust, findings);
  const isInFiles = options.hasRecords || existsSync(join(dataDir, "usage"));
  const source =
    options.source ?? (isInFiles ? sourceOfFiles(dataDir, chain.days, findings) : undefined);
  const proofs: DayProof[] = [];
  const closed = new Set(chain.days.map(({ day }) => day));
  const totals: ProofTotals = {
    settled: () => undefined,
    recorded: () => undefined,
    dayDone(day, { changed, removed, unchanged, left }, isProved) {
      const records = changed + removed + unchanged + left;
      proofs.push({ day, records, by_line: isProved && closed.has(day), by_log: unchanged });
    },
  };
  const { segments, gone, awaited } = await proveBooks({
    spendDir: join(dataDir, "spend"),
    days: chain.days,
    kept: kept.flatMap(({ listings }) => listings),
    source,
    reads: "all",
    ...(mayBeGone && { mayBeGone }),
    findings,
    totals,
  });
  if (source) for (const head of kept) await compareHeadRecords(head, chain.days, source, findings);
  const list = findings.list();
  return {
    ok: list.length === 0 && (chain.days.length > 0 || kept.length > 0),
    public_key: chain.publicKey ?? null,
    key_stated: trust.publicKey !== undefined,
    heads: {
      count: chain.days.length,
      from: chain.days[0]?.day ?? null,
      to: chain.days.at(-1)?.day ?? null,
    },
    segments,
    gone,
    days: source ? proofs : null,
    awaited,
    findings: list,
  };
}
