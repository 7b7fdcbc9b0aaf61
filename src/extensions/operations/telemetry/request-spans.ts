// The spans of chat requests: one for the request, and one for each attempt at a provider. They are
// made when the request is over, from its settlement and its access record. They contain no message
// content, and no error messages of providers, since these may quote message content.
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../../core/clock.ts";
import type { AccessRecord, Exchange } from "../../../core/http/exchange.ts";
import { randomHex } from "../../../core/ids.ts";
import type { Observe } from "../../../core/extension/installer.ts";
import type { AttemptRecord, Settlement } from "../../../core/ledger/ledger.ts";
import type { RequestObserver } from "../../../core/observer.ts";
import { ERRORS } from "../../../core/openai/errors.ts";
import type { Provider } from "../../../core/routing/model.ts";
import { CLIENT, SERVER, spanText, type Span, type Values } from "./otlp.ts";
import {
  contextHeaders,
  isSampled,
  newContext,
  readContext,
  type TraceContext,
} from "./trace-context.ts";

export interface SpanOptions {
  /** Durations are monotonic; the wall clock is read once per request. */
  readonly clock: Clock;
  /** Receives each span, as JSON. */
  readonly emit: (span: string) => void;
  /** The models of the active configuration, by name. */
  readonly models: () => ReadonlyMap<string, { readonly provider: ServerOptions }>;
}

type ServerOptions = Pick<Provider, "baseUrl" | "redact">;

/** An attempt that has ended. Times are milliseconds since 1970. */
interface Attempt {
  readonly spanId: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly record: AttemptRecord;
}

/** Observes requests. A trace that its client does not sample is passed on, but not recorded. */
export const createRequestSpans =
  (options: SpanOptions): Observe =>
  (exchange) => {
    if (!exchange) return undefined;
    const context = readContext(exchange.req.headers) ?? newContext(randomHex(16));
    if (isSampled(context)) return recordSpans(exchange, context, options);
    return { headers: () => contextHeaders(context, randomHex(8)) };
  };

function recordSpans(
  exchange: Exchange,
  context: TraceContext,
  options: SpanOptions,
): RequestObserver {
  const { clock, emit } = options;
  const models = options.models();
  const spanId = randomHex(8);
  const startedAt = clock.now();
  const origin = clock.monotonic();
  /** The wall clock's time, unaffected by corrections of the clock since the start. */
  const now = (): number => startedAt + (clock.monotonic() - origin);
  const attempts: Attempt[] = [];
  /** The span id of the running attempt. Undefined: none is running. */
  let attemptId: string | undefined;
  let isAsked = false;
  let isOpened = false;
  let settlement: Settlement | undefined;
  let firstTokenAt: number | undefined;
  let accessRecord: AccessRecord | undefined;

  /** The request is over when it is answered and, if it was opened in the ledger, settled. */
  function emitIfOver(): void {
    if (!isAsked || !accessRecord || (isOpened && !settlement)) return;
    const caller = {
      "chat_gateway.request_id": exchange.requestId,
      "chat_gateway.account": accessRecord.account,
      "chat_gateway.key_id": accessRecord.key_id,
    };
    const facts = requestFacts(exchange, accessRecord, settlement);
    const own = { context, spanId, parentId: context.parentId, startedAt, endedAt: now() };
    emit(spanText({ ...own, ...facts, attributes: { ...facts.attributes, ...caller } }));
    for (const { record, ...frame } of attempts) {
      // Only the last attempt can have served, so only its span states the usage that is billed.
      // The request's span does not repeat it: readers add up all spans of a trace.
      const serves = record === attempts.at(-1)?.record && Boolean(settlement?.modelServed);
      const { attributes, ...rest } = attemptFacts(record, serves ? settlement : undefined);
      const span = { context, parentId: spanId, ...frame, ...rest };
      const more = { ...serverAttributes(models.get(record.model)?.provider), ...caller };
      const ownFirst = serves ? firstTokenAt : undefined;
      emit(spanText({ ...span, attributes: { ...attributes, ...more }, firstTokenAt: ownFirst }));
    }
  }

  return {
    // Only chat requests call this. Other requests have no spans.
    replyRequested() {
      isAsked = true;
    },
    opened() {
      isOpened = true;
    },
    headers() {
      attemptId = randomHex(8);
      return contextHeaders(context, attemptId);
    },
    attempted(record) {
      const endedAt = now();
      const began = Math.max(startedAt, endedAt - record.duration_ms);
      attempts.push({ spanId: attemptId ?? randomHex(8), startedAt: began, endedAt, record });
      attemptId = undefined;
    },
    settled(_opening, settled, durationMs) {
      const { firstTokenMs } = settled;
      settlement = settled;
      if (firstTokenMs !== null) firstTokenAt = now() - durationMs + firstTokenMs;
      emitIfOver();
    },
    responded(_route, record) {
      accessRecord = record;
      emitIfOver();
    },
  };
}

