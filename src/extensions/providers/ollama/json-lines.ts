// Lines of JSON as the framing of a stream: each line is an event.
import { StringDecoder } from "node:string_decoder";
import type { EventReader, Framing } from "../../../core/http/event-reader.ts";

/** The most characters of a line. */
const MAX_CHARS = 16 * 1024 * 1024;

export const jsonLines: Framing = { mediaType: "application/x-ndjson", createReader };

function createReader(): EventReader {
  const decoder = new StringDecoder("utf8");
  let line = "";

  function read(text: string): string[] {
    const lines = text.split("\n");
    lines[0] = line + lines[0];
    line = lines.pop()!;
    // trim() also removes a byte order mark.
    const events = lines.map((text) => text.trim()).filter((text) => text !== "");
    if (events.length === 0 && line.length > MAX_CHARS)
      throw new RangeError(`a line of more than ${MAX_CHARS} characters`);
    return events;
  }

  return {
    push: (bytes) => read(decoder.write(bytes)),
    end: () => read(`${decoder.end()}\n`),
  };
}
