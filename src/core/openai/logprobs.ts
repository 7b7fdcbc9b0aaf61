// Log probabilities of tokens. WIRE.md 2: `bytes` is never missing, and `top_logprobs` is always a
// list.
import { asArray, asCount, asObject, asString } from "../schema/untrusted-json.ts";

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

/** A token from a provider's JSON in OpenAI's form. */
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
