// POST /v1/chat/completions, top to bottom: key, limit, body, schema, model, books, provider, reply. SPEC.md "Endpoints".
import type { Caller, Keyring } from "../accounts/keys.ts";
import type { AdmissionDecision, Limiter } from "../accounts/limiter.ts";
import type { Ledger, Opening, Settlement } from "../ledger/ledger.ts";
import { createMeter } from "../ledger/meter.ts";
import { costOf, formatMoney } from "../ledger/price.ts";
import type { Observer } from "../observer.ts";
import type { Config } from "../config/schema.ts";
import { ProviderError } from "../providers/provider-error.ts";
import { readJson } from "../http/body.ts";
import { Cancel } from "../http/cancel.ts";
import { createEventSink } from "../http/event-writer.ts";
import { sendJson, type Exchange, type Handler, type LogFields } from "../http/exchange.ts";
import { ClientGone } from "../http/cancel.ts";
import type { Diagnose } from "../diagnose.ts";
import { chatRequest, type ChatRequest } from "../openai/request.ts";
import { ApiError, errorBody, toApiError } from "../openai/errors.ts";
import { createChunkWriter } from "../openai/chunk-writer.ts";
import type { Part } from "../openai/parts.ts";
import { replyHead, type ReplyWriter } from "../openai/reply.ts";
import { createWholeWriter } from "../openai/whole-writer.ts";
import type { Catalog, Model } from "../routing/catalog.ts";
import { faultWords, toClientError } from "../routing/failure.ts";
import { completeWithFallback, type Tally } from "../routing/fallback.ts";
import { charsIn, MAX_READ_ON_CHARS, type LeftStreams } from "../routing/left-streams.ts";

/** What a configuration makes of the gateway; a request keeps those that it began with. */
interface ConfigSnapshot {
  readonly config: Config;
  readonly keyring: Keyring;
  readonly catalog: Catalog;
}
/** `now` is the wall clock in milliseconds. */
interface ChatWorld {
  readonly limiter: Limiter;
  readonly ledger: Ledger;
  readonly observer: Observer;
  readonly diagnose: Diagnose;
  readonly now: () => number;
  /** Streams that are read on although their clients have left. */
  readonly leftStreams: LeftStreams;
}

interface ChatServices extends ChatWorld {
  /** Chat requests of this process that were admitted and have not had their whole answer. */
  readonly inFlight: () => number;
}

export function createChatHandler(current: () => ConfigSnapshot, world: ChatWorld): Handler {
  let inFlight = 0;
  const services: ChatServices = { ...world, inFlight: () => inFlight };
  return async (exchange) => {
    const { config, keyring, catalog } = current();
    const { req, res } = exchange;
    if (inFlight >= config.server.max_in_flight)
      throw new ApiError("server_overloaded", "The gateway has too many requests in hand.", SOON);
    const caller = keyring.authenticate(req.headers.authorization);
    Object.assign(exchange.log, { account: caller.account, key_id: caller.keyId });
    inFlight += 1;
    let counted = true;
    const discount = () => {
      if (counted) inFlight -= 1;
      counted = false;
    };
    exchange.onEnd(discount);
    let placed = false;
    const leave = () => {
      if (placed) world.limiter.release(caller);
      placed = false;
    };
    try {
      const decision = world.limiter.admit(caller);
      // Awaited only if the limiter is not local: that costs a turn, after which the body is no longer read in passing.
      admit(decision instanceof Promise ? await decision : decision, caller, exchange);
      placed = true;
      const asked = chatRequest(
        await readJson(req, res, config.server.max_body_bytes, exchange.cancel),
      );
      exchange.log.model_requested = asked.model;
      const chat = Object.assign(asked, {
        tool_choice: asked.tool_choice ?? (asked.tools && config.compat.tool_choice_default),
      });
      await answer(
        exchange,
        chat,
        caller,
        catalog.candidates(chat, caller),
        config,
        services,
        leave,
      );
    } catch (error) {
      discount(); // a request that is refused makes room at once, whoever reads the refusal
      throw error;
    } finally {
      leave();
    }
  };
}

