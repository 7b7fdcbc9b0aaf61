// Checks the request body of POST /v1/messages, as far as it is translated. Fields that are not
// here pass to a provider of the same format unread, and are left out for all others. Unknown types
// of blocks, tools and sources are no error: a provider of the same format may know them.
import { SCHEMA_BOUNDS } from "../../../core/openai/request.ts";
import {
  withCheckedAhead,
  array,
  boolean,
  byType,
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
} from "../../../core/schema/checker.ts";
import { mark } from "../../providers/cache-marks/index.ts";
import { tagged } from "../client-apis/index.ts";

/** The most tools of a request, as many as the vendor's tool search can handle. */
const MAX_TOOLS = 10_000;

/** A block, tool or source whose `type` the gateway does not know. */
export interface Unknown {
  readonly type: "unknown";
  /** All of it, as the client wrote it. */
  readonly value: unknown;
}

const typed = object({ type: nonEmpty });

/** A tagged union that is open: a value of another type passes as an Unknown. */
function openVariant<V extends Fields>(variants: V) {
  const known = variant("type", variants);
  return makeCheck<Infer<V[keyof V]> | Unknown>({}, (value, all) => {
    const { type } = typed(value, all);
    return Object.hasOwn(variants, type) ? known(value, all) : { type: "unknown", value };
  });
}

/** A string, which becomes one text block, or a list of blocks of these types. */
const content = <V extends Fields>(variants: V) =>
  refine(byType({ string: string(), array: array(openVariant(variants)) }), (blocks) =>
    typeof blocks === "string" ? [textBlock(blocks)] : blocks,
  );
const textBlock = (text: string) => ({ type: "text" as const, text, cache_control: undefined });

const source = {
  base64: tagged("base64", { media_type: nonEmpty, data: nonEmpty }),
  url: tagged("url", { url: nonEmpty }),
};
const text = tagged("text", { text: string(), cache_control: mark });
const image = tagged("image", {
  source: openVariant(source),
  cache_control: mark,
});
const document = tagged("document", {
  source: openVariant({
    ...source,
    text: tagged("text", { data: string() }),
    content: tagged("content", { content: content({ text, image }) }),
  }),
  title: optional(string()),
  context: optional(string()),
  citations: optional(object({ enabled: lenient(boolean()) })),
  cache_control: mark,
});
const media = { text, image, document };
/** The client's tool search has found this tool, which `defer_loading` hid from the model. */
const tool_reference = tagged("tool_reference", { tool_name: nonEmpty });
const tool_result = tagged("tool_result", {
  tool_use_id: nonEmpty,
  content: withDefault(content({ ...media, tool_reference }), []),
  is_error: lenient(boolean()),
  cache_control: mark,
});
const ofUser = { ...media, tool_result };
const ofAssistant = {
  text,
  tool_use: tagged("tool_use", { id: nonEmpty, name: nonEmpty, input: jsonObject() }),
  thinking: tagged("thinking", { thinking: string(), signature: lenient(string()) }),
  redacted_thinking: tagged("redacted_thinking", {}),
};

type Blocks = typeof ofUser &
  typeof ofAssistant & { readonly tool_reference: typeof tool_reference };
export type Block = Infer<Blocks[keyof Blocks]> | Unknown;
/** A block of this type. */
export type BlockOf<N> = Extract<Block, { readonly type: N }>;

const messageOfRole = variant("role", {
  user: object({ role: literal("user"), content: content(ofUser) }),
  assistant: object({ role: literal("assistant"), content: content(ofAssistant) }),
  // Claude Code sends instructions that arise during a conversation between its messages.
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
export const message = withCheckedAhead(messageOfRole);
export type ClientMessage = Infer<typeof message>;

/** A tool of the client's own. Its `type` may be absent. */
const customTool = object({
  name: nonEmpty,
  description: optional(string()),
  input_schema: jsonObject(SCHEMA_BOUNDS),
  strict: optional(boolean()),
  defer_loading: lenient(boolean()),
  cache_control: mark,
});
const openTool = openVariant({});
const tool: Check<Infer<typeof customTool> | Unknown> = makeCheck({}, (value, all) => {
  const { type } = object({ type: optional(string()) })(value, all);
  return type === undefined || type === "custom" ? customTool(value, all) : openTool(value, all);
});

const oneOnly = { disable_parallel_tool_use: optional(boolean()) };
const display = optional(string());
const format = openVariant({
  json_schema: tagged("json_schema", { schema: jsonObject(SCHEMA_BOUNDS) }),
});

/** Some clients send -1 for an unset parameter. It is outside the range, but counts as absent. */
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
  tool_choice: optional(
    openVariant({
      auto: tagged("auto", oneOnly),
      any: tagged("any", oneOnly),
      tool: tagged("tool", { name: nonEmpty, ...oneOnly }),
      none: tagged("none", {}),
    }),
  ),
  thinking: optional(
    openVariant({
      enabled: tagged("enabled", { budget_tokens: number({ min: 1024, integer: true }), display }),
      adaptive: tagged("adaptive", { display }),
      disabled: tagged("disabled", {}),
      between_tools: tagged("between_tools", {}),
    }),
  ),
  output_config: optional(
    object({
      effort: lenient(literal("low", "medium", "high", "xhigh", "max")),
      format: optional(format),
    }),
  ),
  /** The earlier name of `output_config.format`. */
  output_format: optional(format),
  context_management: optional(object({ edits: withDefault(array(typed), []) })),
  mcp_servers: refine(optional(array(jsonObject())), (list) => (list?.length ? list : undefined)),
  container: optional(makeCheck({}, (value) => value)),
  thread: optional(jsonObject()),
  compaction: optional(jsonObject()),
};

/** The body of POST /v1/messages/count_tokens. Fields about the reply are ignored. */
export const countRequest = object(countFields);

/** The body of POST /v1/messages. */
export const messagesRequest = object({
  ...countFields,
  /** 0: the provider only caches the prompt, and sends no reply. */
  max_tokens: number({ min: 0, integer: true }),
  stream: withDefault(boolean(), false),
  temperature: optional(number({ min: 0, max: 1 })),
  top_p: unsetOr(number({ min: 0, max: 1 })),
  top_k: unsetOr(number({ min: 0, integer: true })),
  stop_sequences: withDefault(array(nonEmpty), []),
  metadata: lenient(object({ user_id: lenient(nonEmpty) })),
  /** The region that must process the request. "global" allows any. */
  inference_geo: refine(optional(string()), (geo) => (geo === "global" ? undefined : geo)),
});
/** A request of either kind. The fields about the reply may be absent. */
export type MessagesRequest = Infer<typeof countRequest> & Partial<Infer<typeof messagesRequest>>;
