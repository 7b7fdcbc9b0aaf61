// The cases of scripts/fuzz.ts: valid requests, and what is done to them. A case follows from its
// seed and its number alone, so one that failed can be had again.
import { createRandom } from "../../test/support/random.ts";
import { TOOLS } from "../conformance/suite.ts";

export interface Case {
  /** What is written, piece by piece: each in a packet of its own. */
  readonly pieces: readonly Buffer[];
  /** To the admin listener. */
  readonly admin: boolean;
  /**
   * `server`: the server has to end the connection; `half`: the client ends its side at once;
   * `leave`: the client resets it, `patience` bytes of answer later if they come soon.
   */
  readonly ending: "server" | "half" | "leave";
  readonly patience: number;
  /** What the first request must be answered with, where that is known. */
  readonly expected: readonly number[] | undefined;
  /** What was done, in words. */
  readonly told: string;
}

type Random = ReturnType<typeof createRandom>;

/** A request in its parts; `headers` are whole lines. */
interface Message {
  method: string;
  target: string;
  version: string;
  headers: string[];
  eol: string;
  body: Buffer;
  /** Of the answer; undefined: unknown. */
  status: number | undefined;
  admin: boolean;
}

const user = (content: unknown) => ({ role: "user", content });
const {
  tools: [tool],
} = TOOLS;
const schema = tool!.function.parameters;
const call = {
  id: "call_7",
  type: "function",
  function: { name: "get_time", arguments: '{"city":"Oslo"}' },
};
const hello = { model: "demo-chat", messages: [user("Say hello")] };
const part = (type: string, text: string) => ({ type, text });
const streamed = { model: "demo-reasoner", stream: true };
/** Valid chat requests, as clients send them. */
const CHATS: readonly object[] = [
  hello,
  {
    model: "auto/chat",
    messages: [{ role: "system", content: "Be brief." }, user("Grüße, 你好, 👋")],
    max_tokens: 20,
    temperature: 0.5,
    stop: ["\n\n"],
  },
  {
    model: "auto/reasoning",
    messages: [user([part("text", "6 times "), part("text", "7?")])],
    thinking: { type: "enabled" },
    max_tokens: 12,
  },
  { ...hello, stream: true, stream_options: { include_usage: true }, max_tokens: 8 },
  {
    ...streamed,
    messages: [user("Why?")],
    thinking: { type: "enabled" },
    max_tokens: 10,
    logprobs: true,
    top_logprobs: 2,
  },
  { ...hello, tools: [tool], tool_choice: "auto", stream: true },
  {
    model: "demo-chat",
    messages: [
      user("Time?"),
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_7", content: "14:05" },
    ],
    tools: [tool],
  },
  {
    ...hello,
    response_format: { type: "json_schema", json_schema: { name: "x", schema } },
    seed: 7,
    user: "u",
  },
];
const use = { type: "tool_use", id: "t", name: "get_time", input: { city: "Oslo" } };
/** Requests of the other APIs: the path, and the body. */
const OTHERS: readonly [target: string, body: object][] = [
  ["/v1/messages", { ...hello, max_tokens: 50 }],
  [
    "/v1/messages",
    {
      ...streamed,
      max_tokens: 2_000,
      system: [{ ...part("text", "Be brief."), cache_control: { type: "ephemeral" } }],
      thinking: { type: "enabled", budget_tokens: 1_024 },
      tools: [{ name: "get_time", input_schema: schema }],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      messages: [
        user([part("text", "What time is it?")]),
        { role: "assistant", content: [use] },
        user([{ type: "tool_result", tool_use_id: "t", content: "14:05" }]),
      ],
      metadata: { user_id: "u" },
      stop_sequences: ["never"],
    },
  ],
  ["/v1/messages/count_tokens", hello],
  ["/v1/responses", { model: "demo-chat", input: "Say hello" }],
  [
    "/v1/responses",
    {
      ...streamed,
      instructions: "Be brief.",
      reasoning: { effort: "low", summary: "auto" },
      include: ["reasoning.encrypted_content"],
      tools: [
        { type: "function", name: "get_time", parameters: schema },
        { type: "namespace", name: "n", tools: [{ type: "function", name: "f" }] },
        { type: "custom", name: "patch" },
        { type: "web_search" },
      ],
      tool_choice: "auto",
      input: [
        user([part("input_text", "What time is it?")]),
        { type: "function_call", call_id: "c", name: "get_time", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "14:05" },
      ],
      text: { format: { type: "text" }, verbosity: "low" },
      max_output_tokens: 100,
    },
  ],
];

