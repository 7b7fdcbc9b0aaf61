// The one place where whatever is thrown becomes the response that the contract describes: an error
// of the API, of a request's check, or a bug.
import type { ClientApi } from "./chat/client-api.ts";
import { describe, type Diagnose } from "./diagnose.ts";
import type { RenderError } from "./http/responses.ts";
import { pathOf } from "./http/router.ts";
import { ApiError, errorBody, SOON, toApiError } from "./openai/errors.ts";

/** Renders whatever was thrown as the API does to which the request belongs. */
export const errorRenderer =
  (apis: readonly ClientApi[]): RenderError =>
  (thrown, requestId, { url = "", headers = {} }) => {
    const error = toApiError(thrown);
    const path = pathOf(url);
    const isBelow = (each: ClientApi) => path === each.path || path.startsWith(`${each.path}/`);
    const api = apis.find((each) => isBelow(each) || each.owns?.(path, headers));
    const idHeader = api?.requestIdHeader && { [api.requestIdHeader]: requestId };
    return {
      error,
      headers: { ...idHeader, ...error.headers },
      body: JSON.stringify((api ?? { errorBody }).errorBody(error, requestId)),
    };
  };

/** Renders whatever was thrown as chat completions do. */
export const renderError = errorRenderer([]);

/** The error of requests that the gateway cannot finish, or begin, because it is stopping. */
export const shuttingDown = (): ApiError =>
  new ApiError("server_overloaded", "The gateway is shutting down.", SOON);

/** Diagnoses a bug that a request has met. */
export const internalErrorReporter =
  (diagnose: Diagnose) =>
  ({ requestId: request_id }: { readonly requestId: string }, thrown: unknown): void =>
    diagnose({ event: "internal_error", level: "error", request_id, detail: describe(thrown) });
