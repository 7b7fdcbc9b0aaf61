// The vocabulary between dialects and writers. A dialect translates a provider's reply into a list
// of parts. Two writers turn the parts into the public format, whole or as chunks, so a stream's
// concatenated deltas equal the whole reply.
import type { TokenLogprob } from "./logprobs.ts";
import type { UsageReport } from "./usage.ts";

export type Part = TextPart | ToolCallPart | ToolArgumentsPart | FinishPart | UsagePart;

/** A piece of text. */
export interface TextPart {
  readonly type: "text" | "reasoning" | "refusal";
  readonly text: string;
  /** Those of the tokens of this piece. Absent: the provider sent none. */
  readonly logprobs?: TokenLogprob[] | undefined;
}

/** The start of a tool call. */
export interface ToolCallPart {
  readonly type: "tool_call";
  /** The call's index in this reply, from 0. */
  readonly call: number;
  readonly id: string;
  readonly name: string;
}

/** A piece of the arguments of a tool call that has started. */
export interface ToolArgumentsPart {
  readonly type: "tool_arguments";
  readonly call: number;
  /** A piece of JSON as the model wrote it. It need not be valid. */
  readonly text: string;
}

/** The provider has finished the reply. */
export interface FinishPart {
  readonly type: "finish";
  readonly reason: FinishReason;
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** What the provider states of the tokens so far. */
export interface UsagePart {
  readonly type: "usage";
  readonly usage: UsageReport;
}
