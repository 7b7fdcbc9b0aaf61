// Which figures may be billed for each call in the provider's ledger: the rules of books.md for
// replies that are complete, broken off or left by their client, and the rule of recovery.md for
// streams that were continued.

import type { ClientRequest } from "./client.ts";
import { type Counts, NO_COUNTS } from "./money.ts";
import { CONTINUED, HELD } from "./plan.ts";
import { FAILING, type Call } from "./provider.ts";

/** Where the figures come from. "bounded": an estimate whose completion may also be smaller. */
export type Basis = "provider" | "estimated" | "bounded" | "none";

/** Figures that a record may state for a call. */
export interface BillingOption {
  readonly basis: Basis;
  readonly counts: Counts;
}

/** A call, and the figures that a record may state for it. */
export interface BillableCall {
  /** Absent: the call never reached the provider, so any model may have been called. */
  readonly model?: string;
  readonly options: readonly BillingOption[];
}

const NOTHING: BillingOption = { basis: "none", counts: NO_COUNTS };

/** An estimate of the prompt alone: four bytes a token. */
const promptAlone = (prefillBytes: number, { promptBytes }: ClientRequest): Counts => ({
  ...NO_COUNTS,
  prompt: Math.max(1, Math.ceil((promptBytes + prefillBytes) / 4)),
});

/**
 * An estimate: four bytes a token, and no more tokens than were requested. Figures of the prompt
 * that the provider stated before the text are kept.
 */
function estimate(call: Call, request: ClientRequest): Counts {
  const prompt = call.early ?? promptAlone(call.prefillBytes, request);
  const estimated = Math.min(call.maxTokens, Math.ceil(Buffer.byteLength(call.text) / 4));
  const completion = Math.max(estimated, call.early?.completion ?? 0);
  return { ...prompt, completion, reasoning: 0 };
}

/** The provider's figures, or an estimate if it stated none. */
const figuresOf = (call: Call, request: ClientRequest): BillingOption =>
  call.stated
    ? { basis: "provider", counts: call.stated }
    : { basis: "estimated", counts: estimate(call, request) };

const bounded = (call: Call, request: ClientRequest): BillingOption => ({
  basis: "bounded",
  counts: estimate(call, request),
});

/**
 * The options if it is unknown how much of the reply the gateway read, because the client left. At
 * least the prompt is billed, unless the call failed and the client left before the next one.
 */
function optionsIfLeft(call: Call, request: ClientRequest): readonly BillingOption[] {
  const failed = FAILING.includes(call.behaviour) ? [NOTHING] : [];
  const promptOnly = promptAlone(call.prefillBytes, request);
  const figures = call.stated ? [figuresOf(call, request)] : [];
  // Figures that come before the text are complete as long as no text was read.
  const early: BillingOption[] = call.early ? [{ basis: "provider", counts: call.early }] : [];
  return [
    ...failed,
    { basis: "estimated", counts: promptOnly },
    ...figures,
    ...early,
    bounded(call, request),
  ];
}

/** The options for the last call of a request whose stream is not continued. */
function optionsOfLast(status: string, call: Call, request: ClientRequest) {
  if (status === "completed") return call.finished ? [figuresOf(call, request)] : [];
  if (status === "cancelled") return optionsIfLeft(call, request);
  if (call.finished) return [];
  // No client saw anything of a held stream, so a broken one is free.
  if (call.text === "" || request.model === HELD) return [NOTHING];
  return call.orderly ? [figuresOf(call, request)] : [NOTHING, bounded(call, request)];
}

/**
 * The options for a call whose stream is continued when it breaks. What the client saw of it is
 * billed. A continuation that did not fit is free, and the provider cannot know whether it fitted.
 * `status`: undefined before the last call. `isFirst`: no earlier call wrote text.
 */
function optionsOfContinued(
  status: string | undefined,
  call: Call,
  request: ClientRequest,
  isFirst: boolean,
): readonly BillingOption[] {
  if (status === "completed") return call.finished ? [figuresOf(call, request)] : [];
  const left = status === "cancelled" ? optionsIfLeft(call, request) : [];
  if (call.text === "" || (call.finished && left.length === 0)) return [...left, NOTHING];
  const figures = call.orderly ? figuresOf(call, request) : bounded(call, request);
  // The client certainly saw the first text.
  const isShown = isFirst && call.orderly && !call.finished;
  return [...left, figures, ...(isShown ? [] : [NOTHING])];
}

/**
 * Whether it is unknown how much of a call was read: the network broke its connection, or the
 * reference edition handled it. That edition bills nothing if the client left before any of the
 * reply came, and its fetch may lose what came just before the provider broke off.
 */
function isReadUnknown(status: string, call: Call, isReference: boolean): boolean {
  if (call.interruptions.length > 0) return true;
  const isBroken = call.behaviour === "cut" || call.behaviour === "reset";
  return isReference && (status === "cancelled" || (status === "failed" && isBroken));
}

/** The calls of a request that ended with this status, with the options for each. */
export function billableCallsOf(
  status: string,
  calls: readonly Call[],
  request: ClientRequest,
  isReference: boolean,
): readonly BillableCall[] {
  return calls.map((call, index) => {
    const isFirst = calls.slice(0, index).every(({ text }) => text === "");
    const isLast = index === calls.length - 1;
    const { model } = call;
    const isContinued = request.model === CONTINUED && request.stream;
    if (status === "interrupted" || (!isLast && !isContinued)) return { model, options: [NOTHING] };
    const options = isContinued
      ? optionsOfContinued(isLast ? status : undefined, call, request, isFirst)
      : optionsOfLast(status, call, request);
    if (!isReadUnknown(status, call, isReference)) return { model, options };
    return { model, options: [...options, NOTHING, ...optionsIfLeft(call, request)] };
  });
}

/** A call that the gateway sent and that never reached the provider. */
export const lostCall = (request: ClientRequest): BillableCall => ({
  options: [NOTHING, { basis: "estimated", counts: promptAlone(0, request) }],
});
