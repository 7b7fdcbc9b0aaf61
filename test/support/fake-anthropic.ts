// A provider with Anthropic's Messages API (wire.md "Anthropic requests"), which enforces the
// published rules of a conversation. The rules of single fields are not here:
// test/extensions/providers/anthropic/request.test.ts tests how each field is translated. One rule
// is stricter than that of the service, which joins neighbouring turns of one role. Models are
// named claude-4-5-... (thinking has a budget) or claude-5-... (thinking is adaptive).

import { isDeepStrictEqual } from "node:util";
import type { Asked } from "./provider.ts";
import {
  COUNTS,
  isObject,
  letters,
  PROVIDER_KEY,
  OWN_WORDS,
  fakeOf,
  rule,
  sign,
  words,
  type Format,
  type Said,
  type Understood,
} from "./fake-provider.ts";

const FIELDS = [
  ...["model", "max_tokens", "messages", "system", "stream", "stop_sequences", "tools"],
  ...["tool_choice", "thinking", "output_config", "metadata", "temperature", "top_p"],
];

function understand({ path, headers, body }: Asked): Understood {
  rule(path.split("?")[0] === "/v1/messages", "Not Found");
  const key = headers["x-api-key"] ?? headers["authorization"]?.replace(/^Bearer /, "");
  rule(key === PROVIDER_KEY, "invalid x-api-key");
  for (const field of Object.keys(body))
    rule(FIELDS.includes(field), `${field}: Extra inputs are not permitted`);
  const thinking = body["thinking"] ?? { type: "disabled" };
  const thinks = thinking.type !== "disabled";
  const sampling = body["temperature"] ?? body["top_p"];
  const betas = headers["anthropic-beta"] ?? "";
  rule(!thinking.block_binding || betas.includes("thinking-binding-controls-"), "beta of bindings");
  rule(!thinks || sampling === undefined, "no sampling with thinking");
  checkMessages(body, thinking.type === "enabled");
  rule(!thinks || body["messages"].at(-1).role === "user", "no prefill with thinking");
  const system = blocksOf(body["system"], "system").map(({ text }) => text);
  return {
    model: body["model"].replace(/^claude-(4-)?5-/, ""),
    upstreamModel: body["model"],
    stream: body["stream"] === true,
    thinking: { type: thinks ? "enabled" : "disabled" },
    showThinking: thinking.type === "enabled" || thinking.display === "summarized",
    messages: [
      ...(system.length > 0 ? [{ role: "system", content: system.join("") }] : []),
      ...body["messages"].flatMap(messagesOf),
    ],
    tools: body["tools"] ?? [],
  };
}

/** The blocks of a content, which may be a string. */
const blocksOf = (content: unknown, path: string): Record<string, any>[] => {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  rule(Array.isArray(blocks) && blocks.every(isObject), `${path}: Input should be a valid list`);
  for (const block of blocks) {
    if (block["type"] !== "text") continue;
    rule(/\S/.test(block["text"]), `${path}: text must contain non-whitespace text`);
  }
  return blocks;
};

/** `startsThinking`: the model's turn must begin with a thought. An adaptive model may omit it. */
function checkMessages({ messages, tools = [] }: Record<string, any>, startsThinking: boolean) {
  rule(Array.isArray(messages) && messages.length > 0, "messages: at least one is required");
  const turns = messages.map(({ role, content }, at) => ({
    role,
    blocks: blocksOf(content, `messages.${at}.content`),
  }));
  const ids = new Set<string>();
  turns.forEach(({ role, blocks }, at) => {
    const path = `messages.${at}`;
    rule(role === (at % 2 === 0 ? "user" : "assistant"), "messages: roles must alternate");
    rule(blocks.length > 0, `${path}: all messages must have non-empty content`);
    const calls = toolUses(blocks);
    const results = blocks.filter(({ type }) => type === "tool_result");
    const foreign = role === "user" ? calls : results;
    rule(foreign.length === 0, `${path}: a block of the other role`);
    const hasTools = tools.length > 0 || calls.length + results.length === 0;
    rule(hasTools, "Requests with `tool_use` or `tool_result` blocks must define tools");
    for (const { id, input } of calls) {
      rule(/^[A-Za-z0-9_-]+$/.test(id), `${path}: tool_use.id: String should match pattern`);
      rule(!ids.has(id), "messages: `tool_use` ids must be unique");
      rule(isObject(input), `${path}: tool_use.input`);
      ids.add(id);
    }
    for (const { content } of results)
      blocksOf(content === "" ? [] : content, `${path}.content.tool_result.content`);
    const called = toolUses(turns[at - 1]?.blocks ?? [])
      .map(({ id }) => id)
      .sort();
    const answered = blocks
      .slice(0, called.length)
      .map(({ tool_use_id }) => tool_use_id)
      .sort();
    if (role === "user") {
      rule(results.length <= called.length, `${path}: unexpected \`tool_result\` blocks`);
      rule(isDeepStrictEqual(called, answered), `${path}: \`tool_use\` without \`tool_result\``);
    }
    checkThoughts(blocks, at);
  });
  const { role, blocks } = turns.at(-1)!;
  if (role === "assistant") {
    rule(toolUses(blocks).length === 0, "messages: `tool_use` without `tool_result` blocks");
    rule(/\S$/.test(blocks.at(-1)!["text"] ?? "."), "messages: trailing whitespace");
  }
  // All calls since the user's last text, with their results, are one turn of the model.
  let first = turns.length;
  while (turns[first - 1]?.blocks[0]?.["type"] === "tool_result") first -= 2;
  if (!startsThinking || first === turns.length) return;
  rule(
    ["thinking", "redacted_thinking"].includes(turns[first]!.blocks[0]!["type"]),
    "messages: Expected `thinking` at the beginning of the final turn",
  );
}

