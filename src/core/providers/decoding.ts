// Parts of decoders that all formats share: whole replies, texts and usage.
import { tokenLogprob, type Part, type TextPart } from "../openai/parts.ts";
import type { NativeRequest } from "../openai/native-request.ts";
import type { UsageReport } from "../openai/usage.ts";
import type { Decoder, Dialect, Target } from "./dialect.ts";
import { asArray, asString } from "../schema/untrusted-json.ts";
import { ProviderError } from "./provider-error.ts";

/**
 * The parts of a whole reply. It is finished even if it has no finish reason. Throws a
 * ProviderError if the JSON is an error, or no reply.
 */
export function wholeReply(
  { decoder, isReply }: Dialect,
  json: unknown,
  target: Target,
  native?: NativeRequest,
): Part[] {
  const parts = decoder(target, native).push(json);
  // A provider that counts tokens has worked on the request: this generation failed, not the
  // provider.
  const fromContent = parts.some(({ type }) => type === "usage");
  if (!isReply(json))
    throw new ProviderError("upstream_error", "the response is not a completion", { fromContent });
  const isFinished = parts.some(({ type }) => type === "finish");
  return isFinished ? parts : [...parts, { type: "finish", reason: "stop" }];
}

/**
 * A decoder that adds the usage of each event as its last part. If the event is an error, the error
 * carries the usage.
 */
export function withUsage(
  usageIn: (event: unknown) => UsageReport | undefined,
  decoder: Decoder,
): Decoder {
  return {
    ...decoder,
    push(event) {
      try {
        const parts = decoder.push(event);
        const usage = usageIn(event);
        return usage ? [...parts, { type: "usage", usage }] : parts;
      } catch (error) {
        if (error instanceof ProviderError) error.usage = usageIn(event);
        throw error;
      }
    },
  };
}

/** A provider's value as a text. Any other value becomes its JSON, so that nothing is lost. */
export const textOf = (json: unknown): string => asString(json ?? "") ?? JSON.stringify(json);

/**
 * A part with this text and these log probabilities, both as the provider states them. None if
 * there are neither.
 */
export function textPart(type: TextPart["type"], stated: unknown, tokens?: unknown): TextPart[] {
  const text = textOf(stated);
  const logprobs = asArray(tokens).map(tokenLogprob);
  if (logprobs.length > 0) return [{ type, text, logprobs }];
  return text === "" ? [] : [{ type, text }];
}

/**
 * A provider that calls a tool must name it. The generation follows from the request, so the
 * breaker does not count it.
 */
export const namelessCall = (): ProviderError =>
  new ProviderError("upstream_error", "a tool call without a name", { fromContent: true });
