// Turns anything thrown into the error response that the contract describes: an API error, a
// validation error, or a bug.
import type { ClientApi } from "./chat/client-api.ts";
import { describe, type Diagnose } from "./diagnose.ts";
import type { RenderError } from "./http/responses.ts";
import { pathOf } from "./http/router.ts";
import { ApiError, errorBody, SOON, toApiError } from "./openai/errors.ts";

/** Renders anything thrown in the error format of the API that the request's path belongs to. */
export const errorRenderer =
  (apis: readonly ClientApi[]): RenderError =>
  (thrown, requestId, { url = "", headers = {} }) => {
    const error = toApiError(thrown);
    const path = pathOf(url);
    const isBelow = (api: ClientApi) => path === api.path || path.startsWith(`${api.path}/`);
    const api = apis.find((candidate) => isBelow(candidate) || candidate.owns?.(path, headers));
    const idHeader = api?.requestIdHeader && { [api.requestIdHeader]: requestId };
    return {
      error,
      headers: { ...idHeader, ...error.headers },
      body: JSON.stringify((api ?? { errorBody }).errorBody(error, requestId)),
    };
  };

/** Renders anything thrown in the error format of chat completions. */
export const renderError = errorRenderer([]);

/** The 503 for requests that a stopping gateway refuses or cuts short. */
export const shuttingDown = (): ApiError =>
  new ApiError("server_overloaded", "The gateway is shutting down.", SOON);

/** Reports a bug that made a request fail. */
export const internalErrorReporter =
  (diagnose: Diagnose) =>
  ({ requestId: request_id }: { readonly requestId: string }, thrown: unknown): void =>
    diagnose({ event: "internal_error", level: "error", request_id, detail: describe(thrown) });
