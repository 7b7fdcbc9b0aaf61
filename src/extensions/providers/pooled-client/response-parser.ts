// Reads the responses on a connection from bytes that come in pieces of any size. It is a machine
// of steps: each takes what it can from a piece, and says which step comes next. Sections are those
// of RFC 9112.
import { checkTrailer, MalformedResponse, parseChunkLine, parseHead } from "./response-head.ts";
import type { ResponseHead } from "./response-head.ts";

/** Bytes of a response's head, those of the interim responses before it included. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Bytes of the line before a chunk, or of one trailer field. */
const MAX_LINE_BYTES = 4 * 1024;
/** Bytes of all trailer fields. */
const MAX_TRAILER_BYTES = 64 * 1024;

const CR = 0x0d;
const LF = 0x0a;
const HEAD_END = Buffer.from("\r\n\r\n");
const HEAD_START = "HTTP/1.";

/** The events of the parser, in this order. */
export interface ResponseEvents {
  /** A response has begun. Interim responses are not reported. */
  head(head: ResponseHead): void;
  /**
   * Bytes of its body: all that one piece holds. They lie in the memory that was given to `push`,
   * and are valid during this call only.
   */
  body(bytes: Buffer): void;
  /** The response is complete. `surplus`: the server has sent unexpected bytes after it. */
  complete(surplus: boolean): void;
}

export interface ResponseParser {
  /**
   * Reads the next bytes, and may move them within their memory. Throws a MalformedResponse, after
   * which the connection is of no use.
   */
  push(bytes: Buffer): void;
  /** The server has ended the connection: true if that completes a response. */
  end(): boolean;
}

/** Takes bytes from an index on, of which there is at least one. Returns the index of the rest. */
type Step = (bytes: Buffer, index: number) => number;

export function createResponseParser(events: ResponseEvents): ResponseParser {
  const head = createHeadReader();
  let step: Step = readHead;
  let afterBody: Step = isComplete;
  /** Bytes of the body or of the chunk that are still to come. */
  let remaining = 0;
  let trailerBytes = 0;
  /** Where the bytes of the body are that the present piece holds. */
  let bodyStart = 0;
  let bodyEnd = 0;

  function readHead(bytes: Buffer, index: number): number {
    const rest = head.read(bytes, index);
    if (head.text !== "") takeHead(parseHead(head.text));
    return rest;
  }

  function takeHead(parsed: ResponseHead): void {
    head.text = "";
    // RFC 9110, section 15.2: interim responses are skipped. A change of the protocol was not asked
    // for.
    if (parsed.status === 101) throw new MalformedResponse("a change of the protocol");
    if (parsed.status < 200 && !parsed.persistent)
      throw new MalformedResponse("an interim response that is the last one");
    if (parsed.status < 200) return;
    events.head(parsed);
    if (parsed.body === "chunked") {
      step = readChunkLine;
      return;
    }
    remaining = parsed.body ?? 0;
    afterBody = isComplete;
    step = remaining > 0 ? readBody : isComplete;
  }

  /**
   * Takes bytes of the body. They are moved to those before them, because what framed them is of no
   * interest to the reader.
   */
  function readBody(bytes: Buffer, index: number): number {
    const rest = Math.min(bytes.length, index + remaining);
    if (bodyEnd === 0) {
      bodyStart = index;
      bodyEnd = index;
    }
    if (bodyEnd < index) bytes.copyWithin(bodyEnd, index, rest);
    bodyEnd += rest - index;
    remaining -= rest - index;
    if (remaining === 0) step = afterBody;
    return rest;
  }

  // Section 7.1: a chunk is a line with its size, its bytes, and a line end.
  const readChunkLine = lineReader((line) => {
    remaining = parseChunkLine(line);
    afterBody = readChunkReturn;
    step = remaining > 0 ? readBody : readTrailer;
    trailerBytes = 0;
  });
  const readChunkReturn = byteReader(CR, () => {
    step = readChunkFeed;
  });
  const readChunkFeed = byteReader(LF, () => {
    step = readChunkLine;
  });

  const readTrailer = lineReader((line) => {
    if (line === "\r\n") {
      step = isComplete;
      return;
    }
    trailerBytes += line.length;
    if (trailerBytes > MAX_TRAILER_BYTES) throw new MalformedResponse("too many trailer fields");
    checkTrailer(line);
  });

  return {
    push(bytes) {
      let index = 0;
      bodyEnd = 0;
      while (index < bytes.length && step !== isComplete) index = step(bytes, index);
      if (bodyEnd > 0) events.body(bytes.subarray(bodyStart, bodyEnd));
      if (step !== isComplete) return;
      step = readHead;
      head.begin();
      events.complete(index < bytes.length);
    },
    end() {
      // Section 8: any other response is incomplete.
      const isWhole = step === readBody && remaining === Infinity;
      if (isWhole) events.complete(false);
      return isWhole;
    },
  };
}

