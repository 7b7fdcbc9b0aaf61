// A provider that speaks Anthropic's Messages API (wire.md "Anthropic requests") and holds its
// clients to the rules that are published for it. One of its rules is stricter than the service,
// which joins neighbouring turns of one role. Models are named claude-4-5-... (thinking has a
// budget) or claude-5-... (thinking is adaptive).

import type { TestContext } from "node:test";
import type { Asked } from "./provider.ts";
import {
  COUNTS,
  isObject,
  letters,
  PROVIDER_KEY,
  OWN_WORDS,
  rule,
  sign,
  startFake,
  words,
  type Format,
  type Model,
  type FakeProvider,
  type Said,
  type Understood,
} from "./fake-provider.ts";

export const startAnthropic = (
  t: TestContext,
  models: Readonly<Record<string, Model>>,
): Promise<FakeProvider> => startFake(t, anthropic, models);

const FIELDS = [
  ...["model", "max_tokens", "messages", "system", "stream", "stop_sequences", "tools"],
  ...["tool_choice", "thinking", "output_config", "metadata", "service_tier"],
];
/** By anthropic-version: the later one has them no more. */
const SAMPLING: Readonly<Record<string, readonly string[]>> = {
  "2023-06-01": ["temperature", "top_p", "top_k"],
  "2026-10-21": [],
};
const BLOCK_FIELDS: Readonly<Record<string, readonly string[]>> = {
  text: ["text", "citations"],
  image: ["source"],
  document: ["source", "title", "context", "citations"],
  thinking: ["thinking", "signature"],
  redacted_thinking: ["data"],
  tool_use: ["id", "name", "input", "caller"],
  tool_result: ["tool_use_id", "content", "is_error"],
};
const TOOL_FIELDS = [
  ...["type", "name", "description", "input_schema", "strict", "cache_control"],
  ...["eager_input_streaming"],
];
const CHOICE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  none: ["type"],
  auto: ["type", "disable_parallel_tool_use"],
  any: ["type", "disable_parallel_tool_use"],
  tool: ["type", "disable_parallel_tool_use", "name"],
};
/** Keywords of JSON Schema that structured output does not take. */
const NO_BOUNDS = [
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"],
  ...["maxLength", "maxItems", "uniqueItems"],
];
const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

function known(value: Record<string, any>, fields: readonly string[], path: string): void {
  for (const field of Object.keys(value))
    rule(fields.includes(field), `${path}${field}: Extra inputs are not permitted`);
}

function understand({ path, headers, body }: Asked): Understood {
  rule(path.split("?")[0] === "/v1/messages", "Not Found", 404);
  const key = headers["x-api-key"] ?? headers["authorization"]?.replace(/^Bearer /, "");
  rule(key, "x-api-key header is required", 401);
  rule(key === PROVIDER_KEY, "invalid x-api-key", 401);
  const sampling = SAMPLING[String(headers["anthropic-version"])];
  rule(sampling, "anthropic-version: not valid");
  known(body, [...FIELDS, ...sampling], "");
  rule(typeof body["model"] === "string", "model: Field required");
  rule(
    Number.isInteger(body["max_tokens"]) && body["max_tokens"] > 0,
    "max_tokens: Field required",
  );
  const thinking = checkThinking(body);
  checkSampling(body, thinking);
  checkTools(body, thinking);
  checkMessages(body, thinking && body["thinking"].type === "enabled");
  const { type: choice, name } = body["tool_choice"] ?? { type: "auto" };
  const system =
    typeof body["system"] === "string"
      ? body["system"]
      : blocksOf(body["system"], "system")
          .map(({ text }) => text)
          .join("");
  const schema = body["output_config"]?.format?.schema;
  const toolChoice = () => {
    if (choice === "tool") return { type: "function", function: { name } };
    return choice === "any" ? "required" : choice;
  };
  const responseFormat = () => {
    if (schema)
      return { type: "json_schema", json_schema: { name: "x", schema: withSevens(schema) } };
    return /\bJSON\b/.test(system) ? { type: "json_object" } : undefined;
  };
  return {
    model: body["model"].replace(/^claude-(4-)?5-/, ""),
    upstreamModel: body["model"],
    stream: body["stream"] === true,
    thinking: { type: thinking ? "enabled" : "disabled" },
    showThinking:
      thinking &&
      (body["thinking"].type === "enabled" || body["thinking"].display === "summarized"),
    messages: [
      ...(system === "" ? [] : [{ role: "system", content: system }]),
      ...body["messages"].flatMap(messagesOf),
    ],
    tools: body["tools"]?.map((tool: any) => ({
      type: "function",
      function: {
        name: tool.name,
        description: tool.description,
        parameters: tool.strict ? withSevens(tool.input_schema) : tool.input_schema,
      },
    })),
    tool_choice: toolChoice(),
    // There is no mode for just any JSON: who wants that says so to the model.
    response_format: responseFormat(),
    stop: body["stop_sequences"],
    max_tokens: body["max_tokens"],
  };
}

