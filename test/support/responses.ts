// Several hundred valid and invalid HTTP responses, made from templates, and their reading by two
// parsers: that of the pooled client, and Node's own (llhttp), which is the oracle. Many responses
// adapt public collections on request smuggling and response splitting. The expected readings are
// not here. No sockets are needed: node:http gets a stream that replays the bytes.

import http from "node:http";
import { Duplex } from "node:stream";
import { ResponseParser } from "../../src/extensions/providers/pooled-client/response-parser.ts";
import type { ResponseHead } from "../../src/extensions/providers/pooled-client/response-head.ts";

const FRAMED = "Content-Length: 2";
const whole = (start: string, fields: readonly string[], rest = "ok"): string =>
  [start, ...fields, "", rest].join("\r\n");
const ok = (...fields: string[]): string => whole("HTTP/1.1 200 OK", fields);
const chunked = (rest: string, ...fields: string[]): string =>
  whole("HTTP/1.1 200 OK", ["Transfer-Encoding: chunked", ...fields], rest);
const HELLO = "5\r\nhello\r\n";
const CHUNKS = `${HELLO}0\r\n\r\n`;

/** Texts that confuse parsers: control characters, blanks, separators, line ends, a digit. */
const ODD = [...'\0 \t \n \r \x7f \xa0 , ; " 0 x'.split(" "), ..." |\r\n|\r\n ".split("|")];

/** Copies of the text with each of ODD inserted at its ends and at the edges of its words. */
const spoilt = (text: string): string[] =>
  Array.from({ length: text.length + 1 }, (_, at) => at)
    .filter((at) => at === 0 || at === text.length || /^\w\W|^\W/.test(text.slice(at - 1)))
    .flatMap((at) => ODD.map((odd) => text.slice(0, at) + odd + text.slice(at)));

const statusLines = [
  ...spoilt("HTTP/1.1 200 OK"),
  ..."HTTP/1.1 200,HTTP/1.1 20 OK,HTTP/1.1 099 OK,HTTP/1.1 999 OK,HTTP/1.1 2x0 OK".split(","),
  ..."HTTP/1.0 200 OK,HTTP/1.2 200 OK,HTTP/2.0 200 OK,ICY 200 OK,RTSP/1.0 200 OK,H,".split(","),
];

const headerLines = [
  ...spoilt("X: 1"),
  ..."X:1,X:  1  ,X: \t 1 \t ,X:,X: a:b,:1,X,X(y): 1,X@y: 1,X/y: 1,!#$%&'*+.^_`|~-: 1".split(","),
  "X: 1\r\nx: 2\r\nX: 3",
  "Content-Type: text/plain\r\nContent-Type: text/html",
  "Retry-After: 1\r\nRetry-After: 2",
  "__proto__: 1\r\nconstructor: 2",
  `X: ${"y".repeat(1000)}`,
];

const framings = [
  ...spoilt("Content-Length: 2"),
  ..."2e0,0x2,two,,Infinity,NaN,\xb2,9007199254740993,18446744073709551618"
    .split(",")
    .map((length) => `Content-Length: ${length}`),
  "Content-Length: 0000000000000000000002",
  ...["2", "3"].map((other) => `Content-Length: 2\r\nX: 1\r\ncontent-length: ${other}`),
  "Content-Length: 2\r\nConnection: content-length",
];

const transferHeaders = [
  ...spoilt("Transfer-Encoding: chunked"),
  ..."Chunked,chunked;q=1,x-chunked,chunkedx,identity,gzip,chunke,hunked,chun ked,".split(","),
].map((coding) => (coding.includes(":") ? coding : `Transfer-Encoding: ${coding}`));

const codings = [
  ...["chunked, gzip", "gzip, chunked", "chunked, chunked", "chunked,", ",chunked", '"chunked"'],
  ...["chunked", "identity", "gzip"].flatMap((coding) => [
    `chunked\r\nTransfer-Encoding: ${coding}`,
    `${coding}\r\nTransfer-Encoding: chunked`,
    ...[0, 5, "x"].map((length) => `${coding}\r\nContent-Length: ${length}`),
  ]),
].map((coding) => `Transfer-Encoding: ${coding}`);

