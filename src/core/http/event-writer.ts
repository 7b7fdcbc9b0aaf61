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

/**
 * Only CR and LF end a line of a stream, but clients that split lines as Python's `splitlines()`
 * does end one at these characters too, in the middle of the JSON.
 */
const LINE_SEPARATORS = /[\u0085\u2028\u2029]/g;
/** As JSON escapes it. */
const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

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

  /**
   * Begins the response. Returns the events as a chunk (RFC 9112, section 7.1) with its encoding:
   * Node writes a text with one byte per character as it is. A size of 0 would end the response.
   */
  function chunk(events: string): [text: string, encoding: "latin1" | "utf8"] {
    begin();
    const isAscii = Buffer.byteLength(events) === events.length;
    const text = isAscii ? events : events.replace(LINE_SEPARATORS, escaped);
    const size = isAscii ? text.length : Buffer.byteLength(text);
    const framed = isChunked && size > 0 ? `${size.toString(16)}\r\n${text}\r\n` : text;
    return [framed, isAscii ? "latin1" : "utf8"];
  }

  /** Sends a text that is not empty. Returns false if the socket's buffer is full. */
  const send = (events: string): boolean => res.write(...chunk(events));

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
      const [text, encoding] = chunk(events);
      res.end(isChunked ? `${text}0\r\n\r\n` : text, encoding);
    },
    /** Stops the keep-alive comments. Must be called however the stream ends. */
    release: (): void => silence.cancel(),
  };
}
