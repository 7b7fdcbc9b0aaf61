// The reply of a provider that speaks OpenAI's format as it is documented, event by event.
import type { FinishReason, Part } from "../../openai/parts.ts";
import type { UsageReport } from "../../openai/usage.ts";
import { asArray, asCount, asObject, asString, tokenCounter } from "../../schema/untrusted-json.ts";
import { namelessCall, textOf, textPart, withUsage } from "../decoding.ts";
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
    const name = asString(asObject(called)["name"]);
    const text = textOf(asObject(called)["arguments"]);
    const stated = asCount(index) ?? at; // a whole reply has no indexes
    const parts: Part[] = [];
    if (!calls.has(stated)) {
      if (!name) throw namelessCall();
      calls.set(stated, calls.size);
      const call = calls.get(stated)!;
      parts.push({ type: "tool_call", call, id: asString(id) ?? `call_${call}`, name });
    }
    if (text !== "") parts.push({ type: "tool_arguments", call: calls.get(stated)!, text });
    return parts;
  }

  function push(json: unknown): Part[] {
    const event = asObject(json);
    const { error } = event;
    // The code of an error inside a 200 may be an HTTP status.
    if (error) throw refusal(asCount(asObject(error)["code"]) ?? 500, { get: () => null }, event);
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

const finishPart = (word: unknown): Part[] =>
  asString(word) ? [{ type: "finish", reason: REASONS.get(word) ?? "stop" }] : [];

/** Undefined: the event states none. */
function usageIn(event: unknown): UsageReport | undefined {
  const usage = asObject(asObject(event)["usage"]);
  const count = tokenCounter(usage);
  const prompt = count("prompt_tokens");
  const completion = count("completion_tokens");
  if (prompt === undefined && completion === undefined) return undefined;
  const inPrompt = tokenCounter(usage["prompt_tokens_details"]);
  const reasoning = tokenCounter(usage["completion_tokens_details"])("reasoning_tokens") ?? 0;
  const cacheHit = count("prompt_cache_hit_tokens") ?? inPrompt("cached_tokens") ?? 0;
  const cacheWrite = inPrompt("cache_write_tokens");
  return { prompt, completion, cacheHit, reasoning, ...(cacheWrite && { cacheWrite }) };
}
