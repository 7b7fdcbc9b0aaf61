// Faults for the checks of the level `robust`. Some are in the gateway's answers, some in its
// requests to the provider or in its handling of the connections on both sides.

import { parseJson } from "../../../scripts/conformance/client.ts";
import { PIECES, TEXT } from "../../../scripts/conformance/wire.ts";
import { isObject } from "../../../scripts/conformance/shapes.ts";
import type { Answer } from "../wrong-gateway.ts";
import * as kit from "./kit.ts";

/** A fault in whole replies. */
const whole = (answer: kit.Edit): kit.Own => ({
  when: kit.both(kit.isChat, kit.not(kit.isStream)),
  answer,
});
const stream = (answer: kit.Edit): kit.Own => ({ when: kit.isStream, answer });
const event = (json: unknown): string => `data: ${JSON.stringify(json)}`;
const isError = (block: string): boolean => block.startsWith('data: {"error"');
const DONE = "data: [DONE]";
const isDone = (block: string): boolean => block === DONE;
const spoilt = kit.chunks("choices[].delta.content", (value) =>
  value === PIECES[0] || value === TEXT ? "Grusse" : value,
);
/** A refusal within a stream, like that of a gateway that sent status 200 too early. */
const early: kit.Edit = (answer: Answer) => ({
  status: 200,
  headers: { ...answer.headers, "content-type": "text/event-stream" },
  text: `${event(parseJson(answer.text))}\n\n`,
});
/** Replaces a text in the gateway's requests to its provider with another of the same length. */
const asking = (name: string, one: string, other: string): kit.Own => ({
  wire: (bytes) =>
    bytes.includes(`:${name}"`)
      ? bytes.replace(new RegExp(one, "i"), (found) => other.padEnd(found.length))
      : bytes,
});
/** Sends the provider a further request, for the same model or another one. */
const knocks = (model?: string, path = ""): kit.Own => ({
  knock: { path, ...(model !== undefined && { model }) },
});
const twice: kit.Own = { twice: true };
const holds: kit.Own = { holds: true };
/**
 * Answers /healthz much later than the checks wait, like a process whose event loop is busy. The
 * checks wait longer if the costly requests, which are made in the same process, block it.
 */
const stalled: kit.Own = { when: kit.isHealth, answer: (answer) => answer, lateMs: 30_000 };
const prompt = (content: string) => ({ messages: [{ role: "user", content }] });
/** Refuses requests, like a gateway that has closed the model to all clients. */
const closed: kit.Own = { when: kit.says("Say something."), answer: kit.status(503) };
let atOnce = 0;
const ABSURD = (value: unknown) => value && Number.MAX_SAFE_INTEGER;
const shortened = (value: unknown) => (typeof value === "string" ? value.slice(0, 65_536) : value);
const content = "choices[].message.content";
const [deltas, delta] = ["choices[].delta.content", "choices[].delta"];
const SERVED = {
  whole: whole(kit.body("model", "another")),
  stream: stream(kit.chunks("model", (value, index) => (index === 2 ? "another" : value))),
};
const COMPLETE = {
  text: stream(spoilt),
  done: stream(kit.without(isDone)),
  more: stream(kit.blocks((events) => [": upstream", ...events])),
};
const FIGURES = {
  whole: whole(kit.body("usage.completion_tokens", -1)),
  stream: stream(kit.without((block) => block.includes('"choices":[]'))),
};
const SUMS = {
  whole: whole(kit.body("usage.total_tokens", kit.increment)),
  stream: stream(kit.chunks("usage.total_tokens", (value) => value && 0)),
  absurd: whole(
    kit.each(kit.body("usage.prompt_tokens", ABSURD), kit.body("usage.total_tokens", ABSURD)),
  ),
};

