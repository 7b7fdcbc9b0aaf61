// Faults for the checks of the levels `spec`, `messages` and `responses`. A check without a fault
// here tests whether a request is accepted or refused: the wrong gateway does the opposite.

import { CHECKS } from "../../../scripts/conformance/checks/all.ts";
import { parseJson } from "../../../scripts/conformance/client.ts";
import { first, type Json } from "../../../scripts/conformance/shapes.ts";
import type { Fault } from "../wrong-gateway.ts";
import * as kit from "./kit.ts";

const ID = `req_${"0123456789abcdef".repeat(2)}`;
let asked = 0;
const noThought: Fault["answer"] = kit.body("choices[].message.reasoning_content", undefined);

const ofSpec = kit.own("spec", {
  "request-id.echo": kit.idInstead(ID),
  "request-id.echo.stream": kit.idInstead(ID),
  "request-id.echo.error": kit.idInstead(ID),
  "request-id.echo.free-form": kit.idInstead(ID),
  "request-id.echo.healthz": kit.idInstead(ID),
  "request-id.echo.again": { when: () => asked++ > 0, answer: kit.idInstead(ID) },
  "request-id.malformed": kit.raw("this is not HTTP", (answer) =>
    answer.replace(/x-request-id:[^\r]*\r\n/i, ""),
  ),
  "model.canonical": kit.body("model", `${kit.MODEL}-2026-01-01`),
  "model.canonical.stream": kit.chunks("model", `${kit.MODEL}-2026-01-01`),
  "alias.chat": kit.body("model", kit.ALIAS),
  "alias.stream": kit.chunks("model", kit.ALIAS),
  "alias.reasoning": kit.body("model", "auto/reasoning"),
  // The alias answers. A request for the model that it names is refused.
  "alias.names-a-model": { when: kit.says("Who are you?"), answer: kit.refusal },
  "max_tokens.obeyed": kit.sends({ max_tokens: undefined }),
  "max_tokens.obeyed.stream": kit.sends({ max_tokens: undefined }),
  "stop.string": kit.sends({ stop: undefined }),
  "stop.array": kit.sends({ stop: ["zebra"] }),
  "tool_choice.default": kit.sends({ tool_choice: "auto" }),
  "tool_choice.none": kit.sends({ tool_choice: "auto" }),
  "tool_choice.named": kit.sends({
    tool_choice: { type: "function", function: { name: "get_time" } },
  }),
  "finish_reason.tool_calls": kit.body("choices[].finish_reason", "stop"),
  "response_format.json_object": kit.sends({ response_format: undefined }),
  "thinking.whole": noThought,
  "thinking.stream": kit.chunks("choices[].delta.reasoning_content", undefined),
  "thinking.plain-model": kit.body("choices[].message.reasoning_content", "Hm."),
  "logprobs.true": kit.body("choices[].logprobs", null),
  "reply.content": kit.body("choices[].message.content", "I will not."),
  "stream.content": kit.chunks("choices[].delta.content", (value) =>
    typeof value === "string" ? "" : value,
  ),
});

