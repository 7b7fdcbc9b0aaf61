// When a client leaves during a stream, the gateway reads the provider's stream for a short time
// more (`leave_ms`), because the finish and the usage figures are usually on their way: leaving
// just before the end must not be cheaper than staying. Nothing that arrives then is kept or
// delivered. The concurrency slot is released at once; the request is settled at the end.
import { Cancel, ClientGone } from "../../../core/http/cancel.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import type { Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Serving } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";

/**
 * The most characters to read after the client has left. If the client did not read, socket buffers
 * may hold this much of its stream. A provider that sends more is not near the end of its reply.
 */
const MAX_READ_ON_CHARS = 16 * 1024 * 1024;

export function install(gateway: Installer): void {
  gateway.around(({ clock, current, on }) => {
    const leftStreams = createLeftStreams(clock);
    // Must close before the ledger does: the ledger waits for the settlements of these streams.
    on("close", leftStreams.close);
    return aroundStreams(leftStreams, () => current().config);
  });
}

/** The streams of one process that are read after their clients have left. */
export interface LeftStreams {
  /**
   * Calls `end` after `ms` milliseconds, or when the gateway closes. Calls it at once if `ms` is 0
   * or less, or if `maxStreams` are being read already. The caller must call the returned function
   * when the stream has ended.
   */
  add(ms: number, maxStreams: number, end: () => void): () => void;
  /** Ends all streams. Later calls of add() end theirs at once. */
  close(): void;
}

/**
 * Completes streams so that the provider is not cancelled at once when the client leaves after
 * something was streamed.
 */
export const aroundStreams =
  (leftStreams: LeftStreams, config: () => Pick<Config, "server">) =>
  (complete: Complete): Complete =>
  async (chat, candidates, deliver, context) => {
    if (!chat.stream) return complete(chat, candidates, deliver, context);
    const client = context.cancel;
    const upstream = new Cancel();
    let streamed: Serving | undefined;
    let forget: (() => void) | undefined;
    let charsReadOn = 0;
    const endUpstream = (): void => upstream.abort(client.reason);
    const hasLeft = (): boolean => client.reason instanceof ClientGone;

    /** Ends the stream once it has its final usage figures, or once too much has arrived. */
    function observe(parts: readonly Part[], { meter }: Serving): void {
      charsReadOn += charsIn(parts);
      const isFinal = meter.finishReason() !== null && meter.usage().source === "provider";
      if (isFinal || charsReadOn > MAX_READ_ON_CHARS) endUpstream();
    }
    function take(parts: readonly Part[], serving: Serving): Promise<unknown> | undefined {
      if (forget) observe(parts, serving);
      const room = deliver(parts, serving);
      if (isShown(parts, chat)) streamed = serving;
      // The socket of a client that has left never drains: that must not fail the request.
      return room?.catch((error) => {
        if (!hasLeft()) throw error;
      });
    }
    const detach = client.onAbort(() => {
      if (!streamed || !hasLeft()) {
        endUpstream();
        return;
      }
      const { leave_ms } = streamed.model.provider.timeouts;
      const ms = Math.min(leave_ms, context.endsAt - context.clock.monotonic());
      const others = context.inFlight() - 1;
      const maxStreams = config().server.max_in_flight - others;
      forget = leftStreams.add(ms, maxStreams, endUpstream);
      observe([], streamed);
    });
    try {
      return await complete(chat, candidates, take, { ...context, cancel: upstream });
    } finally {
      detach();
      forget?.();
    }
  };

/** Whether the client sees anything of these parts. */
const isShown = (parts: readonly Part[], { showThinking }: ChatRequest): boolean =>
  parts.some((part) => {
    if (part.type === "tool_call") return true;
    return "text" in part && part.text !== "" && (part.type !== "reasoning" || showThinking);
  });

/** The characters in the texts of parts. */
const charsIn = (parts: readonly Part[]): number =>
  parts.reduce((sum, part) => sum + ("text" in part ? part.text.length : 0), 0);

export function createLeftStreams(clock: Clock): LeftStreams {
  const ends = new Set<() => void>();
  let closed = false;

  return {
    add(ms, maxStreams, end) {
      if (closed || ms <= 0 || ends.size >= maxStreams) {
        end();
        return () => undefined;
      }
      const timer = clock.after(ms, end);
      ends.add(end);
      return () => {
        timer.cancel();
        ends.delete(end);
      };
    },
    close() {
      closed = true;
      for (const end of ends) end();
    },
  };
}