export const robustFaults: kit.Faults = kit.own("robust", {
  ...kit.eachOf("robust.leaving.", { holds }),
  "usage.asked": asking("usage.asked", '"include_usage":true', '"include_usage":null'),
  "usage.hidden": kit.sends({ stream_options: { include_usage: true } }),
  ...kit.eachOf("robust.usage.figures.", {
    tokens: stream(kit.chunks("usage.prompt_tokens", (value) => value && 70)),
  }),
  ...kit.eachOf("robust.usage.never", FIGURES),
  ...kit.eachOf("robust.usage.nonsense", FIGURES),
  ...kit.eachOf("robust.usage.empty", FIGURES),
  ...kit.eachOf("robust.usage.absurd", SUMS),
  ...kit.eachOf("robust.usage.sum", SUMS),
  "usage.reasoning/whole": whole(kit.body("usage.completion_tokens", 8)),
  "usage.reasoning/stream": stream(kit.chunks("usage.completion_tokens", (value) => value && 8)),
  "usage.reasoning/detail": whole(kit.body("usage.completion_tokens_details.reasoning_tokens", 0)),

  ...kit.eachOf("robust.fallback.", {
    whole: whole(kit.status(503)),
    stream: stream(early),
    seen: stream(kit.blocks((events) => [event({ error: { message: "It failed." } }), ...events])),
  }),
  ...kit.eachOf("robust.canonical.", {
    status: whole(kit.status(502)),
    stream: stream(early),
    error: whole(kit.error("code", null)),
  }),
  "no-splice/spliced": stream(
    kit.blocks((events) => [...events.filter((block) => !isError(block)), events[1]!, DONE]),
  ),
  "no-splice/asked": knocks("good:no-splice"),
  ...kit.eachOf("robust.model.", SERVED),
  "client-fault.once/again": twice,
  "client-fault.once/status": whole(kit.status(503)),
  "client-fault.once/other": kit.sends({ model: "in-one:client-fault.once" }),
  "client-fault.breaker": { ...kit.opposite, when: kit.says("Say something.") },
  ...kit.eachOf("robust.retry.", { failed: whole(kit.status(503)), again: twice }),
  "overloaded/status": whole(kit.status(429)),
  "overloaded/header": whole(kit.header("retry-after", undefined)),
  "overloaded/message": whole(kit.error("message", "It is overloaded.")),
  "breaker.opens": knocks(),
  "breaker.one-probe/more": { ...knocks(), when: kit.says("More?") },
  "breaker.one-probe/status": { when: kit.says("More?"), answer: kit.status(500) },
  "breaker.closes": { when: kit.says("All?"), answer: kit.status(503) },
  "keep-alive.reuse": asking("keep-alive.reuse", "connection: keep-alive", "Connection: close"),
  "keep-alive.stale": whole(kit.status(503)),
  "redirect/followed": knocks(undefined, "/elsewhere"),
  "redirect/status": whole(kit.status(308)),

  ...kit.eachOf("robust.cut.", {
    done: stream(kit.blocks((events) => events.map((block) => (isError(block) ? DONE : block)))),
    both: stream(kit.blocks((events) => [...events, DONE])),
    nothing: stream(kit.without(isError)),
    text: stream(spoilt),
  }),
  "cut.silence/never": kit.sends({ model: "silent-after-1:leaving.stream" }),
  "first-token/never": kit.sends({ model: "silent:leaving.silence" }),
  "first-token/stream": stream(early),
  "long-stream/cut": kit.sends({ model: "silent-after-3:cut.silence" }),
  "passes-on": (answer) => answer,
  ...kit.eachOf("robust.long-stream", COMPLETE),
  ...kit.eachOf("robust.finished.", COMPLETE),
  ...kit.eachOf("robust.bytes.", COMPLETE),
  ...kit.eachOf("robust.framing.", COMPLETE),
  ...kit.eachOf("robust.chunks.", COMPLETE),
  "framing.long-line/whole": whole(kit.body(content, shortened)),
  "framing.long-line/text": stream(kit.chunks(deltas, shortened)),
  "framing.endless-line/text": stream(kit.without(isError)),
  "framing.endless-line/done": stream(kit.blocks((events) => [...events, DONE])),
  "backpressure/greedy": { greedy: true },
  "backpressure/holds": holds,
  "chunks.role-once/again": stream(
    kit.chunks(delta, (value, index) =>
      isObject(value) && index === 3 ? { role: "assistant", ...value } : value,
    ),
  ),
  "whole-is-stream.thinking/whole": whole(kit.body("choices[].message.reasoning_content", "Hm.")),
  "whole-is-stream.thinking/stream": stream(kit.chunks(`${delta}.reasoning_content`, undefined)),
  ...kit.eachOf("robust.calls.", {
    whole: whole(kit.body("choices[].message.tool_calls[].id", "call_0")),
    index: stream(kit.chunks(`${delta}.tool_calls[].index`, 0)),
    arguments: stream(
      kit.chunks(`${delta}.tool_calls[].function.arguments`, (value) => (value === "" ? "" : " ")),
    ),
  }),

  "fields.forwarded": kit.sends({ temperature: undefined }),
  "fields.nulls": {
    ...kit.sends({ stop: ["zebra"] }),
    when: ({ body: { stop } }) => stop === null,
  },
  "fields.large": kit.sends(prompt("Grüße 🎉")),
  "body.too-large/status": whole(kit.status(400)),
  "body.too-large/taken": kit.sends(prompt("x")),
  "body.too-large/asked": knocks("good:body.too-large"),
  "thinking.switched/on": { ...kit.sends({ thinking: undefined }), when: kit.thinks },
  "thinking.switched/off": {
    ...kit.sends({ thinking: { type: "enabled" } }),
    when: kit.not(kit.thinks),
  },
  "limit.exact/one-more": {
    when: kit.both(kit.says("At once."), () => atOnce++ === 0),
    forward: () => ({ headers: { authorization: "Bearer sk-demo" } }),
  },
  "limit.exact/when": kit.ifStatus(429, kit.header("retry-after", "0")),
  "limit.exact/message": kit.ifStatus(429, kit.error("message", "Too many.")),
  "ids.shared/id": whole(kit.body("id", "chatcmpl-robust")),
  "ids.shared/failed": whole(kit.status(409)),
  "healthz.busy": { when: kit.isHealth, answer: kit.status(503) },
  "secrets/header": kit.header("x-upstream", "canary"),
  "secrets/words": whole(kit.ifStatus(503, kit.error("message", "The provider says: canary."))),
  "secrets/event": stream(
    kit.blocks((events) =>
      events.map((block) =>
        isError(block) ? block.replace('"message":"', '"message":"sk-canary: ') : block,
      ),
    ),
  ),
  "secrets/model": whole(kit.ifGood(kit.body("model", "canary-model-2026-01-01"))),
  "key.sent": asking("key.sent", "sk-canary-of-the-provider", "sk-demo"),
  identity: asking("identity", "accept-encoding: identity", "Accept-Encoding: gzip"),
  length: whole((answer) =>
    kit.each(
      kit.header("connection", "close"),
      kit.header("content-length", Buffer.byteLength(answer.text) + 7),
    )(answer),
  ),
  "pipelined/id": kit.raw("robust.two", (answer) => answer.replace("robust.two", "robust.one")),
  "pipelined/second": kit.raw("robust.two", (answer) =>
    answer.slice(0, answer.lastIndexOf("HTTP/1.1 ")),
  ),

  "filtered.reply/whole": whole(kit.status(503)),
  "filtered.reply/finish": stream(
    kit.chunks("choices[].finish_reason", (value) => value && "stop"),
  ),
  "filtered.reply/error": stream(
    kit.blocks((events) => [...events, event({ error: { message: "It was filtered." } })]),
  ),
  "filtered.reply/model": whole(kit.body("model", "good:filtered.reply")),
  "filtered.reply/again": twice,
  "filtered.reply/other": knocks("good:filtered.reply"),
  ...kit.eachOf("robust.filtered.available", { closed }),
  "filtered.available/fault": { when: kit.says("bad"), answer: kit.status(503) },
  ...kit.eachOf("robust.failed-calls.available", { closed }),
  "failed-calls.available/blame": { when: kit.says("bad"), answer: kit.status(400) },
  "effort.sent/lost": kit.sends({ reasoning_effort: undefined }),
  "effort.sent/none": kit.sends({ reasoning_effort: "none" }),
  "effort.sent/depth": kit.sends({ reasoning_effort: "low" }),
  "effort.hidden/shown": kit.sends({ thinking: { type: "enabled" } }),
  "effort.hidden/whole": whole(kit.body("choices[].message.reasoning_content", "Hm.")),
  "defaults.sampling/temperature": kit.sends({ temperature: 0.5 }),
  "defaults.sampling/top_p": kit.sends({ top_p: 0.5 }),
  "limit.in-flight/admitted": whole(kit.status(200)),
  "limit.in-flight/code": whole(kit.error("code", "rate_limit_exceeded")),
  "limit.in-flight/when": whole(kit.ifStatus(429, kit.header("retry-after", undefined))),
  "limit.in-flight/message": whole(kit.error("message", "Too many.")),
  "limit.in-flight/over": { when: kit.says("Again."), answer: kit.status(429) },

  ...kit.eachOf("robust.cost.", { stalled, failed: whole(kit.status(500)) }),
  "cost.blanks/failed": kit.raw("GARBAGE", (answer) =>
    answer.replace(/^HTTP\/1.1 \d+/, "HTTP/1.1 500"),
  ),
  unread: whole(kit.status(503)),
  "names.model/status": whole(kit.status(500)),
  "names.model/code": whole(kit.error("code", "invalid_value")),
  "names.tools/refused": whole(kit.status(400)),
  "names.tools/lost": kit.sends({
    tools: ["constructor", "toString"].map((name) => ({
      type: "function",
      function: { name, parameters: { type: "object", properties: {} } },
    })),
  }),
});
