// What the provider of scripts/compare.ts says, by the name of a script, in each of the three
// formats: good replies, refusals, and streams that break.

/**
 * What the provider says: events of a stream, or the one document of a whole reply, and how it
 * ends.
 */
export interface Script {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly events?: readonly unknown[];
  /** Raw text in the place of the events. */
  readonly raw?: string;
  /** `cut`: the connection is reset after the last event. */
  readonly ending?: "cut";
}

export type Format = "openai" | "anthropic" | "gemini";
export const FORMATS: readonly Format[] = ["openai", "anthropic", "gemini"];

export const text = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;

const usage = {
  prompt_tokens: 20,
  completion_tokens: 7,
  total_tokens: 27,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 3 },
};
const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
  id: "upstream-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "upstream-2026-01-01",
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
});
const fragment = (index: number, more: object) => chunk({ tool_calls: [{ index, ...more }] });
const token = (word: string) => ({ token: word, logprob: -0.5, bytes: [...Buffer.from(word)] });
const probs = { content: [{ ...token("14"), top_logprobs: [token("14"), token("15")] }] };

const OPENAI: Readonly<Record<string, readonly unknown[]>> = {
  text: [
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "14" }),
    chunk({ content: ":05 世🎉" }),
    chunk({}, "stop"),
  ],
  reasoning: [
    chunk({ reasoning_content: "Let me" }),
    chunk({ reasoning: " think." }),
    chunk({ content: "42" }),
    chunk({}, "stop"),
  ],
  tools: [
    fragment(0, { id: "call_a", type: "function", function: { name: "get_time", arguments: "" } }),
    fragment(0, { function: { arguments: '{"city":' } }),
    fragment(0, { function: { arguments: '"Oslo"}' } }),
    fragment(1, {
      id: "call_b",
      type: "function",
      function: { name: "get_time", arguments: "{}" },
    }),
    chunk({}, "tool_calls"),
  ],
  logprobs: [
    chunk({ content: "14" }, null, {
      choices: [{ index: 0, delta: { content: "14" }, logprobs: probs, finish_reason: null }],
    }),
    chunk({}, "stop"),
  ],
  refusal: [chunk({ refusal: "No." }), chunk({}, "stop")],
  length: [chunk({ content: "14" }), chunk({}, "length")],
  filtered: [chunk({ content: "14" }), chunk({}, "content_filter")],
  failed: [chunk({ content: "14" }), chunk({}, "error")],
  empty: [chunk({}, "stop")],
};
const OPENAI_WHOLE: Readonly<Record<string, object>> = {
  text: { content: "14:05 世🎉" },
  reasoning: { content: "42", reasoning_content: "Let me think." },
  tools: {
    content: null,
    tool_calls: [
      {
        id: "call_a",
        type: "function",
        function: { name: "get_time", arguments: '{"city":"Oslo"}' },
      },
    ],
  },
  logprobs: { content: "14" },
  refusal: { content: null, refusal: "No." },
  length: { content: "14" },
  filtered: { content: "" },
  failed: { content: "14" },
  empty: { content: "" },
};
const FINISH: Readonly<Record<string, string>> = {
  tools: "tool_calls",
  length: "length",
  filtered: "content_filter",
  failed: "error",
};

const block = (index: number, content_block: object) => ({
  type: "content_block_start",
  index,
  content_block,
});
const delta = (index: number, more: object) => ({
  type: "content_block_delta",
  index,
  delta: more,
});
const stop = (index: number) => ({ type: "content_block_stop", index });
const claude = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-x",
  content: [] as unknown[],
};
const inputs = { input_tokens: 12, cache_read_input_tokens: 8, output_tokens: 1 };
const CONTENT: Readonly<Record<string, readonly object[]>> = {
  text: [{ type: "text", text: "14:05 世🎉" }],
  reasoning: [
    { type: "thinking", thinking: "Let me think.", signature: "c2ln" },
    { type: "text", text: "42" },
  ],
  tools: [
    { type: "text", text: "I look." },
    { type: "tool_use", id: "toolu_a", name: "get_time", input: { city: "Oslo" } },
  ],
  refusal: [{ type: "text", text: "No" }],
  length: [{ type: "text", text: "14" }],
  empty: [],
};
const STOP_REASON: Readonly<Record<string, string>> = {
  tools: "tool_use",
  length: "max_tokens",
  refusal: "refusal",
};

function anthropicDeltas(index: number, content: object): object[] {
  const piece = content as Readonly<Record<string, unknown>>;
  if (piece["type"] === "text")
    return [
      block(index, { type: "text", text: "" }),
      delta(index, { type: "text_delta", text: piece["text"] }),
      stop(index),
    ];
  if (piece["type"] === "tool_use")
    return [
      block(index, { ...piece, input: {} }),
      delta(index, { type: "input_json_delta", partial_json: JSON.stringify(piece["input"]) }),
      stop(index),
    ];
  return [
    block(index, { type: "thinking", thinking: "" }),
    delta(index, { type: "thinking_delta", thinking: piece["thinking"] }),
    delta(index, { type: "signature_delta", signature: piece["signature"] }),
    stop(index),
  ];
}

