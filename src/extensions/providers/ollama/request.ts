// The request to Ollama's own API.
import type { ChatRequest, Message, Tool } from "../../../core/openai/request.ts";
import type { Target } from "../../../core/providers/dialect.ts";
import { effortOf, parametersOf } from "../../../core/providers/parameters.ts";
import { withObjectSchemas } from "../schemas/index.ts";
import { argumentsIn, createTextCounter, mediaOf, type MediaRule } from "../turns/index.ts";

export function requestBody(chat: ChatRequest, target: Target): object {
  const { upstreamModel, reasoning, traits, contextTokens } = target;
  const parameters = parametersOf(chat, traits);
  const canThink = reasoning && traits.thinking === "think";
  return {
    model: upstreamModel,
    messages: messagesOf(chat.messages),
    // Ollama streams by default.
    stream: chat.stream,
    tools: chat.tool_choice === "none" ? undefined : chat.tools?.map(withAcceptedSchema),
    format: formatOf(chat),
    think: canThink ? thinkOf(chat, target) : undefined,
    // Ollama refuses a longer prompt, and ends a reply at the end of the window with "length".
    // Otherwise it silently leaves out the oldest messages.
    truncate: false,
    shift: false,
    options: {
      // Without this, the window has Ollama's own, smaller size.
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

const withAcceptedSchema = (tool: Tool): Tool => ({
  ...tool,
  function: { ...tool.function, parameters: withObjectSchemas(tool.function.parameters) },
});

/** An effort if the model has any, else a boolean. Undefined: the model cannot stop thinking. */
function thinkOf({ wantsThinking, effort }: ChatRequest, { traits }: Target) {
  if (!wantsThinking) return traits.thinking_off ? false : undefined;
  return effortOf(effort ?? "medium", traits) ?? true;
}

function formatOf({ response_format: format }: ChatRequest): unknown {
  if (format?.type !== "json_schema") return format && "json";
  return format.json_schema.schema ?? "json";
}

/** Ollama's calls have no ids: a result names its tool, and stands at the position of its call. */
function messagesOf(messages: readonly Message[]): readonly object[] {
  const texts = createTextCounter();
  /** By the id of a call: its name, and its results, which come later. */
  const called = new Map<string, { readonly name: string; readonly results: object[] }>();
  const written = messages.map((message): object => {
    const { role, content } = message;
    if (message.role === "tool") {
      const call = called.get(message.tool_call_id);
      call?.results.push({ role, content, tool_name: call.name });
      return [];
    }
    if (message.role !== "assistant") return { role, ...contentOf(content) };
    const calls = message.tool_calls.map(({ id, function: { name, arguments: text } }) => {
      called.set(id, { name, results: [] });
      return { function: { name, arguments: argumentsIn(text, texts) } };
    });
    const tool_calls = calls.length > 0 ? calls : undefined;
    const thinking = message.reasoning_content;
    const results = new Set(message.tool_calls.map(({ id }) => called.get(id)!.results));
    return [{ role, content: content ?? "", thinking, tool_calls }, ...results];
  });
  return written.flat(2);
}

/** Ollama does not fetch images. */
export const imageRule: MediaRule = (_part, { mediaType }) =>
  mediaType === undefined ? "this model takes images as data, not by address" : undefined;

/** The texts of a message, and its images as data. An image becomes a line end in the text. */
function contentOf(content: Message["content"]): object {
  if (content === null || typeof content === "string") return { content: content ?? "" };
  const images = content.flatMap((part) =>
    part.type === "image_url" ? [mediaOf(part)!.data] : [],
  );
  const texts = content.map((part) => (part.type === "text" ? part.text : "\n"));
  return { content: texts.join("").trim(), images: images.length > 0 ? images : undefined };
}
