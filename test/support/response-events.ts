// Streams of the Responses API, read strictly, and put together as its clients do.
import assert from "node:assert/strict";
import { eventsIn } from "./messages-events.ts";

export interface ResponseEvent extends Record<string, any> {
  readonly type: string;
  readonly sequence_number: number;
}

/**
 * The events of a stream. Each has its type twice, and the number after that of the one before it.
 */
export function readEvents(text: string): ResponseEvent[] {
  const events = eventsIn(text.replaceAll(/^: .*\n\n/gm, "")) as ResponseEvent[];
  assert.deepEqual(
    events.map(({ sequence_number }) => sequence_number),
    [...events.keys()],
  );
  return events;
}

/** By the kind of event: the field of an item, or of its part, that a delta is appended to. */
const DELTAS: Readonly<Record<string, string>> = {
  "response.output_text.delta": "text",
  "response.refusal.delta": "refusal",
  "response.reasoning_summary_text.delta": "text",
  "response.function_call_arguments.delta": "arguments",
  "response.custom_tool_call_input.delta": "input",
};

type Item = Record<string, any>;

/** The fields that an item has from its end on, or that change then. */
const LATE = ["status", "encrypted_content"];

function endItem(item: Item, whole: Item): void {
  for (const field of LATE) if (field in whole) item[field] = whole[field];
  // A search for tools has its arguments at its end only.
  if (typeof whole["arguments"] === "object") item["arguments"] = whole["arguments"];
  assert.deepEqual(item, whole);
}

function growItem(item: Item, event: ResponseEvent): void {
  const parts = item["summary"] ?? item["content"];
  const part = parts?.[event["content_index"] ?? event["summary_index"]];
  const field = DELTAS[event.type];
  if (field !== undefined) (part ?? item)[field] += event["delta"];
  else if (event.type.endsWith("part.added")) parts.push(event["part"]);
  else if (event.type.endsWith("part.done")) assert.deepEqual(part, event["part"]);
}

/** The output that the deltas amount to. What an item's last event says must be the same. */
export function assembleResponse(events: readonly ResponseEvent[]): object[] {
  const items: Item[] = [];
  for (const event of events) {
    const { type, item_id, output_index, item } = event;
    if (type === "response.output_item.added") assert.equal(items.push(item), output_index + 1);
    else if (type === "response.output_item.done") endItem(items[output_index]!, item);
    else if (item_id !== undefined) {
      assert.equal(item_id, items[output_index]?.["id"], type);
      growItem(items[output_index]!, event);
    }
  }
  return items;
}
