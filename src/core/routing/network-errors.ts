// What the network says, as a ProviderError.
import { ProviderError } from "../providers/provider-error.ts";
import { ConnectTimeout } from "../upstream/transport.ts";

/** Codes of a connection that was never made, as against one that broke off. */
const UNREACHABLE = new RegExp(
  "^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN" +
    "|ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)",
);

/**
 * Whatever an attempt threw, as a ProviderError if the network or a bound caused it. A bug of this
 * program stays what it is.
 */
export function fromNetwork(error: unknown): unknown {
  if (error instanceof ProviderError || !(error instanceof Error)) return error;
  if (error instanceof ConnectTimeout)
    return new ProviderError("upstream_timeout", error.message, { cause: error });
  if (error instanceof RangeError)
    return new ProviderError("upstream_error", error.message, { cause: error });
  const code = networkCode(error);
  // The built-in fetch does not always state a code.
  if (code === undefined && error.message !== "fetch failed") return error;
  return new ProviderError(
    UNREACHABLE.test(code ?? "") ? "model_unavailable" : "upstream_error",
    `the connection failed: ${code}`,
    { cause: error },
  );
}

/**
 * The code of a network error. The built-in fetch wraps the error; of several addresses tried, the
 * first error counts.
 */
function networkCode(error: Error): string | undefined {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  for (const candidate of [error, error.cause, first]) {
    const { code } = (candidate ?? {}) as { readonly code?: unknown };
    if (typeof code === "string") return code;
  }
  return undefined;
}
