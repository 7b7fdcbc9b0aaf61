// Recovery "continue": when a stream breaks after nothing but text was shown, a model that takes
// the beginning of its own answer continues it. contract.md "Commit point". The states of a
// request:
//
//   streaming ──finished──────────────────────────────> completed
//       │ broke
//       v
//   can a model continue? ──no──> the error that broke it
//       │ yes
//       v
//   joining ──nobody continues the text──> the error that broke it
//       │ continues
//       v
//   streaming (at most max_recoveries times)
import { ClientGone } from "../../../core/http/cancel.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { attempt as plainAttempt, type RequestContext } from "../../../core/routing/attempt.ts";
import { errorFields } from "../../../core/routing/failure.ts";
import { CompletionFailed, type Complete } from "../../../core/routing/fallback.ts";
import { continuing, takesBeginning, withBeginning } from "./continue.ts";
import { beginningOf } from "./joint.ts";
import { progressOf, type Leg } from "./legs.ts";
import { watchShown } from "./shown.ts";

/** Completes a stream, and goes on with it at most `maxRecoveries` times after it broke. */
export const recovering =
  (complete: Complete, maxRecoveries: number): Complete =>
  async (chat, candidates, deliver, context) => {
    const shown = watchShown(chat, deliver);
    const legs: Leg[] = [];
    let asking = complete(chat, candidates, shown.deliver, context);
    while (true) {
      const leg: Leg = await asking.then((progress) => ({ progress }), failedLeg);
      legs.push(leg);
      if (!leg.failure) return progressOf(legs, "continued");
      // The model whose stream broke is asked first.
      const broken = leg.progress.model;
      const models = [broken, ...candidates.filter((model) => model !== broken)];
      const able = models.filter(takesBeginning);
      const text = shown.text() ?? "";
      const goesOn =
        legs.length <= maxRecoveries &&
        isBreak(leg.failure, context) &&
        able.length > 0 &&
        beginningOf(text) !== "" &&
        isContinuable(chat);
      // Where nobody ever goes on, the failure is told as the end of the reply.
      if (goesOn || legs.length > 1) report(leg.failure, context);
      if (!goesOn) throw givenUp(legs, context);
      const longer = withBeginning(chat, beginningOf(text), tokensOf(legs));
      const attempt = continuing(context.attempt ?? plainAttempt, text);
      asking = complete(longer, able, shown.deliver, { ...context, attempt });
    }
  };

/** Throws only what is no end of the request. */
function failedLeg(failure: unknown): Leg {
  if (!(failure instanceof CompletionFailed)) throw failure;
  return { progress: failure.progress, failure };
}

const tokensOf = (legs: readonly Leg[]): number =>
  legs.reduce((sum, { progress }) => sum + progress.reading.usage.completion_tokens, 0);

/** Whether a stream broke by its provider's doing, after it had begun. */
const isBreak = ({ progress, error }: CompletionFailed, { cancel }: RequestContext): boolean =>
  progress.begunAt !== undefined &&
  !cancel.aborted &&
  error instanceof ProviderError &&
  error.countsForBreaker;

/**
 * Whether a reply to this request can be written on from any place. After an assistant message of
 * the client's own, some servers would take the beginning for another turn.
 */
const isContinuable = ({ logprobs, response_format, messages }: ChatRequest): boolean =>
  !logprobs && !response_format && messages.at(-1)?.role !== "assistant";

/** Tells the operator what broke a stream that had begun, or a stream that went on with it. */
function report({ progress, error }: CompletionFailed, context: RequestContext): void {
  if (progress.begunAt === undefined || context.cancel.aborted) return;
  if (error instanceof ProviderError)
    context.report("reply_broken", progress.model, errorFields(error));
}

/**
 * The failure of a stream with which nobody could go on: what broke it first, as that of the model
 * whose stream it was. A client that left in the middle of a continuation has had one.
 */
function givenUp(legs: readonly Leg[], { cancel }: RequestContext): CompletionFailed {
  const first = legs[0]!;
  const last = legs.at(-1)!;
  if (cancel.aborted) {
    const wentOn = last.progress.begunAt !== undefined && cancel.reason instanceof ClientGone;
    const progress = progressOf(legs, wentOn ? "continued" : "failed");
    return new CompletionFailed(progress, last.failure!.error);
  }
  const { model } = first.progress;
  return new CompletionFailed({ ...progressOf(legs, "failed"), model }, first.failure!.error);
}
