// One attempt at one provider: the request out, the reply in as batches of parts, deadlines, and every failure as a ProviderError. This
// is the only pump: bytes are pushed through the dialect as they come, one batch per read, and nothing is read while the client has no
// room for the batch before (backpressure). The first batch goes up to and with the first delta, or the end of a reply that has none.
import type { Meter } from "../ledger/meter.ts";
import { wholeReply } from "../providers/decoding.ts";
import { ProviderError, type ProviderAnswer } from "../providers/provider-error.ts";
import { refusal } from "../providers/refusal.ts";
import { consume, parseLarge, readAll } from "../http/body.ts";
import { Cancel } from "../http/cancel.ts";
import { createEventReader } from "../http/event-reader.ts";
import { ClientGone } from "../http/cancel.ts";
import { ConnectTimeout, type FetchResponse } from "../upstream/fetch.ts";
import { describe } from "../diagnose.ts";
import type { ChatRequest } from "../openai/request.ts";
import { parseJson } from "../schema/untrusted-json.ts";
import { jsonExcess, MAX_REPLY_VALUES } from "../schema/json-bounds.ts";
import type { Part } from "../openai/parts.ts";
import type { Model } from "./catalog.ts";
import { guardDialect, guarded } from "./guard.ts";
import { redactPath } from "./redact.ts";

/** What one event, or a whole reply, may say, and how many tool calls all of a reply: each becomes a chunk, and calls are remembered.
 * Providers say a few parts at a time; ten thousand are 3 MB of chunks. */
