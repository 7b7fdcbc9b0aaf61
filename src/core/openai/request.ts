// The request body of POST /v1/chat/completions: fields, ranges, combinations. contract.md "Request
// fields" and "Messages", wire.md "From the client". The checked request is normalized (no nulls,
// text parts joined, `developer` as `system`) and has known fields only. Rules for several fields
// together are functions here and, for /openapi.json, JSON Schemas in request.json.
import type { NativeRequest } from "./native-request.ts";
import published from "./request.json" with { type: "json" };
import {
  withCheckedAhead,
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
  type Fields,
  type Infer,
  type ValidationIssue,
} from "../schema/checker.ts";

/**
 * One JSON Schema of a client. It is walked and written several times on its way to a provider,
 * whose own bounds are far lower.
 */
export const SCHEMA_BOUNDS = { maxValues: 10_000, maxChars: 256 * 1024 };
/** The parameters of all tools together. */
const TOOLS_BOUNDS = { maxValues: 40_000, maxChars: 1024 * 1024 };

const text = object({ type: literal("text"), text: string() });
/** An assistant's earlier refusal: a part of its own for the client, a text for a provider. */
const refusal = refine(object({ type: literal("refusal"), refusal: string() }), (part) => ({
  type: "text" as const,
  text: part.refusal,
}));
/** An object whose members are texts. Any other members are dropped. */
const texts = (...names: string[]) =>
  object(Object.fromEntries(names.map((name) => [name, optional(string())])));
/** An audio clip in base64, and its format, such as `wav`. */
export const audio = texts("data", "format");
const mediaParts = {
  image_url: object({
    type: literal("image_url"),
    image_url: object({ url: nonEmpty, detail: optional(string()) }),
  }),
  input_audio: object({ type: literal("input_audio"), input_audio: audio }),
  file: object({ type: literal("file"), file: texts("file_data", "filename", "file_id") }),
};
type CheckedPart = Infer<typeof text> | Infer<(typeof mediaParts)[keyof typeof mediaParts]>;
export type ContentPart = CheckedPart & {
  /** Only in Message.marked. */
  readonly cache_control?: Readonly<Record<string, unknown>> | undefined;
};
/** An image, a sound or a file. */
export type MediaPart = Exclude<ContentPart, { readonly type: "text" }>;
/** The text parts joined without a separator. */
export const textOf = (content: string | readonly ContentPart[]): string =>
  typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : "")).join("");
/** A list stays a list only if it has parts other than text. */
export const joinText = (content: string | ContentPart[]) =>
  typeof content !== "string" && content.some((part) => part.type !== "text")
    ? content
    : textOf(content);
/** A text, or a list of texts and of these parts. */
const contentOf = <V extends Fields>(parts: V) =>
  byType({ string: string(), array: array(variant("type", { text, ...parts })) });
const textContent = refine(contentOf({}), textOf);
const userContent = refine(contentOf(mediaParts), joinText);
const assistantContent = refine(contentOf({ refusal }), textOf);
/** A model wrote `arguments`: they need not be JSON (wire.md "Messages"). */
const calledFunction = object({ name: nonEmpty, arguments: withDefault(string(), "") });
const toolCall = object({
  id: nonEmpty,
  type: withDefault(literal("function"), "function"),
  function: calledFunction,
});

