// The checks of the body of POST /v1/responses: its fields, its input items, its tools. The parts
// of messages become parts of chat completions. Requests for something that the vendor's service
// has stored are refused here.
import { audio, SCHEMA_BOUNDS, textOf, type ContentPart } from "../../../core/openai/request.ts";
import {
  withCheckedAhead,
  array,
  boolean,
  byType,
  fail,
  isObject,
  jsonObject,
  lenient,
  literal,
  makeCheck,
  nonEmpty,
  number,
  object,
  optional,
  refine,
  string,
  variant,
  withDefault,
  type Check,
  type Infer,
} from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { tagged } from "../client-apis/index.ts";

/** Only absent or null passes. */
const absent = (message: string) =>
  makeCheck({}, (value) => (value == null ? undefined : fail("unsupported_value", message)), {
    optional: true,
  });
/** Only absent, null or false passes. */
const off = (message: string) =>
  refine(optional(boolean()), (on) => (on ? fail("unsupported_value", message) : undefined));

/** Bounded, because a name is joined with the name of its namespace, and hashed. */
const toolName = string({
  pattern: /^[A-Za-z0-9_-]{1,256}$/,
  expected: "1 to 256 characters of A-Z a-z 0-9 _ -",
});
/** In a call or choice. Not restricted like `toolName`: another service may have declared it. */
const namespace = optional(string({ pattern: /^.{1,256}$/su, expected: "1 to 256 characters" }));
/** The bound of chat completions. */
export const MAX_TOOLS = 128;
/** A list of tools. Its length is checked before its elements. */
const listOf = <T>(tool: Check<T>): Check<T[]> => array(tool, { max: MAX_TOOLS });

const text = optional(string());
const strict = optional(boolean());
const toolFields = {
  description: text,
  parameters: optional(jsonObject(SCHEMA_BOUNDS)),
  strict,
  /** The grammar of a free-form tool. */
  format: lenient(jsonObject()),
};
const callable = object({ type: literal("function", "custom"), name: toolName, ...toolFields });
/** The name of the function that replaces a tool search of the client. */
export const TOOL_SEARCH = "tool_search";
/** A tool that a function replaces. */
export type Callable = Omit<Infer<typeof callable>, "type"> & {
  readonly type: "function" | "custom" | "tool_search";
};
const hosted = (name: string) => ({ type: "hosted" as const, name });
/** A tool search, which the client or the vendor's service runs. */
const toolSearch = refine(
  tagged(TOOL_SEARCH, { execution: text, ...toolFields }),
  ({ execution, ...tool }): Callable | ReturnType<typeof hosted> =>
    execution === "client"
      ? { ...tool, name: TOOL_SEARCH, strict: undefined }
      : hosted(TOOL_SEARCH),
);
/** The tools that run inside the vendor's service. */
const HOSTED = [
  "web_search",
  "web_search_2025_08_26",
  "web_search_preview",
  "web_search_preview_2025_03_11",
  "file_search",
  "code_interpreter",
  "image_generation",
  "mcp",
].map((name) => [name, refine(tagged(name, {}), () => hosted(name))] as const);
const tool = variant("type", {
  function: callable,
  custom: callable,
  namespace: tagged("namespace", {
    name: toolName,
    description: text,
    tools: withDefault(listOf(callable), []),
  }),
  tool_search: toolSearch,
  ...Object.fromEntries(HOSTED),
});
export type Tool = Infer<typeof tool>;
const tools = withDefault(listOf(tool), []);

const noFiles = absent("no files are stored or fetched here; send the data itself");
const stored = { file_id: noFiles, file_url: noFiles };
const textIn = (field: string): Check<ContentPart> =>
  refine(object({ [field]: string() }), (part) => ({ type: "text", text: part[field]! }));
const plainText = textIn("text");
const mediaParts = {
  input_image: refine(
    object({ ...stored, image_url: nonEmpty, detail: text }),
    ({ image_url: url, detail }): ContentPart => ({
      type: "image_url",
      image_url: { url, detail },
    }),
  ),
  input_file: refine(
    object({ ...stored, file_data: nonEmpty, filename: text }),
    ({ file_data, filename }): ContentPart => ({ type: "file", file: { file_data, filename } }),
  ),
  input_audio: refine(
    object({ ...stored, input_audio: audio }),
    ({ input_audio }): ContentPart => ({ type: "input_audio", input_audio }),
  ),
};
const part = variant("type", {
  input_text: plainText,
  output_text: plainText,
  summary_text: plainText,
  reasoning_text: plainText,
  refusal: textIn("refusal"),
  // In messages between a client's agents. The vendor's service encrypts it; here it is plain text.
  encrypted_content: textIn("encrypted_content"),
  ...mediaParts,
});
const content = refine(byType({ string: string(), array: array(part) }), (value) =>
  typeof value === "string" ? [{ type: "text" as const, text: value }] : value,
);
const NO_TEXT = "only text is accepted here";
/** Content that may only have texts. */
const onlyText = refine(content, (parts) => {
  const index = parts.findIndex(({ type }) => type !== "text");
  return index === -1 ? textOf(parts) : fail("invalid_value", NO_TEXT, [index, "type"]);
});
const type = withDefault(literal("message"), "message");
const system = refine(object({ type, content: onlyText }), (message) => ({
  ...message,
  role: "system" as const,
}));
const message = variant("role", {
  user: object({ type, role: literal("user"), content }),
  assistant: object({ type, role: literal("assistant"), content: onlyText }),
  system,
  developer: system,
});

