// The cases of scripts/fuzz.ts: valid requests, and their mutations. The seed and the number of a
// case determine it, so a case that failed can be repeated.

import { createRandom } from "../../test/support/random.ts";
import { mutateJson, validRequest, type Random } from "./valid-requests.ts";

/** What a client does on one connection. */
export type Case = ReturnType<typeof makeCase>;

/** A request in its parts; `headers` are whole lines. */
interface Message {
  method: string;
  target: string;
  version: string;
  headers: string[];
  eol: string;
  body: Buffer;
  /** The status of the answer. Undefined: unknown. */
  status: number | undefined;
  admin: boolean;
}

/** Requests without a body. `key`: undefined if they need none. */
const PATHS: readonly [admin: boolean, target: string, key: string | undefined, status: number][] =
  [
    [false, "/healthz?probe=1", undefined, 200],
    [false, "/readyz", undefined, 200],
    [false, "/openapi.json", undefined, 200],
    [false, "/v1/models", "sk-demo", 200],
    [false, "/v1/models", "sk-other", 401],
    [false, "/v1/chat/completions", "sk-demo", 405],
    [false, "/nowhere", undefined, 404],
    [true, "/status", undefined, 200],
    [true, "/metrics", undefined, 200],
    [true, "/", undefined, 200],
    [true, "/costs?month=2026-11&by=day,model&skip=0", undefined, 200],
    [true, "/usage?month=2026-11&day=2026-11-30&account=%22", undefined, 200],
    [true, "/usage.csv?month=2026-11", undefined, 200],
    [true, "/trace?request_id=fuzz-7", undefined, 200],
    [true, "/costs?month=2026-13", undefined, 400],
    [true, "/trace?request_id=%ff&day=%00", undefined, 400],
    [true, "/try", undefined, 405],
  ];

