// Every fault that a provider can show, for a client who named the model and for one who named an
// alias, whole and streamed: how often each provider is asked, what the client gets, what the
// operator is told, and that the gateway serves on. wire.md "Provider errors".

import { describe } from "node:test";
import { gzipSync } from "node:zlib";
import {
  chunk,
  completion,
  endless,
  event,
  inTurn,
  rawStream,
  reset,
  silent,
  speak,
  status,
  stream,
  usageChunk,
  type Behaviour,
} from "../../support/provider.ts";
import { rows, tryFault, type Row } from "./one-fault.ts";
import { failure, refusing } from "./two-providers.ts";

const JSON_TYPE = { "content-type": "application/json" };
const HTML = { "content-type": "text/html" };
const begun = [chunk({ role: "assistant", content: "" }), chunk({ content: "Once" })];
const more = [chunk({ content: " never." }), chunk({}, "stop")];

const streamedElse =
  (streamed: Behaviour, whole: Behaviour): Behaviour =>
  (asked) =>
    (asked.body["stream"] ? streamed : whole)(asked);

const filler = Buffer.alloc(1024 * 1024, "x");
const late: Behaviour = (asked) => {
  setImmediate(() => {
    speak("Fine.")(asked);
  });
};
/** Each event is a chunk of its own, all of them in one packet: one is read right after the other. */
const together =
  (...events: unknown[]): Behaviour =>
  ({ res }) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const each of events) res.write(event(each));
    res.end();
  };
const commentsAfterFinish: Behaviour = ({ res }) => {
  res.writeHead(200, { "content-type": "text/event-stream" });
  res.write(`${event(chunk({ content: "Fine." }))}${event(chunk({}, "stop"))}`);
  const beat = setInterval(() => res.write(": ping\n\n"), 50);
  res.on("close", () => clearInterval(beat));
};
const commentsOnly: Behaviour = ({ res }) => {
  res.writeHead(200, { "content-type": "text/event-stream" });
  const beat = setInterval(() => res.write(": keep-alive\n\n"), 20);
  res.on("close", () => clearInterval(beat));
};
const headersOnly: Behaviour = ({ res, body }) => {
  res
    .writeHead(200, { "content-type": body["stream"] ? "text/event-stream" : "application/json" })
    .flushHeaders();
};
/** Begins a body that is longer, with this status, and then does this. */
const half =
  (code: number, then: "stays" | "breaks"): Behaviour =>
  ({ res, socket }) => {
    res.writeHead(code, { ...JSON_TYPE, "content-length": "99" });
    res.write("{", () => then === "breaks" && socket.resetAndDestroy());
  };
/** Bytes that are no response of HTTP, or not all of one. */
const bytes =
  (text: string): Behaviour =>
  ({ socket }) => {
    socket.write(text);
  };

/** The fault is silence, or what goes on after the end. */
const BRIEF = { patience: 150 } as const;
const streamedOnly = { only: "streamed" } as const;
const wholeOnly = { only: "whole" } as const;
const inBand = (code: string) => [1, `in-band ${code}`, `in-band ${code}`] as const;
/** An error inside a 200. */
const inside = (error: object, whole = error): Behaviour =>
  streamedElse(stream([failure("x", error)], "eof"), status(200, failure("x", whole)));
const brokenKey = { type: "authentication_error" };
const limited = { code: "rate_limit_exceeded" };
const TOO_LONG = "This model's maximum context length is 10 tokens";
const refused = (code: number, message: string, more: object = {}) =>
  status(code, failure(message, more));
const wrongKey = (code: number) => () => refused(code, "sk-provider-secret is wrong");
const overloaded = (retryAfter: string, tries: number, told = retryAfter) =>
  rows(
    [tries, "model_overloaded", "b"],
    { [`429 with the Retry-After ${retryAfter}`]: () => refusing(429, retryAfter) },
    { retryAfter: told },
  );

