// Recovery "continue": when a stream breaks after nothing but text was shown, another attempt goes
// on with it. DESIGN.md "Commit point". The states of a request:
//
//   streaming ──finished──────────────────────────────> completed
//       │ broke
//       v
//   may it be joined? ──no──> the error that broke it
//       │ yes
//       v
//   joining ──nobody goes on from the text──> the error that broke it
//       │ goes on
//       v
//   streaming (at most max_recoveries times)
import { ClientGone } from "../../core/http/cancel.ts";
import type { Part } from "../../core/openai/parts.ts";
import type { ChatRequest } from "../../core/openai/request.ts";
import { ProviderError } from "../../core/providers/provider-error.ts";
import { attempt as plainAttempt, type RequestContext } from "../../core/routing/attempt.ts";
import { errorFields } from "../../core/routing/failure.ts";
import { CompletionFailed, type Complete } from "../../core/routing/fallback.ts";
import type { Model } from "../../core/routing/model.ts";
import { beginningOf, joinContinued, joinRepeated, type Joint } from "./joint.ts";
import { progressOf, type Leg } from "./legs.ts";
import { marked, takesBeginning, withBeginning } from "./prefill.ts";
import { watchShown, type Shown } from "./shown.ts";
import { asked, spoken } from "./spoken.ts";

type Attempt = typeof plainAttempt;

/** A request as it is to be completed. */
export interface RecoverableRequest {
  readonly chat: ChatRequest;
  readonly candidates: readonly Model[];
  readonly shown: Shown;
  readonly context: RequestContext;
}

/** Who is asked for what. */
interface Asking {
  readonly chat: ChatRequest;
  readonly candidates: readonly Model[];
  /** Absent: nothing takes the place of an attempt. */
  readonly attempt?: Attempt | undefined;
}

/** How the candidates are asked to go on with a stream. */
interface Way extends Asking {
  /** The word for it in the books, if it succeeds. */
  readonly recovery: "continued" | "repeated";
}

/** Completes a stream, and goes on with it at most `maxRecoveries` times after it broke. */
export const recovering =
  (complete: Complete, maxRecoveries: number): Complete =>
  async (chat, candidates, deliver, context) => {
    const request = { chat, candidates, shown: watchShown(chat, deliver), context };
    const { attempt } = context;
    const first = await ask(complete, { chat, candidates, attempt }, request);
    if (!first.failure) return first.progress;
    const way = maxRecoveries > 0 ? wayOn(request, [first]) : undefined;
    // Where there is no way the failure is told as the end of the reply.
    if (!way) throw first.failure;
    report(first.failure, context);
    return goOn(complete, request, { legs: [first], way, maxRecoveries });
  };

interface Going {
  readonly legs: readonly Leg[];
  readonly way: Way;
  readonly maxRecoveries: number;
}

/** Goes on with a stream that broke. Throws what broke it first if nobody can. */
async function goOn(
  complete: Complete,
  request: RecoverableRequest,
  { legs, way, maxRecoveries }: Going,
): ReturnType<Complete> {
  const leg = await ask(complete, way, request);
  const all = [...legs, leg];
  if (!leg.failure) return progressOf(all, way.recovery);
  report(leg.failure, request.context);
  const next = all.length <= maxRecoveries ? wayOn(request, all) : undefined;
  if (!next) throw givenUp(all, way, request.context);
  return goOn(complete, request, { legs: all, way: next, maxRecoveries });
}

/** Asks the candidates once. Throws only what is no end of the request. */
async function ask(complete: Complete, asking: Asking, request: RecoverableRequest): Promise<Leg> {
  const { shown, context } = request;
  const before = shown.size();
  const { chat, candidates, attempt } = asking;
  const hooks = attempt ? { ...context, attempt } : context;
  try {
    const progress = await complete(chat, candidates, shown.deliver, hooks);
    return { progress, isBilled: true };
  } catch (failure) {
    if (!(failure instanceof CompletionFailed)) throw failure;
    // What a client that left has not seen is billed as it is without recovery.
    const { progress } = failure;
    const isLeft = context.cancel.aborted && progress.reading.source !== "none";
    return { progress, isBilled: shown.size() > before || isLeft, failure };
  }
}

/**
 * The failure of a stream with which nobody could go on: what broke it first, as that of the model
 * whose stream it was. `way`: how it was gone on with last. A client that left in the middle of it
 * has had a reply that was gone on with.
 */
function givenUp(legs: readonly Leg[], way: Way, { cancel }: RequestContext): CompletionFailed {
  const first = legs[0]!;
  const last = legs.at(-1)!;
  if (!cancel.aborted) {
    const { model } = first.progress;
    return new CompletionFailed({ ...progressOf(legs, "failed"), model }, first.failure!.error);
  }
  const wentOn = last.progress.begunAt !== undefined && cancel.reason instanceof ClientGone;
  const progress = progressOf(legs, wentOn ? way.recovery : "failed");
  return new CompletionFailed(progress, last.failure!.error);
}

/** Tells the operator what broke a stream that had begun, or a stream that went on with it. */
function report({ progress, error }: CompletionFailed, context: RequestContext): void {
  if (progress.begunAt === undefined || context.cancel.aborted) return;
  if (error instanceof ProviderError)
    context.report("reply_broken", progress.model, errorFields(error));
}

