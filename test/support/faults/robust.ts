// Faults for each check of the level `robust`, by the check's id less the level. Some are in what
// the gateway says, some in how it asks its provider or treats the connections on both sides.

import { PIECES, TEXT } from "../../../scripts/conformance/provider.ts";
import { isObject, parse, type Answer, type Asked, type Fault } from "../wrong-gateway.ts";
import type { Change as WireChange } from "../wrong-wire.ts";
import {
  anyBody,
  blocks,
  body,
  both,
  chat,
  chunks,
  field,
  has,
  header,
  health,
  ifGood,
  increment,
  mends,
  named,
  ownId,
  raw,
  refuses,
  status,
  thinks,
  type Change,
} from "./kit.ts";

export const marked = (name: string) => chat(ownId(`robust.${name}`));
const streamed = ({ streamed: is }: Asked): boolean => is;
export const says =
  (text: string) =>
  ({ question }: Asked): boolean =>
    question === text;
export const each = (
  names: readonly string[],
  faults: (name: string) => Record<string, Fault>,
): Record<string, Fault> => Object.assign({}, ...names.map(faults));

/** Of the whole reply, or of the stream. */
export const whole = (name: string, answer: Fault["answer"] & {}): Fault => ({
  when: both(marked(name), (asked) => !streamed(asked)),
  answer,
});
export const stream = (name: string, answer: Fault["answer"] & {}): Fault => ({
  when: both(marked(name), streamed),
  answer,
});
const spoil: Change = (value) => (value === PIECES[0] || value === TEXT ? "Grusse" : value);
const event = (json: unknown): string => `data: ${JSON.stringify(json)}`;
const isError = (text: string): boolean => text.startsWith('data: {"error"');
const DONE = "data: [DONE]";
/** A refusal within a stream, as of a gateway that sent status 200 too early. */
const early = (answer: Answer): Answer => ({
  status: 200,
  headers: { ...answer.headers, "content-type": "text/event-stream" },
  text: `${event(parse(answer.text))}\n\n`,
});
/** Only the first of the requests. */
const firstOf = (when: Fault["when"]): Fault["when"] => {
  let met = false;
  return (asked) => {
    if (met || !when(asked)) return false;
    met = true;
    return true;
  };
};
const asking = (name: string, change: WireChange): Fault => ({
  when: () => false,
  wire: (bytes) => (bytes.includes(`:${name}"`) ? change(bytes) : bytes),
});
/** Puts another text in the place of one, of the same length. */
const instead =
  (one: string, other: string): WireChange =>
  (bytes) =>
    bytes.replace(new RegExp(one, "i"), (found) => other.padEnd(found.length));
const toModel = (name: string, model: string): Fault => mends(marked(name), { model });
export const error = (path: string, to: Change) => anyBody(`error.${path}`, to);

const FALLBACKS = [
  ...[401, 402, 403, 404, 408, 429, 500, 503, 529].map((code) => `status-${code}`),
  "error-in-200",
  "error-first",
  "error-after-role",
  "error-with-usage",
  "error-object",
  "call-failed",
  "call-failed-in-stream",
  "nothing",
  "only-done",
  "not-json",
  "html",
  "redirect-302",
  "gzip",
  "too-short",
  "reset",
  "cut-after-0",
  "silent",
  "silent-after-0",
  "gone",
].map((name) => `fallback.${name}`);
const CANONICALS = [
  "status-500",
  "status-401",
  "status-429",
  "error-first",
  "redirect-307",
  "reset",
].map((name) => `canonical.${name}`);
const CUTS = ["reset", "end", "done", "error", "error-with-usage", "silence"].map(
  (name) => `cut.${name}`,
);
const STREAMS = [
  "long-stream",
  "finished.no-done",
  "finished.after-done",
  "finished.stays-open",
  "finished.again",
  "bytes.one-by-one",
  "bytes.sevens",
  "framing.crlf",
  "framing.cr",
  "framing.comments",
  "framing.no-space",
  "framing.fields",
  "framing.many-lines",
  "framing.byte-order-mark",
  "framing.no-blank-line",
  "framing.charset",
  "framing.early-hints",
  "framing.until-close",
  "chunks.empty-choices",
  "chunks.empty-deltas",
  "chunks.role-once",
];
const FIGURES = [
  "good",
  "usage-null",
  "usage-with-finish",
  "usage-in-choice",
  "usage-everywhere",
  "usage-digits",
].map((name) => `usage.figures.${name}`);
const CALLS = [
  "tools",
  "tools-whole",
  "tools-in-turn",
  "tools-all-zero",
  "tools-no-index",
  "tools-repeated",
  "tools-far",
].map((name) => `calls.${name}`);

