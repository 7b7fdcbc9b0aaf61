// The request to Gemini. wire.md "Gemini requests".
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Target } from "../../../core/providers/dialect.ts";
import { effortOf, parametersOf } from "../../../core/providers/parameters.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { asString } from "../../../core/schema/untrusted-json.ts";
import { withEnums } from "../schemas/index.ts";
import {
  createTextCounter,
  type Item,
  objectIn,
  type SignatureStore,
  mediaOf,
  type TextCounter,
  type Turn,
  turnsOf,
} from "../turns/index.ts";
import { geminiName } from "./names.ts";

/** The thinking budget in tokens, by effort. */
const BUDGETS: { readonly [effort: string]: number } = { low: 1_024, medium: 8_192, high: 24_576 };
/** The model decides how much it thinks. */
const ANY_BUDGET = -1;
/** The smallest budget of models that cannot stop thinking. */
const LEAST_BUDGET = 128;

const CHOICE_MODES = { none: "NONE", auto: "AUTO", required: "ANY" } as const;

export function requestBody(chat: ChatRequest, target: Target, signatures: SignatureStore): object {
  const texts = createTextCounter();
  const { system, turns } = turnsOf(chat, texts);
  const text = system.map(({ content }) => content).join("\n\n");
  // These models demand signatures even if they do not think.
  const mustSign = target.traits.thinking === "level";
  const takesIds = !target.traits.omit.includes("call_ids");
  return {
    systemInstruction: text === "" ? undefined : { parts: [{ text }] },
    contents: turns.map((turn) => ({
      role: turn.role === "user" ? "user" : "model",
      parts: contentParts(turn, { signatures, mustSign, takesIds, texts }),
    })),
    ...toolFields(chat),
    generationConfig: generationConfig(chat, target),
  };
}

/** Replaces a forgotten signature. */
const NO_SIGNATURE = "skip_thought_signature_validator";

interface ContentOptions {
  readonly signatures: SignatureStore;
  /** Whether the first tool call of a turn must carry a signature. */
  readonly mustSign: boolean;
  /** Whether calls and results have ids. Otherwise they are matched by their order. */
  readonly takesIds: boolean;
  /** Counts the texts that are parsed. */
  readonly texts: TextCounter;
}

function contentParts({ items }: Turn, options: ContentOptions): object[] {
  const { signatures, mustSign, takesIds } = options;
  const firstCall = items.find(({ type }) => type === "call");
  return items.map((item) => {
    if (item.type !== "call") return partOf(item, options);
    const placeholder = mustSign && item === firstCall ? NO_SIGNATURE : undefined;
    const { id, name, args } = item;
    return {
      functionCall: { id: takesIds ? id : undefined, name: geminiName(name), args },
      thoughtSignature: signatures.get(item.id) ?? placeholder,
    };
  });
}

type OtherItem = Exclude<Item, { readonly type: "call" }>;

function partOf(item: OtherItem, { takesIds, texts }: ContentOptions): object {
  if (item.type === "text") return { text: item.text };
  if (item.type === "input_audio") {
    const { format, data } = item.input_audio;
    return { inlineData: { mimeType: `audio/${asString(format) ?? "wav"}`, data } };
  }
  if (item.type === "result") {
    const { id, name, content } = item;
    // The API looks up each `$ref` in an object, such as a schema, and refuses the request.
    const object = content.includes('"$ref"') ? undefined : objectIn(content, texts);
    const response = object ?? { result: content };
    return {
      functionResponse: { id: takesIds ? id : undefined, name: geminiName(name), response },
    };
  }
  const { url, mediaType, data } = mediaOf(item)!;
  if (mediaType) return { inlineData: { mimeType: mediaType, data } };
  return { fileData: { fileUri: url, mimeType: imageTypeOf(url) } };
}

/** Gemini demands a media type with each URL. */
function imageTypeOf(url: string): string {
  const [, extension = "jpeg"] = /\.(png|webp|gif|heic)\b/i.exec(url) ?? [];
  return `image/${extension.toLowerCase()}`;
}

function toolFields({ tools, tool_choice: choice = "none", response_format }: ChatRequest): object {
  // Earlier models refuse tools together with a JSON format.
  if (!tools || (response_format && choice === "none")) return {};
  const functionDeclarations = tools.map(({ function: { name, description, parameters } }) => ({
    name: geminiName(name),
    description,
    parametersJsonSchema: { ...parameters, type: "object" },
  }));
  const functionCallingConfig =
    typeof choice === "object"
      ? { mode: "ANY", allowedFunctionNames: [geminiName(choice.function.name)] }
      : { mode: CHOICE_MODES[choice] };
  return { tools: [{ functionDeclarations }], toolConfig: { functionCallingConfig } };
}

function generationConfig(chat: ChatRequest, { reasoning, traits }: Target): object {
  const parameters = parametersOf(chat, traits);
  const { response_format: format } = chat;
  const canSwitch = reasoning && traits.thinking !== "none";
  return {
    temperature: parameters.temperature,
    topP: parameters.top_p,
    maxOutputTokens: parameters.max_tokens,
    stopSequences: parameters.stop,
    seed: parameters.seed,
    frequencyPenalty: parameters.frequency_penalty,
    presencePenalty: parameters.presence_penalty,
    responseLogprobs: parameters.logprobs,
    logprobs: parameters.top_logprobs || undefined,
    responseMimeType: format && "application/json",
    responseJsonSchema:
      format?.type === "json_schema" ? withEnums(format.json_schema.schema) : undefined,
    thinkingConfig: canSwitch ? thinkingConfig(chat, traits) : undefined,
  };
}

/** A model that cannot stop thinking gets its smallest budget or level. */
function thinkingConfig(chat: ChatRequest, traits: Traits): object {
  const { showThinking: includeThoughts, wantsThinking } = chat;
  const effort = effortOf(chat.effort, traits);
  if (traits.thinking === "budget") {
    const least = traits.thinking_off ? 0 : LEAST_BUDGET;
    const thinkingBudget = wantsThinking ? (BUDGETS[effort ?? ""] ?? ANY_BUDGET) : least;
    return { includeThoughts, thinkingBudget };
  }
  const least = traits.thinking_off ? "minimal" : "low";
  const level = wantsThinking ? effort : least;
  return { includeThoughts, thinkingLevel: level?.toUpperCase() };
}
