// Why a reply ended, in every provider's vocabulary. wire.md "Finish reasons".
import type { FinishReason, Part } from "../../../core/openai/parts.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";

/**
 * `failed`: the generation broke off. `failed_on_content`: it broke off, and the request may be the
 * cause (a malformed tool call). `unfinished`: the reply is not over.
 */
type Outcome = FinishReason | "failed" | "failed_on_content" | "unfinished";

/** The providers' words for each outcome, separated by blanks. Any other word means "stop". */
const WORDS: readonly (readonly [outcome: Outcome, words: string])[] = [
  ["length", "length max_tokens model_length model_context_window_exceeded MAX_TOKENS"],
  // Gemini 4 could go on in a further request, with a token that the gateway does not keep.
  ["length", "CONTINUATION"],
  ["tool_calls", "tool_calls function_call tool_use"],
  ["content_filter", "content_filter sensitive refusal SAFETY RECITATION BLOCKLIST SPII LANGUAGE"],
  ["content_filter", "PROHIBITED_CONTENT IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION"],
  ["content_filter", "MODEL_ARMOR ESCALATION guardrail_intervened content_filtered"],
  ["failed", "insufficient_system_resource network_error"],
  ["failed_on_content", "abort error function_call_filter MALFORMED_FUNCTION_CALL"],
  ["failed_on_content", "UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE"],
  ["failed_on_content", "MISSING_THOUGHT_SIGNATURE malformed_tool_use malformed_model_output"],
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
  // The whole word is the provider's text: it may be long, or quote secrets.
  const [general] = String(word).split(":", 1);
  throw new ProviderError("upstream_error", `the provider gave up: finish_reason ${general}`, {
    fromContent: reason === "failed_on_content",
    providerMessage: `finish_reason ${word}`,
  });
}
