// Writes server-sent events: the response to a client that asked for a stream. Status 200 and the
// headers are sent with the first event or keep-alive comment. Until then a failure can still be
// answered with its own status.
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { systemClock } from "../clock.ts";
import type { Cancel } from "./cancel.ts";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-cache, no-transform",
  "X-Accel-Buffering": "no",
};

export interface EventSink {
  /**
   * Sends one or more whole events. Returns undefined if the client has room for more, else a
   * promise that resolves when it has. It rejects if `cancel` is aborted first.
   */
  write(events: string): Promise<unknown> | undefined;
  /** Sends the last events and ends the response. */
  end(events: string): void;
  /** Stops the keep-alive comments. It must be called in whatever way the stream ends. */
  release(): void;
}

/** After each `keepAliveMs` milliseconds of silence a comment is sent. */
export function createEventSink(
  res: ServerResponse,
  keepAliveMs: number,
  cancel: Cancel,
  clock = systemClock,
): EventSink {
  let silence = clock.after(keepAliveMs, keepAlive);

  function keepAlive(): void {
    silence = clock.after(keepAliveMs, keepAlive);
    if (!res.writableNeedDrain) begun().write(": keep-alive\n\n");
  }

  const begun = (): ServerResponse => (res.headersSent ? res : res.writeHead(200, HEADERS));

  return {
    write(events) {
      silence.refresh();
      const hasRoom = begun().write(events);
      return hasRoom ? undefined : once(res, "drain", { signal: cancel.signal });
    },
    end(events) {
      begun().end(events);
    },
    release: () => silence.cancel(),
  };
}
