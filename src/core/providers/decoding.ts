// What the decoders of all formats have in common.
import type { Part } from "../openai/parts.ts";
import type { UsageReport } from "../openai/usage.ts";
import type { Decoder, Dialect, Target } from "./dialect.ts";
import { ProviderError } from "./provider-error.ts";

/**
 * The parts of a whole reply. It is finished, whether or not it says so. Throws a ProviderError if
 * the JSON is an error, or no reply.
 */
export function wholeReply({ decoder, isReply }: Dialect, json: unknown, target: Target): Part[] {
  const parts = decoder(target).push(json);
  // A provider that counts tokens has worked on this request: its generation failed, and not the
  // provider.
  const fromContent = parts.some(({ type }) => type === "usage");
  if (!isReply(json))
    throw new ProviderError("upstream_error", "the answer is no reply", { fromContent });
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

/** A part with this text. None if it is empty or no text. */
export const textPart = (type: "text" | "reasoning", text: unknown): Part[] =>
  typeof text === "string" && text !== "" ? [{ type, text }] : [];

/** A provider that calls a tool must name it. What it generated follows from the request. */
export const namelessCall = (): ProviderError =>
  new ProviderError("upstream_error", "a tool call without a name", { fromContent: true });