const SOON = { headers: { "Retry-After": "1" } };

/** Says how the request stands to its limits; throws the 429 of SPEC.md "Errors" with WIRE.md 4.4's headers. */
function admit(
  { admitted, limit, remaining, resetMs, rejectedBy }: AdmissionDecision,
  caller: Caller,
  { res }: Exchange,
): void {
  if (rejectedBy === "store")
    throw new ApiError("server_overloaded", "The limits cannot be looked up at the moment.", SOON);
  if (rejectedBy === "in_flight")
    throw new ApiError(
      "concurrency_limit_exceeded",
      `Concurrency limit exceeded: this account may have ${caller.maxInFlight} requests in flight. Retry after 1 seconds.`,
      SOON,
    );
  if (limit === null) return;
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  res.setHeader("x-ratelimit-limit-requests", limit);
  res.setHeader("x-ratelimit-remaining-requests", remaining);
  res.setHeader("x-ratelimit-reset-requests", `${seconds}s`);
  const headers = { "Retry-After": String(seconds) };
  if (!admitted)
    throw new ApiError(
      "rate_limit_exceeded",
      `Requests-per-minute limit exceeded. Retry after ${seconds} seconds.`,
      { headers },
    );
}

/** The access log says what a request took and cost, as the books have it. */
function logCharge(log: LogFields, settlement: Settlement): void {
  const { provider, attempts, usage, usageSource, cost, currency } = settlement;
  log.provider = provider ?? attempts.at(-1)?.provider ?? null;
  if (usageSource === "estimated") log.usage_source = "estimated";
  if (usageSource === "none") return;
  log.prompt_tokens = usage.prompt_tokens;
  log.completion_tokens = usage.completion_tokens;
  log.cost = cost;
  log.currency = currency;
}

