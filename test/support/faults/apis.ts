// Faults for the checks of the levels `messages` and `responses`, which are about a vendor's API. A
// check that has none here is about a request that is to be accepted, or refused: the opposite is
// done.

import { CHECKS } from "../../../scripts/conformance/checks/all.ts";
import { parseJson } from "../../../scripts/conformance/client.ts";
import { first, type Json } from "../../../scripts/conformance/shapes.ts";
import type { Fault } from "../wrong-gateway.ts";
import {
  anyBody,
  blocks,
  body,
  change,
  eachOf,
  error,
  ifGood,
  ifStatus,
  increment,
  isStream,
  opposite,
  others,
  own,
  status,
  text,
  type Change,
  type Edit,
  type Faults,
} from "./kit.ts";

const typeOf = (event: unknown): string => String(first(event, "type"));
const events = (edit: (events: unknown[]) => unknown[]): Edit =>
  blocks((texts) =>
    edit(texts.map((block) => parseJson(block.slice(block.indexOf("data: ") + 6)))).map(
      (event) => `event: ${typeOf(event)}\ndata: ${JSON.stringify(event)}`,
    ),
  );
/** Spoils a field of the events of one type. */
const event = (type: string, path: string, to: Change): Edit =>
  events((all) => all.map((each) => (typeOf(each) === type ? change(each, path, to) : each)));
const without = (type: string): Edit =>
  events((all) => all.filter((each) => typeOf(each) !== type));
const withoutField = (path: string) => body(path, undefined);

const fields = CHECKS.filter(({ id }) => id.startsWith("messages.reply.")).map(({ id, title }) => {
  const [path = ""] = title.split(" ");
  return [id.replace("messages.", ""), withoutField(path)];
});

const ofMessages = own("messages", {
  ...Object.fromEntries(fields),
  "stream.names": blocks((all) => all.map((block) => block.replace(/^event: \w+/, "event: other"))),
  "stream.order/stop": without("content_block_stop"),
  "stream.order/index": event("content_block_start", "index", 1),
  "stream.order/last": blocks((all) => [...all.slice(0, -2), all.at(-1)!, all.at(-2)!]),
  "stream.order/start": without("message_start"),
  "stream.text": { when: isStream, answer: event("content_block_delta", "delta.text", "x") },
  "stream.start/tokens": event("message_start", "message.usage", undefined),
  "stream.start/reason": event("message_start", "message.stop_reason", "end_turn"),
  "stream.start/content": event("message_start", "message.content", [{}]),
  "stream.end/reason": event("message_delta", "delta", undefined),
  "stream.end/tokens": event("message_delta", "usage", undefined),
  "tools.whole/input": body("content[].input", "{}"),
  "tools.whole/id": withoutField("content[].id"),
  "tools.whole/name": body("content[].name", "get_time"),
  "tools.whole/reason": body("stop_reason", "end_turn"),
  "tools.stream/name": event("content_block_start", "content_block.name", undefined),
  "tools.stream/arguments": event("content_block_delta", "delta.partial_json", "["),
  "thinking.block/type": body("content[].type", "text"),
  "thinking.block/signature": withoutField("content[].signature"),
  "thinking.block/empty": body("content[].thinking", ""),
  ...eachOf("messages.error.", {
    status: status(422),
    shape: anyBody("type", undefined),
    type: anyBody("error.type", "error"),
    message: anyBody("error.message", undefined),
    request_id: anyBody("request_id", "another"),
  }),
  count: body("input_tokens", 0),
  "models/type": withoutField("data[].type"),
  "models/name": withoutField("data[].display_name"),
  "models/more": body("has_more", true),
  "models/last": body("last_id", "another"),
});

export const messagesFaults: Faults = [
  ...ofMessages,
  ...others("messages", ofMessages, status(400)),
];

const sendsBack: Fault["when"] = ({ body: { input } }) => Array.isArray(input);
const again = { ...opposite, when: sendsBack };
const accepted = ifStatus(400, status(200));
const misnamed = ifStatus(400, error("param", "model"));
const thought: readonly Json[] = [{ type: "summary_text", text: "I think." }];

const ofResponses = own("responses", {
  "reply.object": body("id", "chatcmpl-1"),
  "reply.object/status": body("status", "in_progress"),
  "reply.object/model": body("model", "other"),
  "reply.message": body("output[].role", "user"),
  "reply.message/text": body("output[].content[].text", ""),
  "reply.message/type": body("output[].content[].type", "text"),
  "reply.usage": body("usage.total_tokens", increment),
  "reply.usage/details": body("usage.input_tokens_details", undefined),
  "reply.repeats": body("instructions", null),
  "reply.repeats/tools": body("tools", []),
  "incomplete.whole": body("status", "completed"),
  "incomplete.whole/why": body("incomplete_details", null),
  "incomplete.stream": event("response.incomplete", "type", "response.completed"),
  "format.schema": body("output[].content[].text", "Oslo"),
  "stream.names": ifGood(text((given) => given.replaceAll(/^event: .*\n/gm, ""))),
  "stream.numbers": event("response.output_text.delta", "sequence_number", increment),
  "stream.order": without("response.in_progress"),
  "stream.order/end": without("response.completed"),
  "stream.items": without("response.output_item.done"),
  "stream.items/id": event("response.output_item.done", "item.id", "other"),
  "stream.items/output": event("response.completed", "response.output", []),
  "stream.text": event("response.output_text.delta", "delta", (delta) => `${delta} `),
  "stream.parts": without("response.content_part.done"),
  "stream.parts/text": event("response.output_text.done", "text", "other"),
  "stream.usage": event("response.completed", "response.usage", null),
  "tools.call": body("output[].name", "other"),
  "tools.call/arguments": body("output[].arguments", "other"),
  "tools.stream": without("response.function_call_arguments.delta"),
  "tools.result": {
    when: ({ text: sent }) => sent.includes("function_call_output"),
    answer: body("output", []),
  },
  "tools.custom": body("output[].type", "function_call"),
  "tools.custom/input": body("output[].input", (input) => ({ input })),
  "tools.namespace": body("output[].namespace", undefined),
  "reasoning.summary": body("output[].summary", []),
  "reasoning.stream": without("response.reasoning_summary_text.delta"),
  "reasoning.hidden": body("output[].summary", thought),
  "reasoning.sealed": body("output[].encrypted_content", undefined),
  "reasoning.sealed/back": again,
  "reasoning.changed": again,
  "refused.store": accepted,
  "refused.store/param": misnamed,
  "refused.item": accepted,
  "refused.item/param": misnamed,
});

export const responsesFaults: Faults = [
  ...ofResponses,
  ...others("responses", ofResponses, opposite),
];
