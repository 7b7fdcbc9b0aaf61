// The head of a response: status line and header fields, checked and parsed. Refuses whatever the
// standard leaves to the recipient: response splitting exploits that two parties read one message
// differently. Sections are those of RFC 9112, unless stated otherwise.
import type { UpstreamHeaders } from "../../../core/upstream/transport.ts";

/** The bytes are not a response that can be understood in only one way. */
export class MalformedResponse extends Error {
  readonly code = "EPROTO";
}

export interface ResponseHead {
  /** From 100 to 999. */
  readonly status: number;
  /** Repeated fields are one list, except those in SINGLE_FIELDS: their first line counts. */
  readonly headers: UpstreamHeaders;
  /**
   * The number of bytes in the body; Infinity: it ends with the connection; "chunked": its coding
   * marks its end; null: the response has no body.
   */
  readonly body: number | "chunked" | null;
  /**
   * How many milliseconds the connection can be kept for another request. 0: the server closes it
   * after this response.
   */
  readonly idleMs: number;
}

/**
 * How long an idle connection is kept in milliseconds if the server says nothing. Many servers of
 * models are Node or Uvicorn, which close after 5 s: a request sent at that moment would be lost.
 */
const IDLE_MS = 4_000;
/** Subtracted from the server's idle time, which began when the server sent the response. */
const EARLIER_MS = 1_000;
/** The longest idle time that is accepted from a server. */
const MAX_IDLE_MS = 600_000;

// RFC 9110: the characters of names (section 5.6.2) and of values (section 5.5).
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const TEXT = "[\\t\\x20-\\x7e\\x80-\\xff]*";
/** Section 5: no blank before the colon, and no continuation lines (section 5.2). */
const FIELD_LINE = `${TOKEN}:${TEXT}\\r\\n`;
/** Section 4: the status line. All of these expressions take linear time. */
const HEAD = new RegExp(`^HTTP/1\\.([01]) ([1-9][0-9][0-9])(?: ${TEXT})?\\r\\n(?:${FIELD_LINE})*$`);
/** Section 7.1.2: a trailer field, which is discarded. Fields that frame a body are refused. */
const TRAILER = new RegExp(`^(?!content-length:|transfer-encoding:)${FIELD_LINE}$`, "i");
/** Sections 7.1 and 7.1.1: the size of a chunk, and its extensions, which are ignored. */
const CHUNK_LINE = new RegExp(
  `^[0-9A-Fa-f]{1,12}(?:;${TOKEN}(?:=(?:${TOKEN}|"[\\t\\x20!#-[\\]-~]*"))?)*\\r\\n$`,
);

/** Section 5.1 allows tabs around these values. Parsers differ there, so they are refused. */
const FRAMING_WITH_TAB = /\r\n(?:content-length|transfer-encoding):[^\r]*\t/i;

/** Section 9.6. Text that only resembles it also ends the connection, which is harmless. */
const CLOSE = /\bclose\b/i;
/** Appendix C.2.2: exactly this member of the list. */
const KEEP_ALIVE = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;

/** If one of these is repeated, the first line counts. Other repeated fields become one list. */
const SINGLE_FIELDS: ReadonlySet<string> = new Set(["content-type", "retry-after"]);

/** Parses a head, including the line end of its last line. Throws a MalformedResponse. */
export function parseHead(text: string): ResponseHead {
  const match = HEAD.exec(text);
  if (!match) throw new MalformedResponse("a malformed status line or header");
  const isVersion10 = match[1] === "0";
  const status = Number(match[2]);
  const fields = fieldsIn(text);
  if (text.includes("\t") && FRAMING_WITH_TAB.test(text))
    throw new MalformedResponse("a tab in Content-Length or Transfer-Encoding");
  const body = framing(status, isVersion10, fields);
  const connection = fields.get("connection") ?? "";
  // Section 9.3: in HTTP/1.1 keep-alive is the default; in HTTP/1.0 it must be stated.
  const isKept = !CLOSE.test(connection) && (!isVersion10 || KEEP_ALIVE.test(connection));
  const headers = { get: (name: string) => fields.get(name.toLowerCase()) ?? null };
  return { status, headers, body, idleMs: isKept && body !== Infinity ? idleTime(fields) : 0 };
}

function idleTime(fields: ReadonlyMap<string, string>): number {
  const hint = /\btimeout=([0-9]{1,6})\b/i.exec(fields.get("keep-alive") ?? "");
  if (!hint) return IDLE_MS;
  return Math.max(0, Math.min(Number(hint[1]) * 1_000 - EARLIER_MS, MAX_IDLE_MS));
}

/** Section 6.3, in its order, but stricter: messages in which it suspects an attack are refused. */
function framing(
  status: number,
  isVersion10: boolean,
  fields: ReadonlyMap<string, string>,
): ResponseHead["body"] {
  const coding = fields.get("transfer-encoding");
  const length = fields.get("content-length");
  if (coding !== undefined) {
    if (length !== undefined)
      throw new MalformedResponse("both Transfer-Encoding and Content-Length");
    if (isVersion10) throw new MalformedResponse("Transfer-Encoding in HTTP/1.0 (section 6.1)");
    // No other coding was asked for, and this client could not undo it.
    if (coding.toLowerCase() !== "chunked") throw new MalformedResponse("a transfer coding");
  }
  // A repeated length is a list by now, not a number. More digits could not be counted exactly.
  if (length !== undefined && !/^[0-9]{1,15}$/.test(length))
    throw new MalformedResponse("a malformed Content-Length");
  if (status < 200 || status === 204 || status === 304) return null;
  if (coding !== undefined) return "chunked";
  return length === undefined ? Infinity : Number(length);
}

/** By field name in lower case. RFC 9110, section 5.3: repeated fields are one list. */
function fieldsIn(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split("\r\n").slice(1, -1)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = trimmed(line.slice(colon + 1));
    const before = fields.get(name);
    if (before === undefined) fields.set(name, value);
    else if (!SINGLE_FIELDS.has(name)) fields.set(name, `${before}, ${value}`);
  }
  return fields;
}

/** Removes spaces and tabs around a value (section 5.1), but no other white space. */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;

/** The size that the line before a chunk states. Throws a MalformedResponse. */
export function parseChunkLine(line: string): number {
  if (!CHUNK_LINE.test(line)) throw new MalformedResponse("a malformed chunk size");
  return Number.parseInt(line, 16); // it stops at the first extension
}

/** Throws a MalformedResponse if the line is not a trailer field. */
export function checkTrailer(line: string): void {
  if (!TRAILER.test(line)) throw new MalformedResponse("a malformed trailer");
}
