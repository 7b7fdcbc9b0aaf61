// What a provider of the same format says of a refused request, beyond its words: the status and
// the details, which the vendor's SDKs act on. The words themselves are never passed on.
import { ApiError } from "../../../core/openai/errors.ts";
import { attempt as plainAttempt } from "../../../core/routing/attempt.ts";
import { CompletionFailed, type Complete } from "../../../core/routing/fallback.ts";
import { DetailedRefusal, type RefusalDetails } from "../../providers/provider-words/index.ts";

export class DetailedError extends ApiError {
  /** The provider's, in the place of the code's. */
  override readonly status: number;
  readonly details: RefusalDetails;
  constructor({ code, message, param }: ApiError, { status, details }: DetailedRefusal) {
    super(code, `${message.replace(/\.$/, "")}: ${details.error_code}.`, { param });
    this.status = status;
    this.details = details;
  }
}

/** Completes requests, and adds the details of the refusal to the error of one that is refused. */
export const withDetails =
  (complete: Complete): Complete =>
  async (chat, candidates, deliver, context) => {
    const { attempt = plainAttempt } = context;
    let refusal: DetailedRefusal | undefined;
    const noting: typeof plainAttempt = (asked, serving, take, options) =>
      attempt(asked, serving, take, options).catch((error: unknown) => {
        if (asked.native && error instanceof DetailedRefusal) refusal = error;
        throw error;
      });
    try {
      return await complete(chat, candidates, deliver, { ...context, attempt: noting });
    } catch (error) {
      const failed = error instanceof CompletionFailed ? error : undefined;
      const isRefused = failed?.error instanceof ApiError && failed.error.code === refusal?.code;
      if (!refusal || !failed || !isRefused) throw error;
      throw new CompletionFailed(failed.progress, new DetailedError(failed.error, refusal));
    }
  };
