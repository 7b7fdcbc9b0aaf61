// One attempt at one provider: the request goes out, the reply comes in as batches of parts, and
// every failure becomes a ProviderError. Nothing is delivered before the first content; the first
// batch has everything that arrived up to the end of that read.
import type { Clock } from "../clock.ts";
import { describe } from "../diagnose.ts";
import { Cancel, ClientGone } from "../http/cancel.ts";
import type { AttemptObserver } from "../ledger/ledger.ts";
import type { Meter } from "../ledger/meter.ts";
import type { ChatRequest } from "../openai/request.ts";
import { addPiece } from "../pieces.ts";
import { ProviderError } from "../providers/provider-error.ts";
import { wholeReply } from "../providers/decoding.ts";
import type { Dialect, ProviderRequest } from "../providers/dialect.ts";
import { isLarge, MAX_REPLY_VALUES, parseText, type JsonBounds } from "../schema/large-json.ts";
import { parseJson } from "../schema/untrusted-json.ts";
import { runInTurns, runSync, waitForTurn, type Steps } from "../turns.ts";
import { bodyText, consume, readAll } from "../upstream/body.ts";
import type { UpstreamBody, UpstreamResponse } from "../upstream/transport.ts";
import {
  boundedParts,
  fromNetwork,
  guarded,
  tooLarge,
  upstreamError,
  type ReportBug,
} from "./attempt-errors.ts";
import { Deadlines } from "./deadlines.ts";
import type { FailedAttempt } from "./failure.ts";
import type { Model, Models, Provider, RoutingSettings } from "./model.ts";
import { EventDecoding, pump, type TakeParts } from "./stream.ts";

/** Reports an event of a model to the operator. `fields` has at least `level`. */
export type ReportEvent = (event: string, model: Model, fields: object) => void;

/** A model at work on a request. */
export interface Serving {
  /** The candidate, which its breaker has permitted. */
  readonly model: Model;
  /** The candidates that may be asked after it. */
  readonly others: Models;
  /** Counts what the model says in this attempt. */
  readonly meter: Meter;
  /** Called when the request is sent once more, because of an error or of a closed connection. */
  readonly resent?: ((error?: ProviderError) => void) | undefined;
  /** Called with the end of the provider's key that is used, where there are several. */
  readonly usesKey?: ((end: string) => void) | undefined;
}

/** The data that all attempts at one request share. */
export interface RequestContext {
  /** In force when the request began. A reload does not change it. */
  readonly config: RoutingSettings;
  /** Aborted when the client has left, or when the request's time is over. */
  readonly cancel: Cancel;
  /** The end of the request's time, by the monotonic clock. No retry begins after it. */
  readonly endsAt: number;
  /** The account whose request it is. */
  readonly account: string;
  /** Requests for a reply that this process has in progress, this one included. */
  readonly inFlight: () => number;
  /** Whether the work on the request is done in turns of the event loop. */
  readonly large: boolean;
  /** As Exchange.retain, for what is kept of replies. */
  readonly retain: (bytes: number) => void;
  /** Times deadlines, attempts and the waits between them. */
  readonly clock: Clock;
  /** Called for failed attempts, events that cannot be read, and bugs. */
  readonly report: ReportEvent;
  /** The observers of the request. */
  readonly observers: readonly AttemptObserver[];
  /** Chooses among the remaining candidates after these failures. Absent: all stay. */
  readonly remaining?: (models: Models, failures: readonly FailedAttempt[]) => Models;
  /** Makes an attempt: attempt(), or what extensions put around it. */
  readonly attempt: Attempt;
}

/** The data that the steps of an attempt share. */
interface Call {
  readonly serving: Serving;
  readonly chat: ChatRequest;
  /** Whether the provider is asked for a stream. */
  readonly stream: boolean;
  readonly dialect: Dialect;
  readonly context: RequestContext;
  /** Ends this attempt. */
  readonly cancel: Cancel;
  readonly deadlines: Deadlines;
  readonly reportBug: ReportBug;
}

const PERMANENT = { permanent: true };