/** Documents: listener, target, key, status. */
const PATHS: readonly [admin: boolean, target: string, key: string | undefined, status: number][] =
  [
    [false, "/healthz", undefined, 200],
    [false, "/healthz?probe=1", undefined, 200],
    [false, "/readyz", undefined, 200],
    [false, "/openapi.json", undefined, 200],
    [false, "/v1/models", "sk-demo", 200],
    [false, "/v1/models", "sk-other", 401],
    [false, "/v1/chat/completions", "sk-demo", 405],
    [false, "/v1/responses", "sk-demo", 405],
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
  const id = chance() < 0.5 ? [`X-Request-Id: fuzz-${between(0, 999)}`] : [];
  const head = { version: "HTTP/1.1", eol: "\r\n", body: Buffer.alloc(0), admin: false };
  if (chance() < 0.3) {
    const [admin, target, key, status] = pick(PATHS);
    const headers = [
      "Host: localhost",
      ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
      ...id,
    ];
    return { ...head, method: pick(["GET", "GET", "HEAD"]), target, headers, status, admin };
  }
  const headers = [
    "Host: localhost",
    "Authorization: Bearer sk-demo",
    pick(["Content-Type: application/json", "content-type: application/json; charset=utf-8"]),
    ...id,
  ];
  if (chance() < 0.05) headers.push("Expect: 100-continue");
  const [target, asked] =
    chance() < 0.3 ? pick(OTHERS) : (["/v1/chat/completions", pick(CHATS)] as const);
  const [text, how] =
    chance() < 0.55 ? mutateJson(asked, random) : [Buffer.from(JSON.stringify(asked)), undefined];
  // A mutated body can be valid still (a field that is ignored), so nothing is known of its status.
  const message = {
    ...head,
    method: "POST",
    target,
    headers,
    status: how === undefined ? 200 : undefined,
  };
  if (chance() < 0.25) {
    headers.push("Transfer-Encoding: chunked");
    return {
      ...message,
      body: Buffer.concat([
        ...piecesOf(text, between(0, 5), random).map(chunk),
        Buffer.from("0\r\n\r\n"),
      ]),
    };
  }
  headers.push(`Content-Length: ${text.length}`);
  return { ...message, body: text };
}

const chunk = (piece: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]);

/** Cut at `cuts` random places; no piece is empty. */
function piecesOf(bytes: Buffer, cuts: number, { between }: Random): Buffer[] {
  const places = Array.from({ length: cuts }, () => between(0, bytes.length)).sort((a, b) => a - b);
  return [0, ...places]
    .map((from, index) => bytes.subarray(from, places[index] ?? bytes.length))
    .filter((piece) => piece.length > 0);
}

const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -0, -1, 1, 0.5, 2.000001, 1e308, -1e308, 2 ** 53],
  ...[12345678901234567890n, 4294967296, "", "x", "null", "\u0000", "\ud800", "\udfff\ud800"],
  ...["\ufeff", "auto/chat", "x".repeat(5_000), "🧨".repeat(600), [], {}, [[]], [null]],
  ...[{ toString: 1 }, { length: -1 }, [1, "2", {}], { type: "text" }, { type: "enabled" }],
  ...[{ type: "function", function: null }],
];
const RAW_VALUES = [
  ...["1e400", "-1e400", "-", "01", "NaN", "undefined", ".5", "0x1f", "'x'", "1".repeat(4_000)],
  ...['"\\u12"', '"\\x"', '"\n"', "{,}", "[1,]", '{"a":1,"a":2}', "/**/", "tru"],
];
const KEYS = [
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "", "stream", "n", "stop"],
  ...["tools", "model", "messages", "unknown_field", "max_completion_tokens"],
  ...["reasoning_effort"],
];

