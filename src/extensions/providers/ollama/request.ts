// The request to Ollama's own API.
import type { ChatRequest, ContentPart, Message } from "../../../core/openai/request.ts";
import type { Target } from "../../../core/providers/dialect.ts";
import { effortOf, parametersOf } from "../../../core/providers/parameters.ts";
import {
  createTextCounter,
  objectIn,
  takenMedia,
  type MediaRule,
  type TextCounter,
} from "../turns/index.ts";

export function requestBody(chat: ChatRequest, target: Target): object {
  const { upstreamModel, reasoning, traits, contextTokens } = target;
  const parameters = parametersOf(chat, traits);
  const canThink = reasoning && traits.thinking === "think";
  return {
    model: upstreamModel,
    messages: messagesOf(chat.messages),
    // Its own default is a stream.
    stream: chat.stream,
    tools: chat.tool_choice === "none" ? undefined : chat.tools,
    format: formatOf(chat),
    think: canThink ? thinkOf(chat, target) : undefined,
    options: {
      // Ollama cuts prompts at its own, small window without a word.
      num_ctx: contextTokens,
      num_predict: parameters.max_tokens,
      temperature: parameters.temperature,
      top_p: parameters.top_p,
      frequency_penalty: parameters.frequency_penalty,
      presence_penalty: parameters.presence_penalty,
      stop: parameters.stop,
      seed: parameters.seed,
    },
  };
}

/** A depth if the model knows some, else a switch. Undefined: it thinks unasked. */
function thinkOf({ wantsThinking, effort }: ChatRequest, { traits }: Target) {
  if (!wantsThinking) return traits.thinking_off ? false : undefined;
  return effortOf(effort ?? "medium", traits) ?? true;
}

function formatOf({ response_format: format }: ChatRequest): unknown {
  if (format?.type !== "json_schema") return format && "json";
  return format.json_schema.schema ?? "json";
}

/**
 * The results of calls directly behind them, in the order of the calls. What stands between them
 * comes after.
 */
function inCallOrder(messages: readonly Message[]): readonly Message[] {
  const ordered: Message[] = [];
  let places = new Map<string, number>();
  let results: (readonly [place: number, message: Message])[] = [];
  let others: Message[] = [];
  function endTurn(): void {
    results.sort(([one], [other]) => one - other);
    ordered.push(...results.map(([, message]) => message), ...others);
    results = [];
    others = [];
  }
  for (const message of messages) {
    if (message.role === "tool") {
      results.push([places.get(message.tool_call_id) ?? Infinity, message]);
    } else if (message.role === "assistant") {
      endTurn();
      ordered.push(message);
      places = new Map(message.tool_calls.map(({ id }, at) => [id, at]));
    } else others.push(message);
  }
  endTurn();
  return ordered;
}

/** Calls have no ids here: a result names its tool, and stands where its call does. */
function messagesOf(messages: readonly Message[]): readonly object[] {
  const texts = createTextCounter();
  const names = new Map<string, string>();
  return inCallOrder(messages).map((message) => {
    const { role, content } = message;
    if (message.role === "tool")
      return { role, content, tool_name: names.get(message.tool_call_id) };
    if (message.role !== "assistant") return { role, ...contentOf(content) };
    for (const call of message.tool_calls) names.set(call.id, call.function.name);
    const calls = message.tool_calls.map((call) => calledIn(call.function, texts));
    const tool_calls = calls.length > 0 ? calls : undefined;
    return { role, content: content ?? "", thinking: message.reasoning_content, tool_calls };
  });
}

/** A model wrote the arguments: they need not be JSON. */
function calledIn(
  { name, arguments: text }: { readonly name: string; readonly arguments: string },
  texts: TextCounter,
): object {
  return { function: { name, arguments: objectIn(text || "{}", texts) ?? { _raw: text } } };
}

/** Ollama fetches nothing. */
export const imageRule: MediaRule = (_part, { mediaType }) =>
  mediaType === undefined ? "this model takes images as data, not by address" : undefined;

/** The texts of a message. Those before and after an image are lines of their own. */
const textAround = (content: readonly ContentPart[]): string =>
  content
    .map((part) => (part.type === "text" ? part.text : "\n"))
    .join("")
    .trim();

/** The texts of a message, and its images as data. */
function contentOf(content: Message["content"]): object {
  if (content === null || typeof content === "string") return { content: content ?? "" };
  const images = content.flatMap((part) =>
    part.type === "image_url" ? [takenMedia(part, imageRule).data] : [],
  );
  return { content: textAround(content), images: images.length > 0 ? images : undefined };
}
