// Counts in a slice what a settled request came to: tokens and costs of its account, attempts and
// faults of the models that were asked, and how fast the one that served was.
import type { AttemptRecord, Opening, Settlement } from "../../../core/ledger/ledger.ts";
import type { Slice } from "./contracts.ts";
import { ACCOUNT, firstTokenFigure, MODEL, TOTAL } from "./figures.ts";
import { adder, MAX_NAMES, tallyOf } from "./tallies.ts";

/** Outcomes of attempts that say nothing against the provider. */
const NO_FAULTS: ReadonlySet<string> = new Set([
  "completed",
  "cancelled",
  "context_length_exceeded",
  "content_filter",
  "upstream_rejected",
]);

/** A request that was settled. */
export interface Settled {
  /** As the ledger got it. */
  readonly opening: Opening;
  /** As the ledger got it. */
  readonly settlement: Settlement;
  /** From its opening in the books to its end. */
  readonly durationMs: number;
  /** When it ended, in milliseconds since 1970. */
  readonly time: number;
}

/** The counts of settled requests. */
type Counted = Pick<Slice, "total" | "accounts" | "models" | "faults">;

export function countSettlement(slice: Counted, settled: Settled): void {
  const { opening, settlement, time } = settled;
  const { usage, cost, attempts } = settlement;
  const account = tallyOf(slice.accounts, opening.account, ACCOUNT.empty);
  for (const add of [adder(TOTAL, slice.total), adder(ACCOUNT, account)]) {
    add("prompt_tokens", usage.prompt_tokens);
    add("completion_tokens", usage.completion_tokens);
    add("cost", Number(cost));
  }
  for (const attempt of attempts) countAttempt(slice, attempt, opening.requestId, time);
  if (settlement.modelServed !== null) countReply(slice, settlement.modelServed, settled);
}

function countAttempt(
  { models, faults, total }: Counted,
  attempt: AttemptRecord,
  requestId: string,
  time: number,
): void {
  const { model, provider, outcome, status = null, detail = null } = attempt;
  const add = adder(MODEL, tallyOf(models, model, MODEL.empty));
  add("attempts");
  if (NO_FAULTS.has(outcome)) return;
  add("faults");
  adder(TOTAL, total)("faults");
  if (!faults.has(model) && faults.size >= MAX_NAMES) return;
  faults.set(model, {
    model,
    provider,
    time,
    code: outcome,
    status,
    detail,
    request_id: requestId,
  });
}

function countReply(
  { models, total }: Counted,
  model: string,
  { opening, settlement, durationMs }: Settled,
): void {
  const { firstTokenMs, usage, status, cost } = settlement;
  const add = adder(MODEL, tallyOf(models, model, MODEL.empty));
  const addTotal = adder(TOTAL, total);
  add("requests");
  if (status === "failed") add("failed");
  add("prompt_tokens", usage.prompt_tokens);
  add("completion_tokens", usage.completion_tokens);
  add("cost", Number(cost));
  add("reply_ms", durationMs);
  if (firstTokenMs === null) return;
  const bucket = firstTokenFigure(firstTokenMs);
  add(bucket);
  addTotal(bucket);
  if (!opening.stream) return;
  for (const addTo of [add, addTotal]) {
    addTo("stream_ms", Math.max(0, durationMs - firstTokenMs));
    addTo("stream_tokens", usage.completion_tokens);
  }
}
