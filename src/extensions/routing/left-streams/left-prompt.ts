// Bills the prompt of a request whose client left while a provider had it and had said nothing yet:
// the provider reads it all the same. A provider that refused or failed costs nothing.
import { ClientGone } from "../../../core/http/cancel.ts";
import { estimatePrompt } from "../../../core/ledger/meter.ts";
import { costOf } from "../../../core/ledger/price.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { makeUsage } from "../../../core/openai/usage.ts";
import { attempt as plainAttempt } from "../../../core/routing/attempt.ts";
import { CompletionFailed, type Complete } from "../../../core/routing/fallback.ts";
import type { Transport } from "../../../core/upstream/transport.ts";

type Attempt = typeof plainAttempt;

/** The attempt that is being made at a request. */
interface AttemptState {
  /** Its provider has the request, and has not refused it. */
  isAtProvider: boolean;
}

/** Completes requests so that one that its client leaves costs at least the prompt. */
export const billPromptOfLeft =
  (complete: Complete): Complete =>
  async (chat, candidates, deliver, context) => {
    const state: AttemptState = { isAtProvider: false };
    const attempt = watching(context.attempt ?? plainAttempt, state);
    try {
      return await complete(chat, candidates, deliver, { ...context, attempt });
    } catch (failure) {
      const isLeft = failure instanceof CompletionFailed && failure.error instanceof ClientGone;
      throw isLeft && state.isAtProvider ? withPrompt(failure, chat) : failure;
    }
  };

/** The same attempt, which notes whether its provider has the request. */
const watching =
  (attempt: Attempt, state: AttemptState): Attempt =>
  async (chat, serving, deliver, options) => {
    const { model } = serving;
    const provider = { ...model.provider, transport: noting(model.provider.transport, state) };
    state.isAtProvider = false;
    function resent(): void {
      state.isAtProvider = false; // the provider had closed the connection, and has nothing
      serving.resent?.();
    }
    try {
      const watched = { ...serving, model: { ...model, provider }, resent };
      await attempt(chat, watched, deliver, options);
    } catch (error) {
      // It has failed by itself. The client may leave in the pause before the next one.
      if (!(error instanceof ClientGone)) state.isAtProvider = false;
      throw error;
    }
  };

/** The text of the request is not kept: no closure that outlives the sending refers to it. */
const noting =
  (transport: Transport, state: AttemptState): Transport =>
  (url, request) => {
    const { sent: markSent } = request;
    const sent = (): void => {
      state.isAtProvider = true;
      markSent();
    };
    return transport(url, { ...request, sent }).then((response) => {
      if (response.status !== 200) state.isAtProvider = false;
      return response;
    });
  };

/** The same failure with the prompt by estimate, where nothing else is billed. */
function withPrompt({ progress, error }: CompletionFailed, chat: ChatRequest): CompletionFailed {
  const { model, reading } = progress;
  if (reading.source !== "none") return new CompletionFailed(progress, error);
  const prompt = estimatePrompt(chat, model.provider.countMedia);
  const usage = makeUsage({ prompt, completion: 0, cacheHit: 0, reasoning: 0 });
  const billed = {
    reading: { usage, source: "estimated" },
    cost: costOf(usage, model.price),
  } as const;
  return new CompletionFailed({ ...progress, ...billed }, error);
}
