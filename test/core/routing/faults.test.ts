// Every fault of a provider, for a client of the model and for a client of an alias, whole and
// streamed: how often each provider is called, what the client gets, what the operator's log says,
// and that the gateway keeps serving. wire.md "Provider errors".

import { describe } from "node:test";
import { gzipSync } from "node:zlib";
import {
  chunk,
  completion,
  endless,
  event,
  inPieces,
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
import { fault, tryFault, type Row } from "./one-fault.ts";
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
/**
 * Each event is its own chunk, all in one packet, so each is read directly after the previous one.
 */
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
const fineEvents = [chunk({ content: "Fine." }), chunk({}, "stop")].map(event).join("");
const headersOnly: Behaviour = ({ res, body }) => {
  res
    .writeHead(200, { "content-type": body["stream"] ? "text/event-stream" : "application/json" })
    .flushHeaders();
};
/** Begins a longer body with this status, and then calls `then`. */
const half =
  (code: number, then: "stays" | "breaks"): Behaviour =>
  ({ res, socket }) => {
    res.writeHead(code, { ...JSON_TYPE, "content-length": "99" });
    res.write("{", () => then === "breaks" && socket.resetAndDestroy());
  };
/** Bytes that are not a complete HTTP response, or not HTTP. */
const bytes =
  (text: string): Behaviour =>
  ({ socket }) => {
    socket.write(text);
  };

/** A silent provider: the timeout that notices it, and the forms in which it is tried. */
const MUTE = { deadline: "first_token_ms" } as const;
const STALLS = { deadline: "idle_ms" } as const;
const WHOLE = { only: "whole" } as const;
const STREAMED = { only: "streamed" } as const;
const NO_CLOSE = { ...STREAMED, deadline: "closing_ms" } as const;
/** How often the first model is tried, and what clients of the model and of the alias get. */
const FINE = [1, "ok", "a"] as const;
const FINE_AGAIN = [2, "ok", "a"] as const;
const OVERLOADED = [2, "model_overloaded", "b"] as const;
const UNAVAILABLE = [1, "model_unavailable", "b"] as const;
const FAILED = [2, "upstream_error", "b"] as const;
const TOO_LATE = [1, "upstream_timeout", "b"] as const;
const TOO_LONG = [1, "context_length_exceeded", "b"] as const;
const BROKEN = [1, "in-band upstream_error", "in-band upstream_error"] as const;
const STALLED = [1, "in-band upstream_timeout", "in-band upstream_timeout"] as const;
/** An error inside a 200. */
const inside = (error: object, whole = error): Behaviour =>
  streamedElse(stream([failure("x", error)], "eof"), status(200, failure("x", whole)));
const refused = (code: number, message: string, more: object = {}) =>
  status(code, failure(message, more));
const longPrompt = { code: "context_length_exceeded" };
const namesLength = `This model's maximum context length is 10 tokens ${"x".repeat(100_000)}`;
const overloaded = (retryAfter: string, tries: number, told = retryAfter) =>
  fault(
    `429 with the Retry-After ${retryAfter}`,
    [tries, "model_overloaded", "b"],
    () => refusing(429, retryAfter),
    { retryAfter: told },
  );
const ended = (...events: readonly object[]) => stream(events, "eof");
const choiceError = { choices: [{ index: 0, delta: {}, error: { message: "x" } }] };
const nameless = chunk({ tool_calls: [{ index: 0, id: "a", function: { arguments: "{}" } }] });
const secretive = failure("boom at http://10.0.0.1 with sk-provider-secret");
const headerFlood = `HTTP/1.1 200 OK\r\n${"x-filler: aaaaaaaaaaaaaaaa\r\n".repeat(3_000)}`;
const upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
const compressed: Behaviour = ({ res }) => {
  res.writeHead(200, { ...JSON_TYPE, "content-encoding": "gzip" });
  res.end(gzipSync("{}"));
};
const overload = failure("overloaded", { code: 529 });
const finish = chunk({}, "stop");
const garbage = "data: {{{\n\n";

const ROWS: Row[] = [
  fault("none", FINE, () => speak("Fine.")),
  fault("Content-Encoding: none", FINE, () => (asked) => {
    asked.res.setHeader("content-encoding", "none");
    speak("Fine.")(asked);
  }),
  fault("201, as some frameworks answer each POST", FINE, () =>
    streamedElse(
      inPieces(201, "text/event-stream", fineEvents, Infinity),
      status(201, completion({ content: "Fine." })),
    ),
  ),
  fault("a late first token", FINE, () => late),
  fault("500 once", FINE_AGAIN, () => inTurn(status(500), speak("Fine."))),
  fault("a reset before the headers, once", FINE_AGAIN, () => inTurn(reset, speak("Fine."))),
  ...[408, 425, 529].map((code) =>
    fault(`${code} always`, OVERLOADED, () => status(code), { retryAfter: "5" }),
  ),
  overloaded("0", 2, "1"),
  overloaded("3600", 1, "60"),
  overloaded(new Date(Date.now() - 1_000).toUTCString(), 2, "1"),
  fault("an error inside a 200 that names a rate limit", OVERLOADED, () =>
    inside({ code: "rate_limit_exceeded" }, { type: "overloaded_error" }),
  ),
  fault("401", UNAVAILABLE, () => refused(401, "sk-provider-secret is wrong")),
  fault("404 in plain text", UNAVAILABLE, () =>
    status(404, "not found", { "content-type": "text/plain" }),
  ),
  fault("401 whose body never comes", UNAVAILABLE, () => half(401, "stays"), WHOLE),
  fault("500 always", FAILED, () => status(500)),
  fault("502 with a page", FAILED, () => status(502, "<html>", HTML)),
  fault("204", FAILED, () => status(204, "")),
  fault("a reset before the headers", FAILED, () => reset),
  fault("a reset in the body", FAILED, () => streamedElse(stream([], "cut"), half(200, "breaks"))),
  fault("a failed finish_reason first", FAILED, () =>
    streamedElse(stream([chunk({}, "network_error")]), status(200, completion({}, "error"))),
  ),
  fault("a 200 without a content type", FAILED, () => status(200, "{}", {})),
  fault("no choices", FAILED, () => status(200, { choices: [] })),
  fault("a choice that is empty", FAILED, () => status(200, { choices: [{}] })),
  fault("a list", FAILED, () => status(200, [])),
  fault("a redirect", FAILED, () => status(302, "", { location: "http://127.0.0.1:1/" })),
  fault("a body without end", FAILED, () =>
    streamedElse(endless("text/event-stream", filler), endless("application/json", filler)),
  ),
  fault("a flood of headers", FAILED, () => bytes(headerFlood)),
  fault("a change of protocols", FAILED, () => bytes(upgrade)),
  fault("no HTTP", FAILED, () => bytes("nonsense\r\n\r\n")),
  fault("a compressed body", FAILED, () => compressed),
  fault("silence", TOO_LATE, () => silent, MUTE),
  fault("headers, then silence", TOO_LATE, () => headersOnly, MUTE),
  fault("half a body, then silence", TOO_LATE, () => half(200, "stays"), { ...WHOLE, ...STALLS }),
  fault("comments and nothing else", TOO_LATE, () => commentsOnly, { ...STREAMED, ...MUTE }),
  fault("a context that is too long, in 100 KB", TOO_LONG, () => refused(400, namesLength)),
  fault("an error event that names it", TOO_LONG, () => ended(failure("x", longPrompt)), STREAMED),
  fault("an error inside a 200 that names a filter", [1, "content_filter", "content_filter"], () =>
    inside({ code: "content_filter" }),
  ),
  fault("another 400", [1, "upstream_rejected", "upstream_rejected"], () =>
    refused(400, "no such field"),
  ),
  fault(
    "a stream cut after its finish",
    FINE,
    () => stream([...begun, finish, usageChunk()], "cut"),
    STREAMED,
  ),
  fault(
    "a garbage event",
    FINE,
    () => rawStream(`${garbage}${event(begun[1])}${event(finish)}`),
    STREAMED,
  ),
  fault("comments without end after the finish", FINE, () => commentsAfterFinish, NO_CLOSE),
  fault("silence after the finish", FINE, () => stream([...begun, finish], "open"), NO_CLOSE),
  fault("a stream ended before any text", FAILED, () => stream([begun[0]], "done"), STREAMED),
  fault("nothing but garbage", FAILED, () => rawStream(garbage), STREAMED),
  fault(
    "an error event first, and an answer after it",
    OVERLOADED,
    () => stream([overload, ...more]),
    STREAMED,
  ),
  fault("the same in pieces", OVERLOADED, () => together(overload, ...more), STREAMED),
  fault("a stream cut after text", BROKEN, () => stream(begun, "cut"), STREAMED),
  fault(
    "an error event after text, and more after it",
    BROKEN,
    () => stream([...begun, secretive, ...more]),
    STREAMED,
  ),
  fault("an error inside a choice", BROKEN, () => stream([...begun, choiceError]), STREAMED),
  fault(
    "a tool call that never gets a name",
    BROKEN,
    () => stream([...begun, nameless, chunk({}, "tool_calls")]),
    STREAMED,
  ),
  fault(
    "a failed finish_reason after text",
    BROKEN,
    () => stream([...begun, chunk({}, "abort")]),
    STREAMED,
  ),
  fault("a stream stalled after text", STALLED, () => stream(begun, "open"), {
    ...STREAMED,
    ...STALLS,
  }),
];

describe("every fault, by name and by alias, whole and streamed", { concurrency: 4 }, () => {
  for (const row of ROWS) tryFault(row);
});
