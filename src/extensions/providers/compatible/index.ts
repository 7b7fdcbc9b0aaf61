// OpenAI's format in the variants of the many servers that claim compatibility, each a little
// different (wire.md "OpenAI-compatible providers"). It replaces the core's dialect
// `openai`, which reads only the documented format.
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { textOf, type ChatRequest, type Message } from "../../../core/openai/request.ts";
import type { Dialect, Target } from "../../../core/providers/dialect.ts";
import { choiceIn } from "../../../core/providers/openai/decoder.ts";
import {
  openaiDialect,
  openaiDialectDefinition,
  PATH,
} from "../../../core/providers/openai/index.ts";
import { requestBody } from "../../../core/providers/openai/request.ts";
import { effortOf, pseudonymOf } from "../../../core/providers/parameters.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { finishReasonOf, refusal, withStatedIds } from "../provider-words/index.ts";
import { acceptedTools } from "../schemas/index.ts";
import { scopedStore } from "../turns/index.ts";
import { createCompatibleDecoder } from "./decoder.ts";
import { acceptedMessages } from "./refused-messages.ts";
import { keepingDetails } from "../kept-details/index.ts";
import { toolFields, withMistralIds, withShortIds, withThinkingParts } from "./tool-choice.ts";

/** The tools with the client's marks for the provider's cache. */
function withToolMarks(chat: ChatRequest): ChatRequest {
  const { tools, toolMarks } = chat;
  if (!tools || !toolMarks) return chat;
  const marked = tools.map((tool) => {
    const cache_control = toolMarks.get(tool.function.name);
    return cache_control ? { ...tool, cache_control } : tool;
  });
  return { ...chat, tools: marked };
}

/** Adds to the body the extra fields that the provider accepts. */
function withExtras(
  body: { readonly user?: unknown },
  extras: ChatRequest["extras"],
  takes: Traits["takes"],
): object {
  if (!extras) return body;
  const extended: { [name: string]: unknown } = { ...body };
  for (const name of takes) extended[name] = extras[name];
  // A provider with a field for it does not get it as `user` too.
  if (extended["safety_identifier"] === body.user) extended["user"] = undefined;
  return extended;
}

/**
 * The fields that switch thinking on and off, by the value of the trait `thinking`: the ways that
 * OpenAI's format does not document. wire.md "OpenAI-compatible providers".
 */
const SWITCHES = new Map([
  ["reasoning", { on: { reasoning: { enabled: true } }, off: { reasoning: { enabled: false } } }],
  ["enable_thinking", { on: { enable_thinking: true }, off: { enable_thinking: false } }],
  ["chat_template_kwargs", { on: templateFields(true), off: templateFields(false) }],
  ["always", { on: {}, off: {} }],
]);

/** All values of `thinking`, in the order in which messages list them. */
const THINKING_SWITCHES = ["thinking", "reasoning_effort", ...SWITCHES.keys(), "none"];

/** A chat template knows one of the two names, and ignores the other. */
function templateFields(enabled: boolean): object {
  return { chat_template_kwargs: { enable_thinking: enabled, thinking: enabled } };
}

/** The fields that switch thinking on or off. Empty if the switch is a documented one. */
function thinkingFields(
  { wantsThinking, effort }: ChatRequest,
  { reasoning, traits }: Target,
): object {
  const fields = reasoning && SWITCHES.get(traits.thinking);
  if (!fields) return {};
  if (!wantsThinking) return traits.thinking_off ? fields.off : {};
  const known = effortOf(effort, traits);
  if (known === undefined) return fields.on;
  if (traits.thinking === "reasoning") return { reasoning: { effort: known } };
  return { ...fields.on, reasoning_effort: known };
}

/** Whether the model thinks about its answer. */
const thinks = ({ wantsThinking }: ChatRequest, { reasoning, traits }: Target): boolean =>
  reasoning && (wantsThinking || !traits.thinking_off || traits.thinking === "always");

/** OpenAI's models that accept tools in this API only without thinking. */
const NO_THINKING_WITH_TOOLS = /^(openai\.)?gpt-(5\.[2-9]|[6-9])/;
/** Values of the trait `thinking` whose models refuse to think when a tool is forced. */
const NO_THINKING_WHEN_FORCED = ["thinking", "enable_thinking"];

