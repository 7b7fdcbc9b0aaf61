// POST /v1/chat/completions, top to bottom: key, limit, body, schema, model, provider, reply. SPEC.md "Endpoints".

import type { ServerResponse } from "node:http";
import type { Caller, Keyring } from "./accounts/keys.ts";
import type { Limiter } from "./accounts/limiter.ts";
import { createMeter, type Meter } from "./accounting/usage.ts";
import type { Config } from "./config/schema.ts";
import { ProviderFault } from "./dialects/dialect.ts";
import { readJson } from "./http/body.ts";
import { createEventSink, type EventSink } from "./http/event-sink.ts";
import { sendJson } from "./http/reply.ts";
import { ClientGone, type Exchange, type Handler } from "./http/router.ts";
import { describe, type Diagnose } from "./http/log.ts";
import { chatRequest, type ChatRequest } from "./protocol/chat-request.ts";
import { ApiError, errorBody, toApiError } from "./protocol/errors.ts";
import { createChunkWriter, replyHead, wholeReply, type ChunkWriter, type Part } from "./protocol/reply.ts";
import type { Catalog, Model } from "./routing/catalog.ts";
import { clientError } from "./routing/failure.ts";
import { begin, type Begun } from "./routing/fallback.ts";

/** What a configuration makes of the gateway; a request keeps those that it began with. */
export interface ChatDeps {
  readonly config: Config;
  readonly keyring: Keyring;
  readonly catalog: Catalog;
}

export interface ChatWorld {
  readonly limiter: Limiter;
  /** Wall clock in milliseconds, for `created`. */
  readonly now: () => number;
  readonly diagnose: Diagnose;
}

export function createChatHandler(current: () => ChatDeps, world: ChatWorld): Handler {
  return async (exchange) => {
    const { config, keyring, catalog } = current();
    const { req, res } = exchange;
    const caller = keyring.authenticate(req.headers.authorization);
    exchange.log.account = caller.account;
    exchange.log.key_id = caller.keyId;
    admit(world.limiter, caller, res);
    const body = await readJson(req, res, config.server.max_body_bytes, exchange.signal);
    const chat = withDefaults(chatRequest(body), config);
    const candidates = catalog.candidates(chat, caller);
    await answer(exchange, chat, candidates, config, world);
  };
}

/** Counts the request against its limits; throws the 429 of SPEC.md "Errors" with WIRE.md 4.4's headers. */
function admit(limiter: Limiter, caller: Caller, res: ServerResponse): void {
  const decision = limiter.admit([
    { name: `account ${caller.account}`, rpm: caller.accountRpm },
    { name: `key ${caller.keyId}`, rpm: caller.keyRpm },
  ]);
  if (decision.limit === null) return;
  const seconds = Math.max(1, Math.ceil(decision.resetMs / 1000));
  res.setHeader("x-ratelimit-limit-requests", decision.limit);
  res.setHeader("x-ratelimit-remaining-requests", decision.remaining);
  res.setHeader("x-ratelimit-reset-requests", `${seconds}s`);
  if (decision.admitted) return;
  throw new ApiError("rate_limit_exceeded", `Requests-per-minute limit exceeded. Retry after ${seconds} seconds.`, {
    headers: { "Retry-After": String(seconds) },
  });
}

function withDefaults(chat: ChatRequest, config: Config): ChatRequest {
  return chat.tools && chat.tool_choice === undefined ? { ...chat, tool_choice: config.compat.tool_choice_default } : chat;
}

async function answer(exchange: Exchange, chat: ChatRequest, candidates: readonly Model[], config: Config, { now, diagnose }: ChatWorld): Promise<void> {
  const { res, log, signal } = exchange;
  const about = ({ name, provider }: Model) => ({ request_id: exchange.requestId, model: name, provider: provider.name });
  const meter = createMeter(chat);
  const { total_ms } = config.timeouts;
  const timeUpAt = performance.now() + total_ms;
  exchange.expire(total_ms, () => new ProviderFault("upstream_timeout", `not finished within total_ms of ${total_ms} ms`));
  const sink = chat.stream ? createEventSink(res, config.server.keep_alive_ms, signal) : undefined;
  let begun: Begun | undefined;
  try {
    log.model = candidates[0]!.name;
    begun = await begin(chat, candidates, {
      signal,
      unreadable: (model, events) => diagnose({ event: "unreadable_events", ...about(model), events }),
      timeLeft: () => timeUpAt - performance.now(),
      failed: ({ model, fault }) => diagnose({ event: "attempt_failed", ...about(model), ...faultWords(fault) }),
    });
    const { model } = begun;
    log.model = model.name;
    const head = replyHead(model.name, model.fingerprint, now());
    const options = { showReasoning: chat.thinking && model.reasoning, showLogprobs: chat.logprobs, includeUsage: chat.includeUsage };
    if (sink) await relay(begun, createChunkWriter(head, options), meter, sink);
    else {
      const parts = begun.first.flat();
      for await (const batch of begun.batches) parts.push(...batch);
      parts.forEach(meter.observe);
      sendJson(res, 200, wholeReply(head, options, parts, meter.usage().usage));
    }
    begun.ended();
  } catch (thrown) {
    const error: unknown = signal.aborted ? signal.reason : thrown;
    begun?.ended(error);
    if (error instanceof ClientGone) throw error;
    if (error instanceof ProviderFault) diagnose({ event: begun ? "reply_cut" : "request_timed_out", ...about(begun?.model ?? candidates[0]!), ...faultWords(error) });
    const failure = error instanceof ProviderFault ? clientError(error, chat.model, begun?.model ?? candidates[0]!) : toApiError(error);
    if (!sink?.begun()) throw failure.code === "internal_error" ? error : failure;
    // Past the commit point: status and first events are out, so the failure is an event of its own, and no [DONE] follows.
    if (failure.code === "internal_error") diagnose({ event: "internal_error", request_id: exchange.requestId, detail: describe(error) });
    sink.end(`data: ${JSON.stringify(errorBody(failure, exchange.requestId))}\n\n`);
  } finally {
    sink?.release();
    void begun?.batches.return();
    if (meter.usage().source === "estimated") log.usage_source = "estimated";
  }
}

/** A fault for the operator's log; one that only the operator can mend is an error, the others pass. */
const faultWords = ({ code, blame, detail, message }: ProviderFault) => ({ level: blame === "operator" ? "error" : "warn", code, blame, status: detail.status, detail: message });

/** The streamed reply: the commit point is the first write. Nothing is read ahead of a client that is slow to read. */
async function relay({ first, batches }: Begun, writer: ChunkWriter, meter: Meter, sink: EventSink): Promise<void> {
  const send = (batch: readonly Part[]) => {
    let events = "";
    for (const part of batch) {
      meter.observe(part);
      events += writer.part(part);
    }
    return events === "" ? undefined : sink.write(events);
  };
  let room = send(first.flat());
  if (room) await room;
  for await (const batch of batches) {
    room = send(batch);
    if (room) await room;
  }
  sink.end(writer.end(meter.usage().usage));
}
