// The request to Anthropic. wire.md "Anthropic requests".
import type { NativeRequest } from "../../../core/openai/native-request.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Target } from "../../../core/providers/dialect.ts";
import { parametersOf } from "../../../core/providers/parameters.ts";
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";
import { closedSchema, objectSchema } from "../schemas/index.ts";
import {
  calledNames,
  joinedSystem,
  type SignatureStore,
  type SystemMessage,
  type Turn,
  turnsOf,
} from "../turns/index.ts";
import { contentBlocks } from "./blocks.ts";
import { mayBeStrict } from "./strict-limits.ts";
import { fittingThinking, hasNeededThoughts, thinkingPlan } from "./thinking.ts";

const JSON_ONLY =
  "Answer with one JSON object and nothing else: no prose around it, no code fence.";

export function requestBody(chat: ChatRequest, target: Target, signatures: SignatureStore): object {
  const { system, turns } = turnsOf(chat);
  const parameters = parametersOf(chat, target.traits);
  const mayThink = hasNeededThoughts(turns, signatures, target.traits);
  const { thinks, field, effort, maxTokens } = thinkingPlan(chat, target, mayThink);
  // With `between_tools` the provider cannot be told to drop changed thoughts: it refuses them.
  const sendsThoughts = thinks && asObject(field)["type"] !== "between_tools";
  const schema = replySchema(chat);
  if (chat.response_format && !schema) system.push({ role: "system", content: JSON_ONLY });
  const oneOnly = parameters.parallel_tool_calls === false;
  const { tools, tool_choice } = toolFields(chat, turns, { thinks, oneOnly, target, schema });
  return {
    model: namedModel(target),
    // Constant parts come first: the provider's cache matches the beginning of a request.
    tools,
    system: systemField(system),
    messages: turns.map((turn) => ({
      role: turn.role,
      content: contentBlocks(turn, sendsThoughts ? signatures : undefined),
    })),
    max_tokens: maxTokens,
    stream: chat.stream || undefined,
    // A model that thinks refuses both.
    temperature: thinks ? undefined : parameters.temperature,
    top_p: thinks ? undefined : parameters.top_p,
    stop_sequences: parameters.stop?.filter((sequence) => sequence.trim() !== ""),
    metadata: parameters.user && { user_id: parameters.user },
    tool_choice,
    thinking: field,
    output_config:
      effort || schema ? { effort, format: schema && { type: "json_schema", schema } } : undefined,
  };
}

/** The model's name in the body. Undefined: the path has it. */
const namedModel = ({ upstreamModel, traits }: Target): string | undefined =>
  traits.model_in_body ? upstreamModel : undefined;

/**
 * The body of a native request, with this model's name. As in every request, a `max_tokens` beyond
 * the model's own limit is lowered, and with it the budget for thinking.
 */
export function nativeRequestBody(
  body: NativeRequest["body"],
  { stream, maxTokens }: ChatRequest,
  target: Target,
): object {
  const { max_output_tokens = Infinity } = target.traits;
  const passed = { ...body, model: namedModel(target), stream: stream || undefined };
  if (maxTokens === undefined || maxTokens <= max_output_tokens) return withFittingEdits(passed);
  const thinking = fittingThinking(body["thinking"], maxTokens, max_output_tokens);
  return withFittingEdits({ ...passed, max_tokens: max_output_tokens, thinking });
}

/** Removes edits that clear thoughts if thinking is off: the provider refuses the pair. */
function withFittingEdits(body: NativeRequest["body"]): object {
  const management = asObject(body["context_management"]);
  const { edits } = management;
  if (asObject(body["thinking"])["type"] !== "disabled" || !Array.isArray(edits)) return body;
  const isFitting = (edit: unknown): boolean =>
    asString(asObject(edit)["type"])?.startsWith("clear_thinking") !== true;
  const fitting = edits.filter(isFitting);
  const kept = fitting.length > 0 ? { ...management, edits: fitting } : undefined;
  return { ...body, context_management: kept };
}

/**
 * The system texts as one text or, in a request with marks for the cache, as blocks that together
 * are the same text. Undefined: there are none.
 */
function systemField(system: readonly SystemMessage[]): string | readonly object[] | undefined {
  const { content, marked } = joinedSystem(system);
  return marked ?? (content || undefined);
}

/** The JSON Schema that the reply must satisfy. Undefined: there is none. */
function replySchema({ response_format: format }: ChatRequest): unknown {
  return format?.type === "json_schema" ? closedSchema(format.json_schema.schema) : undefined;
}

interface ToolOptions {
  /** Whether the model thinks. Then a tool cannot be forced. */
  readonly thinks: boolean;
  /** Whether the model may call one tool at a time only. */
  readonly oneOnly: boolean;
  readonly target: Target;
  /** As replySchema(). */
  readonly schema: unknown;
}

function toolFields(
  chat: ChatRequest,
  turns: readonly Turn[],
  options: ToolOptions,
): { readonly tools?: readonly object[]; readonly tool_choice?: object } {
  const { thinks, oneOnly } = options;
  const tools = declaredTools(chat, options) ?? calledTools(turns);
  if (tools.length === 0) return {};
  const { tool_choice: choice = "none" } = chat;
  if (choice === "none") return { tools, tool_choice: { type: "none" } };
  const type = choice === "auto" || thinks ? "auto" : "any";
  const isNamed = typeof choice === "object" && !thinks;
  const chosen = isNamed ? { type: "tool", name: choice.function.name } : { type };
  return { tools, tool_choice: { ...chosen, ...(oneOnly && { disable_parallel_tool_use: true }) } };
}

/** Tools are strict for models with structured replies only: where these are lacking, both are. */
function declaredTools(
  chat: ChatRequest,
  { target, schema }: ToolOptions,
): readonly object[] | undefined {
  const read = chat.tools?.map(({ function: { name, description, parameters, strict } }) => {
    const input_schema = objectSchema(parameters);
    const tool = { name, description, input_schema, cache_control: chat.toolMarks?.get(name) };
    const canBeStrict = strict && target.traits.supports.includes("json_schema");
    return { tool, closed: canBeStrict && closedSchema(input_schema) };
  });
  const strictSchemas = read?.flatMap(({ closed }) => closed || []) ?? [];
  const isStrict = mayBeStrict(strictSchemas, schema);
  return read?.map(({ tool, closed }) =>
    isStrict && closed ? { ...tool, input_schema: closed, strict: true } : tool,
  );
}

/** Tools that were called must be declared, even if they cannot be called any more. */
const calledTools = (turns: readonly Turn[]): readonly object[] =>
  calledNames(turns).map((name) => ({ name, input_schema: { type: "object" } }));
