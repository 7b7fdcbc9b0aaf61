// The request to a provider that speaks OpenAI's format, and the documented switches for thinking.
import type { ChatRequest, Message } from "../../openai/request.ts";
import type { Target } from "../dialect.ts";
import { effortOf, parametersOf } from "../parameters.ts";
import type { Traits } from "../traits.ts";

export function requestBody(
  chat: ChatRequest,
  { upstreamModel, reasoning, traits }: Target,
): { readonly messages: readonly object[]; readonly [field: string]: unknown } {
  // "always" is a switch of extensions/providers/compatible, which uses this function too.
  const thinks = chat.wantsThinking || !traits.thinking_off || traits.thinking === "always";
  const echo = reasoning && thinks ? echoField(traits) : "none";
  return {
    model: upstreamModel,
    messages: chat.messages.map(createMessageWriter(echo, traits)),
    stream: chat.stream || undefined,
    // Usage is asked for whether or not the client wants to see it: the bill needs it.
    stream_options: chat.stream && traits.ask_usage ? { include_usage: true } : undefined,
    response_format: chat.response_format,
    ...renamed(parametersOf(chat, traits), traits.rename),
    tools: chat.tools,
    tool_choice: chat.tools && chat.tool_choice,
    ...(reasoning && thinkingFields(chat.wantsThinking, chat.effort, traits)),
  };
}

/** Drops cache marks and the name from a message unless the provider accepts them. */
function acceptedMessage({ marked, name, ...message }: Message, { cache_control, takes }: Traits) {
  const content = (cache_control && marked) || message.content;
  return { ...message, content, ...(takes.includes("name") && { name }) } as Message;
}

/** The field in which the reasoning of a turn with tool calls is sent back. */
const echoField = ({ echo, thinking }: Traits): string =>
  echo ?? (thinking === "thinking" ? "reasoning_content" : "none");

/**
 * Returns a function that writes the known fields of one message after another. With an echo field,
 * tool calls and the model's later messages in the same turn carry their reasoning, or else a
 * blank in `reasoning_content`: DeepSeek's V4 Pro refuses an empty one. A chat template
 * (`system_first`, `alternates`) and the servers that take `reasoning`, such as Cerebras, would
 * take a blank for a thought.
 */
function createMessageWriter(echo: string, traits: Traits): (message: Message) => object {
  const blank = echo === "reasoning" || traits.system_first || traits.alternates ? undefined : " ";
  let hasCalled = false;
  return (checked) => {
    const message = checked.marked || checked.name ? acceptedMessage(checked, traits) : checked;
    if (message.role === "user") hasCalled = false;
    if (message.role !== "assistant") return message;
    const { role, name, content, tool_calls, reasoning_content } = message;
    hasCalled ||= tool_calls.length > 0;
    const echoed = hasCalled && echo !== "none" && { [echo]: reasoning_content || blank };
    return { role, name, content, ...echoed, ...(tool_calls.length > 0 && { tool_calls }) };
  };
}

/** Parameters under the provider's names. */
const renamed = (parameters: object, names: Traits["rename"]): object =>
  Object.keys(names).length === 0
    ? parameters
    : Object.fromEntries(
        Object.entries(parameters).map(([name, value]) => [names[name] ?? name, value]),
      );

/**
 * The fields that switch thinking on or off, by the documented switches. Where there is a switch,
 * it is off unless the client asked for thinking: many models think by default (wire.md
 * "Thinking"). `effort`: how deep it is to be, as the client asked.
 */
function thinkingFields(on: boolean, effort: string | undefined, traits: Traits): object {
  const isObject = traits.thinking === "thinking";
  if (!isObject && traits.thinking !== "reasoning_effort") return {};
  if (!on && !traits.thinking_off) return {};
  if (!on) return isObject ? { thinking: { type: "disabled" } } : { reasoning_effort: "none" };
  const reasoning_effort = effortOf(effort ?? (isObject ? undefined : "medium"), traits);
  return isObject ? { thinking: { type: "enabled" }, reasoning_effort } : { reasoning_effort };
}
