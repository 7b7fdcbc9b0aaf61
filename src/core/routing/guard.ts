// Contains the unexpected exceptions of dialects. A provider's JSON can have any shape, and a
// client's request nearly any. Such an exception ends the attempt and not the request: it becomes a
// ProviderError, so that the next candidate is asked, and it is reported as a bug of this program.
import { ProviderError, type ProviderErrorDetail } from "../providers/provider-error.ts";
import type { Dialect } from "../providers/dialect.ts";
import { ValidationError } from "../schema/checker.ts";
import { ApiError } from "../openai/errors.ts";

/** Called with each exception that is a bug of this program. */
export type ReportBug = (bug: unknown) => void;

/** The result of a dialect's `work`. Throws a ProviderError, or the error for the client. */
export function guarded<T>(report: ReportBug, work: () => T, detail: ProviderErrorDetail = {}): T {
  try {
    return work();
  } catch (error) {
    const expected =
      error instanceof ProviderError ||
      error instanceof ApiError ||
      error instanceof ValidationError;
    if (expected) throw error;
    // V8 throws a RangeError for what is too deep or too long for it: a bound, and no bug.
    if (!(error instanceof RangeError)) report(error);
    // The cause is this request or its reply, so the breaker does not count it.
    const message = error instanceof Error ? error.message : "an exception that is no Error";
    throw new ProviderError("upstream_error", `the dialect failed: ${message}`, {
      ...detail,
      cause: error,
      fromContent: true,
    });
  }
}

/** The same dialect, its exceptions contained. */
export const guardDialect = (dialect: Dialect, report: ReportBug): Dialect => ({
  auth: dialect.auth,
  // A request that cannot be written once cannot be written at all.
  request: (chat, target) =>
    guarded(report, () => dialect.request(chat, target), { permanent: true }),
  isReply: (json) => guarded(report, () => dialect.isReply(json)),
  decoder(target) {
    const decoder = dialect.decoder(target);
    return {
      push: (event) => guarded(report, () => decoder.push(event)),
      ended: () => decoder.ended?.() === true,
    };
  },
});
