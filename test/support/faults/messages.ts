// Faults for each check of the level `messages`.

import type { Answer, Asked, Fault } from "../wrong-gateway.ts";
import { anyBody, blocks, body, change, ownId, status, type Change } from "./kit.ts";

const own = (id: string): Fault["when"] => ownId(`messages.${id}`);
const fault = (id: string, answer: (answer: Answer) => Answer): readonly [string, Fault] => {
  const [name = ""] = id.split("/");
  return [`messages.${id}`, { when: own(name), answer }];
};
const streamed = (id: string, answer: (answer: Answer) => Answer): readonly [string, Fault] => {
  const [name = ""] = id.split("/");
  const when = (asked: Asked) => own(name)(asked) && asked.streamed;
  return [`messages.${id}`, { when, answer }];
};

/** The data of the events of one type, changed at a path. */
const events = (type: string, path: string, to: Change) =>
  blocks((all) =>
    all.map((block) => {
      const [name, data = ""] = block.split("\ndata: ");
      if (name !== `event: ${type}`) return block;
      return `${name}\ndata: ${JSON.stringify(change(JSON.parse(data), path, to))}`;
    }),
  );
const without = (type: string) =>
  blocks((all) => all.filter((block) => !block.startsWith(`event: ${type}\n`)));
const gone: Change = () => undefined;

const REPLY = [
  "id",
  "type",
  "role",
  "model",
  "content",
  "content[].type",
  "content[].text",
  "stop_reason",
  "stop_sequence",
  "usage.input_tokens",
  "usage.output_tokens",
];
const ACCEPTED = [
  "system.blocks",
  "system.message",
  "content.blocks",
  "thinking.disabled",
  "unknown-field",
  "tools.loop",
  "key.bearer",
];
const ERRORS = ["invalid", "max_tokens", "key", "model"];

export const messagesFaults: readonly (readonly [string, Fault])[] = [
  ...REPLY.map((path) => fault(`reply.${path.replaceAll("[]", "")}`, body(path, gone))),
  ...ACCEPTED.map((id) => fault(id, status(400))),
  fault(
    "stream.names",
    blocks((all) => all.map((block) => block.replace(/^event: \w+/, "event: message"))),
  ),
  fault("stream.order/stop", without("content_block_stop")),
  fault(
    "stream.order/index",
    events("content_block_start", "index", () => 1),
  ),
  fault(
    "stream.order/last",
    blocks((all) => [...all.slice(0, -2), all.at(-1)!, all.at(-2)!]),
  ),
  fault("stream.order/start", without("message_start")),
  streamed(
    "stream.text",
    events("content_block_delta", "delta.text", () => "x"),
  ),
  fault("stream.start/tokens", events("message_start", "message.usage", gone)),
  fault(
    "stream.start/reason",
    events("message_start", "message.stop_reason", () => "end_turn"),
  ),
  fault(
    "stream.start/content",
    events("message_start", "message.content", () => [{}]),
  ),
  fault("stream.end/reason", events("message_delta", "delta", gone)),
  fault("stream.end/tokens", events("message_delta", "usage", gone)),
  fault(
    "tools.whole/input",
    body("content[].input", () => "{}"),
  ),
  fault("tools.whole/id", body("content[].id", gone)),
  fault(
    "tools.whole/name",
    body("content[].name", () => "get_time"),
  ),
  fault(
    "tools.whole/reason",
    body("stop_reason", () => "end_turn"),
  ),
  fault("tools.stream/name", events("content_block_start", "content_block.name", gone)),
  fault(
    "tools.stream/arguments",
    events("content_block_delta", "delta.partial_json", () => "["),
  ),
  fault(
    "thinking.block/type",
    body("content[].type", () => "text"),
  ),
  fault("thinking.block/signature", body("content[].signature", gone)),
  fault(
    "thinking.block/empty",
    body("content[].thinking", () => ""),
  ),
  ...ERRORS.flatMap((id) => [
    fault(`error.${id}/status`, status(422)),
    fault(`error.${id}/shape`, anyBody("type", gone)),
    fault(
      `error.${id}/type`,
      anyBody("error.type", () => "error"),
    ),
    fault(`error.${id}/message`, anyBody("error.message", gone)),
    fault(
      `error.${id}/request_id`,
      anyBody("request_id", () => "another"),
    ),
  ]),
  fault(
    "count",
    body("input_tokens", () => 0),
  ),
  fault("models/type", body("data[].type", gone)),
  fault("models/name", body("data[].display_name", gone)),
  fault(
    "models/more",
    body("has_more", () => true),
  ),
  fault(
    "models/last",
    body("last_id", () => "another"),
  ),
];
