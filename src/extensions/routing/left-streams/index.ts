// Reads on streams that their clients left after something of them was delivered. The provider has
// a short time (`leave_ms`), so that the finish and the usage that are on their way are still
// billed: leaving just before the end must not be cheaper than staying. Nothing of what comes is
// kept or delivered. The request's concurrency slot is free meanwhile; it is settled in the ledger
// at the end.
import { Cancel, ClientGone } from "../../../core/http/cancel.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import type { Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Serving } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";

/**
 * Characters of one stream that are read on: as much as sockets hold of a stream that was held up
 * by a client that did not read. A provider that sends more in so short a time has no end in sight.
 */
const MAX_READ_ON_CHARS = 16 * 1024 * 1024;

export function install(gateway: Installer): void {
  gateway.around(({ clock, current, on }) => {
    const leftStreams = createLeftStreams(clock);
    // Closed before the ledger, which waits for the settlements of these streams.
    on("close", leftStreams.close);
    return aroundStreams(leftStreams, () => current().config);
  });
}

/** All streams of one process that are read on. */
export interface LeftStreams {
  /**
   * Calls `end` after `ms` milliseconds, or when the gateway closes: at once if `ms` is not more
   * than 0, or if `maxStreams` are read on already. The result forgets a stream that has ended.
   */
  readOn(ms: number, maxStreams: number, end: () => void): () => void;
  /** Ends all streams. From now on none is read on. */
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

    /** Ends a stream that is read on once it has its final figures, or once too much has come. */
    function observe(parts: readonly Part[], { meter }: Serving): void {
      charsReadOn += charsIn(parts);
      if (meter.isFinal() || charsReadOn > MAX_READ_ON_CHARS) endUpstream();
    }
    function take(parts: readonly Part[], serving: Serving): Promise<unknown> | undefined {
      if (forget) observe(parts, serving);
      const room = deliver(parts, serving);
      if (isShown(parts, chat)) streamed = serving;
      // A client that has left makes no more room, and the provider is read on without it.
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
      const maxStreams = config().server.max_in_flight - context.inFlight();
      forget = leftStreams.readOn(ms, maxStreams, endUpstream);
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

/** The characters of parts, as far as there may be many. */
const charsIn = (parts: readonly Part[]): number =>
  parts.reduce((sum, part) => sum + ("text" in part ? part.text.length : 0), 0);

export function createLeftStreams(clock: Clock): LeftStreams {
  const ends = new Set<() => void>();
  let closed = false;

  return {
    readOn(ms, maxStreams, end) {
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