/** Whether a stream broke by its provider's doing, after it had begun. */
const isBreak = ({ progress, error }: CompletionFailed, { cancel }: RequestContext): boolean =>
  progress.begunAt !== undefined &&
  !cancel.aborted &&
  error instanceof ProviderError &&
  error.countsForBreaker;

/**
 * Whether another attempt can go on with what was shown: nothing but text, and of the kind that can
 * be written on from any place. Where nothing was shown, every request can be asked again.
 */
const isJoinable = ({ chat, shown }: RecoverableRequest): boolean =>
  !shown.hasOther() && (shown.text() === "" || (!chat.logprobs && !chat.response_format));

/**
 * Whether a model can be asked to go on: the request does not end in the beginning of an answer
 * itself, which some servers would take for another turn.
 */
const canContinue = ({ messages }: ChatRequest): boolean => messages.at(-1)?.role !== "assistant";

/**
 * The way on after the last of these legs. The model whose stream broke is asked first. Undefined:
 * there is none.
 */
function wayOn(request: RecoverableRequest, legs: readonly Leg[]): Way | undefined {
  const { chat, candidates, shown, context } = request;
  const { failure, progress } = legs.at(-1)!;
  if (!failure || !isBreak(failure, context) || !isJoinable(request)) return undefined;
  const broken = progress.model;
  const models = [broken, ...candidates.filter((model) => model !== broken)];
  const text = shown.text();
  const able = canContinue(chat) ? models.filter(takesBeginning) : [];
  const hasWords = beginningOf(text) !== "";
  if (hasWords && able.length > 0) return wayToContinue(request, legs, able);
  // Another model does not say the same words, but it may begin with the same line break.
  return wayToRepeat(request, hasWords ? [broken] : models);
}

/** These models are asked to go on from the text that was shown. */
function wayToContinue(
  { chat, shown, context: { attempt = plainAttempt } }: RecoverableRequest,
  legs: readonly Leg[],
  candidates: readonly Model[],
): Way {
  const text = shown.text();
  const used = legs
    .filter(({ isBilled }) => isBilled)
    .reduce((sum, leg) => sum + leg.progress.reading.usage.completion_tokens, 0);
  return {
    recovery: "continued",
    chat: withBeginning(chat, beginningOf(text), used),
    candidates,
    attempt: late(continuing(joining(attempt, () => joinContinued(text)))),
  };
}

/** These models are asked from the start. What was shown must come again. */
function wayToRepeat(
  { chat, shown, context: { attempt = plainAttempt } }: RecoverableRequest,
  candidates: readonly Model[],
): Way {
  const text = shown.text();
  const repeating = text === "" ? attempt : joining(attempt, () => joinRepeated(text));
  return { recovery: "repeated", chat, candidates, attempt: late(repeating) };
}

/** The same attempt, which has only what is left of the request's time. */
const late =
  (attempt: Attempt): Attempt =>
  async (chat, serving, deliver, options) => {
    try {
      await attempt(chat, serving, deliver, options);
    } catch (error) {
      throw spoken(error, options.cancel);
    }
  };

/** The same attempt, which asks the model to go on as the model wants it. */
const continuing =
  (attempt: Attempt): Attempt =>
  async (chat, serving, deliver, options) => {
    const { chat: markedChat, model } = marked(chat, serving.model);
    let delivered = false;
    const take = (parts: readonly Part[]): Promise<unknown> | undefined => {
      delivered = true;
      return deliver(parts);
    };
    try {
      await attempt(markedChat, { ...serving, model }, take, options);
    } catch (error) {
      throw delivered ? error : asked(error);
    }
  };

/** The same attempt, of which only what is new is delivered. */
const joining =
  (attempt: Attempt, createJoint: () => Joint): Attempt =>
  async (chat, serving, deliver, options) => {
    const joint = createJoint();
    let isCut = false;
    let refusal: unknown;
    const take = (parts: readonly Part[]): Promise<unknown> | undefined => {
      isCut ||= parts.some((part) => part.type === "finish" && part.reason !== "stop");
      try {
        const joined = joinParts(parts, joint);
        return joined.length > 0 ? deliver(joined) : undefined;
      } catch (error) {
        refusal = error;
        throw error;
      }
    };
    await attempt(chat, serving, take, options);
    // An attempt that had finished has dropped the error.
    if (refusal !== undefined) throw refusal;
    // Also where nothing is left to say: the attempt has replied.
    await deliver([{ type: "text", text: joint.settle(isCut) }]);
  };

/** What is new in a batch. Reasoning has its place before the text, and is not shown after it. */
function joinParts(parts: readonly Part[], joint: Joint): readonly Part[] {
  const joined: Part[] = [];
  const add = (text: string): void => {
    if (text !== "") joined.push({ type: "text", text });
  };
  for (const part of parts) {
    if (part.type === "text") add(joint.push(part.text));
    else if (part.type === "tool_call" || part.type === "refusal") {
      add(joint.settle(false));
      joined.push(part);
    } else if (part.type === "tool_arguments") joined.push(part);
  }
  return joined;
}
