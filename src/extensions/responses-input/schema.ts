// What the body of POST /v1/responses looks like: its fields, its input items, its tools. What asks
// for something that the vendor's service has stored is refused here.
import type { Steps } from "../../core/turns.ts";
import {
  aheadOr,
  array,
  boolean,
  byType,
  checkInSteps,
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
} from "../../core/schema/checker.ts";
import { asArray, asObject, asString } from "../../core/schema/untrusted-json.ts";

/** Only absent or null passes. */
const absent = (message: string) =>
  makeCheck({}, (value) => (value == null ? undefined : fail("unsupported_value", message)), {
    optional: true,
  });
/** Only absent, null or false passes. */
const off = (message: string) =>
  refine(optional(boolean()), (on) => (on ? fail("unsupported_value", message) : undefined));

/** The tools that run inside the vendor's service. */
export const HOSTED = [
  "web_search",
  "web_search_2025_08_26",
  "web_search_preview",
  "web_search_preview_2025_03_11",
  "file_search",
  "code_interpreter",
  "image_generation",
  "mcp",
] as const;

/** Names are joined and hashed, and a namespace's for each of its functions. */
const MAX_NAME = 256;
const toolName = refine(
  nonEmpty,
  (name) => {
    const message = `expected at most ${MAX_NAME} characters, got ${name.length}`;
    return name.length > MAX_NAME ? fail("invalid_value", message) : name;
  },
  { maxLength: MAX_NAME },
);
/** Chat completions takes no more. */
export const MAX_TOOLS = 128;
/** A list of tools. How many there are is checked before the first of them is. */
const listOf = <T>(tool: Check<T>): Check<T[]> => array(tool, { max: MAX_TOOLS });

const text = optional(string());
const toolFields = {
  description: text,
  parameters: optional(jsonObject()),
  strict: optional(boolean()),
  /** Of a free-form tool: a grammar, or none. */
  format: lenient(jsonObject()),
};
const callable = object({
  type: literal("function", "custom"),
  name: toolName,
  ...toolFields,
});
export type Callable = Infer<typeof callable>;
const tool = object({
  type: literal("function", "custom", "namespace", "tool_search", ...HOSTED),
  name: optional(toolName),
  ...toolFields,
  execution: text,
  tools: withDefault(listOf(callable), []),
});
export type Tool = Infer<typeof tool>;

const noFiles = absent("no files are stored or fetched here; send the data itself");
const MEDIA = ["input_image", "input_file", "input_audio"] as const;
/** Of a part that stands where only texts can. */
export const NO_TEXT = "must be the type of a text here";
const textPart = object({
  type: literal("input_text", "output_text", "summary_text", "reasoning_text"),
  text: string(),
});
const refusalPart = object({ type: literal("refusal"), refusal: string() });
const encryptedPart = object({ type: literal("encrypted_content"), encrypted_content: string() });
const mediaPart = object({
  type: literal(...MEDIA),
  image_url: optional(nonEmpty),
  detail: text,
  file_data: optional(nonEmpty),
  filename: text,
  input_audio: optional(jsonObject()),
  file_id: noFiles,
  file_url: noFiles,
});
type MediaPart = Infer<typeof mediaPart>;
/** A part that is a text: what it says is always there. */
export type TextPart =
  | Infer<typeof textPart>
  | Infer<typeof refusalPart>
  | Infer<typeof encryptedPart>;
export type InputPart = TextPart | MediaPart;
/** Whether a part is an image, a file or audio. */
export const isMedia = (part: InputPart): part is MediaPart =>
  MEDIA.some((type) => type === part.type);
/** Most parts are texts, and most items messages. A check takes time for each field. */
const partOfType = variant("type", {
  input_text: textPart,
  output_text: textPart,
  summary_text: textPart,
  reasoning_text: textPart,
  refusal: refusalPart,
  encrypted_content: encryptedPart,
  input_image: mediaPart,
  input_file: mediaPart,
  input_audio: mediaPart,
});
const part = makeCheck<InputPart>({}, (value, all) => partOfType(value, all));

