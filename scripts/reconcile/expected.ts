// What may be billed of each call that the provider's ledger has: the rules of books.md for replies
// that are whole, broken or left, and that of recovery.md for streams that were continued.

import type { Asked } from "./client.ts";
import { type Counts, NO_COUNTS } from "./money.ts";
import { CONTINUED, HELD } from "./plan.ts";
import { FAILING, type Call } from "./provider.ts";

/** How what is billed is known. "bounded": any completion up to that of an estimate. */
export type Basis = "provider" | "estimated" | "bounded" | "none";

/** What the record may say of the tokens of a call. */
export interface Way {
  readonly basis: Basis;
  readonly counts: Counts;
}

/** A call, and what may be billed of it. */
export interface Step {
  /** Absent: a call that has never reached the provider, of any model. */
  readonly model?: string;
  readonly ways: readonly Way[];
}

const NOTHING: Way = { basis: "none", counts: NO_COUNTS };

/** The prompt alone by estimate: four bytes a token. */
const promptAlone = (begunBytes: number, { promptBytes }: Asked): Counts => ({
  ...NO_COUNTS,
  prompt: Math.max(1, Math.ceil((promptBytes + begunBytes) / 4)),
});

/**
 * An estimate: four bytes a token, and no more tokens than were asked for; what the provider stated
 * of the prompt is kept.
 */
function estimate(call: Call, asked: Asked): Counts {
  const prompt = call.early ?? promptAlone(call.begunBytes, asked);
  const estimated = Math.min(call.maxTokens, Math.ceil(Buffer.byteLength(call.text) / 4));
  const completion = Math.max(estimated, call.early?.completion ?? 0);
  return { ...prompt, completion, reasoning: 0 };
}

const figuresOf = (call: Call, asked: Asked): Way =>
  call.stated
    ? { basis: "provider", counts: call.stated }
    : { basis: "estimated", counts: estimate(call, asked) };

function bounded(call: Call, asked: Asked): Way {
  return { basis: "bounded", counts: estimate(call, asked) };
}

/**
 * What may be billed of a call whose client left: how much of it the gateway read is unknown. The
 * prompt is billed, unless the call has failed and the client left before the next one.
 */
function whereLeft(call: Call, asked: Asked): readonly Way[] {
  const figures = call.stated ? [figuresOf(call, asked)] : [];
  // Figures that came before any text are complete as long as there is no text.
  const early: Way[] = call.early ? [{ basis: "provider", counts: call.early }] : [];
  const failed = FAILING.includes(call.behaviour) ? [NOTHING] : [];
  // Figures that came early need not have been read either.
  const least: Way = { basis: "estimated", counts: promptAlone(call.begunBytes, asked) };
  return [...failed, least, ...figures, ...early, bounded(call, asked)];
}

/** What may be billed of the last call of a request that was not continued. */
function ofLast(status: string, call: Call, asked: Asked): readonly Way[] {
  if (status === "completed") return call.finished ? [figuresOf(call, asked)] : [];
  if (status === "cancelled") return whereLeft(call, asked);
  if (call.finished) return [];
  // Nothing of a held stream was shown, so that a broken one costs nothing.
  if (call.text === "" || asked.model === HELD) return [NOTHING];
  return call.orderly ? [figuresOf(call, asked)] : [NOTHING, bounded(call, asked)];
}

/**
 * What may be billed of a call whose stream is continued when it breaks: it is if any of it was
 * shown. A continuation that could not be joined is not, and the provider cannot know whether it was.
 * `status`: undefined before the last call. `isFirst`: no call before has written any text, be it a
 * blank that no continuation repeats.
 */
function ofContinued(status: string | undefined, call: Call, asked: Asked, isFirst: boolean) {
  if (status === "completed") return call.finished ? [figuresOf(call, asked)] : [];
  const left = status === "cancelled" ? whereLeft(call, asked) : [];
  if (call.text === "" || (call.finished && left.length === 0)) return [...left, NOTHING];
  const figures = call.orderly ? [figuresOf(call, asked)] : [bounded(call, asked)];
  // The first text was shown for certain. That of a continuation may have been refused.
  const isShown = isFirst && call.orderly && !call.finished;
  return [...left, ...figures, ...(isShown ? [] : [NOTHING])];
}

/**
 * Whether it is unknown how much of a call was read: the network broke its connection; or it is the
 * reference edition, which bills nothing of what its client left before any of the reply came, and
 * whose fetch may lose what came just before the provider broke off.
 */
function isUnread(status: string, call: Call, isReference: boolean): boolean {
  if (call.troubles.length > 0) return true;
  const isBroken = call.behaviour === "cut" || call.behaviour === "reset";
  return isReference && (status === "cancelled" || (status === "failed" && isBroken));
}

/** What may be billed of each call of a request that ended with this status. */
export function stepsOf(
  status: string,
  calls: readonly Call[],
  asked: Asked,
  isReference: boolean,
): readonly Step[] {
  return calls.map((call, index) => {
    const isFirst = calls.slice(0, index).every(({ text }) => text === "");
    const isLast = index === calls.length - 1;
    const { model } = call;
    const isContinued = asked.model === CONTINUED && asked.stream;
    if (status === "interrupted" || (!isLast && !isContinued)) return { model, ways: [NOTHING] };
    const ways = isContinued
      ? ofContinued(isLast ? status : undefined, call, asked, isFirst)
      : ofLast(status, call, asked);
    const isLoose = isUnread(status, call, isReference);
    return { model, ways: isLoose ? [...ways, NOTHING, ...whereLeft(call, asked)] : ways };
  });
}

/** A call that was sent, and has never reached the provider. */
export const lostStep = (asked: Asked): Step => ({
  ways: [NOTHING, { basis: "estimated", counts: promptAlone(0, asked) }],
});
