// Recovery "continue": when a stream breaks and the client has seen nothing but text, a model that
// can continue the beginning of its own answer does so. contract.md "Commit point". The states of a
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
import type { Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { RequestContext } from "../../../core/routing/attempt.ts";
import { errorFields } from "../../../core/routing/failure.ts";
import { CompletionFailed, type Complete, type Deliver } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { asArray } from "../../../core/schema/untrusted-json.ts";
import { continuing, takesBeginning, withBeginning } from "./continue.ts";
import { beginningOf } from "./joint.ts";
import { progressOf, type Leg } from "./legs.ts";

/** Completes a stream. If it breaks, continues it, at most `maxRecoveries` times. */
export const recovering =
  (complete: Complete, maxRecoveries: number): Complete =>
  async (chat, candidates, deliver, context) => {
    const shown = watchShown(chat, deliver);
    const legs: Leg[] = [];
    let completion = complete(chat, candidates, shown.deliver, context);
    while (true) {
      const leg: Leg = await completion.then((progress) => ({ progress }), failedLeg);
      legs.push({ ...leg, price: leg.progress.model.price });
      if (!leg.failure) return progressOf(legs, "continued");
      // The model whose stream broke is asked first.
      const broken = leg.progress.model;
      const models = [broken, ...candidates.filter((model) => model !== broken)];
      const capable = models.filter(takesBeginning);
      const text = shown.text() ?? "";
      const canContinue =
        legs.length <= maxRecoveries &&
        capable.length > 0 &&
        beginningOf(text) !== "" &&
        isBreak(leg.failure, context) &&
        isContinuable(chat);
      // If no continuation was ever made, the core reports this failure as the end of the reply.
      if (canContinue || legs.length > 1) report(leg.failure, context);
      if (!canContinue) throw givenUp(legs, context);
      const longer = withBeginning(chat, beginningOf(text), tokensOf(legs));
      const attempt = continuing(context.attempt, text);
      completion = complete(longer, capable, shown.deliver, { ...context, attempt });
    }
  };

/**
 * `text` is all text that was shown. Undefined: it is too long to keep, or the client has seen
 * something else too.
 */
function watchShown({ native, showThinking }: ChatRequest, deliver: Deliver) {
  // A client of the Responses API can ask for the reasoning in sealed form.
  const include = native?.dialect === "responses" ? asArray(native.body["include"]) : [];
  const isSealed = include.includes("reasoning.encrypted_content");
  let shown: string | undefined = "";

  function note(part: Part, { reasoning, provider }: Model): void {
    const isCall = part.type === "tool_call" || part.type === "native";
    const isText = "text" in part && part.text !== "" && part.type !== "tool_arguments";
    const isHidden = part.type === "reasoning" && !isSealed && !(showThinking && reasoning);
    if (isHidden || !(isCall || isText)) return;
    shown = part.type === "text" && shown !== undefined ? shown + part.text : undefined;
    if (shown && shown.length > provider.maxReplyBytes) shown = undefined;
  }

  const recorded: Deliver = (parts, serving) => {
    for (const part of parts) note(part, serving.model);
    return deliver(parts, serving);
  };
  return { deliver: recorded, text: () => shown };
}

/** The leg of a failed completion. Throws any other error. */
function failedLeg(failure: unknown): Leg {
  if (!(failure instanceof CompletionFailed)) throw failure;
  return { progress: failure.progress, failure };
}

const tokensOf = (legs: readonly Leg[]): number =>
  legs.reduce((sum, { progress }) => sum + progress.reading.usage.completion_tokens, 0);

/** Whether the provider broke the stream after it had begun. */
const isBreak = ({ progress, error }: CompletionFailed, { cancel }: RequestContext): boolean =>
  progress.begunAt !== undefined &&
  !cancel.aborted &&
  error instanceof ProviderError &&
  error.countsForBreaker;

/**
 * Whether a reply to this request can be continued at any position. If the client's own messages
 * end with one of the assistant, some servers would take the beginning for another turn.
 */
const isContinuable = ({ logprobs, response_format, messages }: ChatRequest): boolean =>
  !logprobs && !response_format && messages.at(-1)?.role !== "assistant";

/** Reports to the operator what broke a stream that had begun, or its continuation. */
function report({ progress, error }: CompletionFailed, context: RequestContext): void {
  if (progress.begunAt === undefined || context.cancel.aborted) return;
  if (error instanceof ProviderError)
    context.report("reply_broken", progress.model, errorFields(error));
}

/**
 * The failure of a stream that no attempt could continue: the error that broke it first, with the
 * model that was streaming then. If the client left during a continuation, the outcome is
 * "continued".
 */
function givenUp(legs: readonly Leg[], { cancel }: RequestContext): CompletionFailed {
  const first = legs[0]!;
  const last = legs.at(-1)!;
  if (cancel.aborted) {
    const wasContinued = last.progress.begunAt !== undefined && cancel.reason instanceof ClientGone;
    const progress = progressOf(legs, wasContinued ? "continued" : "failed");
    return new CompletionFailed(progress, last.failure!.error);
  }
  const { model } = first.progress;
  return new CompletionFailed({ ...progressOf(legs, "failed"), model }, first.failure!.error);
}
