// Server-sent events, read: bytes in any pieces to the data of each event, by the rules of the WHATWG HTML standard
// (9.2.6) with one exception: an event at the end of the stream counts although no blank line follows it: providers forget
// it. Only `data` is kept, no comments, `event`, `id` and `retry` (each dialect's JSON says itself what it is).
import { StringDecoder } from "node:string_decoder";

/** Bound of one event's size in characters: a provider that sends a line without end must not fill the memory. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;

export class EventTooLarge extends Error {}

export function createEventReader(maxChars = MAX_EVENT_CHARS) {
  const decoder = new StringDecoder("utf8");
  let line = ""; // the unfinished line; V8 appends to it without copying, so small pieces cost linear time
  let data: string | undefined; // the data lines of the unfinished event
  let afterCR = false; // the last text ended in CR: an LF that follows belongs to it
  let atStart = true;
  let events: string[] = [];
  let failure: EventTooLarge | undefined; // thrown only after the events before it have been given

  function endLine(text: string): void {
    if (text === "") {
      if (data) events.push(data); // by the standard an event without data is none
      data = undefined;
    } else if (text.startsWith("data")) {
      const value = text.startsWith("data: ") ? text.slice(6) : text.startsWith("data:") ? text.slice(5) : text === "data" ? "" : undefined;
      if (value !== undefined) data = data === undefined ? value : `${data}\n${value}`;
      if (data !== undefined && data.length > maxChars) failure ??= new EventTooLarge(`an event of more than ${maxChars} characters`);
    }
  }

  function read(text: string): void {
    let start = 0;
    if (atStart && text !== "") {
      if (text.charCodeAt(0) === 0xfeff) start = 1;
      atStart = false;
    }
    if (afterCR && text !== "") {
      if (text[start] === "\n") start += 1;
      afterCR = false;
    }
    let cr = text.indexOf("\r", start);
    for (;;) {
      const lf = text.indexOf("\n", start);
      if (cr !== -1 && cr < start) cr = text.indexOf("\r", start);
      if (lf === -1 && cr === -1) break;
      const end = cr !== -1 && (lf === -1 || cr < lf) ? cr : lf;
      endLine(line === "" ? text.slice(start, end) : line + text.slice(start, end));
      line = "";
      start = end + 1;
      if (end === cr) {
        if (start === text.length) afterCR = true;
        else if (text[start] === "\n") start += 1;
      }
    }
    line += text.slice(start);
    if (line.length > maxChars) failure ??= new EventTooLarge(`a line of more than ${maxChars} characters`);
  }

  function take(): string[] {
    const complete = events;
    events = [];
    if (failure && complete.length === 0) throw failure;
    return complete;
  }

  return {
    /** The data of the events that these bytes complete; throws EventTooLarge. */
    push(bytes: Uint8Array): string[] {
      if (failure) throw failure;
      read(decoder.write(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
      return take();
    },
    /** The event that the end of the stream completes, if there is one. */
    end(): string[] {
      read(decoder.end());
      if (line !== "") endLine(line);
      endLine("");
      line = "";
      return take();
    },
  };
}
