// Errors as the clients of this API know them.
import { errorBody as chatErrorBody, type ApiError } from "../../../core/openai/errors.ts";
import { memberName } from "../client-apis/index.ts";

/** The vendor's shape is that of chat completions. `param` is the name that this API has for it. */
export function errorBody(error: ApiError, requestId: string): object {
  const { error: detail } = chatErrorBody(error, requestId);
  const param = detail.param && memberName("responses", detail.param);
  return { error: { ...detail, param } };
}