const sizes = [
  ...["5;a=b", '5;a="b"'].flatMap(spoilt),
  ..."5,05,5h,g,,4,6,a,5;;a,5;a=b;c,5;a=b;c=d,5;a = b,5,fffffffffffff".split(","),
  ...['5;a="b;c"', '5;a="b c"', '5;a="b\\"c"', '5;a="b', '5;a="b"c', '5;a="b";c="d"'],
  ...["00000000000000000005", "FFFFFFFFFFFFFFFF", "10000000000000005", "100000005"],
];

const chunkBodies = [
  ...sizes.map((size) => `${size}\r\nhello\r\n0\r\n\r\n`),
  ...spoilt("hello\r\n0\r\n\r\n").map((rest) => `5\r\n${rest}`),
  `${HELLO}${HELLO}0\r\n\r\n`,
  `A\r\n0123456789\r\n000\r\n\r\n`,
  "5\nhello\n0\n\n",
  "0\r\n\r\n",
];

const trailers = [
  ...headerLines,
  ..."Content-Length: 5,content-length: 0,Transfer-Encoding: chunked,Trailer: x".split(","),
  "X: 1\r\nContent-Length: 2",
];

const connections = [
  ..."close,Close,keep-alive,Keep-Alive,KEEP-ALIVE,x,upgrade,closed,not-close,,close x".split(","),
  "keep-alive, close",
  "close,x",
  "close\r\nConnection: keep-alive",
  "keep-alive\r\nConnection: close",
  "upgrade\r\nUpgrade: websocket",
];

const STATUSES = [100, 101, 102, 103, 150, 199, 200, 201, 204, 205, 206, 304, 307, 404, 500, 599];
const ENDINGS: readonly (readonly [field: string, rest: string])[] = [
  ["X: 1", ""],
  ["X: 1", "ok"],
  ["Content-Length: 0", ""],
  [FRAMED, "ok"],
  [FRAMED, ""],
  [FRAMED, "okay"],
  ["Transfer-Encoding: chunked", CHUNKS],
  ["Transfer-Encoding: chunked", ""],
];

const early = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
const next = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
const sequences = [
  `HTTP/1.1 100 Continue\r\n\r\n${ok(FRAMED)}`,
  `${early}${early}${early}${chunked(CHUNKS)}`,
  `HTTP/1.1 100 Continue\r\n${ok(FRAMED)}`,
  `HTTP/1.0 100 Continue\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 102 Processing\r\nTransfer-Encoding: chunked\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 101 Switching Protocols\r\n\r\n${ok(FRAMED)}`,
  `${ok(FRAMED)}${next}`,
  `${ok(FRAMED)}\r\n${next}`,
  `${ok(FRAMED)}x`,
  `${chunked(CHUNKS)}${next}`,
  `${chunked(CHUNKS)}\r\n`,
  `${whole("HTTP/1.1 204 No Content", [], "")}${next}`,
  `${whole("HTTP/1.1 304 Not Modified", [FRAMED], "")}${next}`,
  `${ok("Connection: close")}${next}`,
  "",
  "\r\n",
  "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
  "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok",
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok",
  "HTTP/1.1 200 OK\r\rContent-Length: 2\r\r\r\rok",
];

const complete = ok("Content-Type: application/json", FRAMED);
const inChunks = chunked(`${HELLO}3;a=b\r\nabc\r\n0\r\nX: 1\r\n\r\n`);
const truncated = [complete, inChunks].flatMap((text) =>
  Array.from({ length: text.length }, (_, length) => text.slice(0, length)),
);

const filler = (bytes: number): string => {
  const line = `X: ${"y".repeat(95)}`; // 100 bytes with its line end
  const rest = bytes - `HTTP/1.1 200 OK\r\n${FRAMED}\r\n\r\n`.length;
  const lines = Array.from({ length: Math.floor(rest / 100) - 1 }, () => line);
  return ok(FRAMED, ...lines, `X: ${"y".repeat(95 + (rest % 100))}`);
};
/** Responses with heads near the longest allowed. They have too many cuts to try them all. */
export const LONG_RESPONSES = [65_535, 65_536, 65_537, 70_000].map(filler);

