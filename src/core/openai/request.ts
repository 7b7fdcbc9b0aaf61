// The request body of POST /v1/chat/completions: fields, ranges, combinations. SPEC.md "Chat completion request" and "Message",
// WIRE.md 1. It comes out normalised (no nulls, text parts joined, `developer` become `system`), with known fields only.
// What fields demand of each other is a rule here and, for /openapi.json, a JSON Schema in chat-request.json.
import published from "./request.json" with { type: "json" };
import {
  array,
  boolean,
  byType,
  countValues,
  fail,
  jsonObject,
  lenient,
  literal,
  nonEmpty,
  number,
  object,
  optional,
  refine,
  string,
  variant,
  withDefault,
  type Infer,
} from "../schema/checker.ts";

/** What one JSON Schema of a client may be, and the parameters of all tools together: a schema is walked and written several times on
 * its way to a provider. Figures are values, and characters of JSON. Providers' own bounds are far lower. */
const SCHEMA_BOUNDS = { maxValues: 10_000, maxChars: 256 * 1024 };
const TOOLS_BOUNDS = { maxValues: 40_000, maxChars: 1024 * 1024 };
/** Of an audio clip's or a file's object: its data is one text. */
const MEDIA_BOUNDS = { maxValues: 1_000 };

const text = object({ type: literal("text"), text: string() });
/** An assistant's earlier refusal comes back as a part of its own; to a provider it is text like any other. */
const refusal = refine(object({ type: literal("refusal"), refusal: string() }), (part) => ({
  type: "text" as const,
  text: part.refusal,
}));
const mediaParts = {
  image_url: object({
    type: literal("image_url"),
    image_url: object({ url: nonEmpty, detail: optional(string()) }),
  }),
  input_audio: object({ type: literal("input_audio"), input_audio: jsonObject(100, MEDIA_BOUNDS) }),
  file: object({ type: literal("file"), file: jsonObject(100, MEDIA_BOUNDS) }),
};
export type ContentPart = Infer<typeof text> | Infer<(typeof mediaParts)[keyof typeof mediaParts]>;
/** The text parts joined without a separator. */
export const textOf = (content: string | readonly ContentPart[]): string =>
  typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : "")).join("");
/** A list stays a list only if it holds something else than text. */
const joinText = (content: string | ContentPart[]) =>
  typeof content !== "string" && content.some((part) => part.type !== "text")
    ? content
    : textOf(content);
const textContent = refine(
  byType({ string: string(), array: array(variant("type", { text })) }),
  textOf,
);
const userContent = refine(
  byType({ string: string(), array: array(variant("type", { text, ...mediaParts })) }),
  joinText,
);
const assistantContent = refine(
  byType({ string: string(), array: array(variant("type", { text, refusal })) }),
  textOf,
);
/** `arguments` is a string that a model wrote: it need not be JSON (WIRE 1.4). */
const called = object({ name: nonEmpty, arguments: withDefault(string(), "") });
const toolCall = object({
  id: nonEmpty,
  type: withDefault(literal("function"), "function"),
  function: called,
});

const message = variant("role", {
  system: object({ role: literal("system"), content: textContent }),
  user: object({ role: literal("user"), content: userContent }),
  assistant: refine(
    object({
      role: literal("assistant"),
      content: optional(assistantContent),
      reasoning_content: lenient(string()),
      refusal: lenient(string()),
      tool_calls: optional(array(toolCall)),
    }),
    ({ refusal = null, content = refusal, tool_calls = [], ...rest }) => {
      // The refusal was our own reply to an earlier request, sent back as it was.
      if (content !== null || tool_calls.length > 0) return { ...rest, content, tool_calls };
      return fail(
        "missing_required_parameter",
        "is required in an assistant message without tool_calls",
        ["content"],
      );
    },
    published.assistant,
  ),
  tool: object({ role: literal("tool"), tool_call_id: nonEmpty, content: textContent }),
  developer: refine(
    object({ role: literal("developer"), content: textContent }),
    ({ content }) => ({ role: "system" as const, content }),
  ),
});
export type Message = Infer<typeof message>;
const TOOL_NAME = {
  pattern: /^[A-Za-z0-9_-]{1,64}$/,
  expected: "1 to 64 characters of A-Z a-z 0-9 _ -",
};
/** The only type that there is; `rule` says so. */
const functionType = (rule: string) =>
  refine(string(), (type) => (type === "function" ? type : fail("unsupported_value", rule)), {
    const: "function",
  });
