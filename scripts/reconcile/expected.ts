// What may stand in the record of a request, by what the provider's ledger says of its last call:
// the rule of books.md for replies that are whole, broken or left.

import type { Asked } from "./client.ts";
import { type Counts, NO_COUNTS } from "./money.ts";
import { HELD } from "./plan.ts";
import type { Call } from "./provider.ts";

/** How the cost of a request is known. */
export type Basis = "provider" | "estimated" | "bounded" | "none";

/** What the record may say of the tokens. `most`: any completion up to that. */
export interface Expected {
  readonly basis: Basis;
  readonly counts: Counts;
  readonly most?: number;
}

export const NONE: Expected = { basis: "none", counts: NO_COUNTS };

/** The prompt alone by estimate: four bytes a token. */
const promptAlone = ({ begunBytes }: Pick<Call, "begunBytes">, { promptBytes }: Asked): Counts => ({
  ...NO_COUNTS,
  prompt: Math.max(1, Math.ceil((promptBytes + begunBytes) / 4)),
});

/**
 * An estimate: four bytes a token, and no more tokens than were asked for; what the provider stated
 * of the prompt is kept.
 */
function estimate(call: Call, asked: Asked): Counts {
  const prompt = call.early ?? promptAlone(call, asked);
  const estimated = Math.min(call.maxTokens, Math.ceil(Buffer.byteLength(call.text) / 4));
  const completion = Math.max(estimated, call.early?.completion ?? 0);
  return { ...prompt, completion, reasoning: 0 };
}

export const figuresOf = (call: Call, asked: Asked): Expected =>
  call.stated
    ? { basis: "provider", counts: call.stated }
    : { basis: "estimated", counts: estimate(call, asked) };

export const bounded = (call: Call, asked: Asked): Expected => {
  const counts = estimate(call, asked);
  return { basis: "bounded", counts, most: counts.completion };
};

/**
 * What may be billed of a call whose client left: how much of it the gateway read is unknown. The
 * prompt is billed, unless the call has failed and the client left before the next one.
 */
export function whereLeft(call: Call, asked: Asked): readonly Expected[] {
  const figures = call.stated ? [figuresOf(call, asked)] : [];
  // Figures that came before any text are complete as long as there is no text.
  const early: Expected[] = call.early ? [{ basis: "provider", counts: call.early }] : [];
  const failed = /^(status|garbage|cut|reset)/.test(call.behaviour) ? [NONE] : [];
  // Figures that came early need not have been read either.
  const least: Expected = { basis: "estimated", counts: promptAlone(call, asked) };
  return [...failed, least, ...figures, ...early, bounded(call, asked)];
}

/**
 * What may be billed of a call whose connection the network broke: how much of it came? Undefined:
 * it was sent, and has never reached the provider.
 */
export const broken = (call: Call | undefined, asked: Asked): readonly Expected[] =>
  call
    ? [NONE, ...whereLeft(call, asked)]
    : [NONE, { basis: "estimated", counts: promptAlone({ begunBytes: 0 }, asked) }];

/**
 * What else may stand in the record of the reference edition. It bills nothing of a request whose
 * client left before any of the reply came, and Node's fetch may lose what came just before a cut.
 */
function referenceOnly(status: string, call: Call, asked: Asked): readonly Expected[] {
  if (status === "cancelled") return [NONE];
  return call.behaviour.startsWith("cut")
    ? [NONE, figuresOf(call, asked), bounded(call, asked)]
    : [];
}

/** What may stand in the record of a request whose last call at the provider was this. */
export function expectations(
  status: string,
  call: Call | undefined,
  asked: Asked,
  isReference: boolean,
): readonly Expected[] {
  if (status === "interrupted" || !call) return status === "completed" ? [] : [NONE];
  if (status === "completed") return call.finished ? [figuresOf(call, asked)] : [];
  const reference = isReference ? referenceOnly(status, call, asked) : [];
  if (status === "cancelled") return [...whereLeft(call, asked), ...reference];
  if (call.finished) return reference;
  // Nothing of a held stream was shown, so that a broken one costs nothing.
  if (call.refused || asked.model === HELD) return [NONE];
  return call.orderly ? [figuresOf(call, asked), ...reference] : [NONE, bounded(call, asked)];
}
