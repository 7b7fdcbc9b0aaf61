// POST /v1/chat/completions, top to bottom: key, limit, body, schema, model, provider, reply. SPEC.md "Endpoints".

import type { ServerResponse } from "node:http";
import type { Caller, Keyring } from "./accounts/keys.ts";
import type { Limiter } from "./accounts/limiter.ts";
import { createMeter, type Meter } from "./accounting/usage.ts";
import type { Config } from "./config/schema.ts";
import { ProviderFault } from "./dialects/dialect.ts";
import { ClientGone, readJson } from "./http/body.ts";
import { createEventSink, type EventSink } from "./http/event-sink.ts";
import { sendJson } from "./http/reply.ts";
import type { Exchange, Handler } from "./http/router.ts";
import { describe, type Diagnose } from "./http/log.ts";
import { chatRequest, type ChatRequest } from "./protocol/chat-request.ts";
import { ApiError, errorBody, toApiError } from "./protocol/errors.ts";
import { createChunkWriter, replyHead, wholeReply, type ChunkWriter, type Part } from "./protocol/reply.ts";
import { attempt } from "./routing/attempt.ts";
import type { Catalog, Model } from "./routing/catalog.ts";
import { clientError } from "./routing/failure.ts";

export interface ChatDeps {
  readonly config: Config;
  readonly keyring: Keyring;
  readonly catalog: Catalog;
  readonly limiter: Limiter;
  /** Wall clock in milliseconds, for `created`. */
  readonly now: () => number;
  /** A line for the operator. */
  readonly diagnose: Diagnose;
}

export function createChatHandler(deps: ChatDeps): Handler {
  return async (exchange) => {
    const { req, res } = exchange;
    const caller = deps.keyring.authenticate(req.headers.authorization);
    exchange.log.account = caller.account;
    exchange.log.key_id = caller.keyId;
    admit(deps.limiter, caller, res);
    const body = await readJson(req, res, deps.config.server.max_body_bytes, exchange.signal);
    const chat = withDefaults(chatRequest(body), deps.config);
    const [model] = deps.catalog.candidates(chat, caller);
    exchange.log.model = model.name;
    await answer(exchange, chat, model, deps);
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

async function answer(exchange: Exchange, chat: ChatRequest, model: Model, deps: ChatDeps): Promise<void> {
  const { res, log } = exchange;
  const { config, diagnose } = deps;
  const about = { request_id: exchange.requestId, model: model.name, provider: model.provider.name };
  const meter = createMeter(chat);
  const head = replyHead(model.name, model.fingerprint, deps.now());
  const options = { showReasoning: chat.thinking && model.reasoning, showLogprobs: chat.logprobs, includeUsage: chat.includeUsage };
  const { total_ms } = config.timeouts;
  const timeUp = () => exchange.abort(new ProviderFault("upstream_timeout", `not finished within total_ms of ${total_ms} ms`));
  const total = setTimeout(timeUp, total_ms);
  res.on("close", () => clearTimeout(total)); // it bounds the client's reading too
  const batches = attempt(chat, model, { signal: exchange.signal, unreadable: (events) => diagnose({ event: "unreadable_events", ...about, events }) });
  const sink = chat.stream ? createEventSink(res, config.server.keep_alive_ms, exchange.signal) : undefined;
  try {
    if (sink) await relay(batches, createChunkWriter(head, options), meter, sink);
    else {
      const parts: Part[] = [];
      for await (const batch of batches) parts.push(...batch);
      parts.forEach(meter.observe);
      sendJson(res, 200, wholeReply(head, options, parts, meter.usage().usage));
    }
  } catch (thrown) {
    const error: unknown = exchange.signal.aborted ? exchange.signal.reason : thrown;
    if (error instanceof ClientGone) throw error;
    if (error instanceof ProviderFault) diagnose({ event: "attempt_failed", ...about, code: error.code, status: error.status, detail: error.message });
    const failure = error instanceof ProviderFault ? clientError(error, chat.model, model) : toApiError(error);
    if (!sink?.begun()) throw failure;
    // Past the commit point: status and first events are out, so the failure is an event of its own, and no [DONE] follows.
    if (failure.code === "internal_error") diagnose({ event: "internal_error", ...about, detail: describe(error) });
    sink.end(`data: ${JSON.stringify(errorBody(failure, exchange.requestId))}\n\n`);
  } finally {
    sink?.release();
    if (meter.usage().source === "estimated") log.usage_source = "estimated";
  }
}

/** The streamed reply: the commit point is the first write. Nothing is read ahead of a client that is slow to read. */
async function relay(batches: AsyncIterable<Part[]>, writer: ChunkWriter, meter: Meter, sink: EventSink): Promise<void> {
  for await (const batch of batches) {
    let events = "";
    for (const part of batch) {
      meter.observe(part);
      events += writer.part(part);
    }
    const room = events === "" ? undefined : sink.write(events);
    if (room) await room;
  }
  sink.end(writer.end(meter.usage().usage));
}