const MAX_PARTS = 10_000;
const MAX_ERROR_BYTES = 64 * 1024; // of the body of an error only the beginning is read
const REFUSAL_MS = 1_000; // how long the body of an error may take; the status says most of it, and must not be lost for one that never comes
export interface AttemptOptions {
  /** Aborted when the provider is to be cut: the client has gone, or the request's time is up, at `endsAt` of performance.now(); the
   * attempt throws its reason. */
  readonly cancel: Cancel;
  readonly endsAt: number;
  /** Whose request it is, and who is told what the operator should know of a model. */
  readonly account: string;
  readonly tell: (event: string, model: Model, words: object) => void;
  /** Is called when the request is sent once more because its pooled connection was already closed: what follows is another attempt. */
  readonly resent: () => void;
}
/** Takes a batch of what a provider says; the promise, if there is one, resolves when there is room for more. */
export type Deliver = (parts: readonly Part[]) => Promise<unknown> | undefined;
/** Delivers what the provider says, and tells the meter, until the reply is finished; throws a ProviderError, or the reason of `cancel`. */
export async function attempt(
  chat: ChatRequest,
  model: Model,
  meter: Meter,
  deliver: Deliver,
  { cancel, tell, account, resent }: AttemptOptions,
): Promise<void> {
  const { dialectFor, send, baseUrl, timeouts, attemptMs, redact, maxReplyBytes } = model.provider;
  const stream = chat.stream || model.traits.stream_only;
  const report = (bug: unknown) =>
    tell("internal_error", model, { level: "error", detail: describe(bug) });
  const dialect = guardDialect(dialectFor(account), report);
  const {
    path,
    body,
    headers: added,
  } = dialect.request(chat.stream === stream ? chat : { ...chat, stream }, model);
  const own = new Cancel();
  const forget = cancel.onAbort(() => own.abort(cancel.reason));
  const late = (name: string, ms: number) =>
    own.abort(new ProviderError("upstream_timeout", `${name} of ${ms} ms is over`));
  let deadline: { readonly name: string; readonly timer: NodeJS.Timeout } | undefined;
  let total =
    attemptMs === undefined ? undefined : setTimeout(late, attemptMs, "total_ms", attemptMs);
  let skipped = 0;
  let answeredStatus: number | undefined;
  let refusedText = ""; // the body of an answer other than 200
  try {
    const response = await post();
    answeredStatus = response.status;
    if (response.status !== 200) throw await refused(response);
    if (!response.body) throw new ProviderError("upstream_error", "the answer has no body");
    const mediaType =
      response.headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
    const encoding = response.headers.get("content-encoding")?.toLowerCase() ?? "identity";
    if (encoding !== "identity")
      throw new ProviderError(
        "upstream_error",
        "the answer is compressed although identity was asked for",
      );
    let whole: Part[] = [];
    if (stream && mediaType === "text/event-stream") {
      await streamed(
        response.body,
        chat.stream
          ? deliver
          : (batch) => {
              batch.forEach((part) => {
                whole.push(part);
              });
            },
      );
    } else if (mediaType === "application/json") {
      const pieces = await readAll(response.body, maxReplyBytes, () =>
        setDeadline("idle_ms", timeouts.idle_ms),
      );
      clearDeadline(); // it is all there; to read a large one takes more than a turn of the event loop
      const json = await readReply(pieces, maxReplyBytes);
      if (own.aborted) throw own.reason;
      whole = bounded(wholeReply(dialect, json, model));
      whole.forEach(meter.observe);
    } else
      throw new ProviderError(
        "upstream_error",
        "the answer has another content type than was asked for",
      );
    await deliver(whole);
  } catch (error) {
    own.abort(asFault(error)); // unless it has been: the first reason counts; whatever is left of the answer is not read
    const { reason } = own;
    if (reason instanceof ProviderError) reason.answer ??= answerOf(reason);
    throw reason;
  } finally {
    clearDeadline();
    clearTimeout(total);
    forget();
    if (skipped > 0) tell("unreadable_events", model, { events: skipped });
  }

  /** What the provider answered, if it did. Of a 200 only an error's message is told: all else in it is the reply. */
  function answerOf({ detail }: ProviderError): ProviderAnswer {
    const { pathname } = new URL(baseUrl + path);
    return {
      status: answeredStatus,
      path: redactPath(redact, pathname),
      message: redact(detail.providerMessage ?? refusedText) || undefined,
    };
  }

  /** One runs at a time. The same one again, as for every piece of a stream, has the same milliseconds, and only moves the timer that is there. */
  function setDeadline(name: string, ms: number): void {
    if (deadline?.name === name) {
      deadline.timer.refresh();
      return;
    }
    clearTimeout(deadline?.timer);
    deadline = { name, timer: setTimeout(late, ms, name, ms) };
  }
  function clearDeadline(): void {
    clearTimeout(deadline?.timer);
    deadline = undefined;
  }

  function post(): Promise<FetchResponse> {
    const accept = stream ? "text/event-stream" : "application/json";
    const ours = {
      "Content-Type": "application/json",
      Accept: accept,
      "Accept-Encoding": "identity",
      "User-Agent": "chat-gateway",
    };
    const headers = Object.assign(ours, model.provider.headers, added);
    // Written here, so that it is gone when it has been sent.
    const write = () => JSON.stringify({ ...body, ...model.traits.extra });
    const text = guarded(report, write, { permanent: true });
    const sent = () => setDeadline("first_token_ms", timeouts.first_token_ms);
    return send(baseUrl + path, {
      method: "POST",
      redirect: "manual",
      headers,
      body: text,
      cancel: own,
      connectMs: timeouts.connect_ms,
      sent,
      resent,
    });
  }

  async function refused({ status, headers, body }: FetchResponse): Promise<ProviderError> {
    clearDeadline(); // it has answered; what is still to come has a deadline of its own, at which the status alone tells
    clearTimeout(total);
    total = setTimeout(() => own.abort(refusal(status, headers, "")), REFUSAL_MS);
    const text = body
      ? await readAll(body, MAX_ERROR_BYTES).then(
          (pieces) => Buffer.concat(pieces).toString(),
          () => "",
        )
      : "";
    refusedText = text;
    // Of a page, or half of something, the words may still tell.
    return guarded(report, () => refusal(status, headers, parseJson(text) ?? text), { status });
  }

  async function streamed(body: AsyncIterable<Uint8Array>, deliver: Deliver): Promise<void> {
    const events = createEventReader();
    const decoder = dialect.decoder(model);
    const parts: Part[] = []; // still to be delivered
    let [begun, finished, ended] = [false, false, false];
    let broken = false; // after a fault only figures count, nothing more is delivered
    let size = 0;
    let calls = 0;
    /** Delivers what these events say. While there is no room for it the provider is not to blame for silence. */
    function take(list: readonly string[]): Promise<unknown> | undefined {
      let fault: unknown;
      let said = false;
      for (const data of list) {
        ended = data === "[DONE]";
        if (ended) break; // what follows is no part of the reply, however the bytes were cut
        try {
          const json = readEvent(data);
          if (json === undefined) {
            skipped += 1;
            continue;
          }
          for (const part of bounded(decoder.push(json))) {
            if (broken && part.type !== "usage") continue;
            meter.observe(part);
            parts.push(part);
            finished ||= part.type === "finish";
            said ||= part.type !== "usage";
            if (part.type === "tool_call") calls += 1;
            if (calls > MAX_PARTS) throw tooMuch(`more than ${MAX_PARTS} tool calls`);
          }
        } catch (error) {
          fault ??= error; // thrown after what came before it was delivered
          if (error instanceof ProviderError && error.usage)
            meter.observe({ type: "usage", usage: error.usage });
          broken = true;
          if (!finished && !(error instanceof ProviderError && error.cause === undefined)) break; // our own bug
        }
        ended = decoder.ended?.() === true; // asked after each event, so that it is the same event whatever the cut
        if (ended) break;
      }
      begun ||= said;
      const room = begun && parts.length > 0 ? deliver(parts.splice(0)) : undefined;
      room?.catch(() => undefined); // who waits for it hears of it all the same; after a fault, and after the end, nobody does
      if (fault !== undefined && !finished) throw fault;
      if (!room || ended) return renew(said);
      clearDeadline();
      return room.then(() => renew(true));
    }
    /** Until the first token nothing moves the deadline, comments least of all; after the end there is only so much to wait for, which
     * more words put off, of providers that say more than once that it is the end, and comments do not. */
    function renew(said: boolean): undefined {
      if (ended || !(finished ? said : begun)) return;
      setDeadline(
        finished ? "closing_ms" : "idle_ms",
        finished ? timeouts.closing_ms : timeouts.idle_ms,
      );
    }
    const error = await new Promise<void>((resolve, reject) => {
      // The built-in fetch says nothing of an abort that comes with the last bytes of a body.
      own.onAbort(() => ended || reject(own.reason as Error));
      const reading = consume(body, (bytes) => {
        size += bytes.length;
        if (!chat.stream && size > maxReplyBytes)
          throw tooMuch(`a reply of more than ${maxReplyBytes} bytes`);
        if (ended) {
          own.abort(); // more than the end: the connection is of no further use
          return undefined;
        }
        const room = take(events.push(bytes));
        if (!ended) return room;
        resolve();
        // Read to its end if that comes at once, so that the connection can be used again; else closed.
        const timer = setTimeout(() => own.abort(), timeouts.closing_ms);
        reading.catch(() => undefined).finally(() => clearTimeout(timer));
        return undefined;
      });
      reading.then(() => ended || take(events.end())).then(() => resolve(), reject);
    }).catch((thrown: unknown) => thrown);
    if (!finished)
      throw (
        error ?? new ProviderError("upstream_error", "the stream ended without a finish_reason")
      );
    if (error === undefined) return;
    // Whatever breaks after the end of the reply, the request's own time among it, takes nothing from it; nor does a client that leaves.
    const { reason } = cancel;
    const harmless = reason instanceof ProviderError || reason instanceof ClientGone;
    if (cancel.aborted && !harmless) throw error;
    own.abort(error);
  }
}

