// The suite's own provider: it speaks the plain OpenAI-compatible format, and misbehaves as the
// name of the model says that it is asked for. A model is called `behaviour:anything`, so that each
// check has models that no other asks for: what came for them is kept for the check to read. All
// that a client must never see of a provider has the word "canary" in it.

import { EventEmitter, once } from "node:events";
import http, {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as turn, setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { parseJson, within } from "./client.ts";
import { isObject, type Json } from "./shapes.ts";

/** What the provider was asked. */
export interface Call {
  readonly model: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Json;
  /** Counts the connections, and the requests on each, from 0. */
  readonly connection: number;
  readonly position: number;
  /** Bytes of the answer that were handed to the connection so far. */
  readonly sent: () => number;
  /** Resolves when the connection has had no room for more for a while. */
  readonly stalled: Promise<void>;
  /** Resolves when the connection has closed before the answer was finished. */
  readonly left: Promise<void>;
  /** Resolves when the answer was finished. */
  readonly finished: Promise<void>;
}

export interface Provider {
  /** What a gateway is to use as its upstream's base address. */
  readonly url: string;
  /** The same at an address of its own, whose connections nobody else uses. */
  readonly loneUrl: string;
  /** An address at which nobody is. */
  readonly goneUrl: string;
  /** What was asked of this model so far. */
  calls(model: string): readonly Call[];
  /** The call after so many others, waited for. */
  call(model: string, after: number, deadlineMs: number): Promise<Call>;
  /** Another behaviour for this model from now on, and for what it holds back. */
  turn(model: string, behaviour: string): void;
  close(): Promise<void>;
}

/** What a good reply says; it has characters of one to four bytes. */
export const PIECES: readonly string[] = [
  ...["Grüße", ", 世界", "! 🎉", " And so on,", " to", " the end."],
];
export const TEXT = PIECES.join("");
export const THOUGHTS: readonly string[] = ["Let me", " think."];
export const USAGE = {
  prompt_tokens: 7,
  completion_tokens: 5,
  total_tokens: 12,
  completion_tokens_details: { reasoning_tokens: 3 },
};
export const CALLS = [
  { id: "call_a", type: "function", function: { name: "get_time", arguments: '{"city":"Oslo"}' } },
  { id: "call_b", type: "function", function: { name: "send_mail", arguments: '{"to":"ada"}' } },
] as const;
/** The path that a redirect leads to; what came there is kept under this name. */
export const ELSEWHERE = "elsewhere";
export const CANARY = /canary/i;
/** The key that the gateway under test is to use for this provider. */
export const PROVIDER_KEY = "sk-canary-of-the-provider";
/** How much the models send that do not end by themselves. */
export const FLOOD_BYTES = 128 * 1024 * 1024;
const [MANY_KEYS, KEYS_A_PIECE] = [5_000_000, 20_000];
const [STALLED_LOOKS, LOOK_MS] = [20, 50];

interface Exchange {
  readonly body: Json;
  readonly number: number;
  readonly position: number;
  readonly argument: number;
  readonly res: ServerResponse;
  /** The next behaviour that this model is given. */
  readonly turned: () => Promise<string>;
}
type Behaviour = (exchange: Exchange) => unknown;

const HEAD = {
  id: "chatcmpl-canary",
  created: 1,
  model: "canary-model-2026-01-01",
  system_fingerprint: "fp_canary",
};
const WORDS = {
  error: {
    message: "canary: the key sk-canary-of-the-provider is no good at http://canary.internal",
    type: "canary_error",
    code: "canary",
  },
};
/** Values whose conversion to a string throws, where strings or numbers are expected. */
const ERROR_OBJECT = {
  error: {
    message: { toString: 1, canary: "canary" },
    type: { toString: 1 },
    code: { toString: 1 },
  },
};
/** As Groq reports a tool call that the model did not get right. */
const CALL_FAILED = {
  error: {
    message: "canary: Failed to call a function. Please adjust your prompt.",
    type: "invalid_request_error",
    code: "tool_use_failed",
    failed_generation: "<function=canary>",
  },
};
const [SSE, JSON_TYPE] = ["text/event-stream", "application/json"];

const chunk = (delta?: object, finish_reason: string | null = null, more: object = {}) => ({
  ...HEAD,
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
});
/** As OpenRouter sends an error in the middle of a stream. */
const ERROR_WITH_USAGE = chunk({ content: "" }, "error", { ...WORDS, usage: USAGE });
const ROLE = chunk({ role: "assistant", content: "" });
const texts = PIECES.map((content) => chunk({ content }));
const STOP = chunk({}, "stop");
const usageChunk = (usage: unknown = USAGE) => ({ ...chunk(), choices: [], usage });
const SAID = [ROLE, ...texts, STOP];
const GOOD = [...SAID, usageChunk()];

const event = (json: unknown) => `data: ${JSON.stringify(json)}\n\n`;
const DONE = "data: [DONE]\n\n";
const stream = (events: readonly unknown[], end = DONE) => events.map(event).join("") + end;

const message = (content: string | null, more: object = {}) => ({
  role: "assistant",
  content,
  ...more,
});
const whole = (of?: object, finish_reason = "stop", more: object = {}) =>
  JSON.stringify({
    ...HEAD,
    object: "chat.completion",
    choices: [{ index: 0, message: of, finish_reason }],
    usage: USAGE,
    ...more,
  });

/** Starts an answer: a stream if one was asked for. */
function begin({ res, body }: Exchange, headers: OutgoingHttpHeaders = {}): boolean {
  const streamed = body["stream"] === true;
  const usual = { "content-type": streamed ? SSE : JSON_TYPE, "x-canary": "canary" };
  res.writeHead(200, { ...usual, ...headers });
  res.flushHeaders();
  return streamed;
}

/** A stream whose bytes are these; asked for a whole reply, a good one. */
const streams =
  (bytes: string): Behaviour =>
  (exchange) =>
    exchange.res.end(begin(exchange) ? bytes : whole(message(TEXT)));
const events = (list: readonly unknown[], end?: string) => streams(stream(list, end));
const both =
  (list: readonly unknown[], json: string): Behaviour =>
  (exchange) =>
    exchange.res.end(begin(exchange) ? stream(list) : json);

/** A stream of these events; asked for a whole reply, something else. */
const inStream =
  (list: readonly unknown[], otherwise: Behaviour): Behaviour =>
  (exchange) => {
    if (exchange.body["stream"] !== true) return otherwise(exchange);
    begin(exchange);
    return exchange.res.end(stream(list));
  };

const withUsage = (usage: unknown) =>
  both([...SAID, usageChunk(usage)], whole(message(TEXT), "stop", { usage }));

/** The first so many pieces, of a stream or of a whole reply, and then something else. */
const after =
  (then: Behaviour): Behaviour =>
  (exchange) => {
    const { res, argument } = exchange;
    if (begin(exchange)) res.write(stream([ROLE, ...texts.slice(0, argument)], ""));
    else res.write(whole(message(TEXT)).slice(0, 20 * argument + 1));
    return then(exchange);
  };

/** In pieces of so many bytes, each in a packet of its own as far as a sender can see to it. */
const inPieces =
  (size: number): Behaviour =>
  async (exchange) => {
    const bytes = Buffer.from(begin(exchange) ? stream(GOOD) : whole(message(TEXT)));
    for (let at = 0; at < bytes.length && exchange.res.writable; at += size) {
      exchange.res.write(bytes.subarray(at, at + size));
      await turn();
    }
    exchange.res.end();
  };

/**
 * Sends a text again and again, no faster than it is read; `stalled` when for some while nothing of
 * it was taken.
 */
function flood({ res }: Exchange, text: string): void {
  const bytes = Buffer.from(text);
  let [sent, taken, looks] = [0, 0, 0];
  const send = () => {
    while (sent < FLOOD_BYTES) {
      sent += bytes.length;
      if (!res.write(bytes)) return;
    }
    res.end(stream([STOP]));
  };
  const timer = setInterval(() => {
    const now = sent - res.writableLength;
    // Not by the clock: a process that was busy has taken nothing either.
    looks = now === taken ? looks + 1 : 0;
    taken = now;
    if (looks === STALLED_LOOKS) res.emit("stalled");
  }, LOOK_MS);
  res.on("drain", send).on("close", () => clearInterval(timer));
  send();
}

function refuse(
  res: ServerResponse,
  code: number,
  retryAfter?: number,
  body: object = WORDS,
): void {
  res.writeHead(code, {
    "content-type": JSON_TYPE,
    "x-canary": "canary",
    ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
  });
  res.end(JSON.stringify(body));
}
const status: Behaviour = ({ res, argument }) => refuse(res, argument);
const cut: Behaviour = ({ res }) => {
  res.socket?.resetAndDestroy();
};
const silence: Behaviour = () => undefined;
const good = both(GOOD, whole(message(TEXT)));

const fragment = (index: number | undefined, of: object) =>
  chunk({ tool_calls: [{ index, ...of }] });
const opening = ({ id, type, function: { name } }: (typeof CALLS)[number]) => ({
  id,
  type,
  function: { name, arguments: "" },
});
const halves = ({ function: { arguments: text } }: (typeof CALLS)[number]) =>
  [text.slice(0, 5), text.slice(5)].map((part) => ({ function: { arguments: part } }));
/** Each call as its opening and its halves, with an index of its own. */
const inPiecesOf = (indexOf: (index: number) => number) =>
  CALLS.flatMap((call, index) =>
    [opening(call), ...halves(call)].map((piece) => fragment(indexOf(index), piece)),
  );
const tools = (fragments: readonly unknown[]) =>
  both(
    [ROLE, ...fragments, chunk({}, "tool_calls"), usageChunk()],
    whole(message(null, { tool_calls: CALLS }), "tool_calls"),
  );
const reasoning = both(
  [ROLE, ...THOUGHTS.map((text) => chunk({ reasoning_content: text })), ...GOOD.slice(1)],
  whole(message(TEXT, { reasoning_content: THOUGHTS.join("") })),
);

/** A reply of which a filter has left nothing, not even a message (Azure). */
const filtered = both(
  [chunk(undefined, "content_filter"), usageChunk()],
  whole(undefined, "content_filter"),
);
const callFailed: Behaviour = ({ res }) => refuse(res, 400, undefined, CALL_FAILED);
/** Good, but for requests with the word "bad". */
const unlessBad =
  (bad: Behaviour): Behaviour =>
  (exchange) =>
    (JSON.stringify(exchange.body["messages"]).includes("bad") ? bad : good)(exchange);

/** A good whole reply, with an object of very many members beside the choices. */
async function manyKeys({ res }: Exchange): Promise<void> {
  res.writeHead(200, { "content-type": JSON_TYPE });
  res.write(`${whole(message(TEXT)).slice(0, -1)},"more":{"first":0`);
  for (let from = 0; from < MANY_KEYS && res.writable; from += KEYS_A_PIECE) {
    const names = Array.from({ length: KEYS_A_PIECE }, (_, at) => `,"k${from + at}":0`);
    res.write(names.join(""));
    await turn();
  }
  res.end("}}");
}

/** By the model's name up to its colon; a number at its end is the behaviour's argument. */
const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  good,
  reasoning,
  // Refusals and failures before the first delta.
  status,
  overloaded: ({ res, argument }) => refuse(res, 429, argument),
  once: (exchange) =>
    exchange.number === 0 ? refuse(exchange.res, exchange.argument, 0) : good(exchange),
  picky: unlessBad((exchange) => status({ ...exchange, argument: 400 })),
  "picky-filter": unlessBad(filtered),
  "picky-calls": unlessBad(callFailed),
  filtered,
  "call-failed": callFailed,
  "call-failed-in-stream": inStream([ROLE, CALL_FAILED], callFailed),
  "error-object": inStream([ERROR_OBJECT], ({ res }) => refuse(res, 500, undefined, ERROR_OBJECT)),
  "error-with-usage": both([ROLE, ERROR_WITH_USAGE], JSON.stringify(ERROR_WITH_USAGE)),
  "many-keys": manyKeys,
  "error-in-200": ({ res }) => refuse(res, 200),
  "error-first": both([WORDS], JSON.stringify(WORDS)),
  "error-after-role": both([ROLE, WORDS], JSON.stringify(WORDS)),
  nothing: (exchange) => {
    begin(exchange);
    exchange.res.end();
  },
  "only-done": (exchange) => exchange.res.end(begin(exchange) ? DONE : "{}"),
  "not-json": (exchange) =>
    exchange.res.end(begin(exchange) ? "data: canary\n\ndata: {\n\n" : '{"canary":'),
  html: ({ res }) => res.writeHead(200, { "content-type": "text/html" }).end("<html>canary</html>"),
  redirect: ({ res, argument }) => res.writeHead(argument, { location: `/${ELSEWHERE}` }).end(),
  gzip: (exchange) => {
    const streamed = begin(exchange, { "content-encoding": "gzip" });
    exchange.res.end(gzipSync(streamed ? stream(GOOD) : whole(message(TEXT))));
  },
  "too-short": (exchange) => {
    const { res } = exchange;
    const streamed = begin(exchange, { "content-length": 10_000 });
    const text = streamed ? stream([ROLE], "") : whole(message(TEXT));
    res.write(text, () => res.socket?.end());
  },
  reset: cut,
  silent: silence,
  held: async (exchange) => perform(await exchange.turned(), exchange),
  "closes-when-reused": (exchange) =>
    exchange.position > 0 ? exchange.res.socket?.resetAndDestroy() : good(exchange),
  // Failures after the first delta.
  "cut-after": after(({ res }) => {
    res.write("", () => setImmediate(() => res.socket?.resetAndDestroy()));
  }),
  "ends-after": after(({ res }) => res.end()),
  "done-after": after(({ res }) => res.end(DONE)),
  "error-after": after(({ res }) => res.end(stream([WORDS]))),
  "error-with-usage-after": after(({ res }) => res.end(stream([ERROR_WITH_USAGE]))),
  "silent-after": after(silence),
  "endless-line": (exchange) => {
    if (begin(exchange)) exchange.res.write(stream([ROLE, ...texts], "data: "));
    flood(exchange, "x".repeat(1024 * 1024));
  },
  // Good streams in odd forms.
  "no-done": events(GOOD, ""),
  "after-done": events(GOOD, `${DONE}${event(chunk({ content: "canary" }))}${DONE}`),
  "stays-open": (exchange) =>
    exchange.res.write(begin(exchange) ? stream(GOOD) : whole(message(TEXT))),
  crlf: streams(stream(GOOD).replaceAll("\n", "\r\n")),
  cr: streams(stream(GOOD).replaceAll("\n", "\r")),
  comments: streams(stream(GOOD).replaceAll("data:", ": canary\n\n: another\ndata:")),
  "no-space": streams(stream(GOOD).replaceAll("data: ", "data:")),
  fields: streams(stream(GOOD).replaceAll("data:", "id: 7\nevent: message\nretry: 5\ndata:")),
  "many-lines": streams(
    GOOD.map((each) => `${JSON.stringify(each, null, 1).replace(/^/gm, "data: ")}\n\n`).join("") +
      DONE,
  ),
  "byte-order-mark": streams(`\ufeff${stream(GOOD)}`),
  "no-blank-line": events([ROLE, ...texts], event(STOP).trimEnd()),
  "byte-by-byte": inPieces(1),
  "in-sevens": inPieces(7),
  "in-one": streams(stream(GOOD)),
  charset: ({ res }) =>
    res.writeHead(200, { "content-type": "Text/Event-Stream;Charset=UTF-8" }).end(stream(GOOD)),
  "early-hints": (exchange) =>
    exchange.res.writeEarlyHints({ link: "</canary>; rel=preload" }, () => {
      good(exchange);
    }),
  "until-close": ({ res }) => {
    res.useChunkedEncodingByDefault = false; // the end of the connection is the end of the answer
    res.writeHead(200, { "content-type": SSE, connection: "close" }).end(stream(GOOD));
  },
  "empty-choices": events(GOOD.flatMap((each) => [{ ...chunk({}), choices: [] }, each])),
  "empty-deltas": events(
    GOOD.flatMap((each) => [chunk({ content: "" }), chunk({ content: null }), each]),
  ),
  "role-again": events([
    ROLE,
    ...PIECES.map((content) => chunk({ role: "assistant", content })),
    STOP,
  ]),
  "finish-again": events([ROLE, ...texts, STOP, STOP, usageChunk()]),
  "long-line": async (exchange) => {
    const [, content = ""] = /long (\d+)/.exec(JSON.stringify(exchange.body["messages"])) ?? [];
    const text = "é".repeat(Number(content));
    exchange.res.end(
      begin(exchange) ? stream([ROLE, chunk({ content: text }), STOP]) : whole(message(text)),
    );
  },
  trickle: async (exchange) => {
    if (!begin(exchange)) return exchange.res.end(whole(message(TEXT)));
    for (const each of SAID) {
      exchange.res.write(event(each));
      await pause(exchange.argument);
    }
    return exchange.res.end(DONE);
  },
  flood: (exchange) => {
    if (begin(exchange)) exchange.res.write(stream([ROLE], ""));
    flood(exchange, event(chunk({ content: "x".repeat(64 * 1024) })));
  },
  // Usage in odd places.
  "usage-never": both(SAID, whole(message(TEXT), "stop", { usage: undefined })),
  "usage-null": both(
    [
      ...SAID.map((each) => ({ ...each, usage: null })),
      usageChunk(),
      { ...usageChunk(), usage: null },
    ],
    whole(message(TEXT)),
  ),
  "usage-nonsense": withUsage({
    prompt_tokens: -7,
    completion_tokens: "5",
    total_tokens: null,
    prompt_tokens_details: 1,
  }),
  "usage-empty": both(
    [ROLE, ...texts.map((each) => ({ ...each, usage: {} })), STOP],
    whole(message(TEXT), "stop", { usage: {} }),
  ),
  "usage-digits": withUsage({ prompt_tokens: "7", completion_tokens: "5", total_tokens: "12" }),
  // The greatest whole number that JSON readers agree about.
  "usage-absurd": withUsage({
    prompt_tokens: Number.MAX_SAFE_INTEGER,
    completion_tokens: 10,
    total_tokens: Number.MAX_SAFE_INTEGER,
  }),
  "usage-sum": withUsage({ ...USAGE, total_tokens: 109 }),
  "usage-with-finish": events([ROLE, ...texts, { ...STOP, usage: USAGE }]),
  "usage-in-choice": events([
    ROLE,
    ...texts,
    { ...STOP, choices: [{ ...STOP.choices[0], usage: USAGE }] },
  ]),
  "usage-everywhere": events([
    ...SAID.map((each, index) => ({
      ...each,
      usage: { ...USAGE, completion_tokens: index + 1, total_tokens: index + 8 },
    })),
    usageChunk(),
  ]),
  // Two calls at once.
  tools: tools(inPiecesOf((index) => index)),
  "tools-all-zero": tools(inPiecesOf(() => 0)),
  "tools-no-index": tools(CALLS.map((call) => fragment(undefined, call))),
  "tools-whole": tools([chunk({ tool_calls: CALLS.map((call, index) => ({ index, ...call })) })]),
  "tools-in-turn": tools([
    ...CALLS.map((call, index) => fragment(index, opening(call))),
    ...[0, 1].flatMap((half) => CALLS.map((call, index) => fragment(index, halves(call)[half]!))),
  ]),
  "tools-repeated": tools(
    CALLS.flatMap((call, index) =>
      halves(call).map((half) =>
        fragment(index, {
          ...opening(call),
          function: { ...opening(call).function, ...half.function },
        }),
      ),
    ),
  ),
  "tools-far": tools(inPiecesOf((index) => index * 5 + 3)),
};