function baseRequest(random: Random): Message {
  const { pick, between, random: chance } = random;
  const headers = ["Host: localhost"];
  if (chance() < 0.5) headers.push(`X-Request-Id: fuzz-${between(0, 999)}`);
  const head = { version: "HTTP/1.1", headers, eol: "\r\n", body: Buffer.alloc(0), admin: false };
  if (chance() < 0.3) {
    const [admin, target, key, status] = pick(PATHS);
    if (key !== undefined) headers.push(`Authorization: Bearer ${key}`);
    return { ...head, method: pick(["GET", "GET", "HEAD"]), target, status, admin };
  }
  headers.push("Authorization: Bearer sk-demo");
  headers.push(`Content-Type: application/json${pick(["", "; charset=utf-8"])}`);
  if (chance() < 0.05) headers.push("Expect: 100-continue");
  const [target, asked] = validRequest(random);
  const isMutated = chance() < 0.55;
  const text = isMutated ? mutateJson(asked, random) : Buffer.from(JSON.stringify(asked));
  const isChunked = chance() < 0.25;
  headers.push(isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${text.length}`);
  const body = isChunked ? chunked(piecesOf(text, between(0, 5), random)) : text;
  // The status for a mutated body is unknown, because it may still be valid.
  return { ...head, method: "POST", target, body, status: isMutated ? undefined : 200 };
}

const chunked = (pieces: readonly Buffer[]): Buffer =>
  Buffer.concat([
    ...pieces.flatMap((piece) => [
      Buffer.from(`${piece.length.toString(16)}\r\n`),
      piece,
      Buffer.from("\r\n"),
    ]),
    Buffer.from("0\r\n\r\n"),
  ]);

/** Cuts bytes at `cuts` random places, and drops empty pieces. */
function piecesOf(bytes: Buffer, cuts: number, { between }: Random): Buffer[] {
  const places = Array.from({ length: cuts }, () => between(0, bytes.length)).sort((a, b) => a - b);
  return [0, ...places]
    .map((from, index) => bytes.subarray(from, places[index] ?? bytes.length))
    .filter((piece) => piece.length > 0);
}

const TARGETS = [
  ...["http://gateway/healthz", "HTTP://gateway:80/v1/models", "https://u:p@gateway/healthz"],
  ...["http://", "http://[::1", "gateway:80", "127.0.0.1", "*", "", "/", "//", "//healthz"],
  ...["/../healthz", "/healthz/", "/healthz#x", "/healthz?", "/healthz;x", "/%68ealthz"],
  ...["/%00", "/%ff%", "/v1/../healthz", "/v1/chat/completions/", "/__proto__", "/constructor"],
  ...["healthz", "/healthz\t", "/he althz", "/\xff\xfe", "/\0", "?", "ftp://x/healthz"],
];
const METHODS = [
  ...["CONNECT", "TRACE", "PATCH", "PUT", "DELETE", "OPTIONS", "PRI", "M-SEARCH", "SOURCE"],
  ...["QUERY", "get", "Post", "GE T", "", "G\0T", "\xff", "A".repeat(200), "GETGET", "HEADER"],
];
const VERSIONS = [
  ...["HTTP/0.9", "HTTP/1.0", "HTTP/1.0", "HTTP/2.0", "HTTP/3", "HTTP/1.2", "HTTP/1", "ICE/1.0"],
  ...["HTTP/11.1", "http/1.1", "HTTPS/1.1", "HTTP/1.1 ", "HTTP/-1.1", "", "RTSP/1.0"],
];
const LENGTHS = [
  ...["-1", "+5", "0x10", "1e2", "5, 5", "5,6", "", " ", "99999999999999999999"],
  ...["18446744073709551616", "4294967296", "5 5", "1_0", "65537", "2147483648"],
];
const CHUNK_SIZES = [
  ...["g", "-1", "", " 5", "5 ", "0x5", "FFFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFFF", "1000000", "0"],
  ...["00000000000000000005", "5;", "5;a=b", `5;${"x".repeat(17_000)}`, "5\0", "5\r", "5\n", "+5"],
];
const HEADERS = [
  ...["Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"],
  ...["Transfer-Encoding: chunked, chunked", "Transfer-Encoding: identity"],
  ...["Transfer-Encoding:", "transfer-encoding: xchunked", "Transfer-Encoding : chunked"],
  ...["Transfer-Encoding:\x0bchunked", "Host: other", "Host:", "Connection: close"],
  ...["Connection: keep-alive, close", "Connection: upgrade", "Upgrade: websocket"],
  ...["Upgrade: h2c", "Expect: 100-continue", "Expect: 200-ok", "Expect:", "X-Request-Id:"],
  ...["X-Request-Id: a\tb", "X-Request-Id: \xe9", `X-Request-Id: ${"x".repeat(513)}`],
  ...["Authorization:", "Authorization: Basic eDp5", "Authorization: bearer  sk-demo"],
  ...[`Authorization: Bearer ${"k".repeat(4_000)}`, "Content-Type: text/plain"],
  ...["Content-Type:", "Content-Type: application/json; charset=utf-16"],
  ...["Content-Encoding: gzip", "Content-Encoding: identity", "Range: bytes=0-0"],
  ...["If-None-Match: *", "Cookie: a=b", "no colon", ": no name", "bad name: x", "X\xff: y"],
  ...["X: \x01", "X: \x7f", "Trailer: X", "TE: trailers", "Keep-Alive: timeout=-1"],
  ...["X-Nul: a\0b", "Content-Length : 5", "Content-Length: 5"],
];

/** Replaces all lines of a header by lines with these values. */
function setHeader(message: Message, name: string, ...values: unknown[]): void {
  const prefix = `${name.toLowerCase()}:`;
  const others = message.headers.filter((line) => !line.toLowerCase().startsWith(prefix));
  message.headers = [...others, ...values.map((value) => `${name}: ${value}`)];
}
function setChunked(message: Message, body: string): void {
  setHeader(message, "Content-Length");
  setHeader(message, "Transfer-Encoding", "chunked");
  message.body = Buffer.from(body, "latin1");
}
const many = (count: number): string[] => Array.from({ length: count }, (_, i) => `X-${i}: y`);

type Mutate = (message: Message, random: Random) => unknown;

/** Mutations of a request as HTTP. */
const HTTP_MUTATIONS: Readonly<Record<string, Mutate>> = {
  target: (message, { pick }) => (message.target = pick(TARGETS)),
  method: (message, { pick }) => (message.method = pick(METHODS)),
  version: (message, { pick }) => (message.version = pick(VERSIONS)),
  header: ({ headers }, { pick, between }) =>
    headers.splice(between(0, headers.length), 0, pick(HEADERS)),
  "one header less": ({ headers }, { between }) =>
    headers.splice(between(0, headers.length - 1), 1),
  "many headers": ({ headers }, { between, pick }) =>
    headers.push(...many(between(1, pick([400, 6_000])))),
  // The gateway searches a malformed head for the request id. A quadratic pattern would take
  // seconds for this many blanks.
  "blanks in a header": ({ headers }, { between }) =>
    headers.push(`X-Request-Id:${" ".repeat(between(30_000, 60_000))}`, "no colon"),
  "long header": ({ headers }, { between }) =>
    headers.push(`X-Long: ${"y".repeat(between(1_000, 100_000))}`),
  "long header name": ({ headers }, { between }) =>
    headers.push(`${"N".repeat(between(17_000, 40_000))}: y`),
  "long target": (message, { between }) =>
    (message.target += `?${"q".repeat(between(17_000, 100_000))}`),
  "no Host": (message) => setHeader(message, "Host"),
  "two lengths": (message, { between }) => setHeader(message, "Content-Length", 2, between(2, 3)),
  "odd length": (message, { pick }) => setHeader(message, "Content-Length", pick(LENGTHS)),
  "wrong length": (message, { between }) =>
    setHeader(message, "Content-Length", between(0, message.body.length + 2_000)),
  "chunk size": (message, { pick }) =>
    setChunked(message, `${pick(CHUNK_SIZES)}\r\nhello\r\n0\r\n\r\n`),
  "chunked, then more": (message) => setChunked(message, "2\r\n{}\r\n0\r\nX-Trailer: y\r\n\r\n"),
  "body over the bound": (message, { between }) => {
    setHeader(message, "Transfer-Encoding");
    message.body = Buffer.alloc(between(65_537, 200_000), "[");
    setHeader(message, "Content-Length", message.body.length);
  },
  "bare line ends": (message, { pick }) => (message.eol = pick(["\n", "\r"])),
  folding: ({ headers }, { pick, between }) =>
    headers.splice(between(1, headers.length), 0, pick([" folded", "\tfolded: y", " "])),
  "HTTP/2 preface": (message) => {
    const body = Buffer.from("SM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    Object.assign(message, { method: "PRI", target: "*", version: "HTTP/2.0", headers: [], body });
  },
  "HTTP/0.9": (message) =>
    Object.assign(message, { version: "", headers: [], body: Buffer.alloc(0) }),
  "TLS hello": (message) =>
    Object.assign(message, { method: "\x16\x03\x01\x02\0\x01", headers: [] }),
};

const TOKENS = [
  ...["\r\n", "\n", "\r", "\0", "\r\n\r\n", "\n\n", " ", "\t", ":", ";", ",", "HTTP/1.1"],
  ...["GET / HTTP/1.1\r\n\r\n", "chunked", "0\r\n\r\n", "Content-Length: 0\r\n"],
  ...["Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n"],
  ...["\xff", "\xef\xbb\xbf", "%", "{", "]", '"'],
];
const replace = (bytes: Buffer, at: number, length: number, by: string) =>
  Buffer.concat([bytes.subarray(0, at), Buffer.from(by, "latin1"), bytes.subarray(at + length)]);

/** Mutations of any bytes at a random place. */
const BYTE_MUTATIONS: Readonly<
  Record<string, (bytes: Buffer, at: number, random: Random) => Buffer>
> = {
  flip: (bytes, at, { between }) =>
    replace(bytes, at, 1, String.fromCharCode((bytes[at] ?? 0) ^ (1 << between(0, 7)))),
  delete: (bytes, at, { between }) => replace(bytes, at, between(1, 12), ""),
  duplicate: (bytes, at, { between }) =>
    Buffer.concat([bytes.subarray(0, at + between(1, 200)), bytes.subarray(at)]),
  insert: (bytes, at, { between, pick }) => replace(bytes, at, between(0, 2), pick(TOKENS)),
  noise(bytes, at, { between }) {
    const noise = Array.from({ length: between(1, 30) }, () => between(0, 255));
    return replace(bytes, at, 0, Buffer.from(noise).toString("latin1"));
  },
  cut: (bytes, at) => bytes.subarray(0, at),
};

const bytesOf = ({ method, target, version, headers, eol, body }: Message): Buffer => {
  const start = `${method} ${target} ${version}`.trimEnd();
  return Buffer.concat([Buffer.from([start, ...headers, "", ""].join(eol), "latin1"), body]);
};

/** The last request of cases in which the server has to end the connection. */
const CLOSING_REQUEST = Buffer.from(
  "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: closing\r\nConnection: close\r\n\r\n",
);

/** Makes the case with this number. */
export function makeCase(seed: number, number: number) {
  const random = createRandom(seed ^ Math.imul(number + 1, 0x9e3779b1));
  const { random: chance, pick, between } = random;
  const first = baseRequest(random);
  const messages = [first];
  // Further requests are pipelined, so all go to the listener of the first one.
  while (messages.length < 4 && chance() < 0.15) messages.push(baseRequest(random));
  const done = [`${messages.length} requests`, ...(first.status === undefined ? ["body"] : [])];
  let status = first.status;
  if (chance() < 0.5) {
    const name = pick(Object.keys(HTTP_MUTATIONS));
    HTTP_MUTATIONS[name]!(first, random);
    done.push(name);
    status = undefined;
  }
  let bytes: Buffer = Buffer.concat(messages.map(bytesOf));
  if (chance() < 0.5) {
    for (let count = between(1, 3); count > 0; count -= 1) {
      const name = pick(Object.keys(BYTE_MUTATIONS));
      bytes = BYTE_MUTATIONS[name]!(bytes, between(0, bytes.length), random);
      done.push(name);
    }
    status = undefined;
  }
  const ending = pick(["server", "server", "server", "half", "leave"] as const);
  if (ending === "server") bytes = Buffer.concat([bytes, CLOSING_REQUEST]);
  else status = undefined;
  const pieces = piecesOf(bytes, chance() < 0.3 ? between(1, 6) : 0, random);
  return {
    /** What the client writes: each piece is a packet of its own. */
    pieces: pieces as readonly Buffer[],
    /** Whether it goes to the admin listener. */
    admin: first.admin,
    /**
     * "server": the server has to end the connection. "half": the client ends its side after the
     * last piece. "leave": the client resets the connection.
     */
    ending,
    /** With the ending "leave": bytes of the answer that it waits for, if they come soon. */
    patience: between(0, 1) * between(0, 2_000),
    /** The statuses that the first answer may have. Undefined: unknown. */
    expected: (status === undefined ? undefined : [status]) as readonly number[] | undefined,
    /** What was mutated, in words. */
    description: [...done, `${pieces.length} pieces`, ending].join(", "),
  };
}
