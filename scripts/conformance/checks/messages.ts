// Level `messages`: Anthropic's Messages API, as its clients count on it. The requests are not among
// those that the rules about every answer of chat completions look at.

import type { Exchange } from "../exchange.ts";
import {
  count,
  expect,
  expectFields,
  expectSame,
  first,
  isObject,
  jsonText,
  list,
  members,
  object,
  positive,
  string,
  text,
  wordsOf,
  type Fields,
  type Json,
} from "../shapes.ts";
import { question, TOOLS, type Check, type Headers, type Tester } from "../suite.ts";
import { lookingAt, scenesOf } from "./kit.ts";

const PATH = "/v1/messages";

/** What a check of this level works with. */
interface Scene {
  readonly t: Tester;
  /** A short question to the model, with these fields. */
  send(fields?: Json, headers?: Headers, path?: string): Promise<Exchange>;
  /** The reply to the same, which must be a 200. */
  answered(fields?: Json): Promise<unknown>;
  /** The events of a stream that must be answered with 200; their names are under "". */
  streamed(fields?: Json): Promise<readonly Json[]>;
}

const headersOf = ({ options }: Tester): Headers => ({
  authorization: undefined,
  "anthropic-version": "2023-06-01",
  "x-api-key": options.key,
});
const usual = (fields: Json = {}) => ({ max_tokens: 1_000, ...fields });

function sceneOf(t: Tester): Scene {
  const over = { path: PATH, headers: headersOf(t) };
  return {
    t,
    send: (fields, headers, path = PATH) =>
      t.ask(usual(fields), { path, headers: { ...headersOf(t), ...headers } }),
    answered: async (fields) => (await t.answered(usual(fields), over)).json,
    async streamed(fields) {
      const { events } = await t.answered(usual({ ...fields, stream: true }), over);
      return events.map(({ lines, json }) => {
        expect(isObject(json), "data that is a JSON object", lines.join(" "));
        const name = lines.find((line) => line.startsWith("event:"));
        return { ...json, "": name?.slice(6).trim() };
      });
    },
  };
}

const messages = scenesOf("messages", sceneOf);

const REPLY: Fields = {
  id: text,
  type: "message",
  role: "assistant",
  model: text,
  content: members,
  "content[].type": "text",
  "content[].text": text,
  stop_reason: "end_turn",
  stop_sequence: null,
  "usage.input_tokens": count,
  "usage.output_tokens": count,
};
const replies = Object.entries(REPLY).flatMap(([path, expected]) =>
  messages('wire.md "Anthropic replies"', {
    [`reply.${path.replaceAll("[]", "")}: ${path} of a whole reply is ${wordsOf(expected)}`]:
      async ({ answered }) => expectFields(await answered(), { [path]: expected }),
  }),
);

const typesOf = (events: readonly Json[]): unknown[] => events.map(({ type }) => type);
const withoutPings = (events: readonly Json[]): readonly Json[] =>
  events.filter(({ type }) => type !== "ping");

/** The blocks of a stream, each with what its deltas add up to. */
function blocksOf(events: readonly Json[]): Json[] {
  const blocks: Record<string, unknown>[] = [];
  for (const { type, content_block, delta } of events) {
    if (type === "content_block_start" && isObject(content_block))
      blocks.push({ ...content_block });
    if (type !== "content_block_delta" || !isObject(delta)) continue;
    const block = blocks.at(-1) ?? {};
    for (const name of ["text", "partial_json"])
      if (typeof delta[name] === "string") block[name] = `${block[name] ?? ""}${delta[name]}`;
  }
  return blocks;
}

/** Throws if blocks overlap, have no end, or are numbered otherwise than from 0. */
function expectOrder(events: readonly Json[]): void {
  const rest = withoutPings(events);
  const ends = [rest[0], rest.at(-2), rest.at(-1)].map((event) => event?.["type"]);
  expectSame(ends, ["message_start", "message_delta", "message_stop"]);
  let [open, next] = [-1, 0];
  for (const { type, index } of rest.slice(1, -2)) {
    const isStart = type === "content_block_start";
    const expected = isStart ? next : open;
    expect(open === -1 ? isStart : !isStart, "one block after the other", typesOf(events));
    expect(index === expected, `the index ${expected} at ${type}`, index);
    if (isStart) next += 1;
    if (isStart) open = expected;
    if (type === "content_block_stop") open = -1;
  }
  expect(open === -1, "an end of each block", typesOf(events));
}

const tools = TOOLS.tools.map(({ function: { name, parameters } }) => ({
  name,
  input_schema: parameters,
}));
const MAIL = { tools, tool_choice: { type: "tool", name: "send_mail" } };
const CALL: Fields = { type: "tool_use", id: text, name: "send_mail" };
const called = { type: "tool_use", id: "toolu_0123456789", name: "get_time", input: { city: "x" } };
const cache_control = { type: "ephemeral" };
const result = { type: "tool_result", tool_use_id: called.id, content: "14:05", cache_control };
const THINKING = { max_tokens: 3_000, thinking: { type: "enabled", budget_tokens: 1_024 } };

