// Responses as servers send them, and as they should not: several hundred, made of templates. Many
// are ideas of the public collections on request smuggling and response splitting, turned round to
// responses. What is right about each is not said here: Node's own parser is asked.

const FRAMED = "Content-Length: 2";
const whole = (start: string, fields: readonly string[], rest = "ok"): string =>
  [start, ...fields, "", rest].join("\r\n");
const ok = (...fields: string[]): string => whole("HTTP/1.1 200 OK", fields);
const chunked = (rest: string, ...fields: string[]): string =>
  whole("HTTP/1.1 200 OK", ["Transfer-Encoding: chunked", ...fields], rest);
const HELLO = "5\r\nhello\r\n";
const CHUNKS = `${HELLO}0\r\n\r\n`;

/** Bytes that parsers stumble over, by themselves and around what matters. */
const ODD = ["\0", "\x01", "\b", "\t", "\n", "\v", "\f", "\r", " ", "\x7f", "\x80", "\xa0", "\xff"];

const statusLines = [
  ..."HTTP/1.1 200,HTTP/1.1 200 ,HTTP/1.1 200  OK,HTTP/1.1  200 OK,HTTP/1.1\t200 OK".split(","),
  ..."HTTP/1.1 200\tOK,HTTP/1.1 20 OK,HTTP/1.1 2000 OK,HTTP/1.1 2 00 OK,HTTP/1.1 -20 OK".split(","),
  ..."HTTP/1.1 0200 OK,HTTP/1.1 000 OK,HTTP/1.1 099 OK,HTTP/1.1 999 OK,HTTP/1.1 2x0 OK".split(","),
  ..."HTTP/1.0 200 OK,HTTP/1.2 200 OK,HTTP/2.0 200 OK,HTTP/0.9 200 OK,HTTP/3 200 OK".split(","),
  ..."HTTP/1 200 OK,HTTP/1. 200 OK,HTTP/.1 200 OK,HTTP/11 200 OK,HTTP/1.10 200 OK".split(","),
  ..."http/1.1 200 OK,HTTPS/1.1 200 OK,HTTP1.1 200 OK,ICY 200 OK,RTSP/1.0 200 OK,200 OK".split(","),
  ..."GET / HTTP/1.1,SSH-2.0-OpenSSH_9.6,\x16\x03\x01\x02,<html>,{},HTTP/1.1,HTTP/1.1 ,H,".split(
    ",",
  ),
  " HTTP/1.1 200 OK",
  "\r\nHTTP/1.1 200 OK",
  "\nHTTP/1.1 200 OK",
  "\r\n\r\nHTTP/1.1 200 OK",
  "HTTP/1.1 200 OK\n",
  "HTTP/1.1 200 OK\r",
  "HTTP/1.1 200 Schön und gut".replace("ö", "\xf6"),
  ...ODD.flatMap((odd) => [`HTTP/1.1 200 O${odd}K`, `HTTP/1.1 200${odd}`, `HTTP/1.1${odd}200 OK`]),
];

const headerLines = [
  ..."X:1,X: 1,X:  1  ,X:\t1\t,X: \t 1 \t ,X:,X: ,X:  \t,x: 1,X: a:b,X: a b".split(","),
  ..."X : 1,X\t: 1, X: 1,\tX: 1,:1,: 1, : 1,X,X 1,X y: 1,X;y: 1,X(y): 1,X@y: 1,X/y: 1".split(","),
  "X: 1\r\n 2",
  "X: 1\r\n\t2",
  "X: 1\r\n  ",
  "X: 1\n",
  "X: 1\nY: 2",
  "X: 1\rY: 2",
  "X: 1\r\r",
  "X: 1\n\r",
  'X: "quoted, text"',
  "X: 1\r\nX: 2",
  "X: 1\r\nx: 2\r\nX: 3",
  "Set-Cookie: a=1\r\nSet-Cookie: b=2",
  "Content-Type: text/plain\r\nContent-Type: text/html",
  "Retry-After: 1\r\nRetry-After: 2",
  "__proto__: 1\r\nconstructor: 2",
  "!#$%&'*+.^_`|~-: 1",
  `X: ${"y".repeat(1000)}`,
  `${"x".repeat(1000)}: 1`,
  ...ODD.flatMap((odd) => [`X: a${odd}b`, `X:${odd}a`, `X: a${odd}`, `X${odd}: 1`, `${odd}X: 1`]),
];

const lengths = [
  ..."2,02,002,+2,-2,2.0,2e0,0x2,2 ,\t2\t,2 2,2;2,2;q=1,'2',two,,Infinity,NaN,1_0,²".split(","),
  "2,2",
  "2, 2",
  "2, 3",
  "2,",
  ",2",
  '"2"',
  "99999999999999999999",
  "18446744073709551615",
  "18446744073709551616",
  "18446744073709551618",
  "9007199254740993",
  "0000000000000000000002",
  ...ODD.flatMap((odd) => [`2${odd}`, `${odd}2`, `2${odd}2`]),
].map((length) => length.replace("²", "\xb2"));

