// What happens in one process in two seconds, while it is counted. What is shown of single requests
// is made when the slice ends, for those that it keeps.
import type { AccessRecord } from "../../../core/http/exchange.ts";
import type { AttemptRecord, Opening, Settlement } from "../../../core/ledger/ledger.ts";
import { faultKind } from "../metrics/index.ts";
import { accountTally, emptyCounts, modelTally, type Counts } from "./counts.ts";
import {
  byKind,
  endedEntry,
  kindOf,
  KINDS,
  outcomeIn,
  pushBounded,
  type Kind,
  type LiveRequest,
  type RequestEntry,
} from "./entries.ts";
import { count, countFirstToken, type Tally } from "./figures.ts";
import { addFault, addKeyUse, addRefusals, nothingYet, type Last } from "./last.ts";

/** Requests of each kind that a slice keeps: the last of them. */
const MAX_ENDED = 60;

/** It does not change once it is reported. */
export interface Slice {
  /** Counts the slices of a process, from 1. */
  readonly seq: number;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** The figures of this time. */
  readonly counts: Counts;
  /** What was last in this time. */
  readonly last: Last;
  /** The last requests that ended. */
  readonly ended: Record<Kind, RequestEntry[]>;
}

/** A request that was settled. Its response may leave in a later slice. */
interface Settled {
  /** As the ledger got it. */
  readonly opening: Opening;
  /** As the ledger got it. */
  readonly settlement: Settlement;
  /** From its opening in the books to its end. */
  readonly durationMs: number;
  /** When it ended, in milliseconds since 1970. */
  readonly time: number;
}

export type SliceCounter = ReturnType<typeof createSliceCounter>;

/** `seq` and `at`: as in Slice. */
export function createSliceCounter(seq: number, at: number) {
  const counts = emptyCounts();
  const last = nothingYet();
  const kept = byKind<readonly [AccessRecord, LiveRequest | undefined]>();
  return {
    seq,
    at,
    /** A response has left at `time`, in milliseconds since 1970. */
    responded(record: AccessRecord, live: LiveRequest | undefined, time: number): void {
      const { account = null, key_id: key = null, status, error_code } = record;
      const outcome = outcomeIn(record, live?.settlement);
      count([counts.total, accountTally(counts, account ?? "")], outcome);
      const kind = kindOf(outcome); // a stream that broke off has the status 200
      const code = error_code ?? String(status);
      if (kind !== "fine")
        addRefusals(last, { account, key, status, code, count: 1, since: time, last: time });
      const refused = kind === "refused" ? 1 : 0;
      if (key !== null) addKeyUse(last, { key, requests: 1, refused, cost: 0, last: time });
      pushBounded(kept[kind], [record, live], MAX_ENDED);
    },
    settled(settled: Settled): void {
      const { opening, settlement, time } = settled;
      const { account, keyId: key, requestId } = opening;
      const cost = Number(settlement.cost);
      addKeyUse(last, { key, requests: 0, refused: 0, cost, last: time });
      countCharge([counts.total, accountTally(counts, account)], settlement);
      for (const attempt of settlement.attempts)
        if (countAttempt(counts, attempt)) addFault(last, faultOf(attempt, requestId, time));
      if (settlement.modelServed !== null) countReply(counts, settlement.modelServed, settled);
    },
    /** The slice, when it is over. */
    close(): Slice {
      const ended = byKind<RequestEntry>();
      for (const kind of KINDS)
        ended[kind] = kept[kind].map(([record, live]) => endedEntry(record, live));
      return { seq, at, counts, last, ended };
    },
  };
}

function countCharge(tallies: readonly Tally[], { usage, cost }: Settlement): void {
  count(tallies, "prompt_tokens", usage.prompt_tokens);
  count(tallies, "completion_tokens", usage.completion_tokens);
  count(tallies, "cost", Number(cost));
}

/** Whether it met a fault of the provider. One that it finds in the request is none. */
function countAttempt(counts: Counts, attempt: AttemptRecord): boolean {
  const model = modelTally(counts, attempt.model);
  count([model], "attempts");
  const kind = faultKind(attempt);
  if (kind === undefined || kind === "request") return false;
  count([counts.total, model], "faults");
  return true;
}

const faultOf = (attempt: AttemptRecord, requestId: string, time: number) => ({
  model: attempt.model,
  provider: attempt.provider,
  time,
  code: attempt.outcome,
  status: attempt.status ?? null,
  detail: attempt.detail ?? null,
  request_id: requestId,
});

function countReply(
  counts: Counts,
  name: string,
  { opening, settlement, durationMs }: Settled,
): void {
  const { firstTokenMs, usage, status } = settlement;
  const model = modelTally(counts, name);
  count([model], "requests");
  if (status === "failed") count([model], "failed");
  countCharge([model], settlement);
  count([model], "reply_ms", durationMs);
  if (firstTokenMs === null) return;
  const tallies = [counts.total, model];
  countFirstToken(tallies, firstTokenMs);
  if (!opening.stream) return;
  count(tallies, "stream_ms", Math.max(0, durationMs - firstTokenMs));
  count(tallies, "stream_tokens", usage.completion_tokens);
}
