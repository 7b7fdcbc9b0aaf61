// Gemini's reply, whole or event by event. wire.md "Gemini replies".
import { type Part, type TokenLogprob, tokenLogprob } from "../../../core/openai/parts.ts";
import type { UsageReport } from "../../../core/openai/usage.ts";
import { textPart, withUsage } from "../../../core/providers/decoding.ts";
import type { Decoder } from "../../../core/providers/dialect.ts";
import { asArray, asObject, asString, tokenCounter } from "../../../core/schema/untrusted-json.ts";
import { finishPart, isUsableId, startedCall, throwErrorIn } from "../provider-words/index.ts";
import { type SignatureStore, sumOf } from "../turns/index.ts";
import { clientName } from "./names.ts";

/** The first candidate. The gateway never asks for a second one. */
export const candidateIn = (json: unknown) => asArray(asObject(json)["candidates"])[0];

/**
 * Whether the prompt was refused. Some proxies write a `blockReason` of null, which refuses
 * nothing.
 */
export const isBlocked = (json: unknown): boolean =>
  Boolean(asString(asObject(asObject(json)["promptFeedback"])["blockReason"]));

/**
 * `needsUsableIds`: the client's API renames calls whose ids a later provider could refuse. Such
 * calls are renamed here, so that their signatures are kept by the ids that the client sends back.
 */
export function createGeminiDecoder(signatures: SignatureStore, needsUsableIds = false): Decoder {
  let calls = 0;
  let signature: string | undefined; // may arrive in a part before its call
  let hasAnswered = false; // something other than reasoning has arrived
  let isCountStale = false; // the answer has grown since it was counted
  const ids = new Set<string>();
  const counts: Record<string, number | undefined> = {};

  function readCall({ id: statedId, name: statedName, args }: Record<string, unknown>): Part[] {
    const name = clientName(asString(statedName) ?? "");
    const stated = asString(statedId) ?? "";
    const isKept = !ids.has(stated) && (!needsUsableIds || isUsableId(stated));
    const started = startedCall(calls, name, isKept ? stated : undefined);
    ids.add(started.id);
    if (signature !== undefined) signatures.set(started.id, signature);
    signature = undefined;
    calls += 1;
    const text = JSON.stringify(args ?? {});
    return [started, { type: "tool_arguments", call: started.call, text }];
  }

  function readPart(part: Record<string, unknown>): Part[] {
    const { text, thought, functionCall, thoughtSignature, ...other } = part;
    signature = asString(thoughtSignature) ?? signature;
    if (functionCall !== undefined && functionCall !== null)
      return readCall(asObject(functionCall));
    const type = thought === true ? "reasoning" : "text";
    return textPart(type, text === undefined ? unknownPart(other) : text);
  }

  function push(json: unknown): Part[] {
    throwErrorIn(json);
    const { content, finishReason, logprobsResult } = asObject(candidateIn(json));
    const read = asArray(asObject(content)["parts"]).map(asObject).flatMap(readPart);
    const parts = withLogprobs(read, logprobsIn(asObject(logprobsResult)));
    const answers = parts.some(({ type }) => type !== "reasoning");
    hasAnswered ||= answers;
    // The last stated count does not include these tokens.
    isCountStale ||= answers && counts["candidatesTokenCount"] !== undefined;
    if (answers) counts["candidatesTokenCount"] = undefined;
    return [...parts, ...finishPart(isBlocked(json) ? "SAFETY" : finishReason)];
  }

  /**
   * Counts only grow. A count that an event leaves out keeps its last value, unless the answer has
   * grown since.
   */
  function usageIn(json: unknown): UsageReport | undefined {
    const isLast = asObject(candidateIn(json))["finishReason"] !== undefined;
    const { usageMetadata } = asObject(json);
    const stated = tokenCounter(usageMetadata);
    for (const name of COUNTS) counts[name] = stated(name) ?? counts[name];
    const isNone = (isLast && !isCountStale) || !hasAnswered;
    return usageMetadata ? readUsage(counts, isNone) : undefined;
  }

  return withUsage(usageIn, { push });
}

/** The token counts of a reply. */
const COUNTS = [
  "promptTokenCount",
  "toolUsePromptTokenCount",
  "cachedContentTokenCount",
  "thoughtsTokenCount",
  "candidatesTokenCount",
];

/** Parts of Gemini's own tools, which do not belong to the answer. */
const OWN_TOOLS = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];

/**
 * The text for a part without a text or a call, such as an image: its JSON, because it was paid for
 * and must not vanish. Undefined: nothing.
 */
function unknownPart(part: Record<string, unknown>): unknown {
  const names = Object.keys(part);
  return names.length === 0 || names.some((name) => OWN_TOOLS.includes(name)) ? undefined : part;
}

/**
 * Adds the log probabilities to the first text. Without any text, those of reasoning would reveal
 * it, so they are dropped.
 */
function withLogprobs(parts: Part[], logprobs: TokenLogprob[]): Part[] {
  if (logprobs.length === 0) return parts;
  const text = parts.find((part) => part.type === "text");
  if (text) return parts.map((part) => (part === text ? { ...text, logprobs } : part));
  const isHidden = parts.some(({ type }) => type === "reasoning");
  return isHidden ? parts : [{ type: "text", text: "", logprobs }, ...parts];
}

/**
 * Gemini counts tokens of thinking apart from the candidates', and cached tokens within the
 * prompt's. It leaves out a count of 0. `zeroIfAbsent`: whether a missing `candidatesTokenCount`
 * means 0. In the middle of an answer it means "not counted yet".
 */
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

/** No token is longer. The bytes of a longer text are left out. */
const MAX_TOKEN_CHARS = 1_000;

function logprobsIn(result: Record<string, unknown>): TokenLogprob[] {
  const topCandidates = asArray(result["topCandidates"]);
  return asArray(result["chosenCandidates"]).map((chosen, at) => {
    const top_logprobs = asArray(asObject(topCandidates[at])["candidates"]).map(openaiToken);
    return tokenLogprob({ ...openaiToken(chosen), top_logprobs });
  });
}

/** A candidate in OpenAI's form. */
function openaiToken(candidate: unknown): object {
  const { token, logProbability: logprob } = asObject(candidate);
  const text = asString(token) ?? "";
  return { token, logprob, bytes: text.length > MAX_TOKEN_CHARS ? null : [...Buffer.from(text)] };
}