/** Makes an attempt: as attempt(). */
export type Attempt = typeof attempt;

/**
 * Delivers what the model says until its reply is finished. Throws a ProviderError, or the reason
 * of `context.cancel`.
 */
export async function attempt(
  chat: ChatRequest,
  serving: Serving,
  deliver: TakeParts,
  context: RequestContext,
): Promise<unknown> {
  const { model, meter } = serving;
  const { provider } = model;
  const reportBug: ReportBug = (bug) =>
    context.report("internal_error", model, { level: "error", detail: describe(bug) });
  if (context.large) await waitForTurn(context.cancel);
  const stream = chat.stream || model.traits.stream_only;
  const upstreamChat = chat.stream === stream ? chat : { ...chat, stream };
  const dialect = guarded(reportBug, () => provider.dialectFor(context.account));
  // Permanent: writing the same request again would fail again.
  const request = guarded(reportBug, () => dialect.request(upstreamChat, model), PERMANENT);
  if (context.large) await waitForTurn(context.cancel);
  const cancel = new Cancel();
  const detach = context.cancel.onAbort(() => cancel.abort(context.cancel.reason));
  const deadlines = new Deadlines(context.clock, provider, (error) => cancel.abort(error));
  const call = { serving, chat, stream, dialect, context, cancel, deadlines, reportBug };
  const url = model.address(request.path, stream);
  let status: number | undefined;
  let refusalText = "";
  try {
    const response = await send(call, url, request);
    const { headers } = response;
    status = response.status;
    if (status < 300) return await readReply(call, response, deliver);
    meter.hasPrompt = false;
    const refusal = (body: unknown): ProviderError =>
      guarded(reportBug, () => dialect.refusal(response.status, headers, body), { status });
    deadlines.refused(() => refusal(""));
    // "" if it has none or breaks off: the status suffices.
    refusalText = response.body ? await readAll(response.body, 64 * 1024).catch(() => "") : "";
    // The text may be an HTML page or truncated JSON. Dialects find known phrases in it too.
    throw refusal(parseJson(refusalText) ?? refusalText);
  } catch (error) {
    cancel.abort(fromNetwork(error, status !== undefined)); // the first reason counts
    const { reason } = cancel;
    if (reason instanceof ProviderError)
      reason.answer ??= {
        status,
        path: redactedPath(url, provider.redact),
        // With a 2xx status only an error's message is kept: the rest of the answer is the reply.
        message: provider.redact?.(reason.detail.providerMessage ?? refusalText) || undefined,
      };
    throw reason;
  } finally {
    deadlines.clear();
    detach();
  }
}

/** The path of a URL, without the secrets in its segments. */
const redactedPath = (url: string, redact: Provider["redact"]): string | undefined =>
  redact && new URL(url).pathname.split("/").map(redact).join("/");

/**
 * Writes and sends the request. A function of its own, so that no closure of the attempt keeps the
 * request's text in memory.
 */
function send(
  { serving, stream, dialect, context, cancel, deadlines, reportBug }: Call,
  url: string,
  request: ProviderRequest,
): Promise<UpstreamResponse> {
  const { model, meter, resent } = serving;
  const { provider } = model;
  const { extra } = model.traits;
  const fields = Object.keys(extra).length > 0 ? { ...request.body, ...extra } : request.body;
  const headers = {
    Accept: stream ? dialect.framing.mediaType : "application/json",
    ...provider.headers,
    ...request.headers,
  };
  // Trace headers.
  for (const observer of context.observers) Object.assign(headers, observer.headers?.());
  return provider.transport(url, {
    method: "POST",
    redirect: "manual",
    headers,
    body: guarded(reportBug, () => bodyText(fields), PERMANENT),
    cancel,
    connectMs: provider.timeouts.connect_ms,
    sent() {
      meter.hasPrompt = true;
      deadlines.restart("first_token_ms");
    },
    resent,
    refused() {
      meter.hasPrompt = false;
    },
    renewing: () => deadlines.pause(),
  });
}

