// The reply of Converse, whole or event by event.
import type { Part } from "../../../core/openai/parts.ts";
import type { UsageReport } from "../../../core/openai/usage.ts";
import { textPart, withUsage } from "../../../core/providers/decoding.ts";
import type { Decoder } from "../../../core/providers/dialect.ts";
import {
  asArray,
  asCount,
  asObject,
  asString,
  tokenCounter,
} from "../../../core/schema/untrusted-json.ts";
import { finishPart, refusal, startedCall } from "../provider-words/index.ts";
import { sumOf } from "../turns/index.ts";

/** The statuses that exceptions in a stream stand for. */
const STATUSES: Readonly<Record<string, number>> = {
  throttlingException: 429,
  validationException: 400,
  modelTimeoutException: 408,
  serviceUnavailableException: 503,
  modelStreamErrorException: 424,
  internalServerException: 500,
};

/** The message of a whole reply. Undefined: the JSON is another event. */
export const messageIn = (json: unknown): unknown => asObject(asObject(json)["output"])["message"];

export function createConverseDecoder(): Decoder {
  /** Calls by the index of their block. */
  const calls = new Map<number, number>();
  let started = 0;
  let isOver = false;

  /** A call of one of Amazon's own tools is not for the client. */
  function startCall(block: number, stated: unknown): Part[] {
    const { toolUseId, name, type } = asObject(stated);
    if (type === "server_tool_use") return [];
    const part = startedCall(started, name, toolUseId);
    started += 1;
    calls.set(block, part.call);
    return [part];
  }

  function deltaParts(block: number, stated: unknown): Part[] {
    const { toolUse, ...content } = asObject(stated);
    const call = calls.get(block);
    if (toolUse === undefined || call === undefined) return textParts(content);
    return [{ type: "tool_arguments", call, text: asString(asObject(toolUse)["input"]) ?? "" }];
  }

  /** A block of a whole reply. */
  function blockParts(stated: unknown, block: number): Part[] {
    const { toolUse, ...content } = asObject(stated);
    if (toolUse === undefined) return textParts(content);
    const parts = startCall(block, toolUse);
    const input = JSON.stringify(asObject(toolUse)["input"] ?? {});
    return [...parts, ...deltaParts(block, { toolUse: { input } })];
  }

  function push(json: unknown): Part[] {
    const event = asObject(json);
    throwExceptionIn(event);
    const message = messageIn(event);
    if (message !== undefined) {
      const parts = asArray(asObject(message)["content"]).flatMap(blockParts);
      return [...parts, ...finishPart(event["stopReason"])];
    }
    const { contentBlockStart, contentBlockDelta, messageStop, metadata } = event;
    if (metadata !== undefined) isOver = true;
    if (messageStop !== undefined) return finishPart(asObject(messageStop)["stopReason"]);
    const { start, delta, contentBlockIndex } = asObject(contentBlockStart ?? contentBlockDelta);
    const block = asCount(contentBlockIndex) ?? 0;
    const { toolUse } = asObject(start);
    return toolUse === undefined ? deltaParts(block, delta) : startCall(block, toolUse);
  }

  // The token counts follow the end of the message, and nothing follows them.
  return { ...withUsage(usageIn, { push }), ended: () => isOver };
}

/** Content that is not the answer: citations, and results of Amazon's own tools. */
const NOTES = ["citation", "toolResult"];

/**
 * A text, or reasoning. Anything else is written as its JSON: it was paid for, and must not vanish.
 */
function textParts(content: Record<string, unknown>): Part[] {
  const { text, reasoningContent, citationsContent, ...other } = content;
  const cited = asArray(asObject(citationsContent)["content"]).map(
    (part) => asObject(part)["text"],
  );
  const isUnknown = Object.keys(other).some((name) => !NOTES.includes(name));
  return [
    ...textPart("reasoning", reasoningText(reasoningContent)),
    ...[text, ...cited, isUnknown ? other : undefined].flatMap((value) => textPart("text", value)),
  ];
}

/** The text of reasoning, in the form of a stream or of a whole reply. */
function reasoningText(stated: unknown): unknown {
  const { text, reasoningText } = asObject(stated);
  return text ?? asObject(reasoningText)["text"];
}

/** `inputTokens` excludes the tokens that were read from the cache, or written to it. */
function usageIn(json: unknown): UsageReport | undefined {
  const event = asObject(json);
  const usage = asObject(event["usage"] ?? asObject(event["metadata"])["usage"]);
  const count = tokenCounter(usage);
  const completion = count("outputTokens");
  const cacheHit = count("cacheReadInputTokens") ?? 0;
  const cacheWrite = count("cacheWriteInputTokens") ?? 0;
  const forAnHour = asArray(usage["cacheDetails"]).filter((part) => asObject(part)["ttl"] === "1h");
  const cacheWrite1h = sumOf(...forAnHour.map((part) => tokenCounter(part)("inputTokens")));
  const input = count("inputTokens");
  if (input === undefined && completion === undefined) return undefined;
  const prompt = input === undefined ? undefined : sumOf(input, cacheHit, cacheWrite);
  const written = { cacheWrite, ...(cacheWrite1h && { cacheWrite1h }) };
  return { prompt, completion, cacheHit, reasoning: 0, ...(cacheWrite > 0 && written) };
}

/** Throws the ProviderError of an exception in a stream. */
function throwExceptionIn(event: Record<string, unknown>): void {
  const type = Object.keys(event).find((name) => name.endsWith("Exception"));
  if (type === undefined) return;
  const { message } = asObject(event[type]);
  throw refusal(STATUSES[type] ?? 500, { get: () => null }, { message, type });
}