/** Whether it is on. */
function checkThinking({
  model,
  thinking = { type: "disabled" },
  max_tokens,
  output_config = {},
}: Record<string, any>): boolean {
  const budgeted = model.startsWith("claude-4-5-");
  known(output_config, ["effort", "format"], "output_config.");
  if (output_config.effort !== undefined) {
    rule(!budgeted, "This model does not support the effort parameter.");
    rule(
      ["low", "medium", "high", "xhigh", "max"].includes(output_config.effort),
      "output_config.effort: Input should be a level",
    );
  }
  if (output_config.format !== undefined) {
    known(output_config.format, ["type", "schema"], "output_config.format.");
    rule(output_config.format.type === "json_schema", "output_config.format.type");
    checkSchema(output_config.format.schema, "output_config.format.schema");
  }
  if (thinking.type === "disabled") {
    known(thinking, ["type"], "thinking.disabled.");
    return false;
  }
  if (thinking.type === "adaptive") {
    known(thinking, ["type", "display"], "thinking.adaptive.");
    rule(!budgeted, "adaptive thinking is not supported on this model");
    rule(
      [undefined, "summarized", "omitted"].includes(thinking.display),
      "thinking.adaptive.display",
    );
    return true;
  }
  rule(thinking.type === "enabled", "thinking: Input tag is not expected");
  known(thinking, ["type", "budget_tokens", "display"], "thinking.enabled.");
  rule(budgeted, '"thinking.type.enabled" is not supported for this model.');
  rule(
    Number.isInteger(thinking.budget_tokens) && thinking.budget_tokens >= 1024,
    "budget_tokens: Input should be greater than or equal to 1024",
  );
  rule(
    thinking.budget_tokens < max_tokens,
    "`max_tokens` must be greater than `thinking.budget_tokens`.",
  );
  return true;
}

function checkSampling(
  { model, temperature, top_p, top_k, stop_sequences = [] }: Record<string, any>,
  thinking: boolean,
): void {
  for (const [name, value] of Object.entries({ temperature, top_p, top_k })) {
    rule(
      value === undefined ||
        model.startsWith("claude-4-5-") ||
        (name === "temperature" && value === 1),
      `\`${name}\` is deprecated for this model.`,
    );
  }
  for (const [name, value] of Object.entries({ temperature, top_p })) {
    rule(
      value === undefined || (typeof value === "number" && value >= 0 && value <= 1),
      `${name}: range: 0..1`,
    );
  }
  rule(
    temperature === undefined || top_p === undefined,
    "`temperature` and `top_p` cannot both be specified.",
  );
  if (thinking) {
    rule(
      temperature === undefined || temperature === 1,
      "`temperature` may only be set to 1 when thinking.",
    );
    rule(top_p === undefined || top_p >= 0.95, "`top_p` must be at least 0.95 when thinking.");
    rule(top_k === undefined, "`top_k` must be unset when thinking.");
  }
  for (const sequence of stop_sequences)
    rule(/\S/.test(sequence), "stop_sequences: non-whitespace");
}