const PARTS: Readonly<Record<string, readonly object[]>> = {
  text: [{ text: "14:05 " }, { text: "世🎉" }],
  reasoning: [{ text: "Let me think.", thought: true }, { text: "42" }],
  tools: [
    {
      functionCall: { name: "get_time", args: { city: "Oslo" }, id: "fc_a" },
      thoughtSignature: "c2ln",
    },
  ],
  length: [{ text: "14" }],
  filtered: [{ text: "14" }],
  failed: [{ text: "14" }],
};
const GEMINI_FINISH: Readonly<Record<string, string>> = {
  length: "MAX_TOKENS",
  filtered: "SAFETY",
  failed: "MALFORMED_FUNCTION_CALL",
};
const usageMetadata = {
  promptTokenCount: 20,
  candidatesTokenCount: 4,
  thoughtsTokenCount: 3,
  cachedContentTokenCount: 8,
  totalTokenCount: 27,
};

type Events = readonly unknown[] | undefined;

function openaiReply(name: string, streamed: boolean): Events {
  const said = OPENAI_WHOLE[name];
  if (said === undefined) return undefined;
  if (streamed) return [...OPENAI[name]!, { ...chunk({}), choices: [], usage }];
  const choice = {
    index: 0,
    message: { role: "assistant", ...said },
    finish_reason: FINISH[name] ?? "stop",
    ...(name === "logprobs" && { logprobs: probs }),
  };
  return [{ ...chunk({}), object: "chat.completion", choices: [choice], usage }];
}

function anthropicReply(name: string, streamed: boolean): Events {
  const content = CONTENT[name];
  if (content === undefined) return undefined;
  const stop_reason = STOP_REASON[name] ?? "end_turn";
  if (!streamed)
    return [{ ...claude, content, stop_reason, usage: { ...inputs, output_tokens: 7 } }];
  return [
    { type: "message_start", message: { ...claude, usage: inputs } },
    { type: "ping" },
    ...content.flatMap((piece, index) => anthropicDeltas(index, piece)),
    { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 7 } },
    { type: "message_stop" },
  ];
}

function geminiReply(name: string, streamed: boolean): Events {
  const parts = PARTS[name];
  if (parts === undefined) return undefined;
  const finishReason = GEMINI_FINISH[name] ?? "STOP";
  if (!streamed)
    return [{ candidates: [{ content: { role: "model", parts }, finishReason }], usageMetadata }];
  return [
    ...parts.map((part) => ({
      candidates: [{ content: { role: "model", parts: [part] } }],
      usageMetadata,
    })),
    { candidates: [{ content: { parts: [] }, finishReason }], usageMetadata },
  ];
}

const REPLIES: Readonly<Record<Format, (name: string, streamed: boolean) => Events>> = {
  openai: openaiReply,
  anthropic: anthropicReply,
  gemini: geminiReply,
};

/** What a good reply of this name consists of in each format; undefined: the format has none. */
const reply = (format: Format, name: string, streamed: boolean): Events =>
  REPLIES[format](name, streamed);

const refused = (status: number, error: object, headers = {}): Script => ({
  status,
  headers,
  events: [{ error }],
});
/** What goes wrong, in words that each format's reader knows. */
const FAULTS: Readonly<Record<string, Script>> = {
  "status-400": refused(400, { message: "bad schema", type: "invalid_request_error" }),
  "status-400-context": refused(400, {
    message: "the prompt is too long: maximum context length is 10",
    code: "context_length_exceeded",
  }),
  "status-400-filter": refused(400, { message: "refused", code: "content_filter" }),
  "status-401": refused(401, { message: "no such key", type: "authentication_error" }),
  "status-404": refused(404, { message: "no such model" }),
  "status-429": refused(
    429,
    { message: "slow down", type: "rate_limit_error" },
    { "retry-after": "7" },
  ),
  "status-500": refused(500, { message: "oops" }),
  "status-503": refused(503, { message: "busy", type: "overloaded_error" }),
  "not-json": { raw: "<html>no</html>" },
  "error-event": {
    events: [{ type: "error", error: { type: "overloaded_error", message: "busy", code: 503 } }],
  },
};

/** Of a stream: what comes before a break. */
const BREAKS: Readonly<Record<string, (good: readonly unknown[]) => Script>> = {
  cut: (good) => ({ events: good.slice(0, 4), ending: "cut" }),
  short: (good) => ({ events: good.slice(0, 4) }),
  garbage: (good) => ({
    raw: good.map((event, at) => (at === 2 ? "data: {nonsense\n\n" : "") + text(event)).join(""),
  }),
  "late-error": (good) => ({ events: [...good.slice(0, 4), FAULTS["error-event"]!.events![0]] }),
};

export const scriptsOf = (format: Format): readonly string[] => [
  ...new Set(
    [...Object.keys(OPENAI_WHOLE), ...Object.keys(CONTENT), ...Object.keys(PARTS)].filter(
      (name) => reply(format, name, true) !== undefined,
    ),
  ),
  ...Object.keys(FAULTS),
  ...Object.keys(BREAKS),
];

export function scriptFor(format: Format, name: string, streamed: boolean): Script {
  const fault = FAULTS[name];
  if (fault !== undefined) return fault;
  const broken = BREAKS[name];
  if (broken !== undefined) return broken(reply(format, "text", streamed)!);
  return { events: reply(format, name, streamed) ?? [] };
}
