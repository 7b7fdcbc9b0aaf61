// Faults for the checks of the level `robust`. Some are in what the gateway says, some in how it
// asks its provider or treats the connections on both sides.

import { parseJson } from "../../../scripts/conformance/client.ts";
import { PIECES, TEXT } from "../../../scripts/conformance/wire.ts";
import { isObject } from "../../../scripts/conformance/shapes.ts";
import type { Answer } from "../wrong-gateway.ts";
import {
  blocks,
  body,
  both,
  chunks,
  each,
  eachOf,
  error,
  header,
  ifGood,
  ifStatus,
  increment,
  isChat,
  isHealth,
  isStream,
  not,
  opposite,
  own,
  raw,
  says,
  sends,
  status,
  thinks,
  without,
  type Edit,
  type Faults,
  type Own,
} from "./kit.ts";

/** Of the whole reply, or of the stream. */
const whole = (answer: Edit): Own => ({ when: both(isChat, not(isStream)), answer });
const stream = (answer: Edit): Own => ({ when: isStream, answer });
const event = (json: unknown): string => `data: ${JSON.stringify(json)}`;
const isError = (block: string): boolean => block.startsWith('data: {"error"');
const DONE = "data: [DONE]";
const isDone = (block: string): boolean => block === DONE;
const spoilt = chunks("choices[].delta.content", (value) =>
  value === PIECES[0] || value === TEXT ? "Grusse" : value,
);
/** A refusal within a stream, as of a gateway that sent status 200 too early. */
const early: Edit = (answer: Answer) => ({
  status: 200,
  headers: { ...answer.headers, "content-type": "text/event-stream" },
  text: `${event(parseJson(answer.text))}\n\n`,
});
/** What the gateway asks its provider, with another text of the same length in the place of one. */
const asking = (name: string, one: string, other: string): Own => ({
  wire: (bytes) =>
    bytes.includes(`:${name}"`)
      ? bytes.replace(new RegExp(one, "i"), (found) => other.padEnd(found.length))
      : bytes,
});
/** The provider is asked for another model, or the same again, by itself. */
const knocks = (model?: string, path = ""): Own => ({
  knock: { path, ...(model !== undefined && { model }) },
});
const twice: Own = { twice: true };
const holds: Own = { holds: true };
/** /healthz is answered later than the checks wait, as by a process that has other work to do. */
const stalled: Own = { when: isHealth, answer: (answer) => answer, lateMs: 3_000 };
const prompt = (content: string) => ({ messages: [{ role: "user", content }] });
/** Refused, as by a gateway that has closed the model to everybody. */
const closed: Own = { when: says("Say something."), answer: status(503) };
let atOnce = 0;
const ABSURD = (value: unknown) => value && Number.MAX_SAFE_INTEGER;
const shortened = (value: unknown) => (typeof value === "string" ? value.slice(0, 65_536) : value);
const content = "choices[].message.content";
const [deltas, delta] = ["choices[].delta.content", "choices[].delta"];
const SERVED = {
  whole: whole(body("model", "another")),
  stream: stream(chunks("model", (value, index) => (index === 2 ? "another" : value))),
};
const COMPLETE = {
  text: stream(spoilt),
  done: stream(without(isDone)),
  more: stream(blocks((events) => [": upstream", ...events])),
};
const FIGURES = {
  whole: whole(body("usage.completion_tokens", -1)),
  stream: stream(without((block) => block.includes('"choices":[]'))),
};
const SUMS = {
  whole: whole(body("usage.total_tokens", increment)),
  stream: stream(chunks("usage.total_tokens", (value) => value && 0)),
  absurd: whole(each(body("usage.prompt_tokens", ABSURD), body("usage.total_tokens", ABSURD))),
};

