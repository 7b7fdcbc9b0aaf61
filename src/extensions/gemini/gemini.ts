// Gemini's generateContent and streamGenerateContent. WIRE.md 7b.
import { randomHex } from "../../core/ids.ts";
import type { ChatRequest } from "../../core/openai/request.ts";
import { asArray, asObject, asString, tokenCounter } from "../../core/schema/untrusted-json.ts";
import type { JsonCounter } from "../../core/schema/json-bounds.ts";
import { tokenLogprob } from "../../core/openai/logprobs.ts";
import type { Part } from "../../core/openai/parts.ts";
import type { UsageReport } from "../../core/openai/usage.ts";
import {
  finishPart,
  ProviderError,
  textPart,
  throwErrorIn,
  withUsage,
  type Decoder,
  type Dialect,
  type Target,
} from "../../core/providers/dialect.ts";
import { effortOf, parametersOf, type Traits } from "../../core/providers/traits.ts";
import {
  createTextCounter,
  mediaOf,
  objectIn,
  turnsOf,
  type Item,
  type Signatures,
  type Turn,
} from "../../core/providers/turns.ts";
import { sumOf } from "../turns/token-sums.ts";

const NO_SIGNATURE = "skip_thought_signature_validator"; // what takes a forgotten signature's place
/** Tokens to think with, by effort; -1: as many as it likes; the least that models take which cannot stop thinking. */
const BUDGETS: { readonly [effort: string]: number } = { low: 1_024, medium: 8_192, high: 24_576 };
const [ANY_BUDGET, LEAST_BUDGET] = [-1, 128];

