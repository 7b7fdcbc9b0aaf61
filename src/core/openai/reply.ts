// What both writers of a reply have in common: the head, the options, and the contract.
import { randomHex } from "../ids.ts";
import type { FinishReason, Part } from "./parts.ts";
import type { Usage } from "./usage.ts";

/** The fields that a whole reply, or each of its chunks, begins with. */
export interface ReplyHead {
  /** Always the gateway's own, never the provider's. */
  readonly id: string;
  /** In seconds since 1970. */
  readonly created: number;
  /** The canonical name of the model that serves. */
  readonly model: string;
  readonly system_fingerprint: string;
}

/** `now`: the wall clock, in milliseconds. */
export const replyHead = (model: string, fingerprint: string, now: number): ReplyHead => ({
  id: `chatcmpl-${randomHex(16)}`,
  created: Math.floor(now / 1000),
  model,
  system_fingerprint: fingerprint,
});

/** What the client asked for. */
export interface ReplyOptions {
  /** Whether reasoning is shown. Its tokens are in the usage in any case (WIRE D5). */
  readonly showReasoning: boolean;
  readonly showLogprobs: boolean;
  /** Whether a stream ends with a usage chunk (WIRE D7). A whole reply always has its usage. */
  readonly includeUsage: boolean;
}

/** Turns parts into the public format. */
export interface ReplyWriter {
  /** Returns the text that can be sent at once, "" if there is none. */
  add(parts: readonly Part[]): string;
  /**
   * Returns the rest of the reply, once the provider has finished. The reason is held back until
   * then: some providers send it more than once, or text after it, and a client must see it last.
   */
  end(usage: Usage, reason: FinishReason): string;
}

/**
 * The field of a message or a delta that has the texts of each kind. Their log probabilities have
 * the same name.
 */
export const TEXT_FIELDS = {
  text: "content",
  reasoning: "reasoning_content",
  refusal: "refusal",
} as const;