/** The error for references to stored items, and how a client avoids them. */
const NOT_STORED = "nothing is stored here; set store: false, and send the items";
const reference = makeCheck({}, () => fail("unsupported_value", NOT_STORED));
const call = { call_id: nonEmpty, name: nonEmpty, namespace };
const json = byType({ string: string(), object: jsonObject() });
const result = { call_id: nonEmpty, output: content };
const schema = jsonObject(SCHEMA_BOUNDS);
const jsonSchema = tagged("json_schema", { name: nonEmpty, description: text, schema, strict });
const format = variant("type", {
  text: refine(tagged("text", {}), () => undefined),
  json_object: tagged("json_object", {}),
  json_schema: refine(jsonSchema, ({ type, ...json_schema }) => ({ type, json_schema })),
});

const effort = optional(literal("none", "minimal", "low", "medium", "high", "xhigh", "max"));
const itemOfType = variant("type", {
  message,
  function_call: tagged("function_call", { ...call, arguments: json }),
  custom_tool_call: tagged("custom_tool_call", { ...call, input: string() }),
  tool_search_call: tagged("tool_search_call", { call_id: nonEmpty, arguments: optional(json) }),
  function_call_output: tagged("function_call_output", result),
  custom_tool_call_output: tagged("custom_tool_call_output", result),
  tool_search_output: tagged("tool_search_output", { call_id: nonEmpty, tools }),
  reasoning: tagged("reasoning", {
    content: optional(onlyText),
    summary: optional(onlyText),
    encrypted_content: text,
  }),
  additional_tools: tagged("additional_tools", { tools }),
  agent_message: tagged("agent_message", { content: onlyText }),
  configuration_update: tagged("configuration_update", {
    reasoning: optional(object({ effort })),
    text: optional(object({ format })),
  }),
  item_reference: reference,
});
export type InputItem = Infer<typeof itemOfType>;
/** An item without a type is a reference if it has an id and no role. Otherwise it is a message. */
export const item = withCheckedAhead(
  makeCheck<InputItem>({}, (value, all) => {
    const { type = null, role, id } = asObject(value);
    if (!isObject(value) || type !== null) return itemOfType(value, all);
    return role === undefined && typeof id === "string" ? reference(value) : message(value, all);
  }),
);

const chosenTool = object({ type: nonEmpty, name: text, namespace });
export type ChosenTool = Infer<typeof chosenTool>;
const chosenTools = array(chosenTool, { min: 1, max: MAX_TOOLS });
const mode = literal("auto", "required");
const allowedTools = tagged("allowed_tools", { mode, tools: chosenTools });
const choice = makeCheck<ChosenTool | Infer<typeof allowedTools>>(
  { anyOf: [allowedTools.schema, chosenTool.schema] },
  (value, all) =>
    asObject(value)["type"] === "allowed_tools" ? allowedTools(value, all) : chosenTool(value, all),
);

const summary = optional(literal("auto", "concise", "detailed"));

/** OpenAI's bound. */
const CACHE_KEY = { pattern: /^.{1,64}$/su, expected: "1 to 64 characters" };

export const responsesRequest = object({
  model: nonEmpty,
  input: byType({ string: nonEmpty, array: array(item, { min: 1 }) }),
  instructions: text,
  stream: withDefault(boolean(), false),
  store: off("nothing is stored here; leave it out, or send false"),
  background: off("replies are not kept for later"),
  previous_response_id: absent(NOT_STORED),
  conversation: absent(NOT_STORED),
  prompt: absent("no prompts are stored here; send instructions and input"),
  moderation: absent("moderation is not served; leave the field out"),
  max_output_tokens: optional(number({ min: 1, integer: true })),
  temperature: optional(number({ min: 0, max: 2 })),
  top_p: optional(number({ min: 0, max: 1 })),
  tools,
  tool_choice: withDefault(
    byType({ string: literal("none", "auto", "required"), object: choice }),
    "auto",
  ),
  parallel_tool_calls: optional(boolean()),
  reasoning: optional(
    object({
      effort,
      summary,
      /** The earlier name of `summary`. */
      generate_summary: summary,
    }),
  ),
  text: optional(
    object({ format: optional(format), verbosity: lenient(literal("low", "medium", "high")) }),
  ),
  include: withDefault(array(string()), []),
  top_logprobs: optional(number({ min: 0, max: 20, integer: true })),
  metadata: lenient(jsonObject({ maxValues: 1_000 })),
  user: lenient(nonEmpty),
  safety_identifier: lenient(nonEmpty),
  prompt_cache_key: lenient(string(CACHE_KEY)),
  prompt_cache_retention: lenient(literal("in_memory", "24h")),
  service_tier: lenient(nonEmpty),
});
export type ResponsesRequest = Infer<typeof responsesRequest>;
