// Faults for the checks of the level `responses`. A check that has none here is about a request that
// is to be accepted, or refused: the opposite is done.

import { parseJson } from "../../../scripts/conformance/client.ts";
import { first, type Json } from "../../../scripts/conformance/shapes.ts";
import type { Fault } from "../wrong-gateway.ts";
import {
  blocks,
  body,
  change,
  error,
  ifGood,
  ifStatus,
  increment,
  opposite,
  others,
  own,
  status,
  text,
  type Change,
  type Edit,
  type Faults,
} from "./kit.ts";

const events = (edit: (events: unknown[]) => unknown[]): Edit =>
  blocks((texts) =>
    edit(texts.map((block) => parseJson(block.slice(block.indexOf("data: ") + 6)))).map(
      (event) => `event: ${first(event, "type")}\ndata: ${JSON.stringify(event)}`,
    ),
  );
const isOf = (type: string, event: unknown) => first(event, "type") === `response.${type}`;
/** Spoils a field of the events of one type. */
const event = (type: string, path: string, to: Change): Edit =>
  events((all) => all.map((each) => (isOf(type, each) ? change(each, path, to) : each)));
const without = (type: string): Edit => events((all) => all.filter((each) => !isOf(type, each)));
const sendsBack: Fault["when"] = ({ body: { input } }) => Array.isArray(input);
const again = { ...opposite, when: sendsBack };
const accepted = ifStatus(400, status(200));
const misnamed = ifStatus(400, error("param", "model"));
const thought: readonly Json[] = [{ type: "summary_text", text: "I think." }];

const stated = own("responses", {
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
  "incomplete.stream": event("incomplete", "type", "response.completed"),
  "format.schema": body("output[].content[].text", "Oslo"),
  "stream.names": ifGood(text((given) => given.replaceAll(/^event: .*\n/gm, ""))),
  "stream.numbers": event("output_text.delta", "sequence_number", increment),
  "stream.order": without("in_progress"),
  "stream.order/end": without("completed"),
  "stream.items": without("output_item.done"),
  "stream.items/id": event("output_item.done", "item.id", "other"),
  "stream.items/output": event("completed", "response.output", []),
  "stream.text": event("output_text.delta", "delta", (delta) => `${delta} `),
  "stream.parts": without("content_part.done"),
  "stream.parts/text": event("output_text.done", "text", "other"),
  "stream.usage": event("completed", "response.usage", null),
  "tools.call": body("output[].name", "other"),
  "tools.call/arguments": body("output[].arguments", "other"),
  "tools.stream": without("function_call_arguments.delta"),
  "tools.result": {
    when: ({ text: sent }) => sent.includes("function_call_output"),
    answer: body("output", []),
  },
  "tools.custom": body("output[].type", "function_call"),
  "tools.custom/input": body("output[].input", (input) => ({ input })),
  "tools.namespace": body("output[].namespace", undefined),
  "tools.forced": accepted,
  "reasoning.summary": body("output[].summary", []),
  "reasoning.stream": without("reasoning_summary_text.delta"),
  "reasoning.hidden": body("output[].summary", thought),
  "reasoning.sealed": body("output[].encrypted_content", undefined),
  "reasoning.sealed/back": again,
  "reasoning.changed": again,
  "refused.store": accepted,
  "refused.store/param": misnamed,
  "refused.previous": accepted,
  "refused.reference": accepted,
  "refused.item": accepted,
  "refused.item/param": misnamed,
  "refused.answer": accepted,
});

export const responsesFaults: Faults = [...stated, ...others("responses", stated, opposite)];