function checkTools(
  { tools = [], tool_choice: choice }: Record<string, any>,
  thinking: boolean,
): void {
  const names: string[] = tools.map(({ name }: any) => name);
  rule(new Set(names).size === names.length, "tools: Tool names must be unique.");
  for (const [at, tool] of tools.entries()) {
    known(tool, TOOL_FIELDS, `tools.${at}.custom.`);
    rule(/^[A-Za-z0-9_-]{1,128}$/.test(tool.name), `tools.${at}.name: String should match pattern`);
    rule(
      isObject(tool.input_schema) && tool.input_schema["type"] === "object",
      `tools.${at}.input_schema.type`,
    );
    if (tool.strict) checkSchema(tool.input_schema, `tools.${at}.custom`);
  }
  if (choice === undefined) return;
  rule(tools.length > 0, "tool_choice may only be specified while providing tools");
  const fields = CHOICE_FIELDS[choice.type];
  rule(fields, "tool_choice: Input tag is not expected");
  known(choice, fields, `tool_choice.${choice.type}.`);
  rule(
    choice.type !== "tool" || names.includes(choice.name),
    `Tool '${choice.name}' not found in provided tools`,
  );
  rule(
    !thinking || choice.type === "auto" || choice.type === "none",
    "thinking, but tool_choice forces tool use",
  );
}

/** What is asked of the schema of a structured output, or of a strict tool. */
function checkSchema(schema: unknown, path: string): void {
  rule(isObject(schema), `${path}: Input should be a valid dictionary`);
  const {
    type,
    properties = {},
    items,
    additionalProperties,
    minItems = 0,
    anyOf = [],
    allOf = [],
    $defs = {},
  } = schema;
  rule(
    type !== "object" || additionalProperties === false,
    `${path}: 'additionalProperties' must be false`,
  );
  for (const keyword of NO_BOUNDS)
    rule(!(keyword in schema), `${path}: '${keyword}' is not supported`);
  rule(minItems <= 1, `${path}: 'minItems' is 0 or 1`);
  for (const inner of [
    ...Object.values(properties),
    ...anyOf,
    ...allOf,
    ...Object.values($defs),
    ...(items === undefined ? [] : [items]),
  ])
    checkSchema(inner, path);
}

/**
 * Bounds are not in the schema then; a model knows them from descriptions. This one's whole numbers
 * are all 7.
 */
const withSevens = (schema: object): object =>
  JSON.parse(JSON.stringify(schema), (_, value) =>
    isObject(value) && value["type"] === "integer" ? { ...value, default: 7 } : value,
  );

/** The blocks of a content that may be a string. */
const blocksOf = (content: unknown, path: string): Record<string, any>[] => {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  rule(Array.isArray(blocks) && blocks.every(isObject), `${path}: Input should be a valid list`);
  for (const [at, block] of blocks.entries()) {
    const fields = BLOCK_FIELDS[block["type"]];
    rule(fields, `${path}.${at}: Input tag is not expected`);
    known(block, ["type", "cache_control", ...fields], `${path}.${at}.${block["type"]}.`);
    if (block["type"] === "document")
      rule(
        block["source"].type !== "base64" || block["source"].media_type === "application/pdf",
        `${path}.${at}.document.source: must be a PDF`,
      );
    if (block["type"] !== "text") continue;
    rule(typeof block["text"] === "string", `${path}.${at}.text.text: Field required`);
    rule(block["text"] !== "", `${path}: text must be non-empty`);
    rule(/\S/.test(block["text"]), `${path}: non-whitespace text`);
  }
  return blocks;
};

