// Sends a reply to the client. The first bytes of a stream, an event or a keep-alive comment, fix
// its status. Before them, an error is the whole response. After them, it is an event of the
// stream, without a `[DONE]`. The commit point (contract.md "Commit point") is another moment: the
// first content, after which no other model is asked (routing/fallback.ts).
import { ClientGone } from "../http/cancel.ts";
import { createEventSink } from "../http/event-writer.ts";
import { sendJson } from "../http/responses.ts";
import type { ApiError } from "../openai/errors.ts";
import type { ReplyWriter } from "../openai/reply.ts";
import type { Deliver, RequestProgress } from "../routing/fallback.ts";
import type { Serving } from "../routing/attempt.ts";
import type { AcceptedRequest } from "./context.ts";

export function createDelivery(request: AcceptedRequest) {
  const { api, exchange, chat, config, observers, clock } = request;
  const { res, log, cancel, requestId } = exchange;
  const keepAlive = { ms: config.server.keep_alive_ms, events: api.keepAlive };
  const sink = chat.stream ? createEventSink(res, keepAlive, cancel, clock) : undefined;
  let reply: ReplyWriter | undefined;
  let lastWriteAt = 0;
  let streamed = false;
  /** The attempt whose parts are being delivered. */
  let current: Serving | undefined;
  /** Marks for the client where another attempt took over. Sent before the next events. */
  let resumption = "";

  const hasLeft = (): boolean => cancel.reason instanceof ClientGone;

  /** The writer of the reply. Another attempt may continue with it. */
  function writerFor(serving: Serving): ReplyWriter {
    if (reply && serving === current) return reply;
    current = serving;
    log.model = serving.model.name;
    if (!reply) return api.writer(chat, serving, clock.now());
    const events = reply.resumed?.(serving.model.name, serving.model.fingerprint()) ?? "";
    if (streamed) resumption = events;
    return reply;
  }

  // Do this as soon as the client leaves. The request may end later: an extension may read on from
  // the provider (extensions/routing/left-streams).
  cancel.onAbort(() => {
    request.releaseSlot();
    sink?.release();
  });

  /** Sends a batch of parts. A whole reply is sent at its end instead. */
  const deliver: Deliver = (parts, serving) => {
    if (hasLeft()) return undefined;
    reply = writerFor(serving);
    const added = reply.add(parts);
    if (added === "") return undefined;
    const events = resumption + added;
    resumption = "";
    const now = clock.monotonic();
    if (streamed)
      for (const observer of observers) observer.chunkSent?.(serving.model.name, now - lastWriteAt);
    lastWriteAt = now;
    streamed = true;
    return sink!.write(events);
  };

  return {
    deliver,
    /**
     * Settles the request, then sends the end of the reply: a complete reply is in the ledger
     * before the client has it. Throws a ClientGone if the client has left.
     */
    complete(
      { reading, finishReason }: RequestProgress,
      settle: () => Promise<void>,
    ): Promise<void> {
      if (hasLeft()) throw cancel.reason;
      const end = resumption + reply!.end(reading.usage, finishReason!);
      const send = (): void => (sink ? sink.end(end) : sendJson(res, 200, end));
      return settle().then(send);
    },
    /** Ends a stream that has begun with an error. If none has begun, the server answers. */
    fail(error: ApiError): void {
      if (res.headersSent) sink?.end(api.errorEvents(error, requestId, chat));
    },
    /** Releases timers. Called however the request ends. */
    release: (): void => sink?.release(),
  };
}
