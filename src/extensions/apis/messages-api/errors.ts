// Errors in the form of the Messages API, and its header for the request id. The vendor's SDKs act
// on the status and details of a refusal, so both are passed on from a provider of this format.
// From the message of a provider of any format, only the phrases that Claude Code looks for are
// passed on.
import { ApiError } from "../../../core/openai/errors.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { Attempt } from "../../../core/routing/attempt.ts";
import { CompletionError, type Complete } from "../../../core/routing/fallback.ts";
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

/**
 * Phrases of providers on which Claude Code acts: it asks again without the feature that they name.
 * The patterns cannot match details of the operator or of its account.
 */
const ACTED_ON: readonly RegExp[] = [
  /adaptive thinking is not supported|thinking\.type\.enabled\W{1,3}is not supported/i,
  /does not support the effort parameter/i,
  /role .?system.? is not supported/i,
  /(unknown variant .?system.?, expected|input should be) .user. or .assistant./i,
  /invalid .?signature.? in .?thinking.? block/i,
  /(?<![\w.])[\w.]{1,80}: extra inputs are not permitted/i,
  /unexpected value\(s\) [\w`, -]{1,200} for the .anthropic-beta. header/i,
  /messages\.\d{1,6}\.content\.\d{1,6}\.(tool_result\.content\.\d{1,6}\.)?(image|document)\b/,
];
/**
 * Messages of providers, each with the phrase that clients get in its place. Claude Code acts on
 * the phrase too: after the last two it leaves out the images or documents of a conversation.
 */
const PHRASES: readonly (readonly [words: RegExp, phrase: string])[] = [
  [/unexpected role .?system.{0,150}input message role/i, "Unexpected role: no input message role"],
  [/\bimages?\b/i, "could not process image"],
  [/\b(pdf|document)s?\b|not take files/i, "could not process pdf"],
];
/** From here on, a message names an expected value, a tool or a page to read. */
const AFTER_REFUSED_PART = /\b(expected|should be|must be|tools\.\d+|function|https?)\b/i;

/** Adds the phrase on which Claude Code acts, if there is one in `reason`, a provider's message. */
function withPhrase(message: string, reason = ""): string {
  const [matched] = ACTED_ON.flatMap((words) => words.exec(reason)?.[0] ?? []);
  const refused = reason.split(AFTER_REFUSED_PART, 1)[0]!;
  const phrase = matched ?? PHRASES.find(([words]) => words.test(refused))?.[1];
  return phrase ? `${message.replace(/\.$/, "")}: ${phrase}.` : message;
}

/** The vendor's SDKs send a conversation whole, without a thread, when they read this. */
const NO_THREADS: RefusalDetails = { error_code: "thread_unsupported_request" };

function detailsOf(error: ApiError): RefusalDetails | undefined {
  if (error instanceof DetailedError) return error.details;
  const needsThread = error.code === "unsupported_value" && error.param === "thread";
  return needsThread ? NO_THREADS : undefined;
}

export function errorEvent(error: ApiError, request_id: string): ReplyEvent {
  const isTooLong = error.code === "context_length_exceeded";
  const message = isTooLong
    ? `${TOO_LONG}: ${error.message}`
    : withPhrase(error.message, /this model does not take \w+\.$/.exec(error.message)?.[0]);
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
  constructor({ code, message, param }: ApiError, { status, details, detail }: DetailedRefusal) {
    const coded = `${message.replace(/\.$/, "")}: ${details.error_code}.`;
    super(code, withPhrase(coded, detail.providerMessage), { param });
    this.status = status;
    this.details = details;
  }
}

/** The error of a refused request, with the details on which the vendor's programs act. */
function refusedError(error: ApiError, refusal: ProviderError | undefined): ApiError {
  if (refusal instanceof DetailedRefusal) return new DetailedError(error, refusal);
  const { code, message, param } = error;
  if (code !== "upstream_rejected") return error;
  return new ApiError(code, withPhrase(message, refusal?.detail.providerMessage), { param });
}

/** Completes requests. Adds the details on which clients act to a provider's refusal. */
export const withDetails =
  (complete: Complete): Complete =>
  async (chat, candidates, deliver, context) => {
    const { attempt } = context;
    let refusal: ProviderError | undefined;
    const noting: Attempt = (asked, serving, take, options) =>
      attempt(asked, serving, take, options).catch((error: unknown) => {
        const isNative = asked.native?.dialect === DIALECT;
        refusal = isNative && error instanceof ProviderError ? error : undefined;
        throw error;
      });
    try {
      return await complete(chat, candidates, deliver, { ...context, attempt: noting });
    } catch (failure) {
      if (!(failure instanceof CompletionError)) throw failure;
      const { progress, error } = failure;
      if (!(error instanceof ApiError)) throw failure;
      throw new CompletionError(progress, refusedError(error, refusal));
    }
  };
