// What the decoders of all formats have in common: parts, usage, and why a reply ended in every
// provider's vocabulary (WIRE.md 2, 7.2, 7b).
import type { FinishReason, Part } from "../openai/parts.ts";
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

/**
 * `failed`: the generation broke off. `failed_on_content`: it broke off, and the request may be the
 * cause (a malformed tool call). `unfinished`: the reply goes on.
 */
type Outcome = FinishReason | "failed" | "failed_on_content" | "unfinished";

/** The providers' words for each outcome, separated by blanks. Any other word means "stop". */
const WORDS: readonly (readonly [outcome: Outcome, words: string])[] = [
  ["length", "length max_tokens model_length model_context_window_exceeded MAX_TOKENS"],
  ["tool_calls", "tool_calls function_call tool_use"],
  ["content_filter", "content_filter sensitive refusal SAFETY RECITATION BLOCKLIST SPII LANGUAGE"],
  ["content_filter", "PROHIBITED_CONTENT IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION"],
  ["content_filter", "MODEL_ARMOR"],
  ["failed", "insufficient_system_resource network_error"],
  ["failed_on_content", "abort error function_call_filter MALFORMED_FUNCTION_CALL"],
  ["failed_on_content", "UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE"],
  ["failed_on_content", "MISSING_THOUGHT_SIGNATURE"],
  ["unfinished", "FINISH_REASON_UNSPECIFIED"],
];

const OUTCOMES = new Map(
  WORDS.flatMap(([outcome, words]) => words.split(" ").map((word) => [word, outcome] as const)),
);

/**
 * The outcome that a provider's finish reason stands for. Gemini's OpenAI-compatible endpoint
 * appends its own word to a general one (`function_call_filter: MALFORMED_FUNCTION_CALL`). Then the
 * general one counts.
 */
export function finishReasonOf(word: unknown): Outcome {
  if (typeof word !== "string" || word === "") return "unfinished";
  const [general = word] = word.split(":", 1);
  return OUTCOMES.get(word) ?? OUTCOMES.get(general) ?? "stop";
}

/** The finish part, if `word` ends the reply. Throws a ProviderError if the generation failed. */
export function finishPart(word: unknown): Part[] {
  const reason = finishReasonOf(word);
  if (reason === "unfinished") return [];
  if (reason !== "failed" && reason !== "failed_on_content") return [{ type: "finish", reason }];
  throw new ProviderError("upstream_error", `the provider gave up: finish_reason ${word}`, {
    fromContent: reason === "failed_on_content",
  });
}