const ofSample = kit.sampled("spec", {
  answers: { when: ({ method }) => method === "DELETE", cut: true },
  "request-id.present": kit.about(
    kit.both(kit.isHealth, kit.isSampled),
    kit.header("x-request-id", undefined),
  ),
  "request-id.format": kit.about(
    kit.both(kit.isHealth, kit.isSampled),
    kit.header("x-request-id", (id) => String(id).slice(0, -1)),
  ),
  "request-id.unique": kit.wholes(kit.ifGood(kit.header("x-request-id", `req_${"0".repeat(32)}`))),
  "request-id.in-error": kit.nowhere(kit.error("request_id", "req_of_another")),

  "thinking.not-asked-for": kit.reply("choices[].message.reasoning_content", "Hm."),
  "thinking.not-asked-for.stream": kit.stream(
    "choices[].delta.reasoning_content",
    (value, index) => (index === 0 ? "Hm." : value),
  ),
  "reply.json": kit.wholes(kit.ifGood((answer) => ({ ...answer, text: `${answer.text},` }))),
  ...kit.spoiltFields("spec"),
  "chunk.choices": kit.stream("choices", (value) =>
    JSON.stringify(value) === "[]" ? undefined : value,
  ),
  "chunk.choices.delta": kit.stream("choices[].delta", (value) =>
    JSON.stringify(value) === "{}" ? undefined : value,
  ),
  "reply.id.unique": kit.reply("id", "chatcmpl-1"),
  "usage.sum": kit.reply("usage.total_tokens", kit.increment),
  "usage.cache-sum": kit.reply("usage.prompt_cache_miss_tokens", kit.increment),

  "stream.media-type": kit.streams(kit.header("content-type", "text/plain")),
  "stream.lines": kit.streams(
    kit.blocks((events) => events.with(1, events[1]!.replace("data: ", "data:"))),
  ),
  "stream.json": kit.streams(kit.blocks((events) => events.toSpliced(1, 0, "data: ping"))),
  "stream.done": kit.streams(kit.without((event) => event === "data: [DONE]")),
  "chunk.id.same": kit.stream("id", (value, index) => (index === 1 ? "other" : value)),
  "chunk.role.first": kit.stream("choices[].delta.role", undefined),
  "chunk.role.once": kit.stream("choices[].delta.role", (value, index) =>
    index === 1 ? "assistant" : value,
  ),
  "chunk.finish_reason.null": kit.stream("choices[].finish_reason", (value, index) =>
    index === 1 ? "stop" : value,
  ),
  "chunk.finish_reason.last": kit.stream("choices[].finish_reason", null),

  "error.json": kit.nowhere(kit.anyBody("detail", "There is nothing here.")),
  "error.message": kit.nowhere(kit.error("message", "")),
  "error.type": kit.nowhere(kit.error("type", null)),
  "error.code": kit.nowhere(kit.error("code", 404)),
  "error.request_id": kit.nowhere(kit.error("request_id", undefined)),
  "error.status": kit.nowhere(kit.status(502)),
  "error.any-status": kit.nowhere(kit.status(302)),

  "limit.exists": {
    when: ({ headers }) => headers.authorization === "Bearer sk-limited",
    forward: () => ({ headers: { authorization: "Bearer sk-demo" } }),
  },
  "limit.status": kit.limited(kit.status(403)),
  "limit.type": kit.limited(kit.error("type", "requests")),
  "limit.code": kit.limited(kit.error("code", "too_many_requests")),
  "limit.message": kit.limited(
    kit.error("message", (said) => String(said).replace("per-minute ", "")),
  ),
});

const stated = [...ofSpec, ...ofSample];
export const specFaults: kit.Faults = [...stated, ...kit.others("spec", stated, kit.opposite)];

const typeOf = (event: unknown): string => String(first(event, "type"));
const events = (edit: (events: unknown[]) => unknown[]): kit.Edit =>
  kit.blocks((texts) =>
    edit(texts.map((block) => parseJson(block.slice(block.indexOf("data: ") + 6)))).map(
      (event) => `event: ${typeOf(event)}\ndata: ${JSON.stringify(event)}`,
    ),
  );
/** Changes a field in all events of one type. */
const event = (type: string, path: string, to: kit.Change): kit.Edit =>
  events((all) => all.map((each) => (typeOf(each) === type ? kit.change(each, path, to) : each)));
const lacking = (type: string): kit.Edit =>
  events((all) => all.filter((each) => typeOf(each) !== type));
const withoutField = (path: string) => kit.body(path, undefined);

const fields = CHECKS.filter(({ id }) => id.startsWith("messages.reply.")).map(({ id, title }) => {
  const [path = ""] = title.split(" ");
  return [id.replace("messages.", ""), withoutField(path)];
});

const ofMessages = kit.own("messages", {
  ...Object.fromEntries(fields),
  "stream.names": kit.blocks((all) =>
    all.map((block) => block.replace(/^event: \w+/, "event: other")),
  ),
  "stream.order/stop": lacking("content_block_stop"),
  "stream.order/index": event("content_block_start", "index", 1),
  "stream.order/last": kit.blocks((all) => [...all.slice(0, -2), all.at(-1)!, all.at(-2)!]),
  "stream.order/start": lacking("message_start"),
  "stream.text": { when: kit.isStream, answer: event("content_block_delta", "delta.text", "x") },
  "stream.start/tokens": event("message_start", "message.usage", undefined),
  "stream.start/reason": event("message_start", "message.stop_reason", "end_turn"),
  "stream.start/content": event("message_start", "message.content", [{}]),
  "stream.end/reason": event("message_delta", "delta", undefined),
  "stream.end/tokens": event("message_delta", "usage", undefined),
  "tools.whole/input": kit.body("content[].input", "{}"),
  "tools.whole/id": withoutField("content[].id"),
  "tools.whole/name": kit.body("content[].name", "get_time"),
  "tools.whole/reason": kit.body("stop_reason", "end_turn"),
  "tools.stream/name": event("content_block_start", "content_block.name", undefined),
  "tools.stream/arguments": event("content_block_delta", "delta.partial_json", "["),
  "thinking.block/type": kit.body("content[].type", "text"),
  "thinking.block/signature": withoutField("content[].signature"),
  "thinking.block/empty": kit.body("content[].thinking", ""),
  ...kit.eachOf("messages.error.", {
    status: kit.status(422),
    shape: kit.anyBody("type", undefined),
    type: kit.anyBody("error.type", "error"),
    message: kit.anyBody("error.message", undefined),
    request_id: kit.anyBody("request_id", "another"),
  }),
  count: kit.body("input_tokens", 0),
  "models/type": withoutField("data[].type"),
  "models/name": withoutField("data[].display_name"),
  "models/more": kit.body("has_more", true),
  "models/last": kit.body("last_id", "another"),
});