/** `startsThinking`: the model's turn begins with a thought. An adaptive model need not think. */
function checkMessages(
  { messages, tools = [] }: Record<string, any>,
  startsThinking: boolean,
): void {
  rule(
    Array.isArray(messages) && messages.length > 0,
    "messages: at least one message is required",
  );
  const turns = messages.map(({ role, content }, at) => ({
    role,
    blocks: blocksOf(content, `messages.${at}.content`),
  }));
  const ids = new Set<string>();
  turns.forEach(({ role, blocks }, at) => {
    rule(role === (at % 2 === 0 ? "user" : "assistant"), "messages: roles must alternate");
    rule(blocks.length > 0, `messages.${at}: all messages must have non-empty content`);
    const calls = toolUses(blocks);
    const results = blocks.filter(({ type }) => type === "tool_result");
    rule(
      role === "user" ? calls.length === 0 : results.length === 0,
      `messages.${at}: a block of the other role`,
    );
    rule(
      calls.length + results.length === 0 || tools.length > 0,
      "Requests with `tool_use` or `tool_result` blocks must define tools",
    );
    for (const { id, input } of calls) {
      rule(/^[A-Za-z0-9_-]+$/.test(id), `messages.${at}: tool_use.id: String should match pattern`);
      rule(!ids.has(id), "messages: `tool_use` ids must be unique");
      rule(isObject(input), `messages.${at}: tool_use.input`);
      ids.add(id);
    }
    for (const { content } of results)
      blocksOf(content === "" ? [] : content, `messages.${at}.content.tool_result.content`);
    const called = toolUses(turns[at - 1]?.blocks ?? [])
      .map(({ id }) => id)
      .sort();
    const answered = blocks
      .slice(0, called.length)
      .map(({ tool_use_id }) => tool_use_id)
      .sort();
    if (role === "user") {
      rule(
        results.length <= called.length,
        `messages.${at}: unexpected \`tool_use_id\` in \`tool_result\` blocks`,
      );
      rule(
        JSON.stringify(called) === JSON.stringify(answered),
        `messages.${at - 1}: \`tool_use\` without \`tool_result\` blocks`,
      );
    }
    checkThoughts(blocks, at);
  });
  const last = turns.at(-1)!;
  rule(
    last.role === "user" || toolUses(last.blocks).length === 0,
    "messages: `tool_use` without `tool_result` blocks",
  );
  rule(
    last.role === "user" || /\S$/.test(last.blocks.at(-1)!["text"] ?? "."),
    "messages: trailing whitespace",
  );
  // All calls since the user's last word, with their results, are one turn of the model.
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

/** A thinking block must be in the turn that it was made for, with its text as it was shown. */
function checkThoughts(blocks: readonly Record<string, any>[], at: number): void {
  const ids = toolUses(blocks).map(({ id }) => id);
  for (const { type, thinking, signature } of blocks) {
    if (type !== "thinking") continue;
    rule(
      typeof thinking === "string" && signature === sign([thinking, ids]),
      `messages.${at}: Invalid \`signature\``,
    );
  }
}

/** A turn's messages: its tool results come first. */
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

/** Input that is not cached, or was not until now, stands beside what is. */
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

const message = (model: string) => ({
  id: "msg_01upstream",
  type: "message",
  role: "assistant",
  model,
});

/** How it ended, as in the whole reply. */
function stop({ finish, calls = [] }: Said): object {
  let reason = "end_turn";
  if (finish === "length") reason = "max_tokens";
  else if (finish === "content_filter") reason = "refusal";
  else if (calls.length > 0) reason = "tool_use";
  return { stop_reason: reason, stop_sequence: null };
}

/** The block of what was thought: signed, and shown if that was asked for. */
function thoughts(
  { thinking, showThinking }: Understood,
  { reasoning = "", calls = [] }: Said,
): { text: string; signature: string }[] {
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
    ...(said.text ? [{ type: "text", text: said.text }] : []),
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
    ...(said.text
      ? [
          {
            content_block: { type: "text", text: "" },
            deltas: words(said.text).map((text) => ({ type: "text_delta", text })),
          },
        ]
      : []),
    ...(said.calls ?? []).map(({ id, name, arguments: args }) => ({
      content_block: { type: "tool_use", id, name, input: {} },
      // The first piece is always empty, and without arguments it is the only one.
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
  // The last block's end, message_delta and message_stop finish it.
  return (said.ending === undefined ? events : events.slice(0, -3)).join("");
}

function refusal(status: number, message: string) {
  const body = {
    type: "error",
    error: { type: ERROR_TYPES[status] ?? "api_error", message },
    request_id: "req_upstream",
  };
  return {
    body,
    headers: { "request-id": "req_upstream", ...(status === 429 && { "retry-after": "1" }) },
  };
}

export const anthropic: Format = {
  understand,
  refusal,
  whole,
  stream,
  failure: event(refusal(500, OWN_WORDS).body),
};
