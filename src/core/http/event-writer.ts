// Server-sent events, written: the answer to a client that asked for a stream. Status 200 and the headers wait for the
// first text or keep-alive comment, so that until then a failure can still be answered with its own status. WIRE.md 3.1, 3.2 and 3.4.
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Cancel } from "./cancel.ts";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-cache, no-transform",
  "X-Accel-Buffering": "no",
};

/** After `keepAliveMs` of silence a comment goes out. `cancel` ends the waiting for a client that has gone. */
export function createEventSink(res: ServerResponse, keepAliveMs: number, cancel: Cancel) {
  const begun = () => (res.headersSent ? res : res.writeHead(200, HEADERS));
  const silence = setInterval(
    () => res.writableNeedDrain || begun().write(": keep-alive\n\n"),
    keepAliveMs,
  );

  return {
    /** Sends one or more whole events. The promise, if there is one, resolves when the client has room for more. */
    write(events: string): Promise<unknown> | undefined {
      silence.refresh();
      return begun().write(events) ? undefined : once(res, "drain", { signal: cancel.signal });
    },
    end: (events: string) => {
      begun().end(events);
    },
    /** Stops the comments; to be called however the stream ends. */
    release: () => clearInterval(silence),
  };
}
