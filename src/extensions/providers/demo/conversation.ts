// The demo model's prompt and its answer.
import type { FinishReason } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";

/**
 * The request that the gateway sends. Most of its fields are as the check of the client's request
 * left them.
 */
export type DemoRequest = Omit<ChatRequest, "thinking"> & {
  max_tokens?: number;
  thinking?: { type: string };
};

/** Its answer, as tokens. */
export interface DemoReply {
  /** The tokens of the reasoning. */
  readonly reasoning: readonly string[];
  /** The tokens of the text or, if there is a call, of its arguments. */
  readonly answer: readonly string[];
  /** Undefined: the answer is a text. */
  readonly call: { readonly id: string; readonly name: string } | undefined;
  /** "length" where max_tokens cut it off, whatever it was to be. */
  readonly finish: FinishReason;
}
