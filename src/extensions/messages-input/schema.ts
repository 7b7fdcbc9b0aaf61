// The request body of POST /v1/messages, as far as it is translated. Fields that are not here pass
// to a provider of the same format unread, and are left out for all others. Kinds of blocks, tools
// and sources that are not known here are no error: a provider of the same format may know them.
import type { Steps } from "../../core/turns.ts";
import {
  aheadOr,
  array,
  boolean,
  byType,
  checkInSteps,
  fail,
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
  type Fields,
  type Infer,
} from "../../core/schema/checker.ts";

/** The schema of a tool, or that of a reply. It is walked and written several times. */
const SCHEMA_BOUNDS = { maxValues: 10_000, maxChars: 256 * 1024 };

/** The most tools of a request: those that the vendor's models search among. */
const MAX_TOOLS = 10_000;

/** Something whose `type` is not known here. */
export interface Unknown {
  readonly type: "unknown";
  /** Its `type`, as the client wrote it. */
  readonly name: string;
}

const typed = object({ type: nonEmpty });

/** A tagged union that is open: a value of another type passes as an Unknown. */
const openVariant = <V extends Fields>(variants: V): Check<Infer<V[keyof V]> | Unknown> =>
  makeCheck({}, (value, all) => {
    const { type: name } = typed(value, all);
    const known = Object.hasOwn(variants, name) ? variants[name] : undefined;
    return known ? (known(value, all) as Infer<V[keyof V]>) : { type: "unknown", name };
  });

const cacheControl = lenient(jsonObject());

const base64Source = object({
  type: literal("base64"),
  media_type: nonEmpty,
  data: nonEmpty,
});
const urlSource = object({ type: literal("url"), url: nonEmpty });
const text = object({ type: literal("text"), text: string(), cache_control: cacheControl });
const image = object({
  type: literal("image"),
  source: openVariant({ base64: base64Source, url: urlSource }),
  cache_control: cacheControl,
});
const document = object({
  type: literal("document"),
  source: openVariant({
    base64: base64Source,
    url: urlSource,
    text: object({ type: literal("text"), data: string() }),
    content: object({
      type: literal("content"),
      content: byType({ string: string(), array: array(openVariant({ text, image })) }),
    }),
  }),
  title: optional(string()),
  context: optional(string()),
  citations: optional(object({ enabled: lenient(boolean()) })),
  cache_control: cacheControl,
});
const media = { text, image, document };
const toolResult = object({
  type: literal("tool_result"),
  tool_use_id: nonEmpty,
  content: withDefault(byType({ string: string(), array: array(openVariant(media)) }), ""),
  is_error: lenient(boolean()),
  cache_control: cacheControl,
});
const toolUse = object({
  type: literal("tool_use"),
  id: nonEmpty,
  name: nonEmpty,
  input: jsonObject(),
});
const thinkingBlock = object({ type: literal("thinking"), thinking: string() });
const redacted = object({ type: literal("redacted_thinking") });

export type MediaBlock = Infer<typeof text> | Infer<typeof image> | Infer<typeof document>;
export type ResultBlock = Infer<typeof toolResult>;

const content = <V extends Fields>(blocks: V) =>
  byType({ string: string(), array: array(openVariant(blocks)) });

const messageOfRole = variant("role", {
  user: object({
    role: literal("user"),
    content: content({ ...media, tool_result: toolResult }),
  }),
  assistant: object({
    role: literal("assistant"),
    content: content({
      text,
      tool_use: toolUse,
      thinking: thinkingBlock,
      redacted_thinking: redacted,
    }),
  }),
  // Claude Code sends instructions that come up in the course of a conversation at their place.
  system: refine(
    object({
      role: literal("system"),
      content: optional(content({ text })),
      clear_at: optional(string()),
      output_config: optional(jsonObject()),
    }),
    (instruction) =>
      instruction.content === undefined && instruction.output_config === undefined
        ? fail("missing_required_parameter", "is required", ["content"])
        : instruction,
  ),
});
const message = aheadOr(messageOfRole);
export type ClientMessage = Infer<typeof message>;