/** Whether thinking must be switched off because the model refuses it for this request. */
function mustNotThink({ tools, tool_choice }: ChatRequest, { upstreamModel, traits }: Target) {
  if (!tools || !traits.thinking_off) return false;
  if (NO_THINKING_WITH_TOOLS.test(upstreamModel)) return true;
  const isForced = tool_choice === "required" || typeof tool_choice === "object";
  return isForced && NO_THINKING_WHEN_FORCED.includes(traits.thinking);
}

/** Whether the last message is a prefill of the answer, which the model can continue. */
function hasPrefill(messages: ChatRequest["messages"], { prefill }: Traits): boolean {
  const last = messages.at(-1);
  if (prefill === "none" || last?.role !== "assistant" || last.tool_calls.length > 0) return false;
  return typeof last.content === "string" && last.content.trim() !== "";
}

/** Marks the prefill as the trait `prefill` demands it: as one text without cache marks. */
function withMarkedPrefill(
  body: { readonly messages: readonly object[] },
  { prefill }: Traits,
): object {
  if (prefill === "plain") return body;
  const message = body.messages.at(-1) as Pick<Message, "content">;
  const last = { ...message, content: textOf(message.content ?? "") };
  if (prefill !== "continue_final_message")
    return { ...body, messages: body.messages.with(-1, { ...last, [prefill]: true }) };
  // Some servers search the prompt for the prefill, and trim the prompt first.
  const messages = body.messages.with(-1, { ...last, content: last.content.trimEnd() });
  return { ...body, messages, continue_final_message: true, add_generation_prompt: false };
}

/** A client's text as the value of a header: one that no header can have is hashed. */
const headerText = (text: string): string =>
  /^[\x20-\x7e]+$/.test(text) ? text : pseudonymOf(text);

export const compatibleDialect: Dialect = {
  ...openaiDialect,
  request(chat, target) {
    const marked = target.traits.cache_control ? withToolMarks(chat) : chat;
    const { takes, tool_choice, cache_header, max_call_id, alternates } = target.traits;
    const messages = acceptedMessages(marked.messages, target.traits);
    const isPrefilled = hasPrefill(chat.messages, target.traits);
    const written = {
      ...marked,
      // A model does not think after the beginning of its answer.
      wantsThinking: chat.wantsThinking && !isPrefilled && !mustNotThink(chat, target),
      tools: acceptedTools(marked.tools, target),
      messages:
        tool_choice === "any" || alternates
          ? withMistralIds(messages)
          : withShortIds(withStatedIds(messages), max_call_id),
    };
    const fields = requestBody(written, target);
    const hasThinkingParts = tool_choice === "any" && thinks(written, target);
    const plain = {
      ...fields,
      ...(hasThinkingParts && { messages: withThinkingParts(fields.messages, written.messages) }),
      ...thinkingFields(written, target),
    };
    const documented = isPrefilled ? withMarkedPrefill(plain, target.traits) : plain;
    const body =
      tool_choice === "all" ? documented : { ...documented, ...toolFields(written, tool_choice) };
    const hint = cache_header && chat.extras?.["prompt_cache_key"];
    const headers = hint ? { [cache_header]: headerText(String(hint)) } : {};
    return { path: PATH, headers, body: withExtras(body, chat.extras, takes) };
  },
  isReply(json) {
    const choice = choiceIn(json);
    // A reply that the provider's filter emptied may come without a message (Azure).
    const isFiltered = finishReasonOf(choice["finish_reason"]) === "content_filter";
    return Boolean(choice["message"]) || isFiltered;
  },
  decoder: ({ traits }) => createCompatibleDecoder(traits),
  refusal,
};

export function install(gateway: Installer): void {
  gateway.fill(slots.dialect("openai"), {
    ...openaiDialectDefinition,
    thinkingSwitches: THINKING_SWITCHES,
    create: (scope) => keepingDetails(compatibleDialect, scopedStore("openai", scope)),
  });
}
