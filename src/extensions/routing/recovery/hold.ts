// Recovery "hold": the client sees nothing of a stream until the provider has finished it. So any
// failure before that is an ordinary failed attempt, and the next candidate is asked.
import type { attempt as plainAttempt } from "../../../core/routing/attempt.ts";
import { withoutBreakerBlame } from "./breaker-blame.ts";

type Attempt = typeof plainAttempt;

/**
 * The same attempt, as at a model that only streams for a client that wants the reply whole: the
 * core assembles it, within max_reply_bytes, and delivers all of it when it has ended.
 */
export const holding =
  (attempt: Attempt): Attempt =>
  async (chat, serving, deliver, options) => {
    const { model, meter } = serving;
    const streaming = { ...model, traits: { ...model.traits, stream_only: true } };
    try {
      await attempt({ ...chat, stream: false }, { ...serving, model: streaming }, deliver, options);
    } catch (error) {
      const isSilent = meter.usage().source === "none";
      throw isSilent ? error : withoutBreakerBlame(error, options.cancel);
    }
  };
