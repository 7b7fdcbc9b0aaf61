// What a model can do: what a request requires of it, and the room in its context window.
import { estimatePrompt } from "../ledger/meter.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { Traits } from "../providers/traits.ts";
import type { Model, Provider } from "./model.ts";

export interface Requirement {
  /** The field of the request that asks for it. */
  readonly path: (string | number)[];
  /** For the client, where no model supports it. */
  readonly message: string;
  satisfiedBy(traits: Traits): boolean;
}

/**
 * A model that ignored one of these would give a reply that means something else. Other parameters
 * are left out instead.
 */
const MEANINGFUL = ["logprobs", "stop", "frequency_penalty", "presence_penalty"] as const;
const MEDIA = { image_url: "images", input_audio: "audio", file: "files" } as const;
type MediaKind = (typeof MEDIA)[keyof typeof MEDIA];

/** What a request requires of a model, in the order in which it is told to the client. */
export function requirementsOf(chat: ChatRequest): readonly Requirement[] {
  const { tools, tool_choice: choice, response_format: format, logprobs } = chat;
  const requirements: Requirement[] = [];
  const add = (
    path: Requirement["path"],
    satisfiedBy: Requirement["satisfiedBy"],
    message = `this model does not support ${path}`,
  ) => requirements.push({ path, message, satisfiedBy });

  if (tools) add(["tools"], ({ supports }) => supports.includes("tools"));
  if (choice === "required" || typeof choice === "object")
    add(
      ["tool_choice"],
      ({ tool_choice }) => tool_choice !== "auto",
      "with this model a tool cannot be forced",
    );
  if (format)
    add(
      ["response_format"],
      ({ supports }) => supports.includes(format.type),
      // LangChain for Python looks for this very phrase (WIRE 1.5).
      `'response_format' of type '${format.type}' is not supported with this model`,
    );
  if (logprobs) add(["logprobs"], supportsLogprobs);
  for (const name of MEANINGFUL) {
    if (chat[name]) add([name], ({ omit }) => !omit.includes(name));
  }
  for (const [kind, index] of mediaIn(chat.messages))
    add(
      ["messages", index, "content"],
      ({ supports }) => supports.includes(kind),
      `this model does not take ${kind}`,
    );
  return requirements;
}

/**
 * Log probabilities of hidden reasoning would leak it, so a model that writes its reasoning into
 * the text has none.
 */
const supportsLogprobs = ({ supports, think_tags }: Traits): boolean =>
  supports.includes("logprobs") && !think_tags;

/** The kinds of media in a conversation, each with the index of the first message that has it. */
function mediaIn(messages: ChatRequest["messages"]): ReadonlyMap<MediaKind, number> {
  const kinds = new Map<MediaKind, number>();
  for (const [index, { content }] of messages.entries()) {
    if (typeof content === "string" || !content) continue;
    for (const { type } of content) {
      if (type !== "text" && !kinds.has(MEDIA[type])) kinds.set(MEDIA[type], index);
    }
  }
  return kinds;
}

/**
 * The models with room for the request, by a cheap estimate that is rather too low. All models if
 * none seems to have room: the providers count better. The estimate goes through the whole prompt,
 * so it is made once for each provider.
 */
export function withRoom(models: readonly Model[], chat: ChatRequest): readonly Model[] {
  if (models.length < 2 || models.every(({ contextTokens }) => contextTokens === undefined))
    return models;
  const prompts = new Map<Provider, number>();
  const hasRoom = ({ provider, contextTokens = Infinity }: Model): boolean => {
    const prompt = prompts.get(provider) ?? estimatePrompt(chat, provider.countMedia);
    prompts.set(provider, prompt);
    return 0.75 * prompt + (chat.maxTokens ?? 0) <= contextTokens;
  };
  const fitting = models.filter(hasRoom);
  return fitting.length > 0 ? fitting : models;
}

/**
 * The models that may have more room than those that are `full`, for which the prompt was too long:
 * first those that are known to be larger, then those of unknown size, each group in its order. If
 * the size of no full model is known, every known size may be larger.
 */
export function withMoreRoom(models: readonly Model[], full: readonly Model[]): readonly Model[] {
  const largest = Math.max(0, ...full.map(({ contextTokens }) => contextTokens ?? 0));
  const larger = models.filter(({ contextTokens }) => (contextTokens ?? 0) > largest);
  const unknown = models.filter(({ contextTokens }) => contextTokens === undefined);
  return [...larger, ...unknown];
}