const streams = messages(
  'wire.md "Anthropic replies"',
  lookingAt(({ streamed }) => streamed(), {
    "stream.names: each event has the type of its data as its name": (events) => {
      for (const { type, "": name } of events) expectSame(name, type);
    },
    "stream.order: the message begins, each block begins, grows and ends before the next":
      expectOrder,
    "stream.start: message_start has an empty message with the tokens of the prompt": ([start]) =>
      expectFields(first(start, "message"), {
        content: [],
        stop_reason: null,
        "usage.input_tokens": count,
      }),
    "stream.end: message_delta says why the message ends, and the tokens of the reply": (
      events,
    ) => {
      const delta = events.find(({ type }) => type === "message_delta");
      expectFields(delta, { "delta.stop_reason": "end_turn", "usage.output_tokens": positive });
    },
  }),
);

const contents = messages('wire.md "Anthropic replies"', {
  async "stream.text: the deltas of a stream add up to the text of the whole reply"({
    streamed,
    answered,
  }) {
    const whole = first(await answered({ temperature: 0 }), "content[].text");
    expectSame(blocksOf(await streamed({ temperature: 0 }))[0]?.["text"], whole);
  },
  async "tools.whole [tools]: a call is a block with its arguments as an object, and ends the turn"({
    answered,
  }) {
    const reply = await answered(MAIL);
    expectFields(list(first(reply, "content")).at(-1), { ...CALL, input: object });
    expectFields(reply, { stop_reason: "tool_use" });
  },
  "tools.stream [tools]: the arguments of a call stream as the text of a JSON object": async ({
    streamed,
  }) => expectFields(blocksOf(await streamed(MAIL)).at(-1), { ...CALL, partial_json: jsonText }),
  async "thinking.block [reasoning]: thoughts are a block with a signature before the text"({
    t,
    answered,
  }) {
    const reply = await answered({ model: t.reasoningModel, ...THINKING });
    const block = { type: "thinking", thinking: text, signature: string };
    expectFields(list(first(reply, "content"))[0], block);
  },
});

const takes =
  (fields: Json) =>
  ({ answered }: Scene) =>
    answered(fields);
const requests = messages('wire.md "Anthropic requests"', {
  "system.blocks: the system's text may be blocks with marks for the cache": takes({
    system: [{ type: "text", text: "Be brief.", cache_control }],
  }),
  "system.message: an instruction may stand among the messages": takes({
    messages: [...question("Hi."), { role: "system", content: "Be brief." }],
  }),
  "content.blocks: content may be blocks": takes({
    messages: [{ role: "user", content: [{ type: "text", text: "Hi." }] }],
  }),
  "thinking.disabled: thinking may be disabled": takes({ thinking: { type: "disabled" } }),
  "unknown-field: what coding agents send beside the message is taken": takes({
    metadata: { user_id: "u" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  }),
  "tools.loop [tools]: the result of a call is taken, with marks for the cache": takes({
    tools,
    messages: [
      ...question("Hi."),
      { role: "assistant", content: [called] },
      { role: "user", content: [result] },
    ],
  }),
  async "key.bearer: the key may stand in Authorization too"({ t, send }) {
    const headers = { "x-api-key": undefined, authorization: `Bearer ${t.options.key}` };
    expectSame((await send({}, headers)).status, 200);
  },
  async "count: count_tokens gives the tokens of a prompt"({ send }) {
    const { status, json } = await send({ max_tokens: undefined }, {}, `${PATH}/count_tokens`);
    expectSame(status, 200);
    expectFields(json, { input_tokens: positive });
  },
  async "models: the list of models has the vendor's form"({ t }) {
    const { status, json } = await t.get("/v1/models", headersOf(t));
    expectSame(status, 200);
    expectFields(json, {
      data: members,
      "data[].type": "model",
      "data[].display_name": text,
      has_more: false,
      last_id: first(list(first(json, "data")).at(-1), "id") ?? text,
    });
  },
});

const ERRORS: readonly (readonly [string, string, number, string, Json, Headers?])[] = [
  ["invalid", "a body without messages", 400, "invalid_request_error", { messages: [] }],
  ["max_tokens", "a body without max_tokens", 400, "invalid_request_error", { max_tokens: null }],
  ["key", "a wrong key", 401, "authentication_error", {}, { "x-api-key": "sk-no-such-key" }],
  ["model", "an unknown model", 404, "not_found_error", { model: "no-such-model" }],
];
const errors = ERRORS.flatMap(([id, what, status, type, fields, headers]) =>
  messages('wire.md "Anthropic errors"', {
    async [`error.${id}: ${what} is refused with ${status} and ${type}`]({ send }) {
      const reply = await send(fields, headers);
      expectSame(reply.status, status);
      expectFields(reply.json, {
        type: "error",
        "error.type": type,
        "error.message": text,
        request_id: reply.headers["x-request-id"],
      });
    },
  }),
);

export const messagesChecks: readonly Check[] = [
  ...replies,
  ...streams,
  ...contents,
  ...requests,
  ...errors,
];
