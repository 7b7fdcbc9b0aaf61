// Reads the responses on a connection from bytes that arrive in pieces of any size. A state
// machine: each step consumes what it can from a piece, and sets the next step. Sections are those
// of RFC 9112.
import { checkTrailer, MalformedResponse, parseChunkLine, parseHead } from "./response-head.ts";
import type { ResponseHead } from "./response-head.ts";

/** The most bytes of a response's head, interim responses and trailers included. */
const MAX_HEAD_BYTES = 64 * 1024;
/** The most bytes of the line before a chunk, or of one trailer field. */
const MAX_LINE_BYTES = 4 * 1024;

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
  complete(surplus: boolean, head: ResponseHead): void;
}

/** Reads from an index on, where there is at least one byte. Returns the index of the rest. */
type Step = (bytes: Buffer, index: number) => number;

/** A step returns this if it needs more bytes to continue. */
const INCOMPLETE = -1;

export class ResponseParser {
  readonly #events: ResponseEvents;
  /** Undefined: the response is complete. */
  #step: Step | undefined = this.#readHead;
  /** Of the response that is being read, or was read last. */
  #head!: ResponseHead;
  /**
   * The beginning of a head or of a line. Each piece copies it once more until its end arrives. Its
   * bounds make that about as fast as reading the piece from the network.
   */
  #held: Buffer | undefined;
  #headBytesLeft = MAX_HEAD_BYTES;
  /** Bytes of the body or of the chunk that are still to come. */
  #remaining = 0;
  /** The index of the first byte of the body in the present piece. */
  #bodyStart = 0;
  /** The index after the last of these bytes. 0: the piece has none. */
  #bodyEnd = 0;

  constructor(events: ResponseEvents) {
    this.#events = events;
  }

  /**
   * Reads the next bytes, and may move them within their memory. Throws a MalformedResponse, after
   * which the connection cannot be used.
   */
  push(piece: Buffer): void {
    const bytes = this.#held ? Buffer.concat([this.#held, piece]) : piece;
    let index = 0;
    this.#bodyEnd = 0;
    while (this.#step && index < bytes.length) {
      const rest = this.#step(bytes, index);
      if (rest === INCOMPLETE) break;
      index = rest;
    }
    if (this.#bodyEnd > 0) this.#events.body(bytes.subarray(this.#bodyStart, this.#bodyEnd));
    const surplus = index < bytes.length;
    this.#held = this.#step && surplus ? Buffer.from(bytes.subarray(index)) : undefined;
    if (this.#step) return;
    this.#step = this.#readHead;
    this.#headBytesLeft = MAX_HEAD_BYTES;
    this.#events.complete(surplus, this.#head);
  }

  /** Call this when the server ends the connection. Returns whether that completes a response. */
  end(): boolean {
    // Section 8: any other response is incomplete.
    const isWhole = this.#step === this.#readBody && this.#remaining === Infinity;
    if (isWhole) this.#events.complete(false, this.#head);
    return isWhole;
  }

  #readHead(bytes: Buffer, index: number): number {
    // The held bytes were already searched.
    const searched = Math.max(index, (this.#held?.length ?? 0) - HEAD_END.length + 1);
    const end = bytes.indexOf(HEAD_END, searched);
    const rest = end === -1 ? bytes.length : end + HEAD_END.length;
    if (rest - index > this.#headBytesLeft)
      throw new MalformedResponse(`a head of more than ${MAX_HEAD_BYTES} bytes`);
    if (end === -1) {
      checkBeginning(bytes.subarray(index), searched - index);
      return INCOMPLETE;
    }
    this.#headBytesLeft -= rest - index;
    this.#takeHead(parseHead(bytes.toString("latin1", index, rest - 2)));
    return rest;
  }

  #takeHead(head: ResponseHead): void {
    // RFC 9110, section 15.2: interim responses are skipped, except 101: no change of protocol was
    // requested.
    if (head.status === 101) throw new MalformedResponse("a change of the protocol");
    if (head.status < 200 && head.idleMs === 0)
      throw new MalformedResponse("an interim response that is the last one");
    if (head.status < 200) return;
    this.#events.head(head);
    this.#head = head;
    this.#remaining = typeof head.body === "number" ? head.body : 0;
    if (head.body === "chunked") this.#step = this.#readChunkLine;
    else this.#step = this.#remaining > 0 ? this.#readBody : undefined;
  }

  /**
   * Consumes bytes of the body. Moves them over the framing, next to the previous bytes of the
   * body, so that the reader gets both at once.
   */
  #readBody(bytes: Buffer, index: number): number {
    const rest = Math.min(bytes.length, index + this.#remaining);
    if (this.#bodyEnd === 0) {
      this.#bodyStart = index;
      this.#bodyEnd = index;
    }
    if (this.#bodyEnd < index) bytes.copyWithin(this.#bodyEnd, index, rest);
    this.#bodyEnd += rest - index;
    this.#remaining -= rest - index;
    if (this.#remaining === 0)
      this.#step = this.#head.body === "chunked" ? this.#readChunkEnd : undefined;
    return rest;
  }

  // Section 7.1: a chunk is a line with its size, its bytes, and a line end.
  #readChunkLine(bytes: Buffer, index: number): number {
    const rest = lineEnd(bytes, index);
    if (rest === INCOMPLETE) return INCOMPLETE;
    this.#remaining = parseChunkLine(bytes.toString("latin1", index, rest));
    this.#step = this.#remaining > 0 ? this.#readBody : this.#readTrailer;
    return rest;
  }

  #readChunkEnd(bytes: Buffer, index: number): number {
    if (bytes.length < index + 2) return INCOMPLETE;
    if (bytes[index] !== CR || bytes[index + 1] !== LF)
      throw new MalformedResponse("a chunk longer than its size");
    this.#step = this.#readChunkLine;
    return index + 2;
  }

  #readTrailer(bytes: Buffer, index: number): number {
    const rest = lineEnd(bytes, index);
    if (rest === INCOMPLETE) return INCOMPLETE;
    const line = bytes.toString("latin1", index, rest);
    this.#headBytesLeft -= line.length;
    if (this.#headBytesLeft < 0) throw new MalformedResponse("too many trailer fields");
    if (line === "\r\n") this.#step = undefined;
    else checkTrailer(line);
    return rest;
  }
}

/** The index after the end of a line. */
function lineEnd(bytes: Buffer, index: number): number {
  const feed = bytes.indexOf(LF, index);
  const rest = feed === -1 ? bytes.length : feed + 1;
  if (rest - index > MAX_LINE_BYTES) throw new MalformedResponse("a line that is too long");
  return feed === -1 ? INCOMPLETE : rest;
}

/**
 * Refuses at once what can no longer become a head, because its end might never arrive. Lines that
 * end before the index `from` were already checked.
 */
function checkBeginning(head: Buffer, from: number): void {
  const start = head.toString("latin1", 0, HEAD_START.length);
  if (!HEAD_START.startsWith(start)) throw new MalformedResponse("an answer that is not HTTP/1");
  for (let at = head.indexOf(LF, from); at !== -1; at = head.indexOf(LF, at + 1))
    if (head[at - 1] !== CR) throw new MalformedResponse("a line that ends without CR");
}