/** The fault of a provider that says more than there is a bound for. How much it says follows from what was asked for: log
 * probabilities of 20 tokens at each position. */
const tooMuch = (what: string): ProviderError =>
  new ProviderError("upstream_error", what, { fromContent: true });

/** The JSON of a whole reply; rejects with a ProviderError if it is none, or too much. */
async function readReply(pieces: readonly Uint8Array[], maxBytes: number): Promise<unknown> {
  const bytes = Buffer.concat(pieces);
  if (bytes.length > maxBytes) throw tooMuch(`a reply of more than ${maxBytes} bytes`);
  return parseLarge(bytes.toString(), MAX_REPLY_VALUES).catch((error: Error) => {
    if (error instanceof RangeError) throw tooMuch(`a reply with ${error.message}`);
    throw new ProviderError("upstream_error", "the reply is not JSON", { cause: error });
  });
}

/** The JSON of an event, undefined if it is none; throws a ProviderError if it is too much. */
function readEvent(data: string): unknown {
  const excess = jsonExcess(data, MAX_REPLY_VALUES);
  if (excess !== undefined) throw tooMuch(`an event with ${excess}`);
  return parseJson(data);
}

function bounded(parts: Part[]): Part[] {
  if (parts.length > MAX_PARTS) throw tooMuch(`more than ${MAX_PARTS} parts at once`);
  return parts;
}

/** Codes of a connection that was never made: nobody is there, as against somebody who broke off. */
const UNREACHABLE =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;

/** What the network said, as a fault. Anything that no network says is our own bug and stays what it is. */
function asFault(error: unknown): unknown {
  if (error instanceof ConnectTimeout)
    return new ProviderError("upstream_timeout", error.message, { cause: error });
  if (error instanceof RangeError)
    return new ProviderError("upstream_error", error.message, { cause: error });
  if (error instanceof ProviderError || !(error instanceof Error)) return error;
  // The built-in fetch wraps what happened in a TypeError; of several addresses tried, the first error tells.
  const inner = [error, error.cause, error instanceof AggregateError ? error.errors[0] : undefined];
  const code = inner
    .map((each) => (each as { code?: unknown } | undefined)?.code)
    .find((each) => typeof each === "string");
  if (typeof code !== "string" && error.message !== "fetch failed") return error;
  return new ProviderError(
    UNREACHABLE.test(String(code)) ? "model_unavailable" : "upstream_error",
    `the connection failed: ${code}`,
    { cause: error },
  );
}
