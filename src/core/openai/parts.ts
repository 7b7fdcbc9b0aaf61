// The vocabulary between dialects and writers. A dialect translates a provider's reply into a list
// of parts. The writers of each client API turn the parts into its format, whole or as events, so a
// stream's concatenated deltas equal the whole reply.
import { asArray, asCount, asObject, asString } from "../schema/untrusted-json.ts";
import type { UsageReport } from "./usage.ts";

export type Part =
  | TextPart
  | ToolCallPart
  | ToolArgumentsPart
  | FinishPart
  | UsagePart
  | NativePart;

/** A piece of text. */
export interface TextPart {
  /** The answer, the thinking before it (shown only where it was asked for), or a refusal. */
  readonly type: "text" | "reasoning" | "refusal";
  /** Continues the text of the same type. It may be empty. */
  readonly text: string;
  /** Log probabilities of the tokens of this piece. Absent: the provider sent none. */
  readonly logprobs?: TokenLogprob[] | undefined;
}

/** The start of a tool call. */
export interface ToolCallPart {
  /** Comes once for each call, before its arguments. */
  readonly type: "tool_call";
  /** The call's index in this reply, from 0. */
  readonly call: number;
  /** The result of the call names it as `tool_call_id`. Made up where the provider sends none. */
  readonly id: string;
  /** The name of the function that is called. */
  readonly name: string;
}

/** A piece of the arguments of a tool call that has started. */
export interface ToolArgumentsPart {
  /** Continues the arguments of the same call. */
  readonly type: "tool_arguments";
  /** As ToolCallPart.call. */
  readonly call: number;
  /** A piece of JSON as the model wrote it. It need not be valid. */
  readonly text: string;
}

/** The provider has finished the reply. */
export interface FinishPart {
  /** May come more than once, with text or figures after it. The last one counts. */
  readonly type: "finish";
  /**
   * The provider's own word, translated to one of the contract's four (wire.md "Finish reasons").
   */
  readonly reason: FinishReason;
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** Token figures that the provider states. */
export interface UsagePart {
  /** May come more than once. Later figures take the place of earlier ones. */
  readonly type: "usage";
  /** Figures that it leaves undefined stay as stated before. */
  readonly usage: UsageReport;
}

/**
 * An event of the provider, or its whole reply, as it came: for the writer of a client API that has
 * the same format (NativeRequest). The other parts have its content too.
 */
export interface NativePart {
  /** Comes only where the decoder was given a NativeRequest of its format. */
  readonly type: "native";
  /** Parsed JSON, unchanged. */
  readonly event: object;
  /** Whether it has a piece of the reply, not only token figures or framing. */
  readonly content: boolean;
}

interface Token {
  readonly token: string;
  readonly logprob: number;
  /** The token's UTF-8 bytes. Null: the provider does not state them. */
  readonly bytes: readonly number[] | null;
}

export interface TokenLogprob extends Token {
  /** The likeliest tokens at this position. Empty where none were asked for. */
  readonly top_logprobs: readonly Token[];
}

/**
 * A token from a provider's JSON in OpenAI's form (wire.md "Log probabilities"): `bytes` is never
 * missing, and `top_logprobs` is always a list.
 */
export const tokenLogprob = (json: unknown): TokenLogprob => ({
  ...tokenFields(json),
  top_logprobs: asArray(asObject(json)["top_logprobs"]).map(tokenFields),
});

function tokenFields(json: unknown): Token {
  const { token, logprob, bytes } = asObject(json);
  return {
    token: asString(token) ?? "",
    logprob: Number.isFinite(logprob) ? Number(logprob) : -9999,
    bytes: Array.isArray(bytes) ? bytes.map((byte) => asCount(byte) ?? 0) : null,
  };
}