function perform(name: string, exchange: Exchange): unknown {
  const [, stem = "", digits] = /^(.*?)(?:-(\d+))?$/.exec(name) ?? [];
  const behaviour = BEHAVIOURS[name] ?? BEHAVIOURS[stem];
  if (!behaviour) return status({ ...exchange, argument: 404 });
  return behaviour({ ...exchange, argument: digits === undefined ? 0 : Number(digits) });
}

export async function startProvider(port = 0): Promise<Provider> {
  const came = new Map<string, Call[]>();
  const behaviours = new Map<string, string>();
  const changes = new EventEmitter().setMaxListeners(0);
  const connections = new WeakMap<Socket, { readonly number: number; requests: number }>();
  let connected = 0;

  function keep(req: IncomingMessage, res: ServerResponse, model: string, body: Json): Call {
    const connection = connections.get(req.socket)!;
    const before = req.socket.bytesWritten;
    const [closed, finished] = ["close", "finish"].map(
      (name) => new Promise<void>((resolve) => res.on(name, resolve)),
    );
    const call: Call = {
      model,
      body,
      headers: req.headers,
      connection: connection.number,
      position: connection.requests,
      finished: finished!,
      sent: () => req.socket.bytesWritten - before,
      stalled: new Promise((resolve) => res.on("stalled", resolve)),
      left: closed!.then(() => (res.writableFinished ? new Promise(() => undefined) : undefined)),
    };
    connection.requests += 1;
    came.set(model, [...(came.get(model) ?? []), call]);
    changes.emit("call");
    return call;
  }

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(piece as Buffer);
    const parsed = parseJson(Buffer.concat(pieces).toString("utf8"));
    const body: Json = isObject(parsed) ? parsed : {};
    const model = req.url === `/${ELSEWHERE}` ? ELSEWHERE : String(body["model"]);
    const number = came.get(model)?.length ?? 0;
    const { position } = keep(req, res, model, body);
    const turned = () => once(changes, `turn ${model}`).then(([behaviour]) => String(behaviour));
    const behaviour = behaviours.get(model) ?? model.split(":", 1)[0]!;
    await perform(behaviour, { body, number, position, argument: 0, res, turned });
  }

  const servers = [0, 1].map(() => {
    const server = http.createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (req, res) => {
      res.on("error", () => undefined); // told by `left`
      serve(req, res).catch(() => res.destroy());
    });
    server.on("connection", (socket) =>
      connections.set(socket, { number: connected++, requests: 0 }),
    );
    return server;
  });
  const urls: string[] = [];
  for (const [index, server] of servers.entries()) {
    await new Promise<void>((resolve, reject) =>
      server.once("error", reject).listen(port === 0 ? 0 : port + index, "127.0.0.1", resolve),
    );
    urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }

  return {
    url: urls[0]!,
    loneUrl: urls[1]!,
    goneUrl: "http://127.0.0.1:1",
    calls: (model) => came.get(model) ?? [],
    async call(model, position, deadlineMs) {
      const there = async () => {
        for (;;) {
          const call = came.get(model)?.[position];
          if (call) return call;
          await once(changes, "call");
        }
      };
      return within(there(), `request ${position + 1} of the gateway for ${model}`, deadlineMs);
    },
    turn(model, behaviour) {
      behaviours.set(model, behaviour);
      changes.emit(`turn ${model}`, behaviour);
    },
    async close() {
      for (const server of servers) {
        const closed = once(server, "close");
        server.close();
        server.closeAllConnections();
        await closed;
      }
    },
  };
}
