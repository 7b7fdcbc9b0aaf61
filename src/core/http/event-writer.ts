// Writes server-sent events to a client that asked for a stream. Status 200 and the headers are
// sent with the first event or keep-alive comment. A failure before that gets its own status.
//
// Each batch of events is one string in one write to the socket. Node would write three strings for
// a chunk (size, text, end), which takes longer than all other work on an event. So this file
// frames the chunks. It relies on two facts, which tests check on each line of Node: `writeHead`
// sets `chunkedEncoding` if the response is chunked, and Node does not alter the body once that
// property is false.
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Clock } from "../clock.ts";
import type { Cancel } from "./cancel.ts";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-cache, no-transform",
  "X-Accel-Buffering": "no",
};

/** `keepAlive.events`: events or comments that clients ignore, sent after `ms` without events. */
export function createEventSink(
  res: ServerResponse,
  keepAlive: { readonly ms: number; readonly events: string },
  cancel: Cancel,
  clock: Clock,
) {
  let silence = clock.after(keepAlive.ms, sendKeepAlive);
  /** False for HTTP/1.0, where the end of the connection ends the response. */
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

  /** Sends a text that is not empty. Returns false if the socket's buffer is full. */
  function send(text: string): boolean {
    begin();
    const size = Buffer.byteLength(text);
    return res.write(framed(text, size), encodingOf(text, size));
  }

  return {
    /**
     * Sends one or more whole events. Returns undefined, or a promise if the socket's buffer is
     * full. It resolves when the client has read enough, and rejects if `cancel` is aborted first.
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
    /** Stops the keep-alive comments. Must be called however the stream ends. */
    release: (): void => silence.cancel(),
  };
}

/** Node writes a text with one byte per character as it is, without encoding it. */
const encodingOf = (text: string, size: number): "latin1" | "utf8" =>
  size === text.length ? "latin1" : "utf8";