const toolUses = (blocks: readonly Record<string, any>[]) =>
  blocks.filter(({ type }) => type === "tool_use");

/** A thinking block must be in the turn for which it was signed, with the text that was shown. */
function checkThoughts(blocks: readonly Record<string, any>[], at: number): void {
  const ids = toolUses(blocks).map(({ id }) => id);
  for (const { type, thinking, signature } of blocks) {
    if (type !== "thinking") continue;
    const isSigned = typeof thinking === "string" && signature === sign([thinking, ids]);
    rule(isSigned, `messages.${at}: Invalid \`signature\``);
  }
}

/** The messages of a turn. Its tool results come first. */
function messagesOf({ role, content }: Record<string, any>): object[] {
  const blocks = blocksOf(content, "");
  const text = blocks.map((block) => (block["type"] === "text" ? block["text"] : "")).join("");
  if (role === "assistant") {
    const calls = toolUses(blocks).map(({ id, name, input }) => ({
      id,
      type: "function",
      function: { name, arguments: JSON.stringify(input) },
    }));
    return [{ role, content: text || null, ...(calls.length > 0 && { tool_calls: calls }) }];
  }
  const results = blocks.filter(({ type }) => type === "tool_result");
  const said = results.map(({ tool_use_id, content }) => ({
    role: "tool",
    tool_call_id: tool_use_id,
    content: blocksOf(content || [], "")
      .map((block) => block["text"])
      .join(""),
  }));
  return blocks.length > results.length ? [...said, { role, content: text }] : said;
}

/** Anthropic counts input separately: not cached, now written to the cache, and read from it. */
const INPUT = {
  input_tokens: COUNTS.prompt - COUNTS.cached - 2,
  cache_creation_input_tokens: 2,
  cache_read_input_tokens: COUNTS.cached,
};
const USAGE = {
  ...INPUT,
  output_tokens: COUNTS.completion,
  output_tokens_details: { thinking_tokens: COUNTS.reasoning },
};

const message = (model: string) => ({ id: "msg_01", type: "message", role: "assistant", model });

/** The reason why a reply ended. */
const stop = ({ calls = [] }: Said): object => ({
  stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
  stop_sequence: null,
});
const textsOf = ({ text }: Said): string[] => (text ? [text] : []);

/** The thinking block, if the model thinks: signed, and with its text if that is requested. */
function thoughts({ thinking, showThinking }: Understood, { reasoning = "", calls = [] }: Said) {
  if (thinking.type === "disabled" || reasoning === "") return [];
  const text = showThinking ? reasoning : "";
  return [{ text, signature: sign([text, calls.map(({ id }) => id)]) }];
}

function whole(request: Understood, said: Said): object {
  const content = [
    ...thoughts(request, said).map(({ text, signature }) => ({
      type: "thinking",
      thinking: text,
      signature,
    })),
    ...textsOf(said).map((text) => ({ type: "text", text })),
    ...(said.calls ?? []).map(({ id, name, arguments: args }) => ({
      type: "tool_use",
      id,
      name,
      input: JSON.parse(args),
    })),
  ];
  return { ...message(request.upstreamModel), content, ...stop(said), usage: USAGE };
}

const event = (data: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

function stream(request: Understood, said: Said): string {
  const blocks = [
    ...thoughts(request, said).map(({ text, signature }) => ({
      content_block: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...words(text).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature },
      ],
    })),
    ...textsOf(said).map((given) => ({
      content_block: { type: "text", text: "" },
      deltas: words(given).map((text) => ({ type: "text_delta", text })),
    })),
    ...(said.calls ?? []).map(({ id, name, arguments: args }) => ({
      content_block: { type: "tool_use", id, name, input: {} },
      // The first piece is always empty. If there are no arguments, it is the only one.
      deltas: ["", ...(args === "{}" ? [] : letters(args))].map((partial_json) => ({
        type: "input_json_delta",
        partial_json,
      })),
    })),
  ];
  const started = {
    ...message(request.upstreamModel),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...INPUT, output_tokens: 1 },
  };
  const events = [
    event({ type: "message_start", message: started }),
    ...blocks.flatMap(({ content_block, deltas }, index) => [
      event({ type: "content_block_start", index, content_block }),
      event({ type: "ping" }),
      ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
      event({ type: "content_block_stop", index }),
    ]),
    event({ type: "message_delta", delta: stop(said), usage: USAGE }),
    event({ type: "message_stop" }),
  ];
  // An unfinished stream lacks the end of the last block, message_delta and message_stop.
  return (said.ending === undefined ? events : events.slice(0, -3)).join("");
}

const refusal = (message: string) => ({
  type: "error",
  error: { type: "api_error", message },
  request_id: "req_upstream",
});

const failure = event(refusal(OWN_WORDS));

export const anthropic: Format = { understand, refusal, whole, stream, failure };
export const startAnthropic = fakeOf(anthropic);
