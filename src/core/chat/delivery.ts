// The client's side of a reply. The status is fixed by the first bytes of a stream: an event or a
// keep-alive comment. Until then an error is the whole answer; after that it is an event of its
// own, and no `[DONE]` follows it. Another model may still be asked until the first content
// (routing/fallback.ts).
import { Cancel, ClientGone } from "../http/cancel.ts";
import { createEventSink } from "../http/event-writer.ts";
import { sendJson } from "../http/responses.ts";
import { errorBody, type ApiError } from "../openai/errors.ts";
import {
  createChunkWriter,
  createWholeWriter,
  replyHead,
  type ReplyWriter,
} from "../openai/reply.ts";
import type { Deliver, RequestProgress } from "../routing/fallback.ts";
import type { Serving } from "../routing/attempt.ts";
import type { Model } from "../routing/model.ts";
import type { AcceptedRequest, ChatServices } from "./context.ts";
import type { LeftStream } from "./left-streams.ts";

export interface Delivery {
  /** Ends the provider's work, which may go on for a short time after the client left. */
  readonly upstream: Cancel;
  /** Sends what a model says, as far as it can be sent before the end. */
  readonly deliver: Deliver;
  /**
   * Sends the end of the reply once `settled` resolves: nobody has a whole reply that is not in the
   * ledger. Throws the ClientGone of a client that has left.
   */
  complete(progress: RequestProgress, settled: () => Promise<void>): Promise<void>;
  /** The HTTP status that the client sees if the request fails with this error now. */
  statusFor(error: ApiError): number;
  /**
   * After the commit point: sends the error as an event, and ends the stream. Before it: nothing,
   * the server answers.
   */
  fail(error: ApiError): void;
  /** Releases timers. Called however the request ends. */
  close(): void;
}

export function createDelivery(request: AcceptedRequest, services: ChatServices): Delivery {
  const { exchange, chat, config, startedAt } = request;
  const { res, log, cancel, requestId } = exchange;
  const { observer, clock, leftStreams } = services;
  const upstream = new Cancel();
  const sink = chat.stream
    ? createEventSink(res, config.server.keep_alive_ms, cancel, clock)
    : undefined;
  let reply: ReplyWriter | undefined;
  let lastWriteAt = 0;
  /** The model of which something was streamed. */
  let streamed: Serving | undefined;
  let leftStream: LeftStream | undefined;

  const hasLeft = (): boolean => cancel.reason instanceof ClientGone;
  const endUpstream = (): void => upstream.abort(cancel.reason);

  function begin({ name, fingerprint, reasoning }: Model): ReplyWriter {
    log.model = name;
    const head = replyHead(name, fingerprint(), clock.now());
    const options = {
      showReasoning: chat.showThinking && reasoning,
      showLogprobs: chat.logprobs,
      includeUsage: chat.includeUsage,
    };
    return sink ? createChunkWriter(head, options) : createWholeWriter(head, options);
  }

  /** Reads on a stream whose client has left, for its final figures. */
  function readOn({ model, meter }: Serving): void {
    request.releaseSlot();
    sink?.release();
    const endsAt = startedAt + config.timeouts.total_ms;
    leftStream = leftStreams.readOn({
      ms: Math.min(model.provider.timeouts.leave_ms, endsAt - clock.monotonic()),
      maxStreams: config.server.max_in_flight - request.inFlight(),
      end: endUpstream,
    });
    leftStream.observe([], meter);
  }

  cancel.onAbort(() => {
    if (streamed && hasLeft()) readOn(streamed);
    else endUpstream();
  });

  return {
    upstream,
    deliver(parts, serving) {
      if (hasLeft()) {
        leftStream?.observe(parts, serving.meter);
        return undefined;
      }
      reply ??= begin(serving.model);
      const events = reply.add(parts);
      if (events === "") return undefined; // a whole reply leaves at its end
      const now = clock.monotonic();
      if (streamed) observer.chunkSent?.(serving.model.name, now - lastWriteAt);
      lastWriteAt = now;
      streamed = serving;
      // A client that has left makes no more room, and the provider is read on without it.
      return sink!.write(events)?.catch((error) => {
        if (!hasLeft()) throw error;
      });
    },
    async complete({ reading, finishReason }, settled) {
      if (hasLeft()) throw cancel.reason;
      const end = reply!.end(reading.usage, finishReason!);
      await settled();
      if (sink) sink.end(end);
      else sendJson(res, 200, end);
    },
    statusFor: (error) => (res.headersSent ? 200 : error.status),
    fail(error) {
      if (res.headersSent) sink?.end(`data: ${JSON.stringify(errorBody(error, requestId))}\n\n`);
    },
    close() {
      leftStream?.forget();
      sink?.release();
    },
  };
}
