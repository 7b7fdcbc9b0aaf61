// Writes server-sent events: the response to a client that asked for a stream. Status 200 and the
// headers are sent with the first event or keep-alive comment. Until then a failure can still be
// answered with its own status.
//
// Each batch of events leaves as one string in one write to the socket. Node would write a chunk as
// three (its size, its text, its end), which costs more than everything else that is done for an
// event. So the chunks are framed here. This relies on two things: `writeHead` decides whether the
// response is chunked and says so in `chunkedEncoding`, and once that is false Node passes the body
// on as it is. The tests look at the bytes, on each line of Node.
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Clock } from "../clock.ts";
import type { Cancel } from "./cancel.ts";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-cache, no-transform",
  "X-Accel-Buffering": "no",
};

/**
 * `keepAlive`: what is sent after so many milliseconds of silence. Whole events or comments that
 * mean nothing to the client.
 */
export function createEventSink(
  res: ServerResponse,
  keepAlive: { readonly ms: number; readonly events: string },
  cancel: Cancel,
  clock: Clock,
) {
  let silence = clock.after(keepAlive.ms, sendKeepAlive);
  /** False for a client of HTTP/1.0: the end of the connection ends the response. */
  let isChunked = false;

  function begin(): void {
    if (res.headersSent) return;
    res.writeHead(200, HEADERS);
    isChunked = res.chunkedEncoding;
    res.chunkedEncoding = false;
  }

  function sendKeepAlive(): void {
    silence = clock.after(keepAlive.ms, sendKeepAlive);
    if (!res.writableNeedDrain) send(keepAlive.events);
  }

  // A chunk of the chunked coding (RFC 9112, section 7.1). A size of 0 would end the response.
  const framed = (text: string, size: number): string =>
    isChunked && size > 0 ? `${size.toString(16)}\r\n${text}\r\n` : text;

  /** Sends a text that is not empty. Returns whether the client has room for more. */
  function send(text: string): boolean {
    begin();
    const size = Buffer.byteLength(text);
    return res.write(framed(text, size), encodingOf(text, size));
  }

  return {
    /**
     * Sends one or more whole events. Returns undefined if the client has room for more, else a
     * promise that resolves when it has. It rejects if `cancel` is aborted first.
     */
    write(events: string): Promise<unknown> | undefined {
      silence.refresh();
      return send(events) ? undefined : once(res, "drain", { signal: cancel.signal });
    },
    /** Sends the last events and ends the response. */
    end(events: string): void {
      begin();
      const size = Buffer.byteLength(events);
      const last = isChunked ? "0\r\n\r\n" : "";
      res.end(framed(events, size) + last, encodingOf(events, size));
    },
    /** Stops the keep-alive comments. It must be called in whatever way the stream ends. */
    release: (): void => silence.cancel(),
  };
}

/** A text of one byte a character can be written without being encoded. */
const encodingOf = (text: string, size: number): "latin1" | "utf8" =>
  size === text.length ? "latin1" : "utf8";