export const robustFaults: Faults = own("robust", {
  ...eachOf("robust.leaving.", { holds }),
  "usage.asked": asking("usage.asked", '"include_usage":true', '"include_usage":null'),
  "usage.hidden": sends({ stream_options: { include_usage: true } }),
  ...eachOf("robust.usage.figures.", {
    tokens: stream(chunks("usage.prompt_tokens", (value) => value && 70)),
  }),
  ...eachOf("robust.usage.never", FIGURES),
  ...eachOf("robust.usage.nonsense", FIGURES),
  ...eachOf("robust.usage.empty", FIGURES),
  ...eachOf("robust.usage.absurd", SUMS),
  ...eachOf("robust.usage.sum", SUMS),
  "usage.reasoning/whole": whole(body("usage.completion_tokens", 8)),
  "usage.reasoning/stream": stream(chunks("usage.completion_tokens", (value) => value && 8)),
  "usage.reasoning/detail": whole(body("usage.completion_tokens_details.reasoning_tokens", 0)),

  ...eachOf("robust.fallback.", {
    whole: whole(status(503)),
    stream: stream(early),
    seen: stream(blocks((events) => [event({ error: { message: "It failed." } }), ...events])),
  }),
  ...eachOf("robust.canonical.", {
    status: whole(status(502)),
    stream: stream(early),
    error: whole(error("code", null)),
  }),
  "no-splice/spliced": stream(
    blocks((events) => [...events.filter((block) => !isError(block)), events[1]!, DONE]),
  ),
  "no-splice/asked": knocks("good:no-splice"),
  ...eachOf("robust.model.", SERVED),
  "client-fault.once/again": twice,
  "client-fault.once/status": whole(status(503)),
  "client-fault.once/other": sends({ model: "in-one:client-fault.once" }),
  "client-fault.breaker": { ...opposite, when: says("Say something.") },
  ...eachOf("robust.retry.", { failed: whole(status(503)), again: twice }),
  "overloaded/status": whole(status(429)),
  "overloaded/header": whole(header("retry-after", undefined)),
  "overloaded/message": whole(error("message", "It is overloaded.")),
  "breaker.opens": knocks(),
  "breaker.one-probe/more": { ...knocks(), when: says("More?") },
  "breaker.one-probe/status": { when: says("More?"), answer: status(500) },
  "breaker.closes": { when: says("All?"), answer: status(503) },
  "keep-alive.reuse": asking("keep-alive.reuse", "connection: keep-alive", "Connection: close"),
  "keep-alive.stale": whole(status(503)),
  "redirect/followed": knocks(undefined, "/elsewhere"),
  "redirect/status": whole(status(308)),

  ...eachOf("robust.cut.", {
    done: stream(blocks((events) => events.map((block) => (isError(block) ? DONE : block)))),
    both: stream(blocks((events) => [...events, DONE])),
    nothing: stream(without(isError)),
    text: stream(spoilt),
  }),
  "cut.silence/never": sends({ model: "silent-after-1:leaving.stream" }),
  "first-token/never": sends({ model: "silent:leaving.silence" }),
  "first-token/stream": stream(early),
  "long-stream/cut": sends({ model: "silent-after-3:cut.silence" }),
  "passes-on": (answer) => answer,
  ...eachOf("robust.long-stream", COMPLETE),
  ...eachOf("robust.finished.", COMPLETE),
  ...eachOf("robust.bytes.", COMPLETE),
  ...eachOf("robust.framing.", COMPLETE),
  ...eachOf("robust.chunks.", COMPLETE),
  "framing.long-line/whole": whole(body(content, shortened)),
  "framing.long-line/text": stream(chunks(deltas, shortened)),
  "framing.endless-line/text": stream(without(isError)),
  "framing.endless-line/done": stream(blocks((events) => [...events, DONE])),
  "backpressure/greedy": { greedy: true },
  "backpressure/holds": holds,
  "chunks.role-once/again": stream(
    chunks(delta, (value, index) =>
      isObject(value) && index === 3 ? { role: "assistant", ...value } : value,
    ),
  ),
  "whole-is-stream.thinking/whole": whole(body("choices[].message.reasoning_content", "Hm.")),
  "whole-is-stream.thinking/stream": stream(chunks(`${delta}.reasoning_content`, undefined)),
  ...eachOf("robust.calls.", {
    whole: whole(body("choices[].message.tool_calls[].id", "call_0")),
    index: stream(chunks(`${delta}.tool_calls[].index`, 0)),
    arguments: stream(
      chunks(`${delta}.tool_calls[].function.arguments`, (value) => (value === "" ? "" : " ")),
    ),
  }),

  "fields.forwarded": sends({ temperature: undefined }),
  "fields.nulls": {
    ...sends({ stop: ["zebra"] }),
    when: ({ body: { stop } }) => stop === null,
  },
  "fields.large": sends(prompt("Grüße 🎉")),
  "body.too-large/status": whole(status(400)),
  "body.too-large/taken": sends(prompt("x")),
  "body.too-large/asked": knocks("good:body.too-large"),
  "thinking.switched/on": { ...sends({ thinking: undefined }), when: thinks },
  "thinking.switched/off": { ...sends({ thinking: { type: "enabled" } }), when: not(thinks) },
  "limit.exact/one-more": {
    when: both(says("At once."), () => atOnce++ === 0),
    forward: () => ({ headers: { authorization: "Bearer sk-demo" } }),
  },
  "limit.exact/when": ifStatus(429, header("retry-after", "0")),
  "limit.exact/message": ifStatus(429, error("message", "Too many.")),
  "ids.shared/id": whole(body("id", "chatcmpl-robust")),
  "ids.shared/failed": whole(status(409)),
  "healthz.busy": { when: isHealth, answer: status(503) },
  "secrets/header": header("x-upstream", "canary"),
  "secrets/words": whole(ifStatus(503, error("message", "The provider says: canary."))),
  "secrets/event": stream(
    blocks((events) =>
      events.map((block) =>
        isError(block) ? block.replace('"message":"', '"message":"sk-canary: ') : block,
      ),
    ),
  ),
  "secrets/model": whole(ifGood(body("model", "canary-model-2026-01-01"))),
  "key.sent": asking("key.sent", "sk-canary-of-the-provider", "sk-demo"),
  identity: asking("identity", "accept-encoding: identity", "Accept-Encoding: gzip"),
  length: whole((answer) =>
    each(
      header("connection", "close"),
      header("content-length", Buffer.byteLength(answer.text) + 7),
    )(answer),
  ),
  "pipelined/id": raw("robust.two", (answer) => answer.replace("robust.two", "robust.one")),
  "pipelined/second": raw("robust.two", (answer) =>
    answer.slice(0, answer.lastIndexOf("HTTP/1.1 ")),
  ),

  "filtered.reply/whole": whole(status(503)),
  "filtered.reply/finish": stream(chunks("choices[].finish_reason", (value) => value && "stop")),
  "filtered.reply/error": stream(
    blocks((events) => [...events, event({ error: { message: "It was filtered." } })]),
  ),
  "filtered.reply/model": whole(body("model", "good:filtered.reply")),
  "filtered.reply/again": twice,
  "filtered.reply/other": knocks("good:filtered.reply"),
  ...eachOf("robust.filtered.available", { closed }),
  "filtered.available/fault": { when: says("bad"), answer: status(503) },
  ...eachOf("robust.failed-calls.available", { closed }),
  "failed-calls.available/blame": { when: says("bad"), answer: status(400) },
  "effort.sent/lost": sends({ reasoning_effort: undefined }),
  "effort.sent/none": sends({ reasoning_effort: "none" }),
  "effort.sent/depth": sends({ reasoning_effort: "low" }),
  "effort.hidden/shown": sends({ thinking: { type: "enabled" } }),
  "effort.hidden/whole": whole(body("choices[].message.reasoning_content", "Hm.")),
  "defaults.sampling/temperature": sends({ temperature: 0.5 }),
  "defaults.sampling/top_p": sends({ top_p: 0.5 }),
  "limit.in-flight/admitted": whole(status(200)),
  "limit.in-flight/code": whole(error("code", "rate_limit_exceeded")),
  "limit.in-flight/when": whole(ifStatus(429, header("retry-after", undefined))),
  "limit.in-flight/message": whole(error("message", "Too many.")),
  "limit.in-flight/over": { when: says("Again."), answer: status(429) },

  ...eachOf("robust.cost.", { stalled, failed: whole(status(500)) }),
  "cost.blanks/failed": raw("GARBAGE", (answer) =>
    answer.replace(/^HTTP\/1.1 \d+/, "HTTP/1.1 500"),
  ),
  unread: whole(status(503)),
  "names.model/status": whole(status(500)),
  "names.model/code": whole(error("code", "invalid_value")),
  "names.tools/refused": whole(status(400)),
  "names.tools/lost": sends({
    tools: ["constructor", "toString"].map((name) => ({
      type: "function",
      function: { name, parameters: { type: "object", properties: {} } },
    })),
  }),
});