/** All responses, each once, as Latin-1 text. */
export const RESPONSES: readonly string[] = [
  ...new Set([
    ...statusLines.map((line) => whole(line, [FRAMED])),
    ...headerLines.map((line) => ok(line, FRAMED)),
    ...framings.map((line) => ok(line)),
    ...[...transferHeaders, ...codings].map((line) => whole("HTTP/1.1 200 OK", [line], CHUNKS)),
    ...codings.map((line) => whole("HTTP/1.0 200 OK", [line], CHUNKS)),
    ...chunkBodies.map((body) => chunked(body)),
    ...trailers.map((line) => chunked(`${HELLO}0\r\n${line}\r\n\r\n`)),
    ...STATUSES.flatMap((status) =>
      ENDINGS.map(([field, rest]) => whole(`HTTP/1.1 ${status} X`, [field], rest)),
    ),
    ...["HTTP/1.1", "HTTP/1.0"].flatMap((version) =>
      connections.flatMap((connection) =>
        [FRAMED, "X: 1"].map((field) =>
          whole(`${version} 200 OK`, [`Connection: ${connection}`, field]),
        ),
      ),
    ),
    ...sequences,
    ...truncated,
  ]),
];

/** The reading of a response, or why it was refused. */
export type Reading =
  | {
      readonly status: number;
      /** The value of a header, by its lower-case name. Null: there is none. */
      readonly header: (name: string) => string | null;
      /** The lower-case names of all headers. Empty: the reader does not list them. */
      readonly names: readonly string[];
      readonly body: string;
      /** Whether the connection can be used again. */
      readonly kept: boolean;
    }
  | { readonly refused: string };

/** A connection on which a server sends these bytes and then ends the connection. */
function playing(bytes: Buffer): Duplex {
  let played = false;
  return new Duplex({
    read() {},
    write(_chunk, _encoding, done) {
      done();
      if (played) return;
      played = true;
      if (bytes.length > 0) this.push(bytes);
      this.push(null);
    },
  });
}

/** The reading by node:http, with a bound on heads well above the client's own. */
export function readByNode(text: string): Promise<Reading> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let response: http.IncomingMessage | undefined;
    let refused = "closed";
    const request = http.request({
      createConnection: () => playing(Buffer.from(text, "latin1")),
      headers: { Connection: "keep-alive" },
      maxHeaderSize: 1024 * 1024,
    });
    request.maxHeadersCount = 0; // no bound
    request.on("error", (error: NodeJS.ErrnoException) => (refused = error.code ?? error.message));
    request.on("response", (message) => {
      response = message;
      message.on("data", (piece: Buffer) => pieces.push(piece));
      message.on("error", () => undefined);
    });
    // The socket's end decides whether the response was complete. Its reader may still be reading.
    request.on("close", () => {
      if (!response?.complete) return resolve({ refused });
      if (response.readableEnded || response.destroyed) return resolve(readingOf(response));
      response.on("end", () => resolve(readingOf(response!)));
    });
    request.end();

    const readingOf = (message: http.IncomingMessage): Reading => ({
      status: message.statusCode!,
      header: (name) => headerOf(message.rawHeaders, name),
      names: message.rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
      body: Buffer.concat(pieces).toString("latin1"),
      kept: request.shouldKeepAlive,
    });
  });
}

/** The value of a header: a list of its lines, or the first line if it must not be repeated. */
function headerOf(raw: readonly string[], name: string): string | null {
  const values = raw.filter((_, at) => at % 2 === 1 && raw[at - 1]!.toLowerCase() === name);
  const isSingle = name === "content-type" || name === "retry-after";
  return values.length === 0 ? null : (isSingle ? values.slice(0, 1) : values).join(", ");
}

/** The reading by the pooled client, to which the bytes arrive in these pieces. */
export function readByClient(pieces: readonly Buffer[]): Reading {
  let head: ResponseHead | undefined;
  let body = "";
  let completed = 0;
  let hasSurplus = false;
  const parser = new ResponseParser({
    head: (parsed) => (head = parsed),
    body: (bytes) => (body += bytes.toString("latin1")),
    complete(surplus) {
      completed += 1;
      hasSurplus = surplus;
    },
  });
  try {
    for (const piece of pieces) {
      if (completed > 0) hasSurplus = true;
      else parser.push(piece);
    }
    if (completed === 0) parser.end();
  } catch (error) {
    return { refused: (error as Error).message };
  }
  if (completed !== 1 || !head) return { refused: "incomplete" };
  return {
    status: head.status,
    header: head.headers.get,
    names: [],
    body,
    kept: head.idleMs > 0 && !hasSurplus,
  };
}