const robust: Record<string, Fault> = {
  ...each(["stream", "whole", "silence"], (name) => ({
    [`leaving.${name}`]: { when: marked(`leaving.${name}`), holds: true },
  })),

  "usage.asked": asking("usage.asked", instead('"include_usage":true', '"include_usage":null')),
  "usage.hidden": mends(marked("usage.hidden"), { stream_options: { include_usage: true } }),
  ...each(FIGURES, (name) => ({
    [name]: stream(
      name,
      chunks("usage.prompt_tokens", (value) => value && 70),
    ),
  })),
  "usage.whole": whole("usage.whole", body("usage.completion_tokens", increment)),
  ...each(["usage.never", "usage.nonsense", "usage.empty"], (name) => ({
    [`${name}/whole`]: whole(
      name,
      body("usage.completion_tokens", () => -1),
    ),
    [`${name}/stream`]: stream(
      name,
      blocks((events) => events.filter((text) => !text.includes('"choices":[]'))),
    ),
  })),
  "usage.reasoning/whole": whole(
    "usage.reasoning",
    body("usage.completion_tokens", () => 8),
  ),
  "usage.reasoning/stream": stream(
    "usage.reasoning",
    chunks("usage.completion_tokens", (value) => value && 8),
  ),
  "usage.reasoning/detail": whole(
    "usage.reasoning",
    body("usage.completion_tokens_details.reasoning_tokens", () => 0),
  ),

  ...each(FALLBACKS, (name) => ({
    [`${name}/whole`]: whole(name, status(503)),
    [`${name}/stream`]: stream(name, early),
    [`${name}/seen`]: stream(
      name,
      blocks((events) => [event({ error: { message: "It failed." } }), ...events]),
    ),
  })),
  ...each(CANONICALS, (name) => ({
    [`${name}/status`]: whole(name, status(502)),
    [`${name}/stream`]: stream(name, early),
    [`${name}/error`]: whole(
      name,
      error("code", () => null),
    ),
  })),
  "no-splice/spliced": stream(
    "no-splice",
    blocks((events) => [...events.filter((text) => !isError(text)), events[1]!, DONE]),
  ),
  "no-splice/asked": { when: marked("no-splice"), knock: { path: "", model: "good:no-splice" } },
  ...each(["model.canonical", "model.fallback"], (name) => ({
    [`${name}/whole`]: whole(
      name,
      body("model", () => "another"),
    ),
    [`${name}/stream`]: stream(
      name,
      chunks("model", (value, index) => (index === 2 ? "another" : value)),
    ),
  })),
  "client-fault.once/again": { when: marked("client-fault.once"), twice: true },
  "client-fault.once/status": whole("client-fault.once", status(503)),
  "client-fault.once/other": toModel("client-fault.once", "in-one:client-fault.once"),
  "client-fault.breaker": refuses(both(marked("client-fault.breaker"), says("Say something."))),
  ...each(["retry.429", "retry.503"], (name) => ({
    [`${name}/failed`]: whole(name, status(503)),
    [`${name}/again`]: { when: marked(name), twice: true },
  })),
  "overloaded/status": whole("overloaded", status(429)),
  "overloaded/header": whole(
    "overloaded",
    header("retry-after", () => undefined),
  ),
  "overloaded/message": whole(
    "overloaded",
    error("message", () => "It is overloaded."),
  ),
  "breaker.opens": { when: marked("breaker.opens"), knock: { path: "" } },
  "breaker.one-probe/more": {
    when: both(marked("breaker.one-probe"), says("More?")),
    knock: { path: "" },
  },
  "breaker.one-probe/status": {
    when: both(marked("breaker.one-probe"), says("More?")),
    answer: status(500),
  },
  "breaker.closes": { when: both(marked("breaker.closes"), says("All?")), answer: status(503) },
  "keep-alive.reuse": asking(
    "keep-alive.reuse",
    instead("connection: keep-alive", "Connection: close"),
  ),
  "keep-alive.stale": whole("keep-alive.stale", status(503)),
  "redirect/followed": { when: marked("redirect"), knock: { path: "/elsewhere" } },
  "redirect/status": whole("redirect", status(308)),

  ...each(CUTS, (name) => ({
    [`${name}/done`]: stream(
      name,
      blocks((events) => events.map((text) => (isError(text) ? DONE : text))),
    ),
    [`${name}/both`]: stream(
      name,
      blocks((events) => [...events, DONE]),
    ),
    [`${name}/nothing`]: stream(
      name,
      blocks((events) => events.filter((text) => !isError(text))),
    ),
    [`${name}/text`]: stream(name, chunks("choices[].delta.content", spoil)),
  })),
  "cut.silence/never": toModel("cut.silence", "silent-after-1:leaving.stream"),
  "first-token/never": toModel("first-token", "silent:leaving.silence"),
  "first-token/stream": stream("first-token", early),
  "long-stream/cut": toModel("long-stream", "silent-after-3:cut.silence"),
  "passes-on": { when: marked("passes-on"), answer: (answer) => answer },
  ...each(STREAMS, (name) => ({
    [`${name}/text`]: stream(name, chunks("choices[].delta.content", spoil)),
    [`${name}/done`]: stream(
      name,
      blocks((events) => events.filter((text) => text !== DONE)),
    ),
    [`${name}/more`]: stream(
      name,
      blocks((events) => [": upstream", ...events]),
    ),
  })),
  "framing.long-line/whole": whole(
    "framing.long-line",
    body("choices[].message.content", (value) => String(value).slice(0, 65_536)),
  ),
  "framing.long-line/stream": stream(
    "framing.long-line",
    chunks("choices[].delta.content", (value) =>
      typeof value === "string" ? value.slice(0, 65_536) : value,
    ),
  ),
  "framing.endless-line": stream(
    "framing.endless-line",
    blocks((events) => events.filter((text) => !isError(text))),
  ),
  "backpressure/greedy": { when: marked("backpressure"), greedy: true },
  "backpressure/holds": { when: marked("backpressure"), holds: true },
  "chunks.role-once/again": stream(
    "chunks.role-once",
    chunks("choices[].delta", (delta, index) =>
      isObject(delta) && index === 3 ? { role: "assistant", ...delta } : delta,
    ),
  ),
  "whole-is-stream.text": stream("whole-is-stream.text", chunks("choices[].delta.content", spoil)),
  "whole-is-stream.thinking/whole": whole(
    "whole-is-stream.thinking",
    body("choices[].message.reasoning_content", () => "Hm."),
  ),
  "whole-is-stream.thinking/stream": stream(
    "whole-is-stream.thinking",
    chunks("choices[].delta.reasoning_content", () => undefined),
  ),
  ...each(CALLS, (name) => ({
    [`${name}/whole`]: whole(
      name,
      body("choices[].message.tool_calls[].id", () => "call_0"),
    ),
    [`${name}/index`]: stream(
      name,
      chunks("choices[].delta.tool_calls[].index", () => 0),
    ),
    [`${name}/arguments`]: stream(
      name,
      chunks("choices[].delta.tool_calls[].function.arguments", (value) =>
        value === "" ? value : " ",
      ),
    ),
  })),

  "fields.forwarded": mends(marked("fields.forwarded"), { temperature: undefined }),
  "fields.nulls": mends(
    both(
      marked("fields.nulls"),
      field("stop", (value) => value === null),
    ),
    { stop: ["zebra"] },
  ),
  "fields.large": mends(marked("fields.large"), {
    messages: [{ role: "user", content: "Grüße 🎉" }],
  }),
  "body.too-large/status": whole("body.too-large", status(400)),
  "body.too-large/taken": mends(marked("body.too-large"), {
    messages: [{ role: "user", content: "x" }],
  }),
  "body.too-large/asked": {
    when: marked("body.too-large"),
    knock: { path: "", model: "good:body.too-large" },
  },
  "thinking.switched/on": mends(both(marked("thinking.switched"), thinks), { thinking: undefined }),
  "thinking.switched/off": mends(
    both(marked("thinking.switched"), (asked) => !has("thinking")(asked)),
    { thinking: { type: "enabled" } },
  ),
  "limit.exact/one-more": {
    when: firstOf(both(marked("limit.exact"), says("At once."))),
    forward: () => ({ headers: { authorization: "Bearer sk-demo" } }),
  },
  "limit.exact/when": whole("limit.exact", (answer) =>
    answer.status === 429 ? header("retry-after", () => "0")(answer) : answer,
  ),
  "limit.exact/message": whole("limit.exact", (answer) =>
    answer.status === 429 ? error("message", () => "Too many.")(answer) : answer,
  ),
  "ids.shared/id": whole(
    "ids.shared",
    body("id", () => "chatcmpl-robust"),
  ),
  "ids.shared/failed": whole("ids.shared", status(409)),
  "healthz.busy": { when: both(health, ownId("robust.healthz.busy")), answer: status(503) },
  "secrets/header": {
    when: marked("secrets"),
    answer: (answer) => ({ ...answer, headers: { ...answer.headers, "x-upstream": "canary" } }),
  },
  "secrets/words": whole("secrets", (answer) =>
    answer.status === 503 ? error("message", () => "The provider says: canary.")(answer) : answer,
  ),
  "secrets/event": stream(
    "secrets",
    blocks((events) =>
      events.map((text) =>
        isError(text) ? text.replace('"message":"', '"message":"sk-canary: ') : text,
      ),
    ),
  ),
  "secrets/model": whole("secrets", ifGood(body("model", () => "canary-model-2026-01-01"))),
  "key.sent": asking("key.sent", instead("sk-canary-of-the-provider", "sk-demo")),
  identity: asking("identity", instead("accept-encoding: identity", "Accept-Encoding: gzip")),
  length: whole("length", (answer) => ({
    ...answer,
    headers: {
      ...answer.headers,
      connection: "close",
      "content-length": String(Buffer.byteLength(answer.text) + 7),
    },
  })),
  "pipelined/id": raw("robust.two", (answer) => answer.replace("robust.two", "robust.one")),
  "pipelined/second": raw("robust.two", (answer) =>
    answer.slice(0, answer.lastIndexOf("HTTP/1.1 ")),
  ),
  "headers.too-large/status": raw("X-Large", (answer) => answer.replace("431", "400")),
  "headers.too-large/id": raw("X-Large", (answer) => answer.replace(/^x-request-id:.*\r\n/im, "")),
};

export const robustFaults = named("robust", robust);
