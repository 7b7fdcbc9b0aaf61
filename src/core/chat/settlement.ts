// The end of a request: its entry in the ledger, the access log and the metrics.
import type { LogFields } from "../http/exchange.ts";
import type { LedgerEntry, Opening, Settlement } from "../ledger/ledger.ts";
import { formatMoney } from "../ledger/price.ts";
import type { Model } from "../routing/model.ts";
import type { RequestProgress } from "../routing/fallback.ts";
import type { AcceptedRequest, ChatServices } from "./context.ts";

/** How a request ended for its client. */
export type Outcome = Pick<Settlement, "status" | "httpStatus" | "errorCode">;

/**
 * Opens the request in the ledger. Throws the errors of the ledger. The hold for the request is
 * given back when it is settled, or cannot be opened.
 */
export function openInLedger(request: AcceptedRequest, services: ChatServices) {
  const { exchange, caller, chat, config, startedAt, hold, observers } = request;
  const { ledger, clock } = services;
  const opening: Opening = {
    requestId: exchange.requestId,
    account: caller.account,
    keyId: caller.keyId,
    modelRequested: chat.model,
    stream: chat.stream,
    hold: hold?.amount,
    holdId: hold?.id,
  };
  let entry: LedgerEntry;
  try {
    entry = ledger.open(opening);
  } catch (error) {
    hold?.settle(undefined);
    throw error;
  }
  for (const observer of observers) observer.opened?.(opening, chat);
  let settled: Promise<void> | undefined;

  function settle(progress: RequestProgress, outcome: Outcome): Promise<void> {
    const { attempts, begunAt, finishReason, reading, recovery, notes } = progress;
    const model = billedModel(progress, outcome);
    // Members are listed one by one: spreading objects would cost several kilobytes per request.
    const settlement: Settlement = {
      status: outcome.status,
      endedAt: clock.now(),
      httpStatus: outcome.httpStatus,
      errorCode: outcome.errorCode,
      finishReason,
      attempts,
      recovery,
      notes,
      firstTokenMs: begunAt === undefined ? null : Math.round(begunAt - startedAt),
      modelServed: model?.name ?? null,
      provider: model?.provider.name ?? null,
      usage: reading.usage,
      usageSource: reading.source,
      price: model && progress.price,
      cost: formatMoney(progress.cost),
      currency: config.currency,
    };
    logCharge(exchange.log, settlement);
    const durationMs = clock.monotonic() - startedAt;
    for (const observer of observers) observer.settled?.(opening, settlement, durationMs);
    const written = entry.settle(settlement);
    // The ledger first: if the process dies between the two, the cost is not lost.
    return hold ? written.then(() => hold.settle(settlement)) : written;
  }

  return {
    /**
     * Resolves when a provider may be called. Rejects with an ApiError if the ledger cannot be
     * written.
     */
    opened: entry.opened,
    /**
     * Settles the request, and gives back its concurrency slot. Resolves when the last byte of the
     * reply may leave: at once if the request could not be opened. Only the first call counts.
     */
    settle(progress: RequestProgress, outcome: Outcome): Promise<void> {
      // Before the client sees the end of its reply, so that a slot is free for its next request.
      request.releaseSlot();
      settled ??= settle(progress, outcome);
      return settled;
    },
  };
}

/**
 * The model that served. For a client that left before that: the model that was being asked.
 * Undefined: there is none.
 */
function billedModel(
  { model, attempts, begunAt, reading }: RequestProgress,
  { status }: Outcome,
): Model | undefined {
  const wasAsked = status === "cancelled" && attempts.length > 0;
  return wasAsked || begunAt !== undefined || reading.source !== "none" ? model : undefined;
}

/** The access log has the same figures as the ledger. */
function logCharge(log: LogFields, settlement: Settlement): void {
  const { provider, attempts, usage, usageSource, cost, currency, recovery } = settlement;
  log.provider = provider ?? attempts.at(-1)?.provider ?? null;
  if (recovery !== undefined) {
    log.recovery = recovery;
    log.attempts = attempts.map(({ model, outcome }) => `${model} ${outcome}`);
  }
  if (usageSource === "estimated") log.usage_source = "estimated";
  if (usageSource === "none") return;
  log.prompt_tokens = usage.prompt_tokens;
  log.completion_tokens = usage.completion_tokens;
  log.cost = cost;
  log.currency = currency;
}
