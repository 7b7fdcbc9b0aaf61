// The transport over any function of the fetch contract. Node's built-in fetch follows no
// `connectMs`: it has a connect timeout of its own.
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
