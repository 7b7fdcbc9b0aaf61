// Level `messages`: Anthropic's Messages API, as its clients rely on it. The rules about every
// answer of chat completions do not apply to these requests.

import type { Headers } from "../client.ts";
import * as expect from "../expect.ts";
import * as is from "../forms.ts";
import { first, isObject, list, wordsOf, type Fields, type Json } from "../shapes.ts";
import { TOOLS, type Tester } from "../tester.ts";
import { after, apiOf, expectNames, ofStream, user, type ApiKit } from "./kit.ts";

const PATH = "/v1/messages";
const headersOf = ({ options }: Tester): Headers => ({
  authorization: undefined,
  "anthropic-version": "2023-06-01",
  "x-api-key": options.key,
});
const messages = apiOf(
  "messages",
  (_t, fields) => ({ max_tokens: 1_000, ...fields }),
  (t) => ({ path: PATH, headers: headersOf(t) }),
);

const REPLY: Fields = {
  id: is.text,
  type: "message",
  role: "assistant",
  model: is.text,
  content: is.members,
  "content[].type": "text",
  "content[].text": is.text,
  stop_reason: "end_turn",
  stop_sequence: null,
  "usage.input_tokens": is.count,
  "usage.output_tokens": is.count,
};
for (const [path, expected] of Object.entries(REPLY))
  messages('wire.md "Anthropic replies"', {
    [`reply.${path.replaceAll("[]", "")}: ${path} of a whole reply is ${wordsOf(expected)}`]:
      async ({ whole }) => expect.fields(await whole(), { [path]: expected }),
  });

/** The content blocks of a stream, each with its joined deltas. */
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

/** Blocks must not overlap, must each have an end, and must be numbered from 0. */
function expectOrder(events: readonly Json[]): void {
  const steps = events
    .filter(({ type }) => type !== "ping")
    .map(({ type, index }) => [String(type), index] as const);
  const types = steps.map(([type]) => type).join(" ");
  const block = "content_block_start( content_block_delta)* content_block_stop";
  expect.fields(
    { types },
    { types: new RegExp(`^message_start( ${block})* message_delta message_stop$`) },
  );
  let next = -1;
  for (const [type, index] of steps.slice(1, -2)) {
    if (type === "content_block_start") next += 1;
    expect.that(index === next, `the index ${next} at ${type}`, index);
  }
}

const tools = TOOLS.tools.map(({ function: { name, parameters } }) => ({
  name,
  input_schema: parameters,
}));
const MAIL = { tools, tool_choice: { type: "tool", name: "send_mail" } };
const CALL: Fields = { type: "tool_use", id: is.text, name: "send_mail" };
const called = { type: "tool_use", id: "toolu_0123456789", name: "get_time", input: { city: "x" } };
const cache_control = { type: "ephemeral" };
const result = { type: "tool_result", tool_use_id: called.id, content: "14:05", cache_control };
const THINKING = { max_tokens: 3_000, thinking: { type: "enabled", budget_tokens: 1_024 } };

messages('wire.md "Anthropic replies"', {
  ...ofStream({
    "stream.order: the message begins, each block begins, grows and ends before the next":
      expectOrder,
    "stream.start: message_start has an empty message with the tokens of the prompt": ([start]) =>
      expect.fields(first(start, "message"), {
        content: [],
        stop_reason: null,
        "usage.input_tokens": is.count,
      }),
    "stream.end: message_delta says why the message ends, and the tokens of the reply": (all) => {
      const delta = all.find(({ type }) => type === "message_delta");
      expect.fields(delta, { "delta.stop_reason": "end_turn", "usage.output_tokens": is.positive });
    },
  }),
  "stream.names: each event has the type of its data as its name": async ({ post }) =>
    expectNames(await post({ stream: true })),
  async "stream.text: the deltas of a stream add up to the text of the whole reply"(kit) {
    const whole = first(await kit.whole({ temperature: 0 }), "content[].text");
    expect.same(blocksOf(await kit.stream({ temperature: 0 }))[0]?.["text"], whole);
  },
  async "tools.whole [tools]: a call is a block with an object, and ends the turn"(kit) {
    const reply = await kit.whole(MAIL);
    expect.fields(list(first(reply, "content")).at(-1), { ...CALL, input: is.object });
    expect.fields(reply, { stop_reason: "tool_use" });
  },
  "tools.stream [tools]: the arguments of a call stream as JSON": async ({ stream }) =>
    expect.fields(blocksOf(await stream(MAIL)).at(-1), { ...CALL, partial_json: is.jsonText }),
  async "thinking.block [reasoning]: thoughts are a signed block before the text"(kit) {
    const reply = await kit.whole({ model: kit.t.reasoningModel, ...THINKING });
    const block = { type: "thinking", thinking: is.text, signature: is.string };
    expect.fields(list(first(reply, "content"))[0], block);
  },
});

const takes =
  (fields: Json) =>
  ({ whole }: ApiKit) =>
    whole(fields);
messages('wire.md "Anthropic requests"', {
  "system.blocks: the system's text may be blocks with marks for the cache": takes({
    system: [{ type: "text", text: "Be brief.", cache_control }],
  }),
  "system.message: an instruction may stand among the messages": takes(
    after({ role: "system", content: "Be brief." }),
  ),
  "content.blocks: content may be blocks": takes(user([{ type: "text", text: "Hi." }])),
  "thinking.disabled: thinking may be disabled": takes({ thinking: { type: "disabled" } }),
  "unknown-field: further fields that coding agents send are accepted": takes({
    metadata: { user_id: "u" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  }),
  "tools.loop [tools]: the result of a call is taken, with marks for the cache": takes({
    tools,
    ...after({ role: "assistant", content: [called] }, { role: "user", content: [result] }),
  }),
  async "key.bearer: the key may stand in Authorization too"({ t, post }) {
    const headers = { "x-api-key": undefined, authorization: `Bearer ${t.options.key}` };
    expect.same((await post({}, { headers })).status, 200);
  },
  async "count: count_tokens gives the tokens of a prompt"({ post }) {
    const exchange = await post({ max_tokens: undefined }, { path: `${PATH}/count_tokens` });
    expect.fields(exchange, { status: 200, "json.input_tokens": is.positive });
  },
  async "models: the list of models has the vendor's form"({ t }) {
    const { status, json } = await t.get("/v1/models", headersOf(t));
    expect.same(status, 200);
    expect.fields(json, {
      data: is.members,
      "data[].type": "model",
      "data[].display_name": is.text,
      has_more: false,
      last_id: first(list(first(json, "data")).at(-1), "id") ?? is.text,
    });
  },
});

const ERRORS: readonly (readonly [string, string, number, string, Json, Headers?])[] = [
  ["invalid", "a body without messages", 400, "invalid_request_error", { messages: [] }],
  ["max_tokens", "a body without max_tokens", 400, "invalid_request_error", { max_tokens: null }],
  ["key", "a wrong key", 401, "authentication_error", {}, { "x-api-key": "sk-no-such-key" }],
  ["model", "an unknown model", 404, "not_found_error", { model: "no-such-model" }],
];
for (const [id, what, status, type, fields, headers] of ERRORS)
  messages('wire.md "Anthropic errors"', {
    async [`error.${id}: ${what} is refused with ${status} and ${type}`]({ post }) {
      const reply = await post(fields, { headers });
      expect.same(reply.status, status);
      expect.fields(reply.json, {
        type: "error",
        "error.type": type,
        "error.message": is.text,
        request_id: reply.headers["x-request-id"],
      });
    },
  });