/** Stands for the end of a response: there is nothing left to do. */
const isComplete: Step = (_bytes, index) => index;

/** A step that takes one certain byte. */
const byteReader =
  (expected: number, then: () => void): Step =>
  (bytes, index) => {
    if (bytes[index] !== expected) throw new MalformedResponse("a chunk longer than its size");
    then();
    return index + 1;
  };

/** A step that takes a line, with its end, over as many pieces as it comes in. */
function lineReader(then: (line: string) => void): Step {
  let line = "";
  return (bytes, index) => {
    const feed = bytes.indexOf(LF, index);
    const rest = feed === -1 ? bytes.length : feed + 1;
    line += bytes.toString("latin1", index, rest);
    if (line.length > MAX_LINE_BYTES) throw new MalformedResponse("a line that is too long");
    if (feed === -1) return rest;
    const whole = line;
    line = "";
    then(whole);
    return rest;
  };
}

interface HeadReader {
  /** The whole head, up to and with the end of its last line. Empty: it is not complete. */
  text: string;
  /** Takes bytes of the head. Returns the index of the rest. */
  read(bytes: Buffer, index: number): number;
  /** Another response may follow. */
  begin(): void;
}

function createHeadReader(): HeadReader {
  let allowed = MAX_HEAD_BYTES;
  /** A head that comes in several pieces is put together here. */
  let collected: Buffer | undefined;
  let size = 0;

  const reader: HeadReader = {
    text: "",
    read(bytes, index) {
      const end = collected ? -1 : bytes.indexOf(HEAD_END, index);
      if (end === -1) return collect(bytes, index);
      take(bytes.subarray(index, end + HEAD_END.length));
      return end + HEAD_END.length;
    },
    begin() {
      allowed = MAX_HEAD_BYTES;
    },
  };

  function take(head: Buffer): void {
    allowed -= head.length;
    if (allowed < 0) throw new MalformedResponse(`a head of more than ${MAX_HEAD_BYTES} bytes`);
    reader.text = head.toString("latin1", 0, head.length - 2);
  }

  /** Each byte is copied and searched once, so the smallest of pieces take linear time. */
  function collect(bytes: Buffer, index: number): number {
    collected ??= Buffer.allocUnsafe(MAX_HEAD_BYTES);
    const before = size;
    size += bytes.copy(collected, before, index);
    const seen = collected.subarray(0, size);
    const end = seen.indexOf(HEAD_END, Math.max(0, before - 3));
    if (end === -1) {
      if (size > allowed || size === MAX_HEAD_BYTES)
        throw new MalformedResponse(`a head of more than ${MAX_HEAD_BYTES} bytes`);
      checkBeginning(seen, before);
      return bytes.length;
    }
    const length = end + HEAD_END.length;
    collected = undefined;
    size = 0;
    take(seen.subarray(0, length));
    return index + length - before;
  }

  return reader;
}

/** Refuses at once what cannot become a head any more: its end might never come. */
function checkBeginning(seen: Buffer, before: number): void {
  const start = seen.toString("latin1", 0, HEAD_START.length);
  if (!HEAD_START.startsWith(start)) throw new MalformedResponse("an answer that is not HTTP/1");
  for (let at = seen.indexOf(LF, before); at !== -1; at = seen.indexOf(LF, at + 1))
    if (seen[at - 1] !== CR) throw new MalformedResponse("a line that ends without CR");
}