/** The part of a span that differs between requests and attempts. */
type Facts = Pick<Span, "kind" | "name" | "attributes" | "isError">;

function requestFacts(
  { req, res }: Exchange,
  { error_code, model_requested, path, status }: AccessRecord,
  settlement: Settlement | undefined,
): Facts {
  const isCancelled = status === 499 || settlement?.status === "cancelled";
  const error = settlement?.errorCode ?? error_code ?? (isCancelled ? "cancelled" : undefined);
  const isCharged = settlement !== undefined && settlement.usageSource !== "none";
  return {
    kind: SERVER,
    name: `POST ${path}`,
    attributes: {
      "http.request.method": "POST",
      "http.route": path,
      "url.path": path,
      "url.scheme": (req.socket as Partial<TLSSocket>).encrypted ? "https" : "http",
      "http.response.status_code": res.headersSent ? res.statusCode : undefined,
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": settlement?.provider,
      "gen_ai.request.model": model_requested,
      "gen_ai.response.model": settlement?.modelServed,
      "gen_ai.response.finish_reasons": finishReasons(settlement),
      "error.type": error,
      "chat_gateway.cost": isCharged ? settlement.cost : undefined,
      "chat_gateway.currency": isCharged ? settlement.currency : undefined,
    },
    // OpenTelemetry's conventions for HTTP: a 4xx status is no error of a server span.
    isError: Object.entries(ERRORS).some(([code, row]) => code === error && row.status >= 500),
  };
}

const finishReasons = (settlement: Settlement | undefined): string[] | undefined =>
  settlement?.finishReason ? [settlement.finishReason] : undefined;

const usageAttributes = ({ usage, usageSource }: Settlement): Values => ({
  "gen_ai.usage.input_tokens": usageSource === "none" ? undefined : usage.prompt_tokens,
  "gen_ai.usage.output_tokens": usageSource === "none" ? undefined : usage.completion_tokens,
  // Parts of these tokens. Each is absent if it is 0.
  "gen_ai.usage.cache_read.input_tokens": usage.prompt_cache_hit_tokens || undefined,
  "gen_ai.usage.cache_creation.input_tokens": usage.prompt_tokens_details.cache_write_tokens,
  "gen_ai.usage.reasoning.output_tokens":
    usage.completion_tokens_details.reasoning_tokens || undefined,
});

/** The provider's host, unless it contains a secret or no extension can redact secrets. */
function serverAttributes({ baseUrl = "", redact }: Partial<ServerOptions> = {}): Values {
  if (!redact || !URL.canParse(baseUrl)) return {};
  const { hostname, port, protocol } = new URL(baseUrl);
  if (hostname === "" || redact(hostname) !== hostname) return {};
  return {
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": Number(port || (protocol === "https:" ? 443 : 80)),
  };
}

/** `serving`: the settlement, if this attempt served. */
function attemptFacts(record: AttemptRecord, serving: Settlement | undefined): Facts {
  const { outcome, provider, model, status } = record;
  const isCompleted = outcome === "completed";
  return {
    kind: CLIENT,
    name: `chat ${model}`,
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": provider,
      "gen_ai.request.model": model,
      "gen_ai.response.model": serving?.modelServed,
      "gen_ai.response.finish_reasons": finishReasons(serving),
      "http.request.method": "POST",
      "http.response.status_code": status ?? (isCompleted ? 200 : undefined),
      "error.type": isCompleted ? undefined : outcome,
      ...(serving && usageAttributes(serving)),
    },
    isError: !isCompleted && outcome !== "cancelled",
  };
}
