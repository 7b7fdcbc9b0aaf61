// Errors as the clients of this API know them.
import { errorBody as chatErrorBody, type ApiError } from "../../core/openai/errors.ts";

/**
 * The vendor's shape is that of chat completions. An error that was found after the translation
 * names a field of the chat completion; here it gets the name of the client's own.
 */
export function errorBody(error: ApiError, requestId: string): object {
  const { error: detail } = chatErrorBody(error, requestId);
  if (detail.param === null) return { error: detail };
  const param = ownName(detail.param);
  const message = detail.message.replaceAll(`'${detail.param}'`, `'${param}'`);
  return { error: { ...detail, param, message } };
}

/** Fields of a chat completion that this API has in another one. */
const OWN_NAMES: ReadonlyMap<string, string> = new Map([
  ["response_format", "text.format"],
  ["logprobs", "include"],
]);

const ownName = (param: string): string =>
  param.startsWith("messages") ? "input" : (OWN_NAMES.get(param) ?? param);
