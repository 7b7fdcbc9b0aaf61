// Reads server-sent events from bytes in pieces of any size. It follows the WHATWG HTML standard
// (9.2.6), except that the last event may lack its blank line, which some providers forget, and
// that errors outside `data` are read. Only `data` is kept: the JSON of every provider names its
// own event type.
import { StringDecoder } from "node:string_decoder";

/** How the bytes of a stream are cut into events. */
export interface Framing {
  /** The media type of the stream, in lower case. Requests ask for it, and replies must have it. */
  readonly mediaType: string;
  /** Creates the reader of one stream. */
  createReader(): EventReader;
}

export interface EventReader {
  /**
   * Returns the text of each event that these bytes complete. Throws a RangeError if an event is
   * too large, and another error if the bytes are not in this format.
   */
  push(bytes: Uint8Array): string[];
  /** Returns the events that the end of the stream completes. Throws as `push` does. */
  end(): string[];
}

/** Server-sent events as the framing of a stream. */
export const serverSentEvents: Framing = {
  mediaType: "text/event-stream",
  createReader: () => createEventReader(),
};

/**
 * A line of an error outside `data`. Gemini breaks off a stream with JSON without a field name, and
 * older servers of llama.cpp have a field of their own.
 */
const OUTSIDE = /^(error:)?\s*["{}[\]]/;

/**
 * `maxChars` bounds an unfinished event, field names included, so that a provider that never ends
 * an event cannot fill the memory.
 */
export function createEventReader(maxChars = 16 * 1024 * 1024): EventReader {
  const decoder = new StringDecoder("utf8");
  /** Dropped from the start of the next text: a byte order mark at first, then LF after CR. */
  let ignoredStart = "\ufeff";
  /** The unfinished line. V8 appends to it without copying, so small pieces take linear time. */
  let line = "";
  /** The data lines of the unfinished event. */
  let data: string[] = [];
  /** Its lines outside `data`. They count only if it has no data. */
  let outside: string[] = [];
  /** The length of all these lines with their field names, in characters. */
  let size = 0;

  function read(text: string): string[] {
    if (text === "") return [];
    const events: string[] = [];
    const lines = (text[0] === ignoredStart ? text.slice(1) : text).split(/\r\n|\n|\r/);
    ignoredStart = text.endsWith("\r") ? "\n" : "";
    lines[0] = line + lines[0];
    line = lines.pop()!;
    for (const whole of lines) {
      if (whole === "") endEvent(events);
      else addLine(whole);
    }
    // Return complete events first. If the unfinished one is too large, the next call throws.
    if (events.length === 0 && line.length + size > maxChars)
      throw new RangeError(`an event of more than ${maxChars} characters`);
    return events;
  }

  function addLine(whole: string): void {
    if (whole.startsWith("data:") || whole === "data")
      data.push(whole.slice(whole[5] === " " ? 6 : 5));
    else if (OUTSIDE.test(whole)) outside.push(whole.replace(/^error:/, ""));
    else return;
    size += whole.length;
  }

  /** The standard ignores events without data. */
  function endEvent(events: string[]): void {
    const event = data.join("\n") || outside.join("\n");
    if (event !== "") events.push(event);
    data = [];
    outside = [];
    size = 0;
  }

  return {
    push: (bytes: Uint8Array): string[] => read(decoder.write(bytes)),
    end: (): string[] => read(`${decoder.end()}\n\n`),
  };
}
