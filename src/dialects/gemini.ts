// Gemini's generateContent and streamGenerateContent. WIRE.md 7b.
import { randomBytes } from "node:crypto";
import type { ChatRequest } from "../protocol/chat-request.ts";
import { asArray, asCount, asObject, asString, parseJson } from "../protocol/foreign.ts";
import { makeUsage, type Part } from "../protocol/reply.ts";
import type { TokenLogprob } from "../protocol/shapes.ts";
import { finishPart, ProviderFault, type Decoder, type Dialect, type Target } from "./dialect.ts";
import { errorIn } from "./faults.ts";
import type { Signatures } from "./signatures.ts";
import { effortOf, parametersOf, type Traits } from "./traits.ts";
import { dataOf, turnsOf, type Item, type Turn } from "./turns.ts";

/** What takes a forgotten signature's place. */
const NO_SIGNATURE = "skip_thought_signature_validator";
/** Of models that cannot stop thinking. */
const LEAST_BUDGET = 128;
const BUDGETS: { readonly [effort: string]: number } = { minimal: 512, low: 1_024, medium: 8_192, high: 24_576 };

export const createGeminiDialect = (signatures: Signatures): Dialect => ({
  auth: (key) => ({ "x-goog-api-key": key }),
  request(chat, target) {
    const model = target.upstreamModel.includes("/") ? target.upstreamModel : `models/${target.upstreamModel}`;
    const path = `/v1beta/${model}:${chat.stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;
    return { path, body: requestBody(chat, target, signatures) };
  },
  reply(json) {
    const parts = createDecoder(signatures).push(json);
    if (parts.some(({ type }) => type === "finish")) return parts;
    if (asArray(asObject(json)["candidates"]).length === 0) throw new ProviderFault("upstream_error", "the reply has no candidate");
    return [...parts, { type: "finish", reason: "stop" }];
  },
  decoder: () => createDecoder(signatures),
});

function requestBody(chat: ChatRequest, { reasoning, traits }: Target, signatures: Signatures): object {
  const { system, turns } = turnsOf(chat.messages);
  const { temperature, top_p, max_tokens, stop, seed, frequency_penalty, presence_penalty, logprobs, top_logprobs } = parametersOf(chat, traits);
  const { tools, response_format: format } = chat;
  const functionDeclarations = tools?.map(({ function: { name, description, parameters } }) =>
    ({ name, description, parametersJsonSchema: { type: "object", ...parameters } }));
  return {
    systemInstruction: system.length > 0 ? { parts: [{ text: system.join("\n\n") }] } : undefined,
    contents: turns.map((turn) => ({ role: turn.role === "user" ? "user" : "model", parts: partsOf(turn, signatures, reasoning && traits.thinking === "level") })),
    tools: functionDeclarations && [{ functionDeclarations }],
    toolConfig: tools && { functionCallingConfig: callingConfig(chat) },
    generationConfig: {
      temperature, topP: top_p, maxOutputTokens: max_tokens, stopSequences: stop, seed,
      frequencyPenalty: frequency_penalty, presencePenalty: presence_penalty,
      responseLogprobs: logprobs, logprobs: top_logprobs || undefined,
      responseMimeType: format && "application/json",
      responseJsonSchema: format?.type === "json_schema" ? format.json_schema.schema : undefined,
      thinkingConfig: reasoning ? thinkingConfig(chat, traits) : undefined,
    },
  };
}

function callingConfig({ tool_choice: choice = "none" }: ChatRequest): object {
  if (typeof choice === "object") return { mode: "ANY", allowedFunctionNames: [choice.function.name] };
  return { mode: { none: "NONE", auto: "AUTO", required: "ANY" }[choice] };
}

/** Where it cannot be switched off it is as little as can be. */
function thinkingConfig({ thinking, effort: wanted }: ChatRequest, traits: Traits): object | undefined {
  const effort = effortOf(wanted, traits);
  if (traits.thinking === "none") return undefined;
  if (traits.thinking === "budget") {
    const thinkingBudget = thinking ? (BUDGETS[effort ?? ""] ?? -1) : traits.thinking_off ? 0 : LEAST_BUDGET;
    return { includeThoughts: thinking, thinkingBudget };
  }
  const thinkingLevel = thinking ? effort : traits.thinking_off ? "minimal" : "low";
  return { includeThoughts: thinking, thinkingLevel: thinkingLevel?.toUpperCase() };
}

/** `signed`: the first of a turn's tool calls must carry its signature. */
function partsOf({ items }: Turn, signatures: Signatures, signed: boolean): object[] {
  const first = items.find((item) => item.type === "call");
  return items.map((item) => {
    if (item.type !== "call") return partOf(item);
    const thoughtSignature = signatures.get(item.id) ?? (signed && item === first ? NO_SIGNATURE : undefined);
    return { functionCall: { id: item.id, name: item.name, args: item.args }, thoughtSignature };
  });
}

function partOf(item: Exclude<Item, { type: "call" }>): object {
  if (item.type === "text") return { text: item.text };
  if (item.type === "result") {
    const json = parseJson(item.content);
    const response = typeof json === "object" && json !== null && !Array.isArray(json) ? json : { result: json ?? item.content };
    return { functionResponse: { id: item.id, name: item.name, response } };
  }
  if (item.type === "input_audio") return { inlineData: { mimeType: `audio/${asString(item.input_audio["format"]) ?? "wav"}`, data: item.input_audio["data"] } };
  const url = item.type === "image_url" ? item.image_url.url : (asString(item.file["file_data"]) ?? "");
  const inline = dataOf(url);
  if (inline) return { inlineData: { mimeType: inline.mediaType, data: inline.data } };
  if (item.type === "file") throw new ProviderFault("upstream_rejected", "a file without its data");
  return { fileData: { fileUri: url, mimeType: `image/${/\.(png|webp|gif|heic)\b/i.exec(url)?.[1]?.toLowerCase() ?? "jpeg"}` } };
}

/** Reasons of its own; all other words mean "stop". */
const FINISH_REASONS: { readonly [reason: string]: string } = {
  MAX_TOKENS: "length", MALFORMED_FUNCTION_CALL: "error", UNEXPECTED_TOOL_CALL: "error", TOO_MANY_TOOL_CALLS: "error",
  SAFETY: "content_filter", RECITATION: "content_filter", BLOCKLIST: "content_filter", PROHIBITED_CONTENT: "content_filter",
  SPII: "content_filter", LANGUAGE: "content_filter", IMAGE_SAFETY: "content_filter",
};

function createDecoder(signatures: Signatures): Decoder {
  let calls = 0;

  function read(part: Record<string, unknown>): Part[] {
    const { text, thought, functionCall, thoughtSignature } = part;
    if (functionCall === undefined) return asString(text) ? [{ type: thought === true ? "reasoning" : "text", text: asString(text)! }] : [];
    const { id: given, name, args } = asObject(functionCall);
    const id = asString(given) || `call_${randomBytes(12).toString("hex")}`;
    if (typeof thoughtSignature === "string") signatures.set(id, thoughtSignature);
    const call = calls++;
    return [{ type: "tool_call", call, id, name: asString(name) ?? "" }, { type: "tool_arguments", call, text: JSON.stringify(args ?? {}) }];
  }

  return {
    push(json) {
      const error = errorIn(json);
      if (error) throw error;
      const { candidates, promptFeedback, usageMetadata } = asObject(json);
      const { content, finishReason, logprobsResult } = asObject(asArray(candidates)[0]);
      const parts = asArray(asObject(content)["parts"]).map(asObject).flatMap(read);
      const logprobs = logprobsOf(asObject(logprobsResult));
      const said = parts.findIndex(({ type }) => type === "text");
      if (logprobs.length > 0) parts.splice(Math.max(0, said), said === -1 ? 0 : 1, { type: "text", text: "", ...parts[said], logprobs } as Part);
      const blocked = asObject(promptFeedback)["blockReason"] !== undefined;
      const reason = asString(finishReason);
      if (usageMetadata !== undefined) parts.push(usagePart(asObject(usageMetadata)));
      return [...parts, ...finishPart(blocked ? "content_filter" : reason && (FINISH_REASONS[reason] ?? "stop"))];
    },
  };
}

/** Tokens of thinking stand beside the candidates'; cached ones are inside the prompt. */
function usagePart(usage: Record<string, unknown>): Part {
  const count = (name: string) => asCount(usage[name]) ?? 0;
  const reasoning = count("thoughtsTokenCount");
  const prompt = count("promptTokenCount") + count("toolUsePromptTokenCount");
  return { type: "usage", usage: makeUsage({ prompt, completion: count("candidatesTokenCount") + reasoning, cacheHit: count("cachedContentTokenCount"), reasoning }) };
}

function logprobsOf({ chosenCandidates, topCandidates }: Record<string, unknown>): TokenLogprob[] {
  const read = (given: unknown) => {
    const { token, logProbability } = asObject(given);
    return { token: asString(token) ?? "", logprob: typeof logProbability === "number" ? logProbability : -9999, bytes: [...Buffer.from(asString(token) ?? "")] };
  };
  const tops = asArray(topCandidates);
  return asArray(chosenCandidates).map((chosen, at) => ({ ...read(chosen), top_logprobs: asArray(asObject(tops[at])["candidates"]).map(read) }));
}
