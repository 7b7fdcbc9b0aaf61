// The reply of a provider that speaks OpenAI's format as it is documented, event by event.
import type { FinishReason, Part } from "../../openai/parts.ts";
import type { UsageReport } from "../../openai/usage.ts";
import { asArray, asCount, asObject, asString, tokenCounter } from "../../schema/untrusted-json.ts";
import { namelessCall, textPart, withUsage } from "../decoding.ts";
import type { Decoder } from "../dialect.ts";
import { refusal } from "./refusal.ts";

/** The first choice. The gateway never asks for a second one. */
export const choiceIn = (json: unknown) => asObject(asArray(asObject(json)["choices"])[0]);

/** Any other word means "stop". */
const REASONS = new Map<unknown, FinishReason>([
  ["length", "length"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["content_filter", "content_filter"],
]);

export function createOpenaiDecoder(): Decoder {
  /** The indexes of tool calls in the reply, by those that the provider states. */
  const calls = new Map<number, number>();

  function callParts(fragment: unknown, at: number): Part[] {
    const { index, id, function: called } = asObject(fragment);
    const { name, arguments: text } = asObject(called);
    const stated = asCount(index) ?? at; // a whole reply has no indexes
    const parts: Part[] = [];
    if (!calls.has(stated)) {
      const statedName = asString(name);
      if (!statedName) throw namelessCall();
      calls.set(stated, calls.size);
      const call = calls.get(stated)!;
      parts.push({ type: "tool_call", call, id: asString(id) ?? `call_${call}`, name: statedName });
    }
    if (typeof text === "string" && text !== "")
      parts.push({ type: "tool_arguments", call: calls.get(stated)!, text });
    return parts;
  }

  function push(json: unknown): Part[] {
    const event = asObject(json);
    throwErrorIn(event);
    const choice = choiceIn(event);
    const message = asObject(choice["delta"] ?? choice["message"]);
    const logprobs = asObject(choice["logprobs"]);
    return [
      ...textPart("reasoning", message["reasoning_content"], logprobs["reasoning_content"]),
      ...textPart("text", message["content"], logprobs["content"]),
      ...textPart("refusal", message["refusal"], logprobs["refusal"]),
      ...asArray(message["tool_calls"]).flatMap(callParts),
      ...finishPart(choice["finish_reason"]),
    ];
  }

  return withUsage(usageIn, { push });
}

function finishPart(word: unknown): Part[] {
  if (!asString(word)) return [];
  return [{ type: "finish", reason: REASONS.get(word) ?? "stop" }];
}

/** Throws the error of an event that is one. Its code may be an HTTP status. */
function throwErrorIn(event: Record<string, unknown>): void {
  const { error } = event;
  if (error === undefined || error === null) return;
  throw refusal(asCount(asObject(error)["code"]) ?? 500, { get: () => null }, event);
}

/** Undefined: the event states none. */
function usageIn(event: unknown): UsageReport | undefined {
  const usage = asObject(asObject(event)["usage"]);
  const count = tokenCounter(usage);
  const prompt = count("prompt_tokens");
  const completion = count("completion_tokens");
  if (prompt === undefined && completion === undefined) return undefined;
  const inPrompt = tokenCounter(usage["prompt_tokens_details"]);
  const reasoning = tokenCounter(usage["completion_tokens_details"])("reasoning_tokens");
  const cacheHit = count("prompt_cache_hit_tokens") ?? inPrompt("cached_tokens") ?? 0;
  const cacheWrite = inPrompt("cache_write_tokens");
  const report = { prompt, completion, cacheHit, reasoning: reasoning ?? 0 };
  return cacheWrite ? { ...report, cacheWrite } : report;
}
