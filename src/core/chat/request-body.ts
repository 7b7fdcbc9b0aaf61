// The JSON of a chat request, read from its body.
import { readBody } from "../http/body.ts";
import type { Exchange } from "../http/exchange.ts";
import { ApiError } from "../openai/errors.ts";
import { MAX_BODY_VALUES, parseLarge } from "../schema/json-bounds.ts";

/**
 * Reads a JSON body of at most `maxBytes`. Throws an HttpError, the ApiError `invalid_json`, or the
 * reason of the exchange's `cancel` if that is aborted first.
 */
export async function readJson(exchange: Exchange, maxBytes: number): Promise<unknown> {
  const text = await readBody(exchange, maxBytes);
  try {
    return await parseLarge(text, MAX_BODY_VALUES);
  } catch (error) {
    throw invalidJson(error);
  }
}

function invalidJson(error: unknown): ApiError {
  if (error instanceof RangeError)
    return new ApiError("invalid_json", `The request body holds ${error.message}.`);
  // V8's message quotes the body, which may be secret. Only the position is repeated.
  const position =
    error instanceof SyntaxError ? /position \d+/.exec(error.message)?.[0] : undefined;
  const hint = position === undefined ? "" : ` (at ${position})`;
  return new ApiError("invalid_json", `The request body is not valid JSON${hint}.`);
}