const CALLS = ["function_call", "custom_tool_call", "tool_search_call"] as const;
const OUTPUTS = ["function_call_output", "custom_tool_call_output", "tool_search_output"] as const;
const OTHERS = ["reasoning", "additional_tools", "agent_message", "item_reference"] as const;
const content = optional(byType({ string: string(), array: array(part) }));
/** The texts of a summary, joined. What has no text says nothing; images and files are refused. */
const summary = makeCheck({}, summaryText, { optional: true });
function summaryText(value: unknown): string {
  const texts = asArray(value).map((part, index) => {
    const { type, text } = asObject(part);
    if (MEDIA.some((each) => each === type)) fail("invalid_value", NO_TEXT, [index, "type"]);
    return asString(text) ?? "";
  });
  return texts.join("");
}
const message = object({
  type: withDefault(literal("message"), "message"),
  role: optional(literal("user", "assistant", "system", "developer")),
  content,
});
/** All other types. Which fields an item must have is said where it is translated. */
const otherItem = object({
  type: literal("message", ...CALLS, ...OUTPUTS, ...OTHERS),
  content,
  call_id: optional(nonEmpty),
  name: optional(nonEmpty),
  namespace: optional(toolName),
  arguments: optional(byType({ string: string(), object: jsonObject() })),
  input: text,
  output: content,
  tools: optional(listOf(tool)),
  summary,
  encrypted_content: text,
});
type OtherItem = Infer<typeof otherItem>;
export type InputItem = Pick<OtherItem, "type"> &
  Partial<Pick<Infer<typeof message>, "role"> & OtherItem>;
/** A reference need not have a type. A message without one has a role. */
function isUntypedReference(value: unknown): boolean {
  const { type = null, role, id } = asObject(value);
  return type === null && role === undefined && typeof id === "string";
}
const item = aheadOr(
  makeCheck<InputItem>({}, (value, all) => {
    if (isUntypedReference(value)) return { type: "item_reference" };
    const isMessage = isObject(value) && (value["type"] ?? "message") === "message";
    return isMessage ? message(value, all) : otherItem(value, all);
  }),
);

const format = variant("type", {
  text: refine(object({ type: literal("text") }), () => undefined),
  json_object: object({ type: literal("json_object") }),
  json_schema: refine(
    object({
      type: literal("json_schema"),
      name: nonEmpty,
      description: text,
      schema: jsonObject(),
      strict: optional(boolean()),
    }),
    ({ type, ...json_schema }) => ({ type, json_schema }),
  ),
});

const chosenTool = object({ type: nonEmpty, name: text, namespace: optional(toolName) });
export type ChosenTool = Infer<typeof chosenTool>;
const choice = object({
  type: nonEmpty,
  name: optional(nonEmpty),
  namespace: optional(toolName),
  /** `allowed_tools` must have these two. */
  mode: optional(literal("auto", "required")),
  tools: optional(array(chosenTool, { min: 1, max: MAX_TOOLS })),
});
export type NamedChoice = Infer<typeof choice>;

/** As long as OpenAI lets it be. */
const CACHE_KEY = { pattern: /^.{1,64}$/su, expected: "1 to 64 characters" };

/** Clients that keep to this never refer to what a service has stored. */
export const NOT_STORED = "nothing is stored here; set store: false, and send the items";
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
  max_output_tokens: optional(number({ min: 1, integer: true })),
  temperature: optional(number({ min: 0, max: 2 })),
  top_p: optional(number({ min: 0, max: 1 })),
  tools: withDefault(listOf(tool), []),
  tool_choice: withDefault(
    byType({ string: literal("none", "auto", "required"), object: choice }),
    "auto",
  ),
  parallel_tool_calls: optional(boolean()),
  reasoning: optional(
    object({
      effort: optional(literal("none", "minimal", "low", "medium", "high", "xhigh", "max")),
      summary: optional(literal("auto", "concise", "detailed")),
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
});
export type ResponsesRequest = Infer<typeof responsesRequest>;

/** The same check in steps, for a large body. */
export const readResponses = (body: Readonly<Record<string, unknown>>): Steps<ResponsesRequest> =>
  checkInSteps(responsesRequest, body, body["input"], item);