const [description, strict, schema] = [
  optional(string()),
  optional(boolean()),
  optional(jsonObject(100, SCHEMA_BOUNDS)),
];
const toolType = functionType('only tools of type "function" are supported');
const tool = object({
  type: toolType,
  function: object({ name: string(TOOL_NAME), description, parameters: schema, strict }),
});
type Tool = Infer<typeof tool>;
/** Fails at the tool with which the parameters of all tools together become too much. */
function withinBounds(tools: Tool[]): Tool[] {
  const { maxValues, maxChars } = TOOLS_BOUNDS;
  let values = 0;
  let chars = 0;
  for (const [index, { function: declared }] of tools.entries()) {
    if (!declared.parameters) continue;
    const path = [index, "function", "parameters"];
    values += countValues(declared.parameters, maxValues);
    if (values > maxValues)
      fail("invalid_value", `expected at most ${maxValues} values in all tools together`, path);
    chars += JSON.stringify(declared.parameters).length;
    if (chars > maxChars)
      fail("invalid_value", `expected at most ${maxChars} characters of JSON in all tools`, path);
  }
  return tools;
}
const choiceType = functionType(
  'only the object form {"type":"function","function":{"name":...}} is supported',
);
const namedTool = object({ type: choiceType, function: object({ name: nonEmpty }) });
const tokenLimit = optional(number({ min: 1, integer: true }));
/** Undefined where the client is silent: whether the default is sent depends on the provider (dialects/traits.ts). */
const sampling = (max: number) =>
  refine(optional(number({ min: 0, max })), (value) => value, { default: 1 });
const penalty = optional(number({ min: -2, max: 2 }));
/** An empty list says as much as none. */
const listed = <T>(list: T[] | undefined) => (list?.length ? list : undefined);
const onlyOne = (n: number) =>
  n === 1 ? n : fail("unsupported_value", `only one choice is supported, got ${n}`);

const body = object({
  model: nonEmpty,
  messages: array(message, { min: 1 }),
  stream: withDefault(boolean(), false),
  temperature: sampling(2),
  max_tokens: tokenLimit,
  max_completion_tokens: tokenLimit,
  top_p: sampling(1),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  stop: refine(
    optional(
      byType({ string: refine(nonEmpty, (text) => [text]), array: array(nonEmpty, { max: 4 }) }),
    ),
    listed,
  ),
  tools: refine(optional(refine(array(tool, { max: 128 }), withinBounds)), listed),
  tool_choice: optional(byType({ string: literal("none", "auto", "required"), object: namedTool })),
  response_format: optional(
    variant("type", {
      text: refine(object({ type: literal("text") }), () => undefined),
      json_object: object({ type: literal("json_object") }),
      json_schema: object({
        type: literal("json_schema"),
        json_schema: object({ name: nonEmpty, description, schema, strict }),
      }),
    }),
  ),
  thinking: refine(
    optional(object({ type: literal("enabled", "disabled", "adaptive") })),
    (given) => given && given.type !== "disabled",
  ),
  logprobs: withDefault(boolean(), false),
  top_logprobs: optional(number({ min: 0, max: 20, integer: true })),
  stream_options: optional(object({ include_usage: withDefault(boolean(), false) })),
  n: optional(refine(number({ integer: true }), onlyOne, { const: 1 })),
  // Known to some providers, never an error here: a value that is no use is as good as absent (WIRE 1.2).
  seed: lenient(number({ integer: true })),
  user: lenient(nonEmpty),
  parallel_tool_calls: lenient(boolean()),
  reasoning_effort: lenient(literal("none", "minimal", "low", "medium", "high", "xhigh", "max")),
});

/** A checked request. By wire names what the client said, in camel case what that comes to. */
export type ChatRequest = Readonly<Infer<typeof chatRequest>>;
const stray = (field: string, rule: string) => fail("invalid_parameter_combination", rule, [field]);

/** Checks a parsed request body; throws a ValidationError at the first fault. The rules are SPEC.md's and WIRE.md 1's. */
export const chatRequest = refine(
  body,
  (given) => {
    const {
      messages,
      stream,
      tools,
      tool_choice,
      stream_options,
      max_tokens,
      max_completion_tokens,
      reasoning_effort,
      thinking,
    } = given;
    const effort = reasoning_effort === "none" ? undefined : reasoning_effort;
    if (stream_options && !stream) stray("stream_options", "may only be set when stream is true");
    if (tool_choice && tool_choice !== "none" && !tools)
      stray("tool_choice", 'may only be set, other than to "none", together with tools');
    if (
      typeof tool_choice === "object" &&
      !tools?.some((tool) => tool.function.name === tool_choice.function.name)
    ) {
      fail("invalid_value", "names a function that is not among the tools", ["tool_choice"]);
    }
    const calls = new Set<string>(); // of the messages before
    for (const [index, message] of messages.entries()) {
      if (message.role === "assistant") for (const call of message.tool_calls) calls.add(call.id);
      if (message.role !== "tool" || calls.has(message.tool_call_id)) continue;
      fail("invalid_value", "answers no tool call of an assistant message before it", [
        "messages",
        index,
        "tool_call_id",
      ]);
    }
    return Object.assign(given, {
      includeUsage: stream_options?.include_usage ?? false,
      /** The client is to see the thinking. */
      thinking: thinking ?? false,
      /** The model is to think, seen or unseen. What `thinking` says wins over the effort. */
      wantsThinking: thinking ?? effort !== undefined,
      /** How deep to think, if the model thinks; undefined: as the provider likes. */
      effort,
      maxTokens:
        max_tokens === undefined
          ? max_completion_tokens
          : Math.min(max_tokens, max_completion_tokens ?? max_tokens),
    });
  },
  published.request,
);
