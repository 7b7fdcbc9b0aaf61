// The request body of POST /v1/messages, as far as it is translated. Fields that are not here pass
// to a provider of the same format unread, and are left out for all others. Kinds of blocks, tools
// and sources that are not known here are no error: a provider of the same format may know them.
import { SCHEMA_BOUNDS } from "../../../core/openai/request.ts";
import {
  aheadOr,
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

/** The most tools of a request: those that the vendor's models search among. */
const MAX_TOOLS = 10_000;

/** Something whose `type` is not known here. */
export interface Unknown {
  readonly type: "unknown";
  /** Its `type`, as the client wrote it. */
  readonly name: string;
  /** All of it, as the client wrote it. */
  readonly value: unknown;
}

const typed = object({ type: nonEmpty });

/** The kinds of a thing by their `type`, each with its other fields. */
type Kinds = Readonly<Record<string, Fields>>;
type OneOf<K extends Kinds> = {
  [N in keyof K]: { readonly type: N } & { readonly [F in keyof K[N]]: Infer<K[N][F]> };
}[keyof K];

/** A tagged union that is open: a value of another type passes as an Unknown. */
function openVariant<K extends Kinds>(kinds: K): Check<OneOf<K> | Unknown> {
  const checks = new Map<string, Check<unknown>>();
  for (const [name, fields] of Object.entries(kinds))
    checks.set(name, object({ type: literal(name), ...fields }));
  return makeCheck({}, (value, all) => {
    const { type: name } = typed(value, all);
    const known = checks.get(name);
    return known ? (known(value, all) as OneOf<K>) : { type: "unknown", name, value };
  });
}

/** A text, which is a block, or blocks of these kinds. */
const content = <K extends Kinds>(kinds: K) =>
  refine(byType({ string: string(), array: array(openVariant(kinds)) }), (blocks) =>
    typeof blocks === "string" ? [textBlock(blocks)] : blocks,
  );
const textBlock = (text: string) => ({ type: "text" as const, text, cache_control: undefined });

const source = { base64: { media_type: nonEmpty, data: nonEmpty }, url: { url: nonEmpty } };
const text = { text: string(), cache_control: mark };
const image = { source: openVariant(source), cache_control: mark };
const document = {
  source: openVariant({
    ...source,
    text: { data: string() },
    content: { content: content({ text, image }) },
  }),
  title: optional(string()),
  context: optional(string()),
  citations: optional(object({ enabled: lenient(boolean()) })),
  cache_control: mark,
};
const media = { text, image, document };
const tool_result = {
  tool_use_id: nonEmpty,
  content: withDefault(content(media), []),
  is_error: lenient(boolean()),
  cache_control: mark,
};
const ofAssistant = {
  text,
  tool_use: { id: nonEmpty, name: nonEmpty, input: jsonObject() },
  thinking: { thinking: string() },
  redacted_thinking: {},
};

type AnyBlock = OneOf<typeof media & typeof ofAssistant & { tool_result: typeof tool_result }>;
/** A block, of this type if one is given. */
export type Block<T = unknown> = unknown extends T
  ? AnyBlock | Unknown
  : Extract<AnyBlock, { readonly type: T }>;

const messageOfRole = variant("role", {
  user: object({ role: literal("user"), content: content({ ...media, tool_result }) }),
  assistant: object({ role: literal("assistant"), content: content(ofAssistant) }),
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
export const message = aheadOr(messageOfRole);
export type ClientMessage = Infer<typeof message>;

/** A tool of the client's own. Its `type` may be absent. */
const customTool = object({
  name: nonEmpty,
  description: optional(string()),
  input_schema: jsonObject(SCHEMA_BOUNDS),
  strict: optional(boolean()),
  cache_control: mark,
});
const openTool = openVariant({});
const tool: Check<Infer<typeof customTool> | Unknown> = makeCheck({}, (value, all) => {
  const { type } = object({ type: optional(string()) })(value, all);
  return type === undefined || type === "custom" ? customTool(value, all) : openTool(value, all);
});
export type ClientTool = Infer<typeof tool>;

const oneOnly = { disable_parallel_tool_use: optional(boolean()) };
const display = optional(string());
const format = openVariant({ json_schema: { schema: jsonObject(SCHEMA_BOUNDS) } });

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
  tool_choice: optional(
    openVariant({ auto: oneOnly, any: oneOnly, tool: { name: nonEmpty, ...oneOnly }, none: {} }),
  ),
  thinking: optional(
    openVariant({
      enabled: { budget_tokens: number({ min: 1024, integer: true }), display },
      adaptive: { display },
      disabled: {},
    }),
  ),
  output_config: optional(
    object({
      effort: lenient(literal("low", "medium", "high", "xhigh", "max")),
      format: optional(format),
    }),
  ),
  /** The name that the format of output_config had before. */
  output_format: optional(format),
  context_management: optional(object({ edits: withDefault(array(typed), []) })),
  mcp_servers: refine(optional(array(jsonObject())), (list) => (list?.length ? list : undefined)),
  container: optional(makeCheck({}, (value) => value)),
  thread: optional(jsonObject()),
  compaction: optional(jsonObject()),
};

/** 0: the prompt is put into the provider's cache, and there is no reply. */
const maxTokens = number({ min: 0, integer: true });

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
type Limit = { readonly max_tokens: number | undefined };
export type MessagesRequest = Omit<Infer<typeof messagesRequest>, "max_tokens"> & Limit;

const NO_REPLY = {
  max_tokens: undefined,
  stream: false,
  temperature: undefined,
  top_p: undefined,
  top_k: undefined,
  stop_sequences: [],
  metadata: undefined,
};
/** The body of POST /v1/messages/count_tokens. What it says of a reply counts for nothing. */
export const countRequest = refine(
  object({ ...countFields, max_tokens: optional(maxTokens) }),
  (request): MessagesRequest => ({ ...request, ...NO_REPLY }),
);