export const createGeminiDialect = (signatures: Signatures): Dialect => ({
  auth: (key) => ({ "x-goog-api-key": key }),
  request(chat, target) {
    const model = target.upstreamModel.includes("/")
      ? target.upstreamModel
      : `models/${target.upstreamModel}`;
    return {
      path: `/v1beta/${model}:${chat.stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
      body: requestBody(chat, target, signatures),
    };
  },
  isReply: (json) => candidateIn(json) !== undefined || isBlocked(json),
  decoder: () => createDecoder(signatures),
});

function requestBody(
  chat: ChatRequest,
  { reasoning, traits }: Target,
  signatures: Signatures,
): object {
  const texts = createTextCounter();
  const { system, turns } = turnsOf(chat.messages, texts);
  const {
    temperature,
    top_p,
    max_tokens,
    stop,
    seed,
    frequency_penalty,
    presence_penalty,
    logprobs,
    top_logprobs,
  } = parametersOf(chat, traits);
  const { tool_choice: choice = "none", response_format: format } = chat;
  const tools = format && choice === "none" ? undefined : chat.tools; // earlier models refuse tools beside JSON
  const functionDeclarations = tools?.map(({ function: { name, description, parameters } }) => ({
    name,
    description,
    parametersJsonSchema: { ...parameters, type: "object" },
  }));
  const named =
    typeof choice === "object"
      ? { mode: "ANY", allowedFunctionNames: [choice.function.name] }
      : undefined;
  const signed = traits.thinking === "level"; // whether it thinks or not
  return {
    systemInstruction: system.length > 0 ? { parts: [{ text: system.join("\n\n") }] } : undefined,
    contents: turns.map((turn) => ({
      role: turn.role === "user" ? "user" : "model",
      parts: partsOf(turn, signatures, signed, texts),
    })),
    tools: functionDeclarations && [{ functionDeclarations }],
    toolConfig: tools && {
      functionCallingConfig: named ?? {
        mode: { none: "NONE", auto: "AUTO", required: "ANY" }[choice as string],
      },
    },
    generationConfig: {
      temperature,
      topP: top_p,
      maxOutputTokens: max_tokens,
      stopSequences: stop,
      seed,
      frequencyPenalty: frequency_penalty,
      presencePenalty: presence_penalty,
      responseLogprobs: logprobs,
      logprobs: top_logprobs || undefined,
      responseMimeType: format && "application/json",
      responseJsonSchema: format?.type === "json_schema" ? format.json_schema.schema : undefined,
      thinkingConfig:
        reasoning && traits.thinking !== "none" ? thinkingConfig(chat, traits) : undefined,
    },
  };
}

/** Where it cannot be switched off it is as little as can be. */
function thinkingConfig(
  { thinking: includeThoughts, wantsThinking, effort: wanted }: ChatRequest,
  traits: Traits,
): object {
  const effort = effortOf(wanted, traits);
  let thinkingBudget: number;
  if (wantsThinking) thinkingBudget = BUDGETS[effort ?? ""] ?? ANY_BUDGET;
  else thinkingBudget = traits.thinking_off ? 0 : LEAST_BUDGET;
  let level: string | undefined;
  if (wantsThinking) level = effort;
  else level = traits.thinking_off ? "minimal" : "low";
  return {
    includeThoughts,
    ...(traits.thinking === "budget"
      ? { thinkingBudget }
      : { thinkingLevel: level?.toUpperCase() }),
  };
}

/** `signed`: the first of a turn's tool calls must carry its signature. */
function partsOf(
  { items }: Turn,
  signatures: Signatures,
  signed: boolean,
  texts: JsonCounter,
): object[] {
  const first = items.find(({ type }) => type === "call");
  return items.map((item) =>
    partOf(
      item,
      (id) => signatures.get(id) ?? (signed && item === first ? NO_SIGNATURE : undefined),
      texts,
    ),
  );
}

function partOf(
  item: Item,
  signatureOf: (id: string) => string | undefined,
  texts: JsonCounter,
): object {
  if (item.type === "text") return { text: item.text };
  if (item.type === "call")
    return {
      functionCall: { id: item.id, name: item.name, args: item.args },
      thoughtSignature: signatureOf(item.id),
    };
  if (item.type === "input_audio")
    return {
      inlineData: {
        mimeType: `audio/${asString(item.input_audio["format"]) ?? "wav"}`,
        data: item.input_audio["data"],
      },
    };
  if (item.type === "result")
    return {
      functionResponse: {
        id: item.id,
        name: item.name,
        response: objectIn(item.content, texts) ?? { result: item.content },
      },
    };
  const { url, mediaType, data } = mediaOf(item);
  if (mediaType) return { inlineData: { mimeType: mediaType, data } };
  return {
    fileData: {
      fileUri: url,
      mimeType: `image/${/\.(png|webp|gif|heic)\b/i.exec(url)?.[1]?.toLowerCase() ?? "jpeg"}`,
    },
  };
}

const candidateIn = (json: unknown) => asArray(asObject(json)["candidates"])[0];
/** The prompt was refused; a `blockReason` of null, as some proxies write it, refuses nothing. */
const isBlocked = (json: unknown): boolean =>
  Boolean(asString(asObject(asObject(json)["promptFeedback"])["blockReason"]));

function createDecoder(signatures: Signatures): Decoder {
  let calls = 0;
  let signed: string | undefined; // a signature may come in a part before its call's
  let answered = false; // something else than thinking has come

  function read({
    text,
    thought,
    functionCall,
    thoughtSignature,
  }: Record<string, unknown>): Part[] {
    signed = asString(thoughtSignature) ?? signed;
    if (functionCall === undefined || functionCall === null)
      return textPart(thought === true ? "reasoning" : "text", text);
    const { id: given, name: called, args } = asObject(functionCall);
    const name = asString(called);
    if (!name)
      throw new ProviderError("upstream_error", "a tool call without a name", {
        fromContent: true,
      });
    const id = asString(given) || `call_${randomHex(12)}`;
    if (signed !== undefined) signatures.set(id, signed);
    signed = undefined;
    const call = calls++;
    return [
      { type: "tool_call", call, id, name },
      { type: "tool_arguments", call, text: JSON.stringify(args ?? {}) },
    ];
  }

  const usageIn = (json: unknown) => {
    const isLast = asObject(candidateIn(json))["finishReason"] !== undefined;
    return readUsage(asObject(json)["usageMetadata"], isLast || !answered);
  };
  return withUsage(usageIn, {
    push(json) {
      throwErrorIn(json);
      const { content, finishReason, logprobsResult } = asObject(candidateIn(json));
      const parts = asArray(asObject(content)["parts"]).map(asObject).flatMap(read);
      const logprobs = logprobsOf(asObject(logprobsResult));
      const said = parts.findIndex(({ type }) => type === "text");
      const hidden = said === -1 && parts.some(({ type }) => type === "reasoning"); // those of thoughts would give them away
      if (logprobs.length > 0 && !hidden)
        parts.splice(Math.max(0, said), said === -1 ? 0 : 1, {
          type: "text",
          text: "",
          ...parts[said],
          logprobs,
        } as Part);
      answered ||= parts.some(({ type }) => type !== "reasoning");
      return [...parts, ...finishPart(isBlocked(json) ? "SAFETY" : finishReason)];
    },
  });
}

/** Tokens of thinking stand beside the candidates'; cached ones are inside the prompt. Gemini leaves out a count of 0. `zeroIfAbsent`:
 * whether that is what a missing `candidatesTokenCount` means; in the middle of an answer the figure is only not there yet. */
function readUsage(usage: unknown, zeroIfAbsent: boolean): UsageReport | undefined {
  const count = tokenCounter(usage);
  const prompt = sumOf(count("promptTokenCount"), count("toolUsePromptTokenCount"));
  const thinking = count("thoughtsTokenCount");
  const candidates = count("candidatesTokenCount");
  if (prompt === undefined && thinking === undefined && candidates === undefined) return undefined;
  const isCounted = candidates !== undefined || zeroIfAbsent;
  return {
    prompt,
    completion: isCounted ? (candidates ?? 0) + (thinking ?? 0) : undefined,
    cacheHit: count("cachedContentTokenCount") ?? 0,
    reasoning: thinking ?? 0,
  };
}

/** The bytes of a longer text than any token are not listed one by one. */
const MAX_TOKEN_CHARS = 1_000;
function logprobsOf({ chosenCandidates, topCandidates }: Record<string, unknown>) {
  const named = (given: unknown) => {
    const { token, logProbability: logprob } = asObject(given);
    const text = asString(token) ?? "";
    return { token, logprob, bytes: text.length > MAX_TOKEN_CHARS ? null : [...Buffer.from(text)] };
  };
  const top = (at: number) =>
    asArray(asObject(asArray(topCandidates)[at])["candidates"]).map(named);
  return asArray(chosenCandidates).map((chosen, at) =>
    tokenLogprob({ ...named(chosen), top_logprobs: top(at) }),
  );
}
