// The request of a client as a chat completion. What becomes of each field is in the manual, in the
// chapter "responses".
import { chatRequest, message, type ChatRequest } from "../../core/openai/request.ts";
import type { ParsedBody } from "../../core/chat/client-api.ts";
import { pseudonymOf } from "../../core/providers/parameters.ts";
import { checkInSteps, jsonObject } from "../../core/schema/checker.ts";
import { asObject } from "../../core/schema/untrusted-json.ts";
import { createConversation } from "./conversation.ts";
import { addItem, type ItemTarget } from "./items.ts";
import { contentPath, withOwnPaths } from "./paths.ts";
import { readResponses, responsesRequest, type ResponsesRequest } from "./schema.ts";
import { createSealedTexts, type Open } from "./sealed.ts";
import { choiceOf } from "./tool-choice.ts";
import type { Steps } from "../../core/turns.ts";
import { createToolSet, type ToolOrigin } from "./tools.ts";

/** What a reply to the request needs to know of it. */
export interface ReplyFacts {
  /** By the names of their functions. */
  readonly tools: ReadonlyMap<string, ToolOrigin>;
  /** The hosted tools that the model does not get, by their types. */
  readonly leftOut: readonly string[];
  /** How many items of reasoning came sealed by another installation or service. */
  readonly unreadReasoning: number;
  /** Whether the reasoning is sent back sealed. */
  readonly seals: boolean;
  /** The fields of the request that each response repeats. */
  readonly echo: object;
}

export interface TranslatedRequest {
  readonly chat: ChatRequest;
  readonly facts: ReplyFacts;
}

/** Parts of a body are repeated in the response as they came, so its depth is bounded. */
const anyBody = jsonObject();

/** Throws a ValidationError whose path is that in the client's request. */
export function* readRequest({ json, large }: ParsedBody, open: Open): Steps<TranslatedRequest> {
  const body = anyBody(json);
  yield;
  const request = large ? yield* readResponses(body) : responsesRequest(body);
  const { include } = request;
  const tools = createToolSet();
  tools.add(request.tools, ["tools"]);
  const sealed = createSealedTexts(open);
  const { messages, origins } = yield* messagesOf(request, { tools, sealed });
  const { tool_choice, isAllowed } = choiceOf(request.tool_choice, tools);
  const declared = [...tools.declarations].filter(([name]) => isAllowed(name));
  const chat = {
    model: request.model,
    messages,
    stream: request.stream,
    temperature: request.temperature,
    top_p: request.top_p,
    max_completion_tokens: request.max_output_tokens,
    response_format: request.text?.format,
    logprobs: include.includes("message.output_text.logprobs"),
    top_logprobs: request.top_logprobs,
    // Most providers have one field for who the end user is.
    user: request.user ?? request.safety_identifier,
    ...thinkingOf(request),
    ...(declared.length > 0 && {
      tools: declared.map(([, tool]) => ({ type: "function", function: tool.function })),
      tool_choice,
      parallel_tool_calls: request.parallel_tool_calls,
    }),
  };
  const toolPaths = declared.map(([, { path }]) => path);
  const places = { messages: origins, tools: toolPaths };
  function* checked() {
    return large
      ? yield* checkInSteps(chatRequest, chat, chat.messages, message)
      : chatRequest(chat);
  }
  return {
    chat: {
      ...(yield* withOwnPaths(places, checked())),
      further: furtherOf(request),
      clientPath: (path) => {
        const [field, message] = path;
        const isContent = field === "messages" && typeof message === "number";
        return isContent ? contentPath(origins[message]!) : [...path];
      },
    },
    facts: {
      tools: new Map(declared.map(([name, { origin }]) => [name, origin])),
      leftOut: [...tools.leftOut],
      unreadReasoning: sealed.unread(),
      seals: include.includes("reasoning.encrypted_content"),
      echo: echoOf(request, asObject(json)),
    },
  };
}

function* messagesOf(
  { input, instructions }: ResponsesRequest,
  target: Omit<ItemTarget, "conversation">,
) {
  const conversation = createConversation();
  if (instructions) conversation.addInput("system", instructions, ["instructions"]);
  if (typeof input === "string") conversation.addInput("user", input, ["input"]);
  else
    for (const [index, item] of input.entries()) {
      addItem(item, ["input", index], { ...target, conversation });
      yield;
    }
  return conversation.end();
}

/** A summary is the reasoning itself, as far as the model shows it. */
function thinkingOf({ reasoning }: ResponsesRequest): object {
  const { effort, summary } = reasoning ?? {};
  const isShown = summary !== undefined && effort !== "none";
  return { reasoning_effort: effort, ...(isShown && { thinking: { type: "enabled" } }) };
}

/** The fields that most providers do not know. */
const furtherOf = (request: ResponsesRequest) => ({
  verbosity: request.text?.verbosity,
  prompt_cache_key: request.prompt_cache_key,
  prompt_cache_retention: request.prompt_cache_retention,
  safety_identifier: request.safety_identifier && pseudonymOf(request.safety_identifier),
});

/** `json`: the request as the client wrote it. */
const echoOf = (request: ResponsesRequest, json: Record<string, unknown>): object => ({
  background: false,
  instructions: request.instructions ?? null,
  max_output_tokens: request.max_output_tokens ?? null,
  metadata: request.metadata ?? {},
  parallel_tool_calls: request.parallel_tool_calls ?? true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null, ...asObject(json["reasoning"]) },
  service_tier: "default",
  store: false,
  temperature: request.temperature ?? 1,
  text: { format: { type: "text" }, ...asObject(json["text"]) },
  tool_choice: json["tool_choice"] ?? "auto",
  tools: json["tools"] ?? [],
  top_p: request.top_p ?? 1,
  truncation: "disabled",
  user: request.user ?? null,
});
