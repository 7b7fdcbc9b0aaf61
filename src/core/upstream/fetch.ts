// The transport over any function like fetch. Node's built-in fetch ignores
// `connectMs`: it has its own connect timeout.
import type { Transport, UpstreamRequest, UpstreamResponse } from "./transport.ts";

/** The part of the fetch contract that is used. */
export type Fetch = (
  url: string,
  init: UpstreamRequest & { readonly signal: AbortSignal },
) => Promise<UpstreamResponse>;

/** `fetchFunction` absent: the built-in fetch. */
export const fetchTransport =
  (fetchFunction: Fetch = fetch): Transport =>
  (url, request) => {
    request.sent();
    return fetchFunction(url, { ...request, signal: request.cancel.signal });
  };