const framings = [
  ...lengths.map((length) => `Content-Length: ${length}`),
  "Content-Length:2",
  "content-length: 2",
  "CONTENT-LENGTH: 2",
  "Content-Length : 2",
  "Content_Length: 2",
  "Content-Length: 2\r\nContent-Length: 2",
  "Content-Length: 2\r\nContent-Length: 3",
  "Content-Length: 0\r\nContent-Length: 2",
  "Content-Length: 2\r\ncontent-length: 2",
  "Content-Length: 2\r\nX: 1\r\nContent-Length: 2",
  "Content-Length:\r\n 2",
  "X: 1\r\n Content-Length: 2",
  "Content-Length: 2\r\nConnection: content-length",
];

const codings = [
  ..."chunked,Chunked,CHUNKED,chunked ,\tchunked,chunked;q=1,x-chunked,chunkedx,xchunked".split(
    ",",
  ),
  ..."identity,gzip,deflate,br,cow,chunke,hunked,chun ked,'chunked',,null".split(","),
  "gzip, chunked",
  "chunked, gzip",
  "chunked, chunked",
  "chunked, identity",
  "identity, chunked",
  "chunked,",
  ",chunked",
  '"chunked"',
  "chunked\r\nTransfer-Encoding: chunked",
  "chunked\r\nTransfer-Encoding: identity",
  "identity\r\nTransfer-Encoding: chunked",
  "gzip\r\nTransfer-Encoding: chunked",
  "chunked\r\nTransfer-Encoding: x",
  "\r\n chunked",
  "x\r\n chunked",
  "chunked\r\nContent-Length: 5",
  "chunked\r\nContent-Length: 0",
  "chunked\r\nContent-Length: 20",
  "chunked\r\ncontent-length: x",
  "identity\r\nContent-Length: 5",
  "gzip\r\nContent-Length: 5",
  ...ODD.flatMap((odd) => [`chunked${odd}`, `${odd}chunked`, `chun${odd}ked`]),
];

const transferHeaders = [
  ...codings.map((coding) => `Transfer-Encoding: ${coding}`),
  "Content-Length: 5\r\nTransfer-Encoding: chunked",
  "Content-Length: 5\r\ntransfer-encoding: identity",
  "Transfer-Encoding : chunked",
  "Transfer_Encoding: chunked",
  "Transfer-Encoding:chunked",
  "transfer-encoding:\tchunked",
  " Transfer-Encoding: chunked",
  "X: 1\r\n Transfer-Encoding: chunked",
  "X: 1\nTransfer-Encoding: chunked",
  "TE: chunked",
];

const sizes = [
  ..."5,05,00005,5 ,5\t, 5,\t5,+5,-5,0x5,5h,g,,5.,5\\,5;,5;a,5;a=b,5;a=,5;=b,5;a=b;c".split(","),
  ..."5;a=b;c=d,5;;a,5; a,5;a ,5; a=b,5 ;a,5;a = b,5;a=b c,5;a b,5,5,5:a,5;a:b,5;a=b,0;a".split(
    ",",
  ),
  '5;a="b"',
  '5;a="b;c"',
  '5;a="b c"',
  '5;a="b\\"c"',
  '5;a="b',
  '5;a=b"c"',
  '5;a="b"c',
  '5;a="b";c="d"',
  '5;a="\t"',
  '5;a="\x80"',
  `5;a=${"b".repeat(100)}`,
  "00000000000000000005",
  "fffffffffffff",
  "FFFFFFFFFFFFFFFF",
  "10000000000000005",
  "100000005",
  "5\n",
  "5\r",
  "5;\n",
  "5;a\n",
  "5;a=b\n",
  "5;a\r",
  ...ODD.flatMap((odd) => [`5${odd}`, `${odd}5`, `5;a${odd}b`, `5;a=b${odd}c`, `5;a="b${odd}c"`]),
];

