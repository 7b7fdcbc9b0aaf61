// What GET /v1/models states about a name: the room in the context window, and what the models
// behind the name can do.
import type { Model } from "../../../core/routing/model.ts";

/** The fields of the wire. */
export interface Capabilities {
  /**
   * Tokens. Of an alias the smallest that is known of its candidates, so that a prompt has room
   * whichever serves. Null: none is known.
   */
  readonly context_length: number | null;
  /** The most tokens of a reply. Of an alias, and null, as above. */
  readonly max_output_tokens: number | null;
  /**
   * Of an alias what at least one candidate supports: a request that requires it goes to such a
   * candidate.
   */
  readonly capabilities: readonly string[];
}

export function capabilitiesOf(candidates: readonly Model[]): Capabilities {
  return {
    context_length: smallest(candidates.map(({ contextTokens }) => contextTokens)),
    max_output_tokens: smallest(candidates.map(({ traits }) => traits.max_output_tokens)),
    capabilities: [...new Set(candidates.flatMap(supportedBy))].sort(),
  };
}

function smallest(figures: readonly (number | undefined)[]): number | null {
  const known = figures.filter((figure) => figure !== undefined);
  return known.length === 0 ? null : Math.min(...known);
}

function supportedBy({ traits, reasoning }: Model): readonly string[] {
  const hasLogprobs = !traits.think_tags && !traits.omit.includes("logprobs");
  const supported = traits.supports.filter((name) => name !== "logprobs" || hasLogprobs);
  return reasoning ? [...supported, "reasoning"] : supported;
}
