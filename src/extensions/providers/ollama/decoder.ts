// The reply of Ollama's own API: each line of a stream, and a whole reply, has the same form.
import type { Part } from "../../../core/openai/parts.ts";
import type { UsageReport } from "../../../core/openai/usage.ts";
import { textPart, withUsage } from "../../../core/providers/decoding.ts";
import type { Decoder } from "../../../core/providers/dialect.ts";
import { asArray, asObject, tokenCounter } from "../../../core/schema/untrusted-json.ts";
import { startedCall, throwErrorIn } from "../provider-words/index.ts";

export function createOllamaDecoder(): Decoder {
  let calls = 0;
  let isDone = false;

  /** Ollama sends calls whole, and without ids. */
  function callParts(stated: unknown): Part[] {
    const { name, arguments: args } = asObject(asObject(stated)["function"]);
    const started = startedCall(calls, name);
    calls += 1;
    const text = JSON.stringify(args ?? {});
    return [started, { type: "tool_arguments", call: started.call, text }];
  }

  function push(json: unknown): Part[] {
    throwErrorIn(json);
    const { message, done, done_reason } = asObject(json);
    const { content, thinking, tool_calls } = asObject(message);
    const parts = [
      ...textPart("reasoning", thinking),
      ...textPart("text", content),
      ...asArray(tool_calls).flatMap(callParts),
    ];
    if (done !== true) return parts;
    isDone = true;
    return [...parts, { type: "finish", reason: done_reason === "length" ? "length" : "stop" }];
  }

  return { ...withUsage(usageIn, { push }), ended: () => isDone };
}

/** The token counts of the last line. Earlier versions left out the count of a cached prompt. */
function usageIn(json: unknown): UsageReport | undefined {
  const count = tokenCounter(json);
  const prompt = count("prompt_eval_count");
  const completion = count("eval_count");
  if (prompt === undefined && completion === undefined) return undefined;
  return { prompt, completion, cacheHit: count("prompt_eval_cached_count") ?? 0, reasoning: 0 };
}