/** Reads the reply in whichever form it came. Throws a ProviderError if it cannot be read. */
function readReply(
  call: Call,
  { body, headers }: UpstreamResponse,
  deliver: TakeParts,
): Promise<unknown> {
  if (!body) throw upstreamError("the answer has no body");
  // Many servers send "none" with a stream: it keeps frameworks and proxies from compressing it.
  if (!/^(identity|none)?$/i.test(headers.get("content-encoding") ?? ""))
    throw upstreamError("the answer is compressed although identity was asked for");
  const mediaType = headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  const { dialect } = call;
  if (mediaType === dialect.framing.mediaType) return readStream(call, body, deliver);
  if (mediaType === "application/json") return readWhole(call, body, deliver);
  throw upstreamError("the answer does not have the content type that was asked for");
}

/** Reads a reply that comes as one JSON document. */
function readWhole(
  { serving: { model, meter }, chat, dialect, context, cancel, deadlines, reportBug }: Call,
  body: UpstreamBody,
  deliver: TakeParts,
): Promise<unknown> {
  const { maxReplyBytes, jsonExcess } = model.provider;
  const pieces: Uint8Array[] = [];
  let size = 0;

  function take(bytes: Uint8Array): void {
    size += bytes.length;
    if (size > maxReplyBytes) throw tooLarge(`a reply of more than ${maxReplyBytes} bytes`);
    addPiece(pieces, bytes);
    context.retain(bytes.length);
    deadlines.restart("idle_ms");
  }
  function deliverAll(json: unknown): Promise<unknown> | undefined {
    if (cancel.aborted) throw cancel.reason;
    const parts = guarded(reportBug, () => wholeReply(dialect, json, model, chat.native));
    for (const part of boundedParts(parts)) meter.observe(part);
    return deliver(parts);
  }
  return consume(body, take, () => {
    deadlines.pause(); // The body is complete. Parsing it may take several turns.
    const text = Buffer.concat(pieces).toString();
    const steps = replyJson(text, { jsonExcess, retain: context.retain });
    return isLarge(text) ? runInTurns(steps, cancel).then(deliverAll) : deliverAll(runSync(steps));
  });
}

/**
 * Reads a reply that comes as a stream. If the client wants it whole, it is delivered at its end.
 */
async function readStream(
  { serving: { model, meter }, chat, dialect, context, cancel, deadlines, reportBug }: Call,
  body: UpstreamBody,
  deliver: TakeParts,
): Promise<void> {
  const { maxReplyBytes, timeouts, jsonExcess } = model.provider;
  const decoder = guarded(reportBug, () => dialect.decoder(model, chat.native));
  const decoding = new EventDecoding(decoder, { meter, reportBug, jsonExcess });
  try {
    await pump(body, decoding, {
      events: dialect.framing.createReader(),
      cancel,
      deadlines,
      clock: context.clock,
      deliver: chat.stream ? deliver : undefined,
      maxBytes: maxReplyBytes,
      retain: context.retain,
      closingMs: timeouts.closing_ms,
    });
  } catch (error) {
    if (!decoding.finished || isStopped(context.cancel)) throw error;
    cancel.abort(error); // An error after the finish does not make the reply incomplete.
  } finally {
    const { unreadable: events } = decoding;
    if (events > 0) context.report("unreadable_events", model, { level: "warn", events });
  }
  if (!decoding.finished) throw upstreamError("the stream ended without a finish_reason");
  if (!chat.stream) await deliver(decoding.takeParts());
}

/** Whether a cause other than a timeout or the client ended the request, such as a shutdown. */
const isStopped = ({ aborted, reason }: Cancel): boolean =>
  aborted && !(reason instanceof ProviderError) && !(reason instanceof ClientGone);

function* replyJson(text: string, bounds: JsonBounds): Steps<unknown> {
  try {
    return yield* parseText(text.replace(/^\ufeff/, ""), MAX_REPLY_VALUES, bounds);
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(`a reply with ${error.message}`);
    throw upstreamError("the reply is not JSON", error);
  }
}
