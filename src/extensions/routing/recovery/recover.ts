// Recovery "continue": if a stream breaks and the client has seen nothing but text, a model with
// the trait `prefill` continues the reply from there. contract.md "Commit point". The states of a
// request:
//
//   streaming ──finished──────────────────────────────> completed
//       │ broke
//       v
//   can a model continue? ──no──> the error that broke it
//       │ yes
//       v
//   joining ──no model continues it──> the error that broke it
//       │ continues
//       v
//   streaming (at most max_recoveries times)
import { ClientGone } from "../../../core/http/cancel.ts";
import type { Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { RequestContext } from "../../../core/routing/attempt.ts";
import { errorFields } from "../../../core/routing/failure.ts";
import { CompletionError, type Complete, type Deliver } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { asArray } from "../../../core/schema/untrusted-json.ts";
import { continueAttempt, supportsPrefill, withPrefill } from "./continue.ts";
import { prefillOf } from "./joint.ts";
import { progressOf, type Leg } from "./legs.ts";

/** Completes a stream. If it breaks, continues it, at most `maxRecoveries` times. */
export const withRecovery =
  (complete: Complete, maxRecoveries: number): Complete =>
  async (chat, candidates, deliver, context) => {
    const shown = recordShown(chat, deliver);
    const legs: Leg[] = [];
    let completion = complete(chat, candidates, shown.deliver, context);
    while (true) {
      const leg: Leg = await completion.then((progress) => ({ progress }), failedLeg);
      legs.push(leg);
      if (!leg.failure) return progressOf(legs, "continued");
      // The model whose stream broke is asked first.
      const broken = leg.progress.model;
      const models = [broken, ...candidates.filter((model) => model !== broken)];
      const capable = models.filter(supportsPrefill);
      const text = shown.text() ?? "";
      const prefill = prefillOf(text);
      const canContinue =
        legs.length <= maxRecoveries &&
        capable.length > 0 &&
        prefill !== "" &&
        isBreak(leg.failure, context) &&
        isContinuable(chat);
      // If there was no continuation, the core itself reports the failure.
      if (canContinue || legs.length > 1) report(leg.failure, context);
      if (!canContinue) throw finalFailure(legs, context);
      const continuation = withPrefill(chat, prefill, tokensOf(legs));
      const attempt = continueAttempt(context.attempt, text);
      completion = complete(continuation, capable, shown.deliver, { ...context, attempt });
    }
  };

/**
 * Records what the client is shown. `text()` returns all shown text. Undefined: the text is too
 * long to keep, or the client has seen something that is not text.
 */
function recordShown({ native, showThinking, wantsThinking }: ChatRequest, deliver: Deliver) {
  // A client of the Responses API can ask for the reasoning in encrypted form.
  const include = native?.dialect === "responses" ? asArray(native.body["include"]) : [];
  const isSealed = include.includes("reasoning.encrypted_content");
  // A client of the Messages API gets hidden thoughts encrypted in their signatures.
  const hasThoughts = showThinking || (native?.dialect === "anthropic" && wantsThinking);
  let shown: string | undefined = "";

  function record(part: Part, { reasoning, provider }: Model): void {
    const isCall = part.type === "tool_call" || part.type === "native";
    const isText = "text" in part && part.text !== "" && part.type !== "tool_arguments";
    const isHidden = part.type === "reasoning" && !isSealed && !(hasThoughts && reasoning);
    if (isHidden || !(isCall || isText)) return;
    shown = part.type === "text" && shown !== undefined ? shown + part.text : undefined;
    if (shown && shown.length > provider.maxReplyBytes) shown = undefined;
  }

  const recordAndDeliver: Deliver = (parts, serving) => {
    for (const part of parts) record(part, serving.model);
    return deliver(parts, serving);
  };
  return { deliver: recordAndDeliver, text: () => shown };
}

/** Makes the leg of a failed completion. Throws errors that are not a CompletionError. */
function failedLeg(failure: unknown): Leg {
  if (!(failure instanceof CompletionError)) throw failure;
  return { progress: failure.progress, failure };
}

/** The completion tokens of all legs. */
const tokensOf = (legs: readonly Leg[]): number =>
  legs.reduce((sum, { progress }) => sum + progress.reading.usage.completion_tokens, 0);

/** Whether the stream broke by the provider's fault after it had begun. */
const isBreak = ({ progress, error }: CompletionError, { cancel }: RequestContext): boolean =>
  progress.begunAt !== undefined &&
  !cancel.aborted &&
  error instanceof ProviderError &&
  error.countsForBreaker;

/**
 * Whether replies to this request can be continued. They cannot if the client's messages end with
 * an assistant message, because some servers take the prefill after it for another turn.
 */
const isContinuable = ({ logprobs, response_format, messages }: ChatRequest): boolean =>
  !logprobs && !response_format && messages.at(-1)?.role !== "assistant";

/** Logs the error that broke a stream, or a continuation, after it had begun. */
function report({ progress, error }: CompletionError, context: RequestContext): void {
  if (progress.begunAt === undefined || context.cancel.aborted) return;
  if (error instanceof ProviderError)
    context.report("reply_broken", progress.model, errorFields(error));
}

/**
 * The failure of a stream that no attempt could finish: the first error, with the model that was
 * streaming then, and its price. After a cancellation it is the last error, and if the client left
 * while a continuation was streaming, the outcome is "continued".
 */
function finalFailure(legs: readonly Leg[], { cancel }: RequestContext): CompletionError {
  const first = legs[0]!;
  const last = legs.at(-1)!;
  if (cancel.aborted) {
    const wasContinued = last.progress.begunAt !== undefined && cancel.reason instanceof ClientGone;
    const progress = progressOf(legs, wasContinued ? "continued" : "failed");
    return new CompletionError(progress, last.failure!.error);
  }
  const { model, price } = first.progress;
  const progress = { ...progressOf(legs, "failed"), model, price };
  return new CompletionError(progress, first.failure!.error);
}