const ROWS: Row[] = [
  ...rows([1, "ok", "a"], { none: () => speak("Fine."), "a late first token": () => late }),
  ...rows([2, "ok", "a"], {
    "500 once": () => inTurn(status(500), speak("Fine.")),
    "a reset before the headers, once": () => inTurn(reset, speak("Fine.")),
  }),
  ...[408, 425, 529].flatMap((code) =>
    rows(
      [2, "model_overloaded", "b"],
      { [`${code} always`]: () => status(code) },
      { retryAfter: "5" },
    ),
  ),
  ...overloaded("0", 2, "1"),
  ...overloaded("3600", 1, "60"),
  ...overloaded(new Date(Date.now() - 1_000).toUTCString(), 2, "1"),
  ...rows([2, "model_overloaded", "b"], {
    "an error inside a 200 that names a rate limit": () =>
      inside(limited, { type: "overloaded_error" }),
  }),
  ...rows([1, "model_unavailable", "b"], {
    "429 for an empty purse": () => refused(429, "x", { code: "insufficient_quota" }),
    "an error inside a 200 that names a bad key": () => inside(brokenKey),
    "401": wrongKey(401),
    "404 in plain text": () => status(404, "not found", { "content-type": "text/plain" }),
  }),
  ...rows(
    [1, "model_unavailable", "b"],
    { "401 whose body never comes": () => half(401, "stays") },
    { ...BRIEF, ...wholeOnly },
  ),
  ...rows([2, "upstream_error", "b"], {
    "500 always": () => status(500),
    "502 with a page": () => status(502, "<html>", HTML),
    "204": () => status(204, ""),
    "a reset before the headers": () => reset,
    "a reset in the body": () => streamedElse(stream([], "cut"), half(200, "breaks")),
    "a failed finish_reason first": () =>
      streamedElse(stream([chunk({}, "network_error")]), status(200, completion({}, "error"))),
    "a 200 without a content type": () => status(200, "{}", {}),
    "a bare error": () => status(200, { error: "no" }),
    "no choices": () => status(200, { choices: [] }),
    "a choice that is empty": () => status(200, { choices: [{}] }),
    "a list": () => status(200, []),
    "a redirect": () => status(302, "", { location: "http://127.0.0.1:1/" }),
    "a body without end": () =>
      streamedElse(endless("text/event-stream", filler), endless("application/json", filler)),
  }),
  ...rows([2, "upstream_error", "b"], {
    "a flood of headers": () =>
      bytes(`HTTP/1.1 200 OK\r\n${"x-filler: aaaaaaaaaaaaaaaa\r\n".repeat(3_000)}`),
    "a change of protocols": () =>
      bytes("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    "no HTTP": () => bytes("nonsense\r\n\r\n"),
    "a compressed body": () => (asked) => {
      asked.res.writeHead(200, { ...JSON_TYPE, "content-encoding": "gzip" });
      asked.res.end(gzipSync("{}"));
    },
  }),
  ...rows(
    [1, "upstream_timeout", "b"],
    { silence: () => silent, "headers, then silence": () => headersOnly },
    BRIEF,
  ),
  ...rows(
    [1, "upstream_timeout", "b"],
    { "half a body, then silence": () => half(200, "stays") },
    { ...BRIEF, ...wholeOnly },
  ),
  ...rows(
    [1, "upstream_timeout", "b"],
    { "comments and nothing else": () => commentsOnly },
    { ...BRIEF, ...streamedOnly },
  ),
  ...rows([1, "context_length_exceeded", "b"], {
    "a context that is too long": () => refused(400, "x", { code: "context_length_exceeded" }),
    "the same in 100 KB": () => refused(400, `${TOO_LONG} ${"x".repeat(100_000)}`),
  }),
  ...rows(
    [1, "context_length_exceeded", "b"],
    {
      "an error event first that names it": () =>
        stream([failure("x", { code: "context_length_exceeded" })], "eof"),
    },
    streamedOnly,
  ),
  ...rows([1, "content_filter", "content_filter"], {
    "an error inside a 200 that names a filter": () => inside({ code: "content_filter" }),
  }),
  ...rows([1, "upstream_rejected", "upstream_rejected"], {
    "another 400": () => refused(400, "no such field"),
  }),
  ...rows(
    [1, "ok", "a"],
    {
      "a stream cut after its finish": () =>
        stream([...begun, chunk({}, "stop"), usageChunk()], "cut"),
      "a garbage event": () =>
        rawStream(`data: {{{\n\n${event(begun[1])}${event(chunk({}, "stop"))}`),
    },
    streamedOnly,
  ),
  ...rows(
    [1, "ok", "a"],
    {
      "a stream finished, then comments without end": () => commentsAfterFinish,
      "a stream finished, then silence": () => stream([...begun, chunk({}, "stop")], "open"),
    },
    { ...streamedOnly, ...BRIEF },
  ),
  ...rows(
    [2, "upstream_error", "b"],
    {
      "a stream ended before any text": () => stream([begun[0]], "done"),
      "nothing but garbage": () => rawStream("data: {{{\n\n"),
    },
    streamedOnly,
  ),
  ...rows(
    [2, "model_overloaded", "b"],
    {
      "an error event first, and an answer after it": () =>
        stream([failure("overloaded", { code: 529 }), ...more]),
      "the same in pieces": () => together(failure("overloaded", { code: 529 }), ...more),
    },
    streamedOnly,
  ),
  ...rows(
    inBand("upstream_error"),
    {
      "an error after text, in pieces": () => together(...begun, failure("boom"), ...more),
      "a stream cut after text": () => stream(begun, "cut"),
      "an error event after text, and more after it": () =>
        stream([...begun, failure("boom at http://10.0.0.1 with sk-provider-secret"), ...more]),
      "an error inside a choice": () =>
        stream([...begun, { choices: [{ index: 0, delta: {}, error: { message: "x" } }] }]),
      "a tool call that never gets a name": () => {
        const call = { index: 0, id: "a", function: { arguments: "{}" } };
        return stream([...begun, chunk({ tool_calls: [call] }), chunk({}, "tool_calls")]);
      },
      "a failed finish_reason after text": () => stream([...begun, chunk({}, "abort")]),
    },
    streamedOnly,
  ),
  ...rows(
    inBand("upstream_timeout"),
    { "a stream stalled after text": () => stream(begun, "open") },
    { ...streamedOnly, ...BRIEF },
  ),
];

describe("every fault, by name and by alias, whole and streamed", { concurrency: 4 }, () => {
  for (const row of ROWS) tryFault(row);
});
