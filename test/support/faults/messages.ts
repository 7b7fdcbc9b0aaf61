// Faults for the checks of the level `messages`. A check that has none here is about a request that
// is to be accepted: it is refused.

import { CHECKS } from "../../../scripts/conformance/checks/all.ts";
import {
  anyBody,
  blocks,
  body,
  change,
  eachOf,
  isStream,
  own,
  others,
  status,
  without,
  type Change,
  type Faults,
} from "./kit.ts";

/** The data of the events of one type, changed at a path. */
const events = (type: string, path: string, to: Change) =>
  blocks((all) =>
    all.map((block) => {
      const [name, data = ""] = block.split("\ndata: ");
      if (name !== `event: ${type}`) return block;
      return `${name}\ndata: ${JSON.stringify(change(JSON.parse(data), path, to))}`;
    }),
  );
const gone = (type: string) => without((block) => block.startsWith(`event: ${type}\n`));
const withoutField = (path: string) => body(path, undefined);
const fields = CHECKS.filter(({ id }) => id.startsWith("messages.reply.")).map(({ id, title }) => {
  const [path = ""] = title.split(" ");
  return [id.replace("messages.", ""), withoutField(path)];
});

const stated = own("messages", {
  ...Object.fromEntries(fields),
  "stream.names": blocks((all) => all.map((block) => block.replace(/^event: \w+/, "event: other"))),
  "stream.order/stop": gone("content_block_stop"),
  "stream.order/index": events("content_block_start", "index", 1),
  "stream.order/last": blocks((all) => [...all.slice(0, -2), all.at(-1)!, all.at(-2)!]),
  "stream.order/start": gone("message_start"),
  "stream.text": { when: isStream, answer: events("content_block_delta", "delta.text", "x") },
  "stream.start/tokens": events("message_start", "message.usage", undefined),
  "stream.start/reason": events("message_start", "message.stop_reason", "end_turn"),
  "stream.start/content": events("message_start", "message.content", [{}]),
  "stream.end/reason": events("message_delta", "delta", undefined),
  "stream.end/tokens": events("message_delta", "usage", undefined),
  "tools.whole/input": body("content[].input", "{}"),
  "tools.whole/id": withoutField("content[].id"),
  "tools.whole/name": body("content[].name", "get_time"),
  "tools.whole/reason": body("stop_reason", "end_turn"),
  "tools.stream/name": events("content_block_start", "content_block.name", undefined),
  "tools.stream/arguments": events("content_block_delta", "delta.partial_json", "["),
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

export const messagesFaults: Faults = [...stated, ...others("messages", stated, status(400))];