/** A tool of the client's own. Its `type` may be absent. */
const customTool = object({
  name: nonEmpty,
  description: optional(string()),
  input_schema: jsonObject(SCHEMA_BOUNDS),
  strict: optional(boolean()),
  cache_control: cacheControl,
});
const openTool = openVariant({});
const tool: Check<Infer<typeof customTool> | Unknown> = makeCheck({}, (value, all) => {
  const { type } = object({ type: optional(string()) })(value, all);
  return type === undefined || type === "custom" ? customTool(value, all) : openTool(value, all);
});
export type ClientTool = Infer<typeof tool>;

const oneOnly = { disable_parallel_tool_use: optional(boolean()) };
const toolChoice = openVariant({
  auto: object({ type: literal("auto"), ...oneOnly }),
  any: object({ type: literal("any"), ...oneOnly }),
  tool: object({ type: literal("tool"), name: nonEmpty, ...oneOnly }),
  none: object({ type: literal("none") }),
});

const display = optional(string());
const thinking = openVariant({
  enabled: object({
    type: literal("enabled"),
    budget_tokens: number({ min: 1024, integer: true }),
    display,
  }),
  adaptive: object({ type: literal("adaptive"), display }),
  disabled: object({ type: literal("disabled") }),
});

const format = openVariant({
  json_schema: object({ type: literal("json_schema"), schema: jsonObject(SCHEMA_BOUNDS) }),
});

/** Some clients send -1 for a parameter that is not set. It has no range of its own. */
const unsetOr = (check: Check<number>): Check<number | undefined> =>
  optional(
    makeCheck({ anyOf: [{ const: -1 }, check.schema] }, (value, all) =>
      value === -1 ? undefined : check(value, all),
    ),
  );

/** The fields of a request whose tokens are to be counted. */
const countFields = {
  model: nonEmpty,
  messages: array(message, { min: 1 }),
  system: optional(content({ text })),
  tools: withDefault(array(tool, { max: MAX_TOOLS }), []),
  tool_choice: optional(toolChoice),
  thinking: optional(thinking),
  output_config: optional(
    object({
      effort: lenient(literal("low", "medium", "high", "xhigh", "max")),
      format: optional(format),
    }),
  ),
  /** The name that the format of output_config had before. */
  output_format: optional(format),
  context_management: optional(object({ edits: withDefault(array(typed), []) })),
  mcp_servers: withDefault(array(jsonObject()), []),
  container: optional(makeCheck({}, (value) => value)),
  thread: optional(jsonObject()),
  compaction: optional(jsonObject()),
};

/** 0: the prompt is put into the provider's cache, and there is no reply. */
const maxTokens = number({ min: 0, integer: true });

/** The body of POST /v1/messages/count_tokens. */
export const countRequest = object({ ...countFields, max_tokens: optional(maxTokens) });

/** The body of POST /v1/messages. */
export const messagesRequest = object({
  ...countFields,
  max_tokens: maxTokens,
  stream: withDefault(boolean(), false),
  temperature: optional(number({ min: 0, max: 1 })),
  top_p: unsetOr(number({ min: 0, max: 1 })),
  top_k: unsetOr(number({ min: 0, integer: true })),
  stop_sequences: withDefault(array(nonEmpty), []),
  metadata: lenient(object({ user_id: lenient(nonEmpty) })),
});
export type MessagesRequest = Infer<typeof messagesRequest>;

type Body = Readonly<Record<string, unknown>>;

/** The same check in steps, for a large body. */
export const readMessages = (body: Body): Steps<MessagesRequest> =>
  checkInSteps(messagesRequest, body, body["messages"], message);

/** The same for a request whose tokens are to be counted. */
export const readCount = (body: Body): Steps<Infer<typeof countRequest>> =>
  checkInSteps(countRequest, body, body["messages"], message);
