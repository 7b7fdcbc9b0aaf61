// Reads server-sent events: bytes in pieces of any size become the data of each event. It follows
// the WHATWG HTML standard (9.2.6), except that the last event may lack its blank line, which some
// providers forget. Only `data` is kept: the JSON of every provider names its own event type.
import { StringDecoder } from "node:string_decoder";

/** How the bytes of a stream are cut into events. */
export interface Framing {
  /** The media type of such a stream, in lower case. It is asked for, and demanded. */
  readonly mediaType: string;
  /** Creates the reader of one stream. */
  createReader(): EventReader;
}

export interface EventReader {
  /**
   * The events that these bytes end, each as a text. Throws a RangeError for one that is too large,
   * and another error for bytes that are no such stream.
   */
  push(bytes: Uint8Array): string[];
  /** The events that the end of the stream completes. Throws as `push` does. */
  end(): string[];
}

/** Server-sent events as the framing of a stream. */
export const serverSentEvents: Framing = {
  mediaType: "text/event-stream",
  createReader: () => createEventReader(),
};

/**
 * `maxChars` bounds the characters of an unfinished event, field names included, so that a provider
 * that never ends an event cannot fill the memory. Absent: 16 million.
 */
export function createEventReader(maxChars = 16 * 1024 * 1024) {
  const decoder = new StringDecoder("utf8");
  /** Ignored if the next text begins with it: a byte order mark at the start, LF after CR. */
  let ignoredStart = "\ufeff";
  /** The unfinished line. V8 appends to it without copying, so small pieces take linear time. */
  let line = "";
  /** The data lines of the unfinished event. */
  let data: string[] = [];
  /** The characters of these lines as they arrived. */
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
    // Complete events are returned first. An unfinished one that is too large fails the next call.
    if (events.length === 0 && line.length + size > maxChars)
      throw new RangeError(`an event of more than ${maxChars} characters`);
    return events;
  }

  function addLine(whole: string): void {
    if (!whole.startsWith("data:") && whole !== "data") return;
    data.push(whole.slice(whole[5] === " " ? 6 : 5));
    size += whole.length;
  }

  /** By the standard, an event without data is none. */
  function endEvent(events: string[]): void {
    const event = data.join("\n");
    if (event !== "") events.push(event);
    data = [];
    size = 0;
  }

  return {
    /** The data of the events that these bytes end. Throws a RangeError if one is too large. */
    push: (bytes: Uint8Array): string[] => read(decoder.write(bytes)),
    /** The data of the events that the end of the stream completes. Throws as `push` does. */
    end: (): string[] => read(`${decoder.end()}\n\n`),
  };
}