async function answer(
  exchange: Exchange,
  chat: ChatRequest,
  caller: Caller,
  candidates: readonly Model[],
  config: Config,
  { ledger, observer, now, diagnose, inFlight, leftStreams }: ChatServices,
  leave: () => void,
): Promise<void> {
  const { res, log, cancel, requestId } = exchange;
  const startedAt = performance.now();
  const { total_ms } = config.timeouts;
  const tally: Tally = { attempts: [], model: candidates[0]!, meter: createMeter(chat) };
  let reply: ReplyWriter | undefined;
  let lastPieceAt = 0;
  let isDelivered = false; // something of a stream
  let readOnChars = 0; // since its client left
  let forgetReading = () => {};
  /** Ends the provider's part of the work, which may outlast the client's. */
  const upstream = new Cancel();
  const hasLeft = (): boolean => cancel.reason instanceof ClientGone;
  const figures = () => tally.meter.usage(tally.model.provider.mediaRules);
  const tell = (event: string, { name, provider }: Model, words: object) =>
    diagnose({ event, request_id: requestId, model: name, provider: provider.name, ...words });
  const opening: Opening = {
    requestId,
    account: caller.account,
    keyId: caller.keyId,
    modelRequested: chat.model,
    stream: chat.stream,
  };
  const bill = ledger.open(opening);
  let settled: Promise<void> | undefined;
  const settle = (
    status: Settlement["status"],
    httpStatus: number,
    errorCode: string | null = null,
  ): Promise<void> => {
    if (settled) return settled;
    leave(); // before the end is heard: who then asks again finds the place free
    const { attempts, meter, begunAt } = tally;
    const { usage, source } = figures();
    // A client that left before an answer began is listed with the model that was being asked.
    const asked = status === "cancelled" && attempts.length > 0;
    const model = asked || begunAt !== undefined || source !== "none" ? tally.model : undefined;
    const settlement: Settlement = {
      status,
      httpStatus,
      errorCode,
      finishReason: meter.finishReason(),
      attempts,
      firstTokenMs: begunAt === undefined ? null : Math.round(begunAt - startedAt),
      modelServed: model?.name ?? null,
      provider: model?.provider.name ?? null,
      usage,
      usageSource: source,
      cost: formatMoney(costOf(usage, model?.price)),
      currency: config.currency,
    };
    logCharge(log, settlement);
    observer.settled?.(opening, settlement, Math.round(performance.now() - startedAt));
    settled = bill.settle(settlement);
    return settled;
  };
  const begin = ({ name, fingerprint, reasoning }: Model): ReplyWriter => {
    log.model = name;
    const options = {
      showReasoning: chat.thinking && reasoning,
      showLogprobs: chat.logprobs,
      includeUsage: chat.includeUsage,
    };
    return (sink ? createChunkWriter : createWholeWriter)(
      replyHead(name, fingerprint, now()),
      options,
    );
  };
  const deliver = (parts: readonly Part[]) => {
    if (hasLeft()) {
      readOnChars += charsIn(parts);
      return endReadingOn();
    }
    reply ??= begin(tally.model);
    const events = reply.add(parts);
    if (events === "") return undefined;
    const time = performance.now();
    if (lastPieceAt > 0) observer.chunkSent?.(tally.model.name, time - lastPieceAt);
    lastPieceAt = time;
    isDelivered = true;
    // A client that has left makes no more room: the provider is read on without it.
    return sink!.write(events)?.catch((error) => (hasLeft() ? undefined : Promise.reject(error)));
  };
  /** Of a stream that is read on although its client has left only the final figures matter. */
  const endReadingOn = (): undefined => {
    if (tally.meter.isFinal() || readOnChars > MAX_READ_ON_CHARS) upstream.abort(cancel.reason);
  };
  cancel.onAbort(() => {
    if (!hasLeft() || !isDelivered) return upstream.abort(cancel.reason);
    leave();
    sink?.release();
    const ms = Math.min(
      tally.model.provider.timeouts.leave_ms,
      startedAt + total_ms - performance.now(),
    );
    const most = config.server.max_in_flight - inFlight();
    forgetReading = leftStreams.readOn(ms, most, () => upstream.abort(cancel.reason));
    endReadingOn();
  });
  exchange.expire(
    total_ms,
    () => new ProviderError("upstream_timeout", `not finished within total_ms of ${total_ms} ms`),
  );
  const sink = chat.stream ? createEventSink(res, config.server.keep_alive_ms, cancel) : undefined;
  try {
    log.model = tally.model.name;
    await bill.opened;
    await completeWithFallback(chat, candidates, tally, deliver, {
      cancel: upstream,
      tell,
      endsAt: startedAt + total_ms,
      account: caller.account,
    });
    if (hasLeft()) throw cancel.reason;
    const last = reply!.end(figures().usage, tally.meter.finishReason()!);
    await settle("completed", 200); // before the last byte leaves: nobody has a whole answer that is not in the books
    if (sink) sink.end(last);
    else sendJson(res, 200, last);
  } catch (thrown) {
    const error: unknown = cancel.aborted ? cancel.reason : thrown;
    if (error instanceof ClientGone) {
      await settle("cancelled", 499);
      throw error;
    }
    if (error instanceof ProviderError)
      tell(
        tally.begunAt === undefined ? "request_timed_out" : "reply_cut",
        tally.model,
        faultWords(error),
      );
    const failure =
      error instanceof ProviderError
        ? toClientError(chat.model, [{ model: tally.model, fault: error }])
        : toApiError(error);
    const written = settle("failed", res.headersSent ? 200 : failure.status, failure.code);
    await bill.opened.then(
      () => written,
      () => undefined,
    ); // where the books cannot be written there is nothing to wait for
    // Past the commit point: status and first events are out, so the failure is an event of its own, and no [DONE] follows.
    if (res.headersSent) res.end(`data: ${JSON.stringify(errorBody(failure, requestId))}\n\n`);
    throw failure.code === "internal_error" ? error : failure;
  } finally {
    forgetReading();
    sink?.release();
  }
}
