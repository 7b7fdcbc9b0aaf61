// The spans of chat requests: one a request, and one for each attempt at a provider. A span is made
// when its request is over, from what the ledger and the access log know of it. No span has
// anything of the content: the provider's own words are left out too, since they may quote it.
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../../core/clock.ts";
import { ClientGone } from "../../../core/http/cancel.ts";
import type { Exchange } from "../../../core/http/exchange.ts";
import { pathOf } from "../../../core/http/router.ts";
import { randomHex } from "../../../core/ids.ts";
import type { Observe } from "../../../core/extension/installer.ts";
import type { AttemptRecord, Settlement } from "../../../core/ledger/ledger.ts";
import type { RequestObserver } from "../../../core/observer.ts";
import { ERRORS } from "../../../core/openai/errors.ts";
import { CLIENT, SERVER, spanText, type Span, type Values } from "./otlp.ts";
import {
  contextHeaders,
  isSampled,
  newContext,
  readContext,
  type TraceContext,
} from "./trace-context.ts";

/** Where a provider is. */
export interface ServerAddress {
  /** A host's name or its IP address. */
  readonly address: string;
  /** Undefined: the usual one of its protocol. */
  readonly port: number | undefined;
}

export interface SpanOptions {
  /** Its monotonic clock measures; its wall clock is read once a request. */
  readonly clock: Clock;
  /** Takes each span, as JSON. */
  readonly emit: (span: string) => void;
  /** Of a provider, by its name. Undefined: it cannot be shown. */
  readonly addressOf: (provider: string) => ServerAddress | undefined;
}

