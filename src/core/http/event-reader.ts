// Server-sent events, read: bytes in any pieces to the data of each event, by the WHATWG HTML standard (9.2.6), but that an event at
// the end counts without its blank line, which providers forget. Only `data` is kept: each dialect's JSON says itself what it is.
import { StringDecoder } from "node:string_decoder";

/** `maxChars` bounds an unfinished event, the names of its fields included: a provider that sends a line, or lines, without end must not
 * fill the memory. */
export function createEventReader(maxChars = 16 * 1024 * 1024) {
  const decoder = new StringDecoder("utf8");
  let skip = "\ufeff"; // does not count where the next text begins: a byte order mark at the start, an LF after a CR
  let line = ""; // the unfinished line; V8 appends to it without copying, so small pieces cost linear time
  let data: string[] = []; // the lines of data of the unfinished event
  let size = 0; // the characters of these lines as they came

  /** The data of the events that this text completes. */
  function read(text: string): string[] {
    if (text === "") return [];
    const events: string[] = [];
    const ended = (text[0] === skip ? text.slice(1) : text).split(/\r\n|\n|\r/);
    skip = text.endsWith("\r") ? "\n" : "";
    ended[0] = line + ended[0];
    line = ended.pop()!;
    for (const whole of ended) {
      if (whole.startsWith("data:") || whole === "data") {
        data.push(whole.slice(whole[5] === " " ? 6 : 5));
        size += whole.length;
      }
      if (whole !== "") continue;
      const event = data.join("\n");
      if (event !== "") events.push(event); // by the standard an event without data is none
      data = [];
      size = 0;
    }
    // What was complete before goes out first: it is too large still when more comes.
    if (events.length === 0 && line.length + size > maxChars)
      throw new RangeError(`an event of more than ${maxChars} characters`);
    return events;
  }

  return {
    /** The data of the events that these bytes complete; throws a RangeError. */
    push: (bytes: Uint8Array): string[] => read(decoder.write(bytes)),
    /** The event that the end of the stream completes, if there is one. */
    end: (): string[] => read(`${decoder.end()}\n\n`),
  };
}
