// A transport that adds credentials to each request. If they are refused, the request is sent
// once more with renewed ones.
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { Cancel } from "../../../core/http/cancel.ts";
import { readAll } from "../../../core/upstream/body.ts";
import type { Transport } from "../../../core/upstream/transport.ts";
import type { Credentials, Headers, OutgoingRequest } from "../token-services/index.ts";

/** Statuses by which a provider refuses credentials. */
const REFUSALS = [401, 403];
/** The bound of a refusal's body, which is read so that its connection can be reused. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** `transport` with the headers of these credentials. `dialect`: as in OutgoingRequest. */
export const authorized =
  (credentials: Credentials, dialect: string, transport: Transport): Transport =>
  async (url, request) => {
    const { headers: plainHeaders, body } = request;
    const outgoing: OutgoingRequest = { url, headers: plainHeaders, body, dialect };
    const send = (headers: Headers) =>
      transport(url, { ...request, headers: { ...plainHeaders, ...headers } });
    const headers = await obtainHeaders(credentials, outgoing, request.cancel);
    const response = await send(headers);
    if (!REFUSALS.includes(response.status)) return response;
    if (!credentials.refused(headers, response)) return response;
    request.refused?.();
    if (response.body) await readAll(response.body, MAX_REFUSAL_BYTES).catch(() => undefined);
    if (request.cancel.aborted) throw request.cancel.reason;
    request.renewing?.();
    return send(await obtainHeaders(credentials, outgoing, request.cancel));
  };

/**
 * The headers for a request. Rejects with the reason of `cancel` if that is aborted first. If the
 * credentials fail, rejects with the ProviderError of a refused key: the client does not learn why.
 */
async function obtainHeaders(
  credentials: Credentials,
  outgoing: OutgoingRequest,
  cancel: Cancel,
): Promise<Headers> {
  const headers = credentials.headersFor(outgoing);
  if (!(headers instanceof Promise)) return headers;
  const aborted = new Promise<never>((_, reject) => {
    cancel.onAbort(() => reject(cancel.reason as Error));
  });
  try {
    return await Promise.race([headers, aborted]);
  } catch (error) {
    if (cancel.aborted) throw cancel.reason;
    const why = error instanceof Error ? error.message : "an exception that is no Error";
    throw new ProviderError("model_unavailable", `no credentials: ${why}`, {
      operator: "key",
      cause: error,
    });
  }
}