/** An attempt that has ended. Times are milliseconds since 1970. */
interface AttemptSpan {
  spanId: string;
  readonly record: AttemptRecord;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** The data of the spans of one request. Times are milliseconds since 1970. */
interface RequestRecord {
  readonly exchange: Exchange;
  readonly context: TraceContext;
  readonly spanId: string;
  readonly attempts: readonly AttemptSpan[];
  /** Undefined: it never reached the providers. */
  readonly settlement: Settlement | undefined;
  /** When the first text, thinking or tool call came. Undefined: none came. */
  readonly firstTokenAt: number | undefined;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** The outcome of a request whose client has left, as in the records of attempts. */
const CANCELLED = "cancelled";

/** Begins to follow a request. A trace that its client does not record is handed on only. */
export function createRequestSpans(options: SpanOptions): Observe {
  return (exchange) => {
    if (!exchange) return undefined;
    const context = readContext(exchange.req.headers) ?? newContext(randomHex(16));
    return isSampled(context) ? follow(exchange, context, options) : handOn(context);
  };
}

const handOn = (context: TraceContext): RequestObserver => ({
  headers: () => contextHeaders(context, randomHex(8)),
});

function follow(exchange: Exchange, context: TraceContext, options: SpanOptions): RequestObserver {
  const { clock, emit } = options;
  const spanId = randomHex(8);
  const attempts: AttemptSpan[] = [];
  const began = clock.monotonic();
  const startedAt = clock.now();
  /** The time of the wall clock, as if nobody had set it since the start. */
  const now = (): number => startedAt + (clock.monotonic() - began);
  /** Of the attempt that has been sent. */
  let sentId: string | undefined;
  let wasAsked = false;
  let settlement: Settlement | undefined;
  let firstTokenAt: number | undefined;
  let endedAt: number | undefined;
  let isEmitted = false;

  /** A request that was asked at a provider is over when it is settled as well. */
  function emitIfOver(): void {
    if (isEmitted || endedAt === undefined || (wasAsked && !settlement)) return;
    isEmitted = true;
    const times = { startedAt, firstTokenAt, endedAt };
    const record = { exchange, context, spanId, attempts, settlement, ...times };
    emit(spanText(requestSpan(record)));
    for (const attempt of attempts) emit(spanText(attemptSpan(attempt, record, options)));
  }

  function end(): void {
    endedAt ??= now();
    emitIfOver();
  }

  return {
    // Other requests have no spans.
    asked: () => exchange.res.once("close", end),
    headers() {
      wasAsked = true;
      sentId = randomHex(8);
      return contextHeaders(context, sentId);
    },
    attempted(record) {
      const time = now();
      const attempt = {
        spanId: sentId ?? randomHex(8),
        record,
        startedAt: Math.max(startedAt, time - record.duration_ms),
        endedAt: time,
      };
      const previous = attempts.at(-1);
      if (sentId === undefined && previous && isSameCall(previous.record, record)) {
        // The first sending met a closed connection, so the provider has seen this one only.
        attempt.spanId = previous.spanId;
        previous.spanId = randomHex(8);
      }
      sentId = undefined;
      attempts.push(attempt);
    },
    settled(_opening, settled, durationMs) {
      const { firstTokenMs, status } = settled;
      settlement = settled;
      if (firstTokenMs !== null) firstTokenAt = now() - durationMs + firstTokenMs;
      // A response that waits behind another one gets no event when the client leaves.
      if (status === CANCELLED) end();
      else emitIfOver();
    },
  };
}

/** Whether a request was sent again on a new connection, with the headers of before. */
const isSameCall = (before: AttemptRecord, after: AttemptRecord): boolean =>
  before.model === after.model &&
  before.outcome === "upstream_error" &&
  before.status === undefined;

function requestSpan(record: RequestRecord): Span {
  const { exchange, context, spanId, settlement, startedAt, endedAt } = record;
  const path = pathOf(exchange.req.url ?? "");
  return {
    context,
    spanId,
    parentId: context.parentId,
    kind: SERVER,
    name: `POST ${path}`,
    startedAt,
    endedAt,
    attributes: {
      ...httpAttributes(exchange, path),
      ...requestAttributes(exchange, settlement),
      ...(settlement && usageAttributes(settlement)),
    },
    isError: isFailure(errorCodeOf(exchange, settlement)),
  };
}

function httpAttributes({ req, res }: Exchange, path: string): Values {
  return {
    "http.request.method": "POST",
    "http.route": path,
    "url.path": path,
    "url.scheme": (req.socket as Partial<TLSSocket>).encrypted ? "https" : "http",
    "http.response.status_code": res.headersSent ? res.statusCode : undefined,
  };
}

function requestAttributes(exchange: Exchange, settlement: Settlement | undefined): Values {
  const { log, requestId } = exchange;
  const isCharged = settlement !== undefined && settlement.usageSource !== "none";
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": settlement?.provider,
    "gen_ai.request.model": log.model_requested,
    "gen_ai.response.model": settlement?.modelServed,
    "error.type": errorCodeOf(exchange, settlement),
    "chat_gateway.request_id": requestId,
    "chat_gateway.account": log.account,
    "chat_gateway.key_id": log.key_id,
    "chat_gateway.cost": isCharged ? settlement.cost : undefined,
    "chat_gateway.currency": isCharged ? settlement.currency : undefined,
  };
}

/** Undefined: the request was completed. */
function errorCodeOf(
  { log, cancel }: Exchange,
  settlement: Settlement | undefined,
): string | undefined {
  const code = settlement?.errorCode ?? log.error_code;
  if (code !== undefined) return code;
  const hasLeft = settlement
    ? settlement.status === CANCELLED
    : cancel.reason instanceof ClientGone;
  return hasLeft ? CANCELLED : undefined;
}

/** A client's mistake is no failure of the server, by the conventions for HTTP. */
const isFailure = (code: string | undefined): boolean =>
  Object.entries(ERRORS).some(([name, { status }]) => name === code && status >= 500);

const usageAttributes = ({ usage, usageSource, finishReason }: Settlement): Values => ({
  "gen_ai.usage.input_tokens": usageSource === "none" ? undefined : usage.prompt_tokens,
  "gen_ai.usage.output_tokens": usageSource === "none" ? undefined : usage.completion_tokens,
  "gen_ai.usage.cache_creation.input_tokens": usage.prompt_tokens_details.cache_write_tokens,
  "gen_ai.response.finish_reasons": finishReason === null ? undefined : [finishReason],
});

function attemptSpan(attempt: AttemptSpan, request: RequestRecord, options: SpanOptions): Span {
  const { record, spanId, startedAt, endedAt } = attempt;
  const { context, exchange, attempts, settlement, firstTokenAt } = request;
  const { outcome, provider, model } = record;
  // The figures of the last attempt are billed.
  const serves = attempt === attempts.at(-1) && Boolean(settlement?.modelServed);
  const serving = serves ? settlement : undefined;
  const server = options.addressOf(provider);
  const isCompleted = outcome === "completed";
  return {
    context,
    spanId,
    parentId: request.spanId,
    kind: CLIENT,
    name: `chat ${model}`,
    startedAt,
    endedAt,
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": provider,
      "gen_ai.request.model": model,
      "gen_ai.response.model": serving?.modelServed,
      "server.address": server?.address,
      "server.port": server?.port,
      "http.request.method": "POST",
      "http.response.status_code": record.status ?? (isCompleted ? 200 : undefined),
      "error.type": isCompleted ? undefined : outcome,
      "chat_gateway.request_id": exchange.requestId,
      ...(serving && usageAttributes(serving)),
    },
    // The moment is known to the millisecond, and lies within the attempt.
    firstTokenAt:
      serving && firstTokenAt !== undefined
        ? Math.min(endedAt, Math.max(startedAt, firstTokenAt))
        : undefined,
    isError: !isCompleted && outcome !== CANCELLED,
  };
}
