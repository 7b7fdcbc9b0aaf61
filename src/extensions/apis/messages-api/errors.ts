// Errors in the form of the Messages API, and its header for the request id. The vendor's SDKs use
// the status and details of a refusal, so those of a provider of this format are passed on. Its
// messages never are.
import { ApiError } from "../../../core/openai/errors.ts";
import type { Attempt } from "../../../core/routing/attempt.ts";
import { CompletionFailed, type Complete } from "../../../core/routing/fallback.ts";
import { DetailedRefusal, type RefusalDetails } from "../../providers/provider-words/index.ts";
import type { ReplyEvent } from "../client-apis/index.ts";
import { DIALECT } from "../messages-input/index.ts";

/** Where clients of this API look for the request id. */
export const REQUEST_ID_HEADER = "request-id";

/** Error types by the gateway's code, where the code is more specific than the status. */
const BY_CODE: Readonly<Record<string, string>> = {
  model_overloaded: "overloaded_error",
  server_overloaded: "overloaded_error",
  upstream_timeout: "timeout_error",
};

const BY_STATUS: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
};

const typeOf = ({ code, status }: ApiError): string =>
  BY_CODE[code] ?? BY_STATUS[status] ?? (status < 500 ? "invalid_request_error" : "api_error");

/** Claude Code compacts a conversation when it reads this phrase. */
const TOO_LONG = "prompt is too long";

/** The vendor's SDKs send a conversation whole, without a thread, when they read this. */
const NO_THREADS: RefusalDetails = { error_code: "thread_unsupported_request" };

function detailsOf(error: ApiError): RefusalDetails | undefined {
  if (error instanceof DetailedError) return error.details;
  const needsThread = error.code === "unsupported_value" && error.param === "thread";
  return needsThread ? NO_THREADS : undefined;
}

export function errorEvent(error: ApiError, request_id: string): ReplyEvent {
  const isTooLong = error.code === "context_length_exceeded";
  const message = isTooLong ? `${TOO_LONG}: ${error.message}` : error.message;
  const details = detailsOf(error);
  return {
    type: "error",
    error: { type: typeOf(error), message, ...(details && { details }) },
    request_id,
  };
}

class DetailedError extends ApiError {
  /** The provider's status, instead of the code's. */
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
    const { attempt } = context;
    let refusal: DetailedRefusal | undefined;
    const noting: Attempt = (asked, serving, take, options) =>
      attempt(asked, serving, take, options).catch((error: unknown) => {
        const isNative = asked.native?.dialect === DIALECT;
        if (isNative && error instanceof DetailedRefusal) refusal = error;
        throw error;
      });
    try {
      return await complete(chat, candidates, deliver, { ...context, attempt: noting });
    } catch (error) {
      const isRefused = error instanceof CompletionFailed && error.error instanceof ApiError;
      if (!refusal || !isRefused) throw error;
      throw new CompletionFailed(error.progress, new DetailedError(error.error, refusal));
    }
  };