const chunkBodies = [
  ...sizes.map((size) => `${size}\r\nhello\r\n0\r\n\r\n`),
  ...["4", "6", "5\r\n", "A", "a"].map((size) => `${size}\r\nhello\r\n0\r\n\r\n`),
  `${HELLO}${HELLO}0\r\n\r\n`,
  `1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\n\r\n`,
  `A\r\n0123456789\r\n1a\r\n${"x".repeat(26)}\r\n0\r\n\r\n`,
  "5\r\nhello0\r\n\r\n",
  "5\r\nhello\n0\r\n\r\n",
  "5\r\nhello\r0\r\n\r\n",
  "5\r\nhello\r\r\n0\r\n\r\n",
  "5\r\nhello\r\n\r\n0\r\n\r\n",
  "5\r\nhelloX\r\n0\r\n\r\n",
  "5\nhello\n0\n\n",
  "5\nhello\r\n0\r\n\r\n",
  "5\r\nhello\r\n0\n\r\n",
  "5\r\nhello\r\n0\r\n\n",
  "5\r\nhello\r\n0\r\n\r",
  "5\r\nhello\r\n0\r\n",
  "5\r\nhello\r\n0\r",
  "5\r\nhello\r\n0",
  "5\r\nhello\r\n",
  "5\r\nhell",
  "0\r\n\r\n",
  "000\r\n\r\n",
  "-0\r\n\r\n",
  "0\r\n0\r\n\r\n",
  "\r\n5\r\nhello\r\n0\r\n\r\n",
  "hello",
];

const trailers = [
  ...headerLines,
  ..."Content-Length: 5,content-length: 0,Transfer-Encoding: chunked,Trailer: x".split(","),
  "transfer-encoding: identity",
  "Content-Length: x",
  "Transfer-Encoding: gzip",
  "X: 1\r\nContent-Length: 2",
];

const connections = [
  ..."close,Close,keep-alive,Keep-Alive,KEEP-ALIVE,x,upgrade,closed,not-close,,close x".split(","),
  "keep-alive, close",
  "close, keep-alive",
  "x, close",
  "close,x",
  " close",
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
  `${early}${ok(FRAMED)}`,
  `${early}${early}${early}${chunked(CHUNKS)}`,
  `HTTP/1.1 100\r\n\r\n${ok()}`,
  `HTTP/1.1 100 Continue\r\n${ok(FRAMED)}`,
  `HTTP/1.1 100 Continue\r\n\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.0 100 Continue\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 102 Processing\r\nTransfer-Encoding: chunked\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n${ok(FRAMED)}`,
  `HTTP/1.1 101 Switching Protocols\r\n\r\n${ok(FRAMED)}`,
  early,
  `${ok(FRAMED)}${next}`,
  `${ok(FRAMED)}\r\n${next}`,
  `${ok(FRAMED)}\r\n`,
  `${ok(FRAMED)}x`,
  `${ok(FRAMED)}\0`,
  `${chunked(CHUNKS)}${next}`,
  `${chunked(CHUNKS)}\r\n`,
  `${chunked(CHUNKS)}${CHUNKS}`,
  `${whole("HTTP/1.1 204 No Content", [], "")}${next}`,
  `${whole("HTTP/1.1 304 Not Modified", [FRAMED], "")}${next}`,
  `${ok(FRAMED, "Connection: close")}${next}`,
  `${ok("X: 1\r\n\r\nforged")}`,
  `${ok("Connection: close")}${next}`,
  "",
  "\r\n",
  "\r\n\r\n",
  "HTTP/1.1 200 OK\r\n\r\n",
  "HTTP/1.1 200 OK\n\n",
  "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
  "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok",
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok",
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\rok",
  "HTTP/1.1 200 OK\r\rContent-Length: 2\r\r\r\rok",
];

const complete = ok("Content-Type: application/json", FRAMED);
const inChunks = chunked(`${HELLO}3;a=b\r\nabc\r\n0\r\nX: 1\r\n\r\n`);
const truncated = [complete, inChunks].flatMap((text) =>
  Array.from({ length: text.length }, (_, length) => text.slice(0, length)),
);

const filler = (bytes: number): string => {
  const line = `X: ${"y".repeat(95)}`; // 100 bytes with its end
  const rest = bytes - `HTTP/1.1 200 OK\r\n${FRAMED}\r\n\r\n`.length;
  const lines = Array.from({ length: Math.floor(rest / 100) - 1 }, () => line);
  return ok(FRAMED, ...lines, `X: ${"y".repeat(95 + (rest % 100))}`);
};
/** Heads about as long as they may be. There are too many cuts in them to try them all. */
export const LONG_RESPONSES = [65_535, 65_536, 65_537, 70_000].map(filler);

/** Every response once, as text of Latin-1. */
export const RESPONSES: readonly string[] = [
  ...new Set([
    ...statusLines.map((line) => whole(line, [FRAMED])),
    ...headerLines.map((line) => ok(FRAMED, line)),
    ...headerLines.map((line) => ok(line, FRAMED)),
    ...framings.map((line) => ok(line)),
    ...transferHeaders.map((line) => whole("HTTP/1.1 200 OK", [line], CHUNKS)),
    ...transferHeaders.map((line) => whole("HTTP/1.0 200 OK", [line], CHUNKS)),
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
