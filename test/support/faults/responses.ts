// Faults for the checks of the level `responses`, by the check's id less the level. Each check
// sends its own id as the request's, so a fault is about the requests of one check.

import { parse, type Answer, type Asked, type Fault } from "../wrong-gateway.ts";
import {
  anyBody,
  blocks,
  body,
  change,
  ifGood,
  increment,
  named,
  refuses,
  status,
  type Change,
} from "./kit.ts";

const marked =
  (id: string) =>
  ({ headers }: Asked): boolean =>
    headers["x-request-id"] === `responses.${id}`;

/** Spoils a field of the whole replies. */
const whole = (id: string, path: string, to: Change): Fault => ({
  when: marked(id),
  answer: body(path, to),
});
const refused = (id: string): Fault => refuses(marked(id));
/** A refusal that is none. */
const accepted = (id: string): Fault => ({
  when: marked(id),
  answer: (answer) => (answer.status === 400 ? status(200)(answer) : answer),
});
/** The refusal names another field. */
const misnamed = (id: string): Fault => ({
  when: marked(id),
  answer: (answer) =>
    answer.status === 400 ? anyBody("error.param", () => "model")(answer) : answer,
});

type Event = Readonly<Record<string, unknown>>;

/** What is made of the events of a stream. */
const events = (id: string, edit: (events: Event[]) => Event[]): Fault => ({
  when: marked(id),
  answer: blocks((texts) =>
    edit(texts.map((text) => parse(text.slice(text.indexOf("data: ") + 6)) as Event)).map(
      (event) => `event: ${event["type"]}\ndata: ${JSON.stringify(event)}`,
    ),
  ),
});
/** Spoils a field of the events of one type. */
const event = (id: string, type: string, path: string, to: Change): Fault =>
  events(id, (all) =>
    all.map((each) => (each["type"] === type ? (change(each, path, to) as Event) : each)),
  );
const without = (id: string, type: string): Fault =>
  events(id, (all) => all.filter((each) => each["type"] !== type));
const lines = (id: string, edit: (text: string) => string): Fault => ({
  when: marked(id),
  answer: ifGood((answer: Answer) => ({ ...answer, text: edit(answer.text) })),
});

const TEXT_DELTA = "response.output_text.delta";
const COMPLETED = "response.completed";
const other: Change = () => "other";
const noItems: Change = () => [];

const responses: Readonly<Record<string, Fault>> = {
  "reply.object": whole("reply.object", "id", () => "chatcmpl-1"),
  "reply.object/status": whole("reply.object", "status", () => "in_progress"),
  "reply.object/model": whole("reply.object", "model", other),
  "reply.message": whole("reply.message", "output[].role", () => "user"),
  "reply.message/text": whole("reply.message", "output[].content[].text", () => ""),
  "reply.message/type": whole("reply.message", "output[].content[].type", () => "text"),
  "reply.usage": whole("reply.usage", "usage.total_tokens", increment),
  "reply.usage/details": whole("reply.usage", "usage.input_tokens_details", () => undefined),
  "reply.repeats": whole("reply.repeats", "instructions", () => null),
  "reply.repeats/tools": whole("reply.repeats", "tools", noItems),
  "input.items": refused("input.items"),
  "incomplete.whole": whole("incomplete.whole", "status", () => "completed"),
  "incomplete.whole/why": whole("incomplete.whole", "incomplete_details", () => null),
  "incomplete.stream": event("incomplete.stream", "response.incomplete", "type", () => COMPLETED),
  "format.schema": whole("format.schema", "output[].content[].text", () => "Oslo"),

  "stream.names": lines("stream.names", (text) => text.replaceAll(/^event: .*\n/gm, "")),
  "stream.numbers": event("stream.numbers", TEXT_DELTA, "sequence_number", increment),
  "stream.order": without("stream.order", "response.in_progress"),
  "stream.order/end": without("stream.order", COMPLETED),
  "stream.items": without("stream.items", "response.output_item.done"),
  "stream.items/id": event("stream.items", "response.output_item.done", "item.id", other),
  "stream.items/output": event("stream.items", COMPLETED, "response.output", noItems),
  "stream.text": event("stream.text", TEXT_DELTA, "delta", (delta) => `${delta} `),
  "stream.parts": without("stream.parts", "response.content_part.done"),
  "stream.parts/text": event("stream.parts", "response.output_text.done", "text", other),
  "stream.usage": event("stream.usage", COMPLETED, "response.usage", () => null),

  "tools.call": whole("tools.call", "output[].name", other),
  "tools.call/arguments": whole("tools.call", "output[].arguments", other),
  "tools.stream": without("tools.stream", "response.function_call_arguments.delta"),
  "tools.result": {
    when: (asked) => marked("tools.result")(asked) && asked.text.includes("function_call_output"),
    answer: body("output", noItems),
  },
  "tools.custom": whole("tools.custom", "output[].type", () => "function_call"),
  "tools.custom/input": whole("tools.custom", "output[].input", (input) => ({ input })),
  "tools.namespace": whole("tools.namespace", "output[].namespace", () => undefined),
  "tools.additional": refused("tools.additional"),
  "tools.hosted": refused("tools.hosted"),
  "tools.forced": accepted("tools.forced"),

  "reasoning.summary": whole("reasoning.summary", "output[].summary", noItems),
  "reasoning.stream": without("reasoning.stream", "response.reasoning_summary_text.delta"),
  "reasoning.hidden": whole("reasoning.hidden", "output[].summary", () => [
    { type: "summary_text", text: "I think." },
  ]),
  "reasoning.sealed": whole("reasoning.sealed", "output[].encrypted_content", () => undefined),
  "reasoning.sealed/back": refuses(
    (asked) => marked("reasoning.sealed")(asked) && Array.isArray(asked.body["input"]),
  ),
  "reasoning.changed": refuses(
    (asked) => marked("reasoning.changed")(asked) && Array.isArray(asked.body["input"]),
  ),

  "refused.store": accepted("refused.store"),
  "refused.store/param": misnamed("refused.store"),
  "refused.previous": accepted("refused.previous"),
  "refused.reference": accepted("refused.reference"),
  "refused.item": accepted("refused.item"),
  "refused.item/param": misnamed("refused.item"),
  "refused.answer": accepted("refused.answer"),
};

export const responsesFaults = named("responses", responses);