const listOf = (count: number, element: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => element(index)).join(",");

/**
 * JSON that costs more than it is long: many new names, names in ever other orders, many small
 * values, and things of a conversation that a dialect works on. Up to 60 KB.
 */
const COSTLY: readonly ((random: Random) => string)[] = [
  ({ between }) => `{${listOf(between(1, 5_000), (at) => `"k${at.toString(36)}":1`)}}`,
  ({ between }) => `{${listOf(between(1, 5_000), (at) => `"${at * 7_919}":1`)}}`,
  ({ between }) =>
    `[${listOf(between(1, 60), () => `{${listOf(40, () => `"a${between(0, 40)}":1`)}}`)}]`,
  ({ between, pick }) => {
    const element = pick(["1", '""', "{}", "[]", "1e9", "null", '{"a":1}']);
    return `[${listOf(between(1, 8_000), () => element)}]`;
  },
  ({ between }) =>
    `{"role":"assistant","content":null,"tool_calls":[${listOf(between(1, 600), (at) => `{"id":"${between(0, 1) ? "a" : `a_${at}`}","function":{"name":"f"}}`)}]}`,
  ({ between }) =>
    `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x${";a".repeat(between(1, 20_000))}"}}]}`,
  ({ between }) =>
    `{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{${listOf(between(1, 1_500), (at) => `"p${at}":{"minimum":1}`)}}}}}`,
];

const WAYS = [
  ...(["value", "value", "value", "raw value", "key", "less", "more", "deep"] as const),
  ...(["deep value", "costly value", "bytes", "mark", "cut", "tail", "whole"] as const),
];
type Way = (typeof WAYS)[number];

