// Translates a client's request into a checked request. responses.md describes each field.
import type { ParsedBody } from "../../../core/chat/client-api.ts";
import { withinBounds, type ChatRequest } from "../../../core/openai/request.ts";
import { pseudonymOf } from "../../../core/providers/parameters.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { Steps } from "../../../core/turns.ts";
import { checkedBody, messageFields, type Body, type Sealer } from "../client-apis/index.ts";
import { createConversation } from "./conversation.ts";
import { item, responsesRequest, type ResponsesRequest } from "./schema.ts";
import { choiceOf, createToolSet, type ToolOrigin } from "./tools.ts";

/** What the reply must know about its request. */
export interface ReplyFacts {
  /** The client's tools, by the names of their functions. */
  readonly tools: ReadonlyMap<string, ToolOrigin>;
  /** The types of the hosted tools, which the model does not get. */
  readonly leftOut: readonly string[];
  /** The number of reasoning items that another installation or service has sealed. */
  readonly unreadReasoning: number;
  /** Whether the reasoning is sent back sealed. */
  readonly seals: boolean;
  /** The fields of the request that each response repeats. */
  readonly echo: object;
}

/** The client's paths of fields that have another name in the checked request. */
const CLIENT_PATHS = {
  messages: ["input"],
  response_format: ["text", "format"],
  logprobs: ["include"],
};

interface ReadRequest {
  readonly chat: ChatRequest;
  readonly facts: ReplyFacts;
  /** The request as the client wrote it. */
  readonly body: Body;
}

/** Throws a ValidationError with the path in the client's request. */
export function* readRequest(parsed: ParsedBody, open: Sealer["open"]): Steps<ReadRequest> {
  const { request: stated, body } = yield* checkedBody(parsed, responsesRequest, "input", item);
  const request = updated(stated);
  const { input, include } = request;
  const tools = createToolSet();
  tools.add(request.tools, ["tools"]);
  const conversation = createConversation(tools, open);
  if (request.instructions) conversation.addInput("system", request.instructions, ["instructions"]);
  if (typeof input === "string") conversation.addInput("user", input, ["input"]);
  else
    for (const [index, item] of input.entries()) {
      if (item.type !== "configuration_update") conversation.addItem(item, ["input", index]);
      yield;
    }
  const { tool_choice, declared } = choiceOf(request.tool_choice, tools);
  return {
    chat: {
      ...messageFields(conversation.entries(), CLIENT_PATHS),
      model: request.model,
      stream: request.stream,
      temperature: request.temperature,
      top_p: request.top_p,
      max_tokens: request.max_output_tokens,
      maxTokens: request.max_output_tokens,
      response_format: request.text?.format,
      logprobs: include.includes("message.output_text.logprobs"),
      top_logprobs: request.top_logprobs,
      // Most providers have only one field that identifies the end user.
      user: request.user ?? request.safety_identifier,
      ...thinkingOf(request),
      ...(declared.length > 0 && {
        tools: withinBounds(
          declared.map(({ tool }) => tool),
          (index) => [...declared[index]!.path, "parameters"],
        ),
        tool_choice,
        parallel_tool_calls: request.parallel_tool_calls,
      }),
      extras: extrasOf(request),
    },
    facts: {
      tools: new Map(declared.map(({ origin, tool }) => [tool.function.name, origin])),
      leftOut: [...tools.leftOut],
      unreadReasoning: conversation.unread(),
      seals: include.includes("reasoning.encrypted_content"),
      echo: echoOf(request, body),
    },
    body,
  };
}

/**
 * The request after the changes by `configuration_update` items. A later item overrides earlier
 * ones.
 */
function updated(request: ResponsesRequest): ResponsesRequest {
  let { reasoning, text } = request;
  for (const item of typeof request.input === "string" ? [] : request.input) {
    if (item.type !== "configuration_update") continue;
    if (item.reasoning?.effort) reasoning = Object.assign({}, reasoning, item.reasoning);
    if (item.text) text = Object.assign({}, text, item.text);
  }
  return { ...request, reasoning, text };
}

/** A summary that the client asks for under its name or its earlier name. */
const summaryOf = (reasoning: ResponsesRequest["reasoning"]) =>
  reasoning?.summary ?? reasoning?.generate_summary;

/** A client that asks for a summary gets the reasoning itself, as far as the model shows it. */
function thinkingOf({ reasoning }: ResponsesRequest) {
  const effort = reasoning?.effort === "none" ? undefined : reasoning?.effort;
  const showThinking = summaryOf(reasoning) !== undefined && reasoning?.effort !== "none";
  return { showThinking, wantsThinking: showThinking || effort !== undefined, effort };
}

/** The fields that most providers do not know. */
const extrasOf = (request: ResponsesRequest) => ({
  verbosity: request.text?.verbosity,
  prompt_cache_key: request.prompt_cache_key,
  prompt_cache_retention: request.prompt_cache_retention,
  safety_identifier: request.safety_identifier && pseudonymOf(request.safety_identifier),
  service_tier: request.service_tier,
});

/** The field `text` of a response. A `format` of null counts as absent. */
const textEcho = ({ format, ...text }: Record<string, unknown>): object => ({
  ...text,
  format: format ?? { type: "text" },
});

const echoOf = ({ reasoning, ...request }: ResponsesRequest, body: Body): object => ({
  background: false,
  instructions: request.instructions ?? null,
  max_output_tokens: request.max_output_tokens ?? null,
  metadata: request.metadata ?? {},
  parallel_tool_calls: request.parallel_tool_calls ?? true,
  previous_response_id: null,
  // The other members do not take effect, and the client would take them for honoured.
  reasoning: { effort: reasoning?.effort ?? null, summary: summaryOf(reasoning) ?? null },
  // Only the provider knows the tier that serves a request for another one.
  service_tier: request.service_tier === undefined ? "default" : null,
  store: false,
  temperature: request.temperature ?? 1,
  text: textEcho(asObject(body["text"])),
  tool_choice: body["tool_choice"] ?? "auto",
  tools: body["tools"] ?? [],
  top_p: request.top_p ?? 1,
  truncation: "disabled",
  user: request.user ?? null,
});