export const messagesFaults: kit.Faults = [
  ...ofMessages,
  ...kit.others("messages", ofMessages, kit.status(400)),
];

const sendsBack: Fault["when"] = ({ body: { input } }) => Array.isArray(input);
const again = { ...kit.opposite, when: sendsBack };
const accepted = kit.ifStatus(400, kit.status(200));
const misnamed = kit.ifStatus(400, kit.error("param", "model"));
const thought: readonly Json[] = [{ type: "summary_text", text: "I think." }];

const ofResponses = kit.own("responses", {
  "reply.object": kit.body("id", "chatcmpl-1"),
  "reply.object/status": kit.body("status", "in_progress"),
  "reply.object/model": kit.body("model", "other"),
  "reply.message": kit.body("output[].role", "user"),
  "reply.message/text": kit.body("output[].content[].text", ""),
  "reply.message/type": kit.body("output[].content[].type", "text"),
  "reply.usage": kit.body("usage.total_tokens", kit.increment),
  "reply.usage/details": kit.body("usage.input_tokens_details", undefined),
  "reply.repeats": kit.body("instructions", null),
  "reply.repeats/tools": kit.body("tools", []),
  "incomplete.whole": kit.body("status", "completed"),
  "incomplete.whole/why": kit.body("incomplete_details", null),
  "incomplete.stream": event("response.incomplete", "type", "response.completed"),
  "format.schema": kit.body("output[].content[].text", "Oslo"),
  "stream.names": kit.ifGood(kit.text((given) => given.replaceAll(/^event: .*\n/gm, ""))),
  "stream.numbers": event("response.output_text.delta", "sequence_number", kit.increment),
  "stream.order": lacking("response.in_progress"),
  "stream.order/end": lacking("response.completed"),
  "stream.items": lacking("response.output_item.done"),
  "stream.items/id": event("response.output_item.done", "item.id", "other"),
  "stream.items/output": event("response.completed", "response.output", []),
  "stream.text": event("response.output_text.delta", "delta", (delta) => `${delta} `),
  "stream.parts": lacking("response.content_part.done"),
  "stream.parts/text": event("response.output_text.done", "text", "other"),
  "stream.usage": event("response.completed", "response.usage", null),
  "tools.call": kit.body("output[].name", "other"),
  "tools.call/arguments": kit.body("output[].arguments", "other"),
  "tools.stream": lacking("response.function_call_arguments.delta"),
  "tools.result": {
    when: ({ text: sent }) => sent.includes("function_call_output"),
    answer: kit.body("output", []),
  },
  "tools.custom": kit.body("output[].type", "function_call"),
  "tools.custom/input": kit.body("output[].input", (input) => ({ input })),
  "tools.namespace": kit.body("output[].namespace", undefined),
  "reasoning.summary": kit.body("output[].summary", []),
  "reasoning.stream": lacking("response.reasoning_summary_text.delta"),
  "reasoning.hidden": kit.body("output[].summary", thought),
  "reasoning.sealed": kit.body("output[].encrypted_content", undefined),
  "reasoning.sealed/back": again,
  "reasoning.changed": again,
  "refused.store": accepted,
  "refused.store/param": misnamed,
  "refused.item": accepted,
  "refused.item/param": misnamed,
});

export const responsesFaults: kit.Faults = [
  ...ofResponses,
  ...kit.others("responses", ofResponses, kit.opposite),
];