const deep = ({ between }: Random, depth: number): string =>
  between(0, 1)
    ? `${"[".repeat(depth)}${"]".repeat(depth)}`
    : `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

/** All fields and elements below a value. */
function nodesOf(holder: any): [holder: any, key: string][] {
  return Object.keys(holder).flatMap((key) => {
    const value = holder[key];
    const below = typeof value === "object" && value !== null ? nodesOf(value) : [];
    return [[holder, key] as [any, string], ...below];
  });
}

/** A text that JSON.stringify cannot write, or would not, to be put in afterwards. */
function rawText(how: Way, random: Random): string | undefined {
  if (how === "raw value") return random.pick(RAW_VALUES);
  if (how === "deep value") return deep(random, random.between(1, 4_000));
  return how === "costly value" ? random.pick(COSTLY)(random) : undefined;
}

/** Changes one place of the tree, if that is what is to be done. */
function mutateTree(tree: unknown, how: Way, { pick, between }: Random): void {
  const [holder, key] = pick(nodesOf(tree));
  if (how === "value") holder[key] = pick(VALUES);
  else if (how.endsWith(" value")) holder[key] = "<raw>";
  else if (how === "key")
    Object.defineProperty(holder, pick(KEYS), { value: pick(VALUES), enumerable: true });
  else if (how === "less" && Array.isArray(holder)) holder.splice(Number(key), 1);
  else if (how === "less") delete holder[key];
  else if (how === "more") holder[key] = Array.from({ length: between(2, 200) }, () => holder[key]);
}

const NO_UTF8 = [
  ...["\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe4\xbd", "\x80", "\x00"],
];

/** What is done to the bytes of a body. */
const BYTES: Partial<Record<Way, (text: Buffer, random: Random, chat: object) => Buffer>> = {
  bytes(text, { pick, between }) {
    const bad = Buffer.from(pick(NO_UTF8), "latin1");
    const at = between(0, text.length);
    return Buffer.concat([text.subarray(0, at), bad, text.subarray(at)]);
  },
  mark: (text, { pick }) =>
    pick([
      Buffer.concat([Buffer.from("\ufeff"), text]),
      Buffer.concat([Buffer.from("\ufeff\ufeff"), text]),
      Buffer.from(`\ufeff${text.toString()}`, "utf16le"),
    ]),
  cut: (text, { between }) => text.subarray(0, between(0, text.length)),
  tail: (text, { pick }, chat) =>
    Buffer.concat([
      text,
      Buffer.from(pick(["x", "{}", ",", "\0", " \n\t", "]", JSON.stringify(chat)])),
    ]),
  deep: (_, random) => Buffer.from(deep(random, random.between(1, 8_000))),
  whole: (_, { pick }) =>
    Buffer.from(
      pick([
        ...RAW_VALUES,
        ...VALUES.map((value) =>
          JSON.stringify(value, (_name, each) => (typeof each === "bigint" ? 0 : each)),
        ),
        " ",
        "",
      ]),
    ),
};

/** A body with something done to it, and what. */
function mutateJson(chat: object, random: Random): [text: Buffer, told: string] {
  const how = random.pick(WAYS);
  const tree: unknown = structuredClone(chat);
  mutateTree(tree, how, random);
  const raw = rawText(how, random);
  const json = JSON.stringify(tree, (_, value) =>
    typeof value === "bigint" ? Number(value) : value,
  );
  const text = Buffer.from(raw === undefined ? json : json.replace('"<raw>"', () => raw));
  return [BYTES[how]?.(text, random, chat) ?? text, how];
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
  ...["HTTP/0.9", "HTTP/1.0", "HTTP/1.0", "HTTP/2.0", "HTTP/3", "HTTP/1.2", "HTTP/1"],
  ...["HTTP/11.1", "http/1.1", "HTTPS/1.1", "HTTP/1.1 ", "HTTP/-1.1", "", "RTSP/1.0"],
  ...["ICE/1.0"],
];
const LENGTHS = [
  ...["-1", "+5", "0x10", "1e2", "5, 5", "5,6", "", " ", "99999999999999999999"],
  ...["18446744073709551616", "4294967296", "5 5", "1_0", "65537", "2147483648"],
];
const CHUNK_SIZES = [
  ...["g", "-1", "", " 5", "5 ", "0x5", "FFFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFFF"],
  ...["00000000000000000005", "5;", "5;a=b", `5;${"x".repeat(17_000)}`, "5\0", "5\r", "5\n"],
  ...["+5", "1000000", "0"],
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
];
const setHeader = (message: Message, name: string, lines: readonly string[]): void => {
  message.headers = [
    ...message.headers.filter((line) => !line.toLowerCase().startsWith(`${name.toLowerCase()}:`)),
    ...lines,
  ];
};

type Mutate = (message: Message, random: Random) => unknown;
const oneOf =
  (field: "target" | "method" | "version", values: readonly string[]): Mutate =>
  (message, { pick }) => {
    message[field] = pick(values);
  };
const adds =
  (lines: (random: Random) => readonly string[]): Mutate =>
  ({ headers }, random) =>
    headers.push(...lines(random));
const inserts =
  (lines: readonly string[], from = 0): Mutate =>
  ({ headers }, { pick, between }) =>
    headers.splice(between(from, headers.length), 0, pick(lines));
const lengths =
  (of: (size: number, random: Random) => readonly unknown[]): Mutate =>
  (message, random) =>
    setHeader(
      message,
      "Content-Length",
      of(message.body.length, random).map((length) => `Content-Length: ${length}`),
    );
const chunkedAs =
  (body: (random: Random) => string): Mutate =>
  (message, random) => {
    setHeader(message, "Content-Length", []);
    setHeader(message, "Transfer-Encoding", ["Transfer-Encoding: chunked"]);
    message.body = Buffer.from(body(random), "latin1");
  };
const sets =
  (fields: Partial<Message>): Mutate =>
  (message) =>
    Object.assign(message, structuredClone(fields));
const many = (count: number): string[] => Array.from({ length: count }, (_, i) => `X-${i}: y`);
const PREFACE = Buffer.from("SM\r\n\r\n\0\0\0\x04\0\0\0\0\0");

/**
 * What is done to a request as HTTP; `statuses`, where there is but one right answer to an
 * otherwise valid request.
 */
const HTTP_MUTATIONS: readonly [told: string, mutate: Mutate, ...statuses: number[]][] = [
  ["target", oneOf("target", TARGETS)],
  ["method", oneOf("method", METHODS)],
  ["version", oneOf("version", VERSIONS)],
  ["header", inserts(HEADERS)],
  ["header", inserts(HEADERS)],
  [
    "fewer headers",
    ({ headers }, { between }) => headers.splice(between(0, headers.length - 1), 1),
  ],
  ["some headers more", adds(({ between }) => many(between(1, 400)))],
  // A head that is malformed behind them is searched for its id by hand, which must take time in
  // proportion to its length.
  [
    "blanks in a header",
    adds(({ between, pick }) => {
      const blanks = pick([" ", "\t", " \t"]).repeat(between(1_000, 6_000));
      return [`X-Request-Id:${blanks}${pick(["\x01", "x", ""])}`];
    }),
  ],
  ["header flood", adds(({ between }) => many(between(2_500, 6_000))), 431],
  ["long header", adds(({ between }) => [`X-Long: ${"y".repeat(between(17_000, 100_000))}`]), 431],
  ["long header name", adds(({ between }) => [`${"N".repeat(between(17_000, 40_000))}: y`]), 431],
  [
    "long target",
    (message, { between }) => {
      message.target += `?${"q".repeat(between(17_000, 100_000))}`;
    },
    431,
  ],
  ["large header", adds(({ between }) => [`X-Large: ${"y".repeat(between(1_000, 17_000))}`])],
  ["no Host", (message) => setHeader(message, "Host", []), 400],
  ["NUL in a header", adds(() => ["X-Nul: a\0b"]), 400],
  ["space before the colon", adds(() => ["Content-Length : 5"]), 400],
  [
    "both lengths",
    (message) => {
      setHeader(message, "Content-Length", ["Content-Length: 5"]);
      setHeader(message, "Transfer-Encoding", ["Transfer-Encoding: chunked"]);
    },
    400,
  ],
  ["two lengths", lengths((_, { between }) => [2, between(2, 3)])],
  ["odd length", lengths((_, { pick }) => [pick(LENGTHS)])],
  ["length too large", lengths((size, { between }) => [size + between(1, 2_000)])],
  ["length too small", lengths((size, { between }) => [between(0, Math.max(0, size - 1))])],
  ["chunk size", chunkedAs(({ pick }) => `${pick(CHUNK_SIZES)}\r\nhello\r\n0\r\n\r\n`)],
  ["chunked, then more", chunkedAs(() => "2\r\n{}\r\n0\r\nX-Trailer: y\r\n\r\n")],
  [
    "body over the bound",
    (message, { between }) => {
      setHeader(message, "Transfer-Encoding", []);
      message.body = Buffer.alloc(between(65_537, 200_000), "[");
      setHeader(message, "Content-Length", [`Content-Length: ${message.body.length}`]);
    },
  ],
  ["bare LF", sets({ eol: "\n" })],
  ["bare CR", sets({ eol: "\r" })],
  ["folding", inserts([" folded", "\tfolded: y", " "], 1)],
  [
    "HTTP/2 preface",
    sets({ method: "PRI", target: "*", version: "HTTP/2.0", headers: [], body: PREFACE }),
    400,
  ],
  ["HTTP/0.9", sets({ version: "", headers: [], body: Buffer.alloc(0) })],
  ["TLS hello", sets({ method: "\x16\x03\x01\x02\0\x01", headers: [] }), 400],
];

const TOKENS = [
  ...["\r\n", "\n", "\r", "\0", "\r\n\r\n", "\n\n", " ", "\t", ":", ";", ",", "HTTP/1.1"],
  ...["GET / HTTP/1.1\r\n\r\n", "chunked", "0\r\n\r\n", "Content-Length: 0\r\n"],
  ...["Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n"],
  ...["\xff", "\xef\xbb\xbf", "%", "{", "]", '"'],
];

/** What is done to bytes, whatever they are. */
const BYTE_MUTATIONS: Readonly<Record<string, (bytes: Buffer, random: Random) => Buffer>> = {
  flip(bytes, { between }) {
    const [changed, at] = [Buffer.from(bytes), between(0, bytes.length - 1)];
    changed[at] = (changed[at] ?? 0) ^ (1 << between(0, 7));
    return changed;
  },
  delete: (bytes, { between }) => replace(bytes, between(0, bytes.length), between(1, 12), ""),
  duplicate(bytes, { between }) {
    const [at, length] = [between(0, bytes.length), between(1, 200)];
    return Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
  },
  insert: (bytes, { between, pick }) =>
    replace(bytes, between(0, bytes.length), between(0, 2), pick(TOKENS)),
  noise(bytes, { between }) {
    const noise = Array.from({ length: between(1, 30) }, () => between(0, 255));
    return replace(bytes, between(0, bytes.length), 0, Buffer.from(noise).toString("latin1"));
  },
  cut: (bytes, { between }) => bytes.subarray(0, between(1, bytes.length)),
};
const replace = (bytes: Buffer, at: number, length: number, by: string) =>
  Buffer.concat([bytes.subarray(0, at), Buffer.from(by, "latin1"), bytes.subarray(at + length)]);

const bytesOf = ({ method, target, version, headers, eol, body }: Message): Buffer =>
  Buffer.concat([
    Buffer.from(
      [`${method} ${target} ${version}`.trimEnd(), ...headers, "", ""].join(eol),
      "latin1",
    ),
    body,
  ]);

/** Comes last where the server has to end the connection. */
const FAREWELL = Buffer.from(
  "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: farewell\r\nConnection: close\r\n\r\n",
);

export function makeCase(seed: number, number: number): Case {
  const random = createRandom(seed ^ Math.imul(number + 1, 0x9e3779b1));
  const { random: chance, pick, between } = random;
  const first = baseRequest(random);
  const { admin } = first;
  const messages = [first];
  // Pipelined; all go to the first one's listener.
  while (messages.length < 4 && chance() < 0.15) messages.push(baseRequest(random));
  const done: string[] = first.status === undefined ? ["body"] : [];
  let statuses: readonly number[] = first.status === undefined ? [] : [first.status];
  if (chance() < 0.5) {
    const [told, mutate, ...known] = pick(HTTP_MUTATIONS);
    mutate(first, random);
    done.push(told);
    statuses = known;
  }
  let bytes: Buffer = Buffer.concat(messages.map(bytesOf));
  if (chance() < 0.5) {
    for (let count = between(1, 3); count > 0 && bytes.length > 0; count -= 1) {
      const told = pick(Object.keys(BYTE_MUTATIONS));
      bytes = BYTE_MUTATIONS[told]!(bytes, random);
      done.push(told);
    }
    statuses = [];
  }
  const ending = pick(["server", "server", "server", "half", "leave"] as const);
  if (ending === "server") bytes = Buffer.concat([bytes, FAREWELL]);
  else statuses = [];
  const pieces = piecesOf(bytes, chance() < 0.3 ? between(1, 6) : 0, random);
  const told = [`${messages.length} requests`, ...done, `${pieces.length} pieces`, ending].join(
    ", ",
  );
  return {
    pieces,
    admin,
    ending,
    patience: between(0, 1) * between(0, 2_000),
    expected: statuses.length > 0 ? statuses : undefined,
    told,
  };
}
