// A request for a reply, in any client API, from top to bottom: authenticate, admit, read, check,
// find candidates, hold the highest possible cost, open in the ledger, complete with fallback,
// deliver, settle. contract.md "Order of checks".
import type { Diagnose } from "../diagnose.ts";
import { ClientGone } from "../http/cancel.ts";
import type { Exchange, Handler } from "../http/exchange.ts";
import { toApiError, type ApiError } from "../openai/errors.ts";
import { ProviderError } from "../providers/provider-error.ts";
import type { Observers } from "../observer.ts";
import { attempt, type ReportEvent } from "../routing/attempt.ts";
import { errorFields, toClientError } from "../routing/failure.ts";
import { CompletionError, notStarted } from "../routing/fallback.ts";
import { authenticate, readRequest, refuseOverload, requireAdmission } from "./admission.ts";
import type { ClientApi } from "./client-api.ts";
import type { AcceptedRequest, ChatServices, Snapshot } from "./context.ts";
import { createDelivery } from "./delivery.ts";
import { openInLedger, type Outcome } from "./settlement.ts";

const COMPLETED: Outcome = { status: "completed", httpStatus: 200, errorCode: null };
const CANCELLED: Outcome = { status: "cancelled", httpStatus: 499, errorCode: null };

/** `snapshotForRequest` throws while the gateway is stopping. */
export function createChatHandlers(
  snapshotForRequest: () => Snapshot,
  services: ChatServices,
): (api: ClientApi) => Handler {
  const { limiter, clock, diagnose, jsonExcess } = services;
  let inFlight = 0;

  return (api) => async (exchange) => {
    const observers: Observers = exchange.observers;
    for (const observer of observers) observer.replyRequested?.();
    if (api.requestIdHeader) exchange.res.setHeader(api.requestIdHeader, exchange.requestId);
    const { config, catalog, keyring } = snapshotForRequest();
    refuseOverload(config, inFlight);
    const caller = authenticate(exchange, keyring, api.authorization(exchange.req.headers));
    inFlight += 1;
    const uncount = once(() => {
      inFlight -= 1;
    });
    exchange.endListener = uncount;
    try {
      const deciding = limiter.admit(caller);
      // A local limiter decides at once. Awaiting it would delay the reading of the body by a turn,
      // and cost a copy.
      const decision = deciding instanceof Promise ? await deciding : deciding;
      requireAdmission(decision, caller, exchange);
      const releaseSlot = once(() => limiter.release(caller));
      try {
        const { chat, large } = await readRequest({ exchange, config, api, jsonExcess });
        const candidates = catalog.candidates(chat, caller);
        const startedAt = clock.monotonic();
        const request: AcceptedRequest = {
          api,
          exchange,
          caller,
          chat,
          config,
          candidates,
          startedAt,
          releaseSlot,
          refund: () => limiter.refund(caller, decision),
          cancel: exchange.cancel,
          endsAt: startedAt + config.timeouts.total_ms,
          account: caller.account,
          inFlight: () => inFlight,
          large,
          retain: exchange.retain,
          clock,
          report: reporterFor(exchange, diagnose),
          observers,
          attempt,
        };
        await answer(request, services);
      } finally {
        releaseSlot();
      }
    } catch (error) {
      uncount(); // at once, even if the client is slow to read the refusal
      throw error;
    }
  };
}

/**
 * Asks the candidates, and delivers the reply of the first that begins one. Throws the error for
 * the client.
 */
async function answer(request: AcceptedRequest, services: ChatServices): Promise<void> {
  const { exchange, chat, candidates } = request;
  const { total_ms } = request.config.timeouts;
  const hold = services.hold?.(request);
  // As with the limiter: awaiting what is known at once would delay the request by a turn.
  request.hold = hold instanceof Promise ? await hold : hold;
  const settlement = openInLedger(request, services);
  const delivery = createDelivery(request);
  const maxTokens = request.hold?.maxTokens;
  const bounded = maxTokens ? { ...chat, maxTokens } : chat;
  exchange.expire(
    total_ms,
    () => new ProviderError("upstream_timeout", `not finished within total_ms of ${total_ms} ms`),
  );
  exchange.log.model = candidates[0]!.name;
  let progress = notStarted(candidates[0]!);
  try {
    await settlement.opened;
    progress = await services.complete(bounded, candidates, delivery.deliver, request);
    await delivery.complete(progress, () => settlement.settle(progress, COMPLETED));
  } catch (thrown) {
    const failure =
      thrown instanceof CompletionError ? thrown : new CompletionError(progress, thrown);
    // The ledger states the status before it is sent: no keep-alive comment may begin a stream now.
    if (!exchange.res.headersSent) delivery.release();
    // Not the first candidate, which may have been skipped: the log names this model's provider.
    exchange.log.model = failure.progress.model.name;
    const { outcome, clientError, error } = endOf(failure, request);
    await settlement.settle(failure.progress, outcome);
    if (clientError) delivery.fail(clientError);
    throw error;
  } finally {
    delivery.release();
  }
}

/**
 * The result of a request that was not completed: the outcome for the ledger, the client's error
 * (absent if the client left), and the error to throw. Reports a provider's failure.
 */
function endOf(
  { progress, error: thrown }: CompletionError,
  { exchange, cancel, chat, report }: AcceptedRequest,
): { outcome: Outcome; clientError?: ApiError; error: unknown } {
  const error: unknown = cancel.aborted ? cancel.reason : thrown;
  if (error instanceof ClientGone) return { outcome: CANCELLED, error };
  let clientError = toApiError(error);
  if (error instanceof ProviderError) {
    const event = progress.begunAt === undefined ? "request_timed_out" : "reply_cut";
    report(event, progress.model, errorFields(error));
    clientError = toClientError(chat.model, [{ model: progress.model, error }]);
  }
  const httpStatus = exchange.res.headersSent ? 200 : clientError.status;
  return {
    outcome: { status: "failed", httpStatus, errorCode: clientError.code },
    clientError,
    // The bug itself, so that its own stack is logged.
    error: clientError.code === "internal_error" ? error : clientError,
  };
}

/** Writes the operator's log lines about one request. */
const reporterFor =
  ({ requestId }: Exchange, diagnose: Diagnose): ReportEvent =>
  (event, { name, provider }, fields) =>
    diagnose({ event, request_id: requestId, model: name, provider: provider.name, ...fields });

/** Only the first call of the returned function does anything. */
function once(action: () => void): () => void {
  let left = action;
  return () => {
    left();
    left = () => undefined;
  };
}
