// The failures of an attempt as ProviderErrors: replies beyond a bound, errors of the network, and
// unexpected exceptions of dialects.
import type { Part } from "../openai/parts.ts";
import { ApiError } from "../openai/errors.ts";
import { ProviderError, type ProviderErrorDetail } from "../providers/provider-error.ts";
import { ValidationError } from "../schema/checker.ts";
import { asObject, asString } from "../schema/untrusted-json.ts";
import { ConnectTimeout } from "../upstream/transport.ts";

/** The error for an unusable answer. The message is for the operator. */
export const upstreamError = (message: string, cause?: unknown): ProviderError =>
  new ProviderError("upstream_error", message, { cause });

/**
 * The most parts of one event or whole reply, and the most tool calls of one reply. Providers send
 * only a few parts at a time.
 */
export const MAX_PARTS = 10_000;

/**
 * The error for a reply beyond a bound. The request decides how long a reply gets (it may ask for
 * 20 log probabilities per token), so the breaker does not count the error.
 */
export const tooLarge = (what: string): ProviderError =>
  new ProviderError("upstream_error", what, { fromContent: true });

/** The same parts. Throws a ProviderError if there are too many. */
export function boundedParts(parts: Part[]): Part[] {
  if (parts.length > MAX_PARTS) throw tooLarge(`more than ${MAX_PARTS} parts at once`);
  return parts;
}

/** Codes of a connection that was never established, as opposed to one that broke. */
const UNREACHABLE = new RegExp(
  "^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN" +
    "|ERR_TLS|ERR_SSL_WRONG_VERSION|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)",
);

/** Codes that mean that this machine has no file, port or memory left for one more connection. */
const SHORTAGE = /^(EMFILE|ENFILE|EADDRNOTAVAIL|ENOBUFS|ENOMEM)$/;

/** Codes of wrong arguments to Node's own functions. */
const BUG = /^ERR_(INVALID_ARG|INVALID_THIS|MISSING_ARGS|OUT_OF_RANGE)/;

/**
 * The exception of an attempt, as a ProviderError if the network or a bound caused it. A bug of
 * this program stays what it is. `isAnswered`: the head of an answer had come.
 */
export function fromNetwork(error: unknown, isAnswered = false): unknown {
  if (error instanceof ProviderError || !(error instanceof Error)) return error;
  if (error instanceof ConnectTimeout)
    return new ProviderError("upstream_timeout", error.message, { cause: error });
  if (error instanceof RangeError) return upstreamError(error.message, error);
  const code = networkCode(error);
  // The built-in fetch does not always state a code. Node states one for its caller's mistakes too.
  const isBug = code === undefined ? error.message !== "fetch failed" : BUG.test(code);
  if (isBug) return error;
  const { message } = error.cause instanceof Error ? error.cause : error;
  const isUnreached = !isAnswered && UNREACHABLE.test(code ?? "");
  const failure = isUnreached ? "model_unavailable" : "upstream_error";
  // The breaker counts no shortage of this machine: it says nothing about the provider.
  const detail = { cause: error, fromContent: SHORTAGE.test(code ?? "") };
  // EPROTO stands for all that is no HTTP or no TLS: only the message says what is wrong.
  const what = code === "EPROTO" ? message : (code ?? message);
  return new ProviderError(failure, `the connection failed: ${what}`, detail);
}

/**
 * The code of a network error. The built-in fetch wraps the error; of several addresses tried, the
 * first error counts.
 */
function networkCode(error: Error): string | undefined {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  const codes = [error, error.cause, first].map((each) => asString(asObject(each)["code"]));
  return codes.find((code) => code !== undefined);
}

/**
 * Called with each exception of a dialect that is a bug of this program. A provider's JSON can have
 * any shape, and a client's request nearly any. Such an exception ends the attempt and not the
 * request: it becomes a ProviderError, so that the next candidate is asked.
 */
export type ReportBug = (bug: unknown) => void;

/** Returns ProviderErrors and errors for the client unchanged; wraps any other exception. */
export function dialectError(
  thrown: unknown,
  reportBug: ReportBug,
  detail: ProviderErrorDetail = {},
): unknown {
  if (thrown instanceof ProviderError) return thrown;
  if (thrown instanceof ApiError || thrown instanceof ValidationError) return thrown;
  // V8 throws a RangeError for data that is too deep or too long. That is a bound, not a bug.
  if (!(thrown instanceof RangeError)) reportBug(thrown);
  // The cause is this request or its reply, so the breaker does not count it.
  const message = thrown instanceof Error ? thrown.message : "an exception that is no Error";
  return new ProviderError("upstream_error", `the dialect failed: ${message}`, {
    ...detail,
    cause: thrown,
    fromContent: true,
  });
}

/** Runs `work` of a dialect. Throws the `dialectError` of its exception. */
export function guarded<T>(reportBug: ReportBug, work: () => T, detail?: ProviderErrorDetail): T {
  try {
    return work();
  } catch (thrown) {
    throw dialectError(thrown, reportBug, detail);
  }
}
