// The client's side of a reply. The status is fixed by the first bytes of a stream: an event or a
// keep-alive comment. Until then an error is the whole answer; after that it is an event of its
// own, and no `[DONE]` follows it. Another model may still be asked until the first content
// (routing/fallback.ts).
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
  /** Is sent before the next events after another attempt took over. */
  let joint = "";

  const hasLeft = (): boolean => cancel.reason instanceof ClientGone;

  /** The writer of the reply. Another attempt may continue with it. */
  function writerFor(serving: Serving): ReplyWriter {
    if (reply && serving === current) return reply;
    current = serving;
    log.model = serving.model.name;
    if (!reply) return api.writer(chat, serving, clock.now());
    const events = reply.resumed?.(serving.model.name, serving.model.fingerprint()) ?? "";
    if (streamed) joint = events;
    return reply;
  }

  // The provider may be read on without the client (extensions/routing/left-streams).
  cancel.onAbort(() => {
    request.releaseSlot();
    sink?.release();
  });

  /** Sends what a model says, as far as it can be sent before the end. */
  const deliver: Deliver = (parts, serving) => {
    if (hasLeft()) return undefined;
    reply = writerFor(serving);
    const added = reply.add(parts);
    if (added === "") return undefined; // a whole reply leaves at its end
    const events = joint + added;
    joint = "";
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
     * Sends the end of the reply once it is settled: every whole reply is in the ledger before a
     * client has it. Throws the ClientGone of a client that has left. Resolves when it was sent.
     */
    complete(
      { reading, finishReason }: RequestProgress,
      settle: () => Promise<void>,
    ): Promise<void> {
      if (hasLeft()) throw cancel.reason;
      const end = joint + reply!.end(reading.usage, finishReason!);
      const send = (): void => (sink ? sink.end(end) : sendJson(res, 200, end));
      return settle().then(send);
    },
    /**
     * After the commit point: sends the error as an event, and ends the stream. Before it: nothing,
     * the server answers.
     */
    fail(error: ApiError): void {
      if (res.headersSent) sink?.end(api.errorEvents(error, requestId, chat));
    },
    /** Releases timers. Called however the request ends. */
    release: (): void => sink?.release(),
  };
}
