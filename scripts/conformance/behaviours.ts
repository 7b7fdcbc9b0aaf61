// The behaviours of the suite's own provider, by the name of the requested model.

import type { ServerResponse } from "node:http";
import { setImmediate as turn, setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import {
  answers,
  begin,
  chunk,
  event,
  events,
  refuses,
  stream,
  usageChunk,
  whole,
} from "./wire.ts";
import { DONE, ERROR_WITH_USAGE, GOOD, ROLE, SAID, STOP, TEXTS, withUsage } from "./wire.ts";
import {
  GOOD_REPLY,
  GOOD_STREAM,
  PIECES,
  TEXT,
  THOUGHTS,
  TWO_CALLS,
  USAGE,
  WORDS,
} from "./wire.ts";
import { ELSEWHERE, FLOOD_BYTES, JSON_TYPE, type Asked, type Behaviour } from "./wire.ts";

const [MANY_KEYS, KEYS_A_PIECE] = [5_000_000, 20_000];

/** Values whose conversion to a string throws, where strings or numbers are expected. */
const ERROR_OBJECT = {
  error: {
    message: { toString: 1, canary: "canary" },
    type: { toString: 1 },
    code: { toString: 1 },
  },
};
/** An invalid tool call of the model, as Groq reports it. */
const CALL_FAILED = {
  error: {
    message: "canary: Failed to call a function. Please adjust your prompt.",
    type: "invalid_request_error",
    code: "tool_use_failed",
    failed_generation: "<function=canary>",
  },
};
/** Streams these events. If a whole reply is requested, behaves as `otherwise`. */
const inStream =
  (list: readonly unknown[], otherwise: Behaviour): Behaviour =>
  (asked, argument) =>
    (asked.body["stream"] === true ? events(list) : otherwise)(asked, argument);

/**
 * Sends the first pieces of a stream or of a whole reply (the argument is their number), then calls
 * `then`.
 */
const after =
  (then: (res: ServerResponse) => unknown): Behaviour =>
  (asked, pieces) => {
    if (begin(asked)) asked.res.write(stream([ROLE, ...TEXTS.slice(0, pieces)], ""));
    else asked.res.write(GOOD_REPLY.slice(0, 20 * pieces + 1));
    return then(asked.res);
  };

/**
 * A good reply in pieces of `size` bytes, each in its own packet as far as a sender controls that.
 */
const inPieces =
  (size: number): Behaviour =>
  async (asked) => {
    const bytes = Buffer.from(begin(asked) ? GOOD_STREAM : GOOD_REPLY);
    for (let at = 0; at < bytes.length && asked.res.writable; at += size) {
      asked.res.write(bytes.subarray(at, at + size));
      await turn();
    }
    asked.res.end();
  };

/** Sends a text repeatedly, no faster than it is read. */
function flood({ res }: Asked, text: string): void {
  const bytes = Buffer.from(text);
  let sent = 0;
  const send = () => {
    while (sent < FLOOD_BYTES) {
      sent += bytes.length;
      if (!res.write(bytes)) return;
    }
    res.end(stream([STOP]));
  };
  res.on("drain", send);
  send();
}

const status: Behaviour = (asked, code) => refuses(code)(asked, 0);
const silence = (): void => undefined;
const good = events(GOOD);
const reset = ({ res }: Pick<Asked, "res">) => res.socket?.resetAndDestroy();

/** A reply whose content a filter removed completely, even the message (Azure). */
const filtered = events(
  [chunk(undefined, "content_filter"), usageChunk()],
  whole(undefined, "content_filter"),
);
const callFailed = refuses(400, CALL_FAILED);
/** A good reply, except for requests that contain the word "bad". */
const unlessBad =
  (bad: Behaviour): Behaviour =>
  (asked) =>
    (JSON.stringify(asked.body["messages"]).includes("bad") ? bad : good)(asked, 0);

/** A good whole reply that has an object with very many members beside the choices. */
async function manyKeys({ res }: Asked): Promise<void> {
  res.writeHead(200, { "content-type": JSON_TYPE });
  res.write(`${GOOD_REPLY.slice(0, -1)},"more":{"first":0`);
  for (let from = 0; from < MANY_KEYS && res.writable; from += KEYS_A_PIECE) {
    const names = Array.from({ length: KEYS_A_PIECE }, (_, at) => `,"k${from + at}":0`);
    res.write(names.join(""));
    await turn();
  }
  res.end("}}");
}

/** A stream with `ms` milliseconds between its events. */
const trickle: Behaviour = async (asked, ms) => {
  if (!begin(asked)) return asked.res.end(GOOD_REPLY);
  for (const each of SAID) {
    asked.res.write(event(each));
    await pause(ms);
  }
  return asked.res.end(DONE);
};
/** A reply whose length is the number in the question. */
const longLine: Behaviour = (asked) => {
  const [, length] = /long (\d+)/.exec(JSON.stringify(asked.body["messages"])) ?? [];
  const content = "é".repeat(Number(length));
  return events([ROLE, chunk({ content }), STOP], whole({ content }))(asked, 0);
};

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  // Refusals and failures before the first delta.
  status,
  overloaded: (asked, seconds) => refuses(429, WORDS, { "retry-after": String(seconds) })(asked, 0),
  once: (asked, code) =>
    (asked.number === 0 ? refuses(code, WORDS, { "retry-after": "0" }) : good)(asked, 0),
  picky: unlessBad(refuses(400)),
  "picky-filter": unlessBad(filtered),
  "picky-calls": unlessBad(callFailed),
  filtered,
  "call-failed": callFailed,
  "call-failed-in-stream": inStream([ROLE, CALL_FAILED], callFailed),
  "error-object": inStream([ERROR_OBJECT], refuses(500, ERROR_OBJECT)),
  "error-with-usage": events([ROLE, ERROR_WITH_USAGE], JSON.stringify(ERROR_WITH_USAGE)),
  "many-keys": manyKeys,
  "error-in-200": refuses(200),
  "error-first": events([WORDS], JSON.stringify(WORDS)),
  "error-after-role": events([ROLE, WORDS], JSON.stringify(WORDS)),
  nothing: answers("", ""),
  "only-done": answers(DONE, "{}"),
  "not-json": answers("data: canary\n\ndata: {\n\n", '{"canary":'),
  html: ({ res }) => res.writeHead(200, { "content-type": "text/html" }).end("<html>canary</html>"),
  redirect: ({ res }, code) => res.writeHead(code, { location: `/${ELSEWHERE}` }).end(),
  gzip: answers(gzipSync(GOOD_STREAM), gzipSync(GOOD_REPLY), {
    "content-encoding": "gzip",
  }),
  "too-short": (asked) => {
    const streamed = begin(asked, { "content-length": 10_000 });
    const text = streamed ? stream([ROLE], "") : GOOD_REPLY;
    asked.res.write(text, () => asked.res.socket?.end());
  },
  reset,
  silent: silence,
  held: async (asked) => perform(await asked.turned(), asked),
  "closes-when-reused": (asked, argument) => (asked.position > 0 ? reset : good)(asked, argument),

  // Failures after the first delta.
  "cut-after": after((res) => res.write("", () => setImmediate(() => reset({ res })))),
  "ends-after": after((res) => res.end()),
  "done-after": after((res) => res.end(DONE)),
  "error-after": after((res) => res.end(stream([WORDS]))),
  "error-with-usage-after": after((res) => res.end(stream([ERROR_WITH_USAGE]))),
  "silent-after": after(silence),
  "endless-line": (asked) => {
    if (begin(asked)) asked.res.write(stream([ROLE, ...TEXTS], "data: "));
    flood(asked, "x".repeat(1024 * 1024));
  },
  flood: (asked) => {
    if (begin(asked)) asked.res.write(stream([ROLE], ""));
    flood(asked, event(chunk({ content: "x".repeat(64 * 1024) })));
  },

  // Good replies, most of them in odd forms.
  good,
  reasoning: events(
    [ROLE, ...THOUGHTS.map((text) => chunk({ reasoning_content: text })), ...GOOD.slice(1)],
    whole({ content: TEXT, reasoning_content: THOUGHTS.join("") }),
  ),
  trickle,
  "no-done": answers(stream(GOOD, "")),
  "after-done": answers(stream(GOOD, `${DONE}${event(chunk({ content: "canary" }))}${DONE}`)),
  "stays-open": (asked) => asked.res.write(begin(asked) ? GOOD_STREAM : GOOD_REPLY),
  crlf: answers(GOOD_STREAM.replaceAll("\n", "\r\n")),
  cr: answers(GOOD_STREAM.replaceAll("\n", "\r")),
  comments: answers(GOOD_STREAM.replaceAll("data:", ": canary\n\n: another\ndata:")),
  "no-space": answers(GOOD_STREAM.replaceAll("data: ", "data:")),
  fields: answers(GOOD_STREAM.replaceAll("data:", "id: 7\nevent: message\nretry: 5\ndata:")),
  "many-lines": answers(
    GOOD.map((each) => `${JSON.stringify(each, null, 1).replace(/^/gm, "data: ")}\n\n`).join("") +
      DONE,
  ),
  "byte-order-mark": answers(`\ufeff${GOOD_STREAM}`),
  "no-blank-line": answers(stream([ROLE, ...TEXTS], event(STOP).trimEnd())),
  "byte-by-byte": inPieces(1),
  "in-sevens": inPieces(7),
  "in-one": good,
  charset: answers(GOOD_STREAM, GOOD_REPLY, { "content-type": "Text/Event-Stream;Charset=UTF-8" }),
  "early-hints": (asked) =>
    asked.res.writeEarlyHints({ link: "</canary>; rel=preload" }, () => {
      good(asked, 0);
    }),
  "until-close": (asked, argument) => {
    asked.res.useChunkedEncodingByDefault = false; // closing the connection ends the body
    answers(GOOD_STREAM, GOOD_REPLY, { connection: "close" })(asked, argument);
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
  "finish-again": events([...SAID, STOP, usageChunk()]),
  "long-line": longLine,

  // Usage in odd places.
  "usage-never": events(SAID, whole({ content: TEXT }, "stop", { usage: undefined })),
  "usage-null": events([
    ...SAID.map((each) => ({ ...each, usage: null })),
    usageChunk(),
    { ...usageChunk(), usage: null },
  ]),
  "usage-nonsense": withUsage({
    prompt_tokens: -7,
    completion_tokens: "5",
    total_tokens: null,
    prompt_tokens_details: 1,
  }),
  "usage-empty": events(
    [ROLE, ...TEXTS.map((each) => ({ ...each, usage: {} })), STOP],
    whole({ content: TEXT }, "stop", { usage: {} }),
  ),
  "usage-digits": withUsage({ prompt_tokens: "7", completion_tokens: "5", total_tokens: "12" }),
  // The largest integer that all JSON parsers read alike.
  "usage-absurd": withUsage({
    prompt_tokens: Number.MAX_SAFE_INTEGER,
    completion_tokens: 10,
    total_tokens: Number.MAX_SAFE_INTEGER,
  }),
  "usage-sum": withUsage({ ...USAGE, total_tokens: 109 }),
  "usage-with-finish": events([ROLE, ...TEXTS, { ...STOP, usage: USAGE }]),
  "usage-in-choice": events([
    ROLE,
    ...TEXTS,
    { ...STOP, choices: [{ ...STOP.choices[0], usage: USAGE }] },
  ]),
  "usage-everywhere": events([
    ...SAID.map((each, index) => ({
      ...each,
      usage: { ...USAGE, completion_tokens: index + 1, total_tokens: index + 8 },
    })),
    usageChunk(),
  ]),
  ...TWO_CALLS,
};

/** Runs the behaviour named before the colon. A number at its end is the behaviour's argument. */
export function perform(name: string, asked: Asked): unknown {
  const [, stem = "", digits = "0"] = /^(.*?)(?:-(\d+))?$/.exec(name) ?? [];
  const behaviour = BEHAVIOURS[name] ?? BEHAVIOURS[stem] ?? refuses(404);
  return behaviour(asked, Number(digits));
}
