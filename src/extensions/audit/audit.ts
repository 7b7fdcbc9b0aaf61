// The proof of the books: every opened request is settled once, and is in the usage records once,
// as it was settled. Both sides are added up in buckets, in little memory, and only where the sums
// differ single records are compared (compare.ts). What cannot be read, or contradicts itself, is a
// difference. Records that the spend log no longer reaches are proved by the sums of its deleted
// segments (orphans.ts), or else are a difference.
import { formatMoney } from "../../core/ledger/price.ts";
import type { UsageRecord } from "../usage-records/index.ts";
import { bucketOf, fingerprint, type BooksFiles } from "../books/index.ts";
import { compareSuspects } from "./compare.ts";
import { createFindings, isOutOfReach, type Findings } from "./findings.ts";
import type { RecordSpan } from "./orphans.ts";
import { openSides, type InFlight, type Sides } from "./sides.ts";
import type { Span } from "./totals.ts";

/** A number of requests, and when the first and the last of them ended. */
export interface RequestSpan extends Span {
  /** Number of requests. */
  readonly requests: number;
}

/** What an audit found. `audit --json` prints it. */
export interface AuditResult {
  /** Whether there is no difference. */
  readonly ok: boolean;
  /** Requests in the spend log. */
  readonly settled: number;
  /** Usage records that they are compared with. */
  readonly recorded: number;
  /** Requests that are opened and not settled yet. */
  readonly in_flight: number;
  /** What is held for them of budgets: an exact decimal. Nothing is held for other requests. */
  readonly held: string;
  /** Exact decimals by currency. */
  readonly cost_settled: Readonly<Record<string, string>>;
  /** Exact decimals by currency. */
  readonly cost_recorded: Readonly<Record<string, string>>;
  /**
   * Requests that are in the usage records once, as they were settled. The span is that of the
   * spend log.
   */
  readonly proved: RequestSpan;
  /** Usage records without lines in the spend log that the sums of deleted segments prove. */
  readonly retired: RecordSpan;
  /**
   * Usage records older than `spend.keep_days` that neither lines in the spend log nor such sums
   * prove.
   */
  readonly not_proved: RecordSpan;
  /** Sentences for the operator, at most some 10,000. Empty: the books are proved. */
  readonly differences: readonly string[];
}

/**
 * Compares everything that was copied into the usage records with what was settled. `faults` say
 * why a sync just before the audit could not copy. The caller holds the lock of the books.
 */
export async function auditBooks(
  books: BooksFiles,
  faults: readonly string[] = [],
): Promise<AuditResult> {
  const findings = createFindings(books);
  const { differences, settled, recorded, orphans } = findings;
  const sides = await openSides(books);
  const damages = (await books.store.inspect()).map(({ detail }) => detail);
  const known = [...faults, ...damages, ...(await sides.changedSegments())];
  for (const text of known) differences.add(text);
  const inFlight = await addUp(sides, findings);
  const unequal = await compareSuspects(sides, findings);
  const verdict = orphans.judge(sides.retired(differences.add), differences.add);
  recorded.removeAll(verdict.youngTaken);
  const list = differences.list();
  return {
    ok: list.length === 0,
    settled: settled.count(),
    recorded: recorded.count(),
    in_flight: inFlight.requests,
    held: formatMoney(inFlight.held),
    cost_settled: settled.costs(),
    cost_recorded: recorded.costs(),
    proved: { requests: settled.count() - unequal, ...settled.span() },
    retired: verdict.proved,
    not_proved: verdict.notProved,
    differences: list,
  };
}

/** Adds up both sides. Resolves with what is in flight. */
async function addUp(sides: Sides, findings: Findings): Promise<InFlight> {
  const { differences, settled, recorded, orphans, sums, counts } = findings;

  function check(record: UsageRecord, side: "settled" | "recorded"): void {
    const contradiction = contradictionIn(record);
    if (contradiction) differences.add(`${record.usage_id}: ${side}, but ${contradiction}`);
  }

  const inFlight = await sides.settledAndWrong((record) => {
    check(record, "settled");
    settled.add(record);
    sums[bucketOf(record)]! += fingerprint(record);
    counts[bucketOf(record)]! += 1;
  }, differences.add);
  await sides.recorded((record) => {
    check(record, "recorded");
    if (isOutOfReach(record, findings)) {
      orphans.add(record);
      if (orphans.isYoung(record)) recorded.add(record);
      return;
    }
    recorded.add(record);
    sums[bucketOf(record)]! -= fingerprint(record);
    counts[bucketOf(record)]! += 1;
  }, differences.add);
  return inFlight;
}

/** What in a record contradicts itself. Undefined: nothing. */
function contradictionIn(record: UsageRecord): string | undefined {
  if (record.total_tokens !== record.prompt_tokens + record.completion_tokens)
    return "total_tokens is not prompt_tokens + completion_tokens";
  const { prompt_cache_hit_tokens: hit, prompt_cache_miss_tokens: miss } = record;
  if (record.prompt_tokens !== hit + miss)
    return "prompt_tokens is not prompt_cache_hit_tokens + prompt_cache_miss_tokens";
  if (record.cache_write_tokens > miss)
    return "cache_write_tokens are more than prompt_cache_miss_tokens";
  if (record.reasoning_tokens > record.completion_tokens)
    return "reasoning_tokens are more than completion_tokens";
  return record.started_at > record.ended_at ? "it ended before it started" : undefined;
}