const messageOfRole = variant("role", {
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
    // Each field by its name: to copy the rest of an object takes ten times as long, and there may
    // be 100,000 messages.
    ({ role, refusal = null, content = refusal, reasoning_content, tool_calls = [] }) => {
      // A refusal alone was the gateway's own reply to an earlier request, sent back unchanged.
      if (content !== null || tool_calls.length > 0)
        return { role, content, reasoning_content, tool_calls };
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
/** Reuses the result of a message that was checked ahead. */
export const message = withCheckedAhead(messageOfRole);
export type Message = Infer<typeof message> & {
  /**
   * All parts of the content, with members that only an extension keeps, such as `cache_control`.
   * Absent: no part has such members.
   */
  readonly marked?: readonly ContentPart[] | undefined;
  /** The client's name for the speaker. An extension keeps it. Absent: none. */
  readonly name?: string | undefined;
};
export const TOOL_NAME = {
  pattern: /^[A-Za-z0-9_-]{1,64}$/,
  expected: "1 to 64 characters of A-Z a-z 0-9 _ -",
};
/** Only "function" passes. `message` is for any other type. */
const functionType = (message: string) =>
  refine(string(), (type) => (type === "function" ? type : fail("unsupported_value", message)), {
    const: "function",
  });
const description = optional(string());
const strict = optional(boolean());
const schema = optional(jsonObject(SCHEMA_BOUNDS));
const toolType = functionType('only tools of type "function" are supported');
const tool = object({
  type: toolType,
  function: object({ name: string(TOOL_NAME), description, parameters: schema, strict }),
});
export type Tool = Infer<typeof tool>;
const parametersOf = (index: number): ValidationIssue["path"] => [index, "function", "parameters"];
/** Fails at the tool whose parameters, with those before it, exceed the bounds of all of them. */
export function withinBounds(tools: Tool[], placeOf = parametersOf): Tool[] {
  const { maxValues, maxChars } = TOOLS_BOUNDS;
  let values = 0;
  let chars = 0;
  for (const [index, { function: declared }] of tools.entries()) {
    if (!declared.parameters) continue;
    const path = placeOf(index);
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
/**
 * Undefined where the client sends none: whether the default of 1 is sent depends on the provider
 * (providers/parameters.ts).
 */
const sampling = (max: number) =>
  refine(optional(number({ min: 0, max })), (value) => value, { default: 1 });
const penalty = optional(number({ min: -2, max: 2 }));
/** An empty list means the same as none. */
const unlessEmpty = <T>(list: T[] | undefined) => (list?.length ? list : undefined);
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
    unlessEmpty,
  ),
  tools: refine(optional(refine(array(tool, { max: 128 }), withinBounds)), unlessEmpty),
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
    (thinking) => thinking && thinking.type !== "disabled",
  ),
  logprobs: withDefault(boolean(), false),
  top_logprobs: optional(number({ min: 0, max: 20, integer: true })),
  stream_options: optional(object({ include_usage: withDefault(boolean(), false) })),
  n: optional(refine(number({ integer: true }), onlyOne, { const: 1 })),
  seed: optional(number({ min: Number.MIN_SAFE_INTEGER, integer: true })),
  // It does not change the reply, so an invalid value counts as absent (wire.md "Request fields").
  user: lenient(nonEmpty),
  parallel_tool_calls: optional(boolean()),
  reasoning_effort: optional(literal("none", "minimal", "low", "medium", "high", "xhigh", "max")),
});

type Body = Infer<typeof body>;

function checkCombinations({ stream, stream_options, tools, tool_choice }: Body): void {
  const refuse = (field: string, rule: string) =>
    fail("invalid_parameter_combination", rule, [field]);
  if (stream_options && !stream) refuse("stream_options", "may only be set when stream is true");
  if (tool_choice && tool_choice !== "none" && !tools)
    refuse("tool_choice", 'may only be set, other than to "none", together with tools');
  if (typeof tool_choice !== "object") return;
  const { name } = tool_choice.function;
  if (!tools?.some((tool) => tool.function.name === name))
    fail("invalid_value", "names a function that is not among the tools", ["tool_choice"]);
}

/** A tool's result must answer a call of an assistant message before it. */
function checkToolResults(messages: readonly Message[]): void {
  const calls = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant") for (const call of message.tool_calls) calls.add(call.id);
    if (message.role !== "tool" || calls.has(message.tool_call_id)) continue;
    const path = ["messages", index, "tool_call_id"];
    fail("invalid_value", "answers no tool call of an assistant message before it", path);
  }
}

/**
 * Checks a parsed request body. Throws a ValidationError with the first issue. Fields in snake_case
 * are the client's own. Fields in camel case are derived from them.
 */
export const chatRequest = refine(
  body,
  (request) => {
    checkCombinations(request);
    checkToolResults(request.messages);
    const { thinking, max_tokens, max_completion_tokens } = request;
    const effort = request.reasoning_effort === "none" ? undefined : request.reasoning_effort;
    const limits = [max_tokens, max_completion_tokens].filter((limit) => limit !== undefined);
    // The check created this object, so it may be extended: a copy would take several kilobytes.
    return Object.assign(request, {
      includeUsage: request.stream_options?.include_usage ?? false,
      /** Whether the client is to see the reasoning. */
      showThinking: thinking ?? false,
      /**
       * Whether the model is to think, shown or hidden. `thinking` takes precedence over the
       * effort.
       */
      wantsThinking: thinking ?? effort !== undefined,
      /** How deep the model is to think, if it does. Undefined: the provider's own default. */
      effort,
      /** The most tokens of the reply. Undefined: the provider's own limit. */
      maxTokens: limits.length === 0 ? undefined : Math.min(...limits),
    });
  },
  published.request,
);

type Checked = Omit<Infer<typeof chatRequest>, "messages">;
/** The required fields of a ChatRequest. All others may be absent. */
type Always = "model" | "stream" | "logprobs" | "includeUsage" | "showThinking" | "wantsThinking";

/** A checked request. Other APIs build it member by member; only they have `native`. */
export type ChatRequest = Readonly<Pick<Checked, Always> & Partial<Checked>> & {
  readonly messages: readonly Message[];
  /** Extensions' `cache_control` of tools, by the tools' names. Absent: there is none. */
  readonly toolMarks?: ReadonlyMap<string, object> | undefined;
  readonly native?: NativeRequest | undefined;
  /**
   * Checked fields that an extension keeps for the providers whose trait `takes` names them.
   * Absent: there are none.
   */
  readonly extras?: Readonly<Record<string, unknown>>;
  /** A path in this request as a path in the client's own request. Absent: the same. */
  readonly clientPath?: (path: readonly (string | number)[]) => (string | number)[];
};
