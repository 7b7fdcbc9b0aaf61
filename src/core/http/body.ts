// A request's body, read within its bound, decoded strictly, parsed. WIRE.md 1.1, and of its table 4.2 413, 415, invalid_json.
import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError } from "../openai/errors.ts";
import { MAX_BODY_VALUES } from "../schema/json-bounds.ts";
import { parseLarge } from "../schema/parse-json.ts";
import type { Cancel } from "./cancel.ts";

/** Reads a JSON body of at most `maxBytes`; rejects with the reason of `cancel` if that comes first. */
export async function readJson(
  req: IncomingMessage,
  res: ServerResponse,
  maxBytes: number,
  cancel: Cancel,
): Promise<unknown> {
  const { "content-type": type = "application/json", "content-encoding": encoding = "identity" } =
    req.headers;
  const isJson = /^application\/(.+\+)?json$/.test(type.split(";", 1)[0]!.trim().toLowerCase());
  if (!isJson)
    throw new ApiError("unsupported_media_type", "Content-Type must be application/json.");
  if (encoding.trim().toLowerCase() !== "identity")
    throw new ApiError(
      "unsupported_media_type",
      "The body must not be compressed (Content-Encoding).",
    );
  const tooLarge = () =>
    new ApiError("request_too_large", `The request body is larger than ${maxBytes} bytes.`);
  if (Number(req.headers["content-length"] ?? 0) > maxBytes) throw tooLarge();
  // A client that asked first (Expect: 100-continue) has waited until its key and its limit were looked at.
  if (req.headers.expect !== undefined && req.httpVersion === "1.1") res.writeContinue();
  delete req.headers.expect; // it has been met: from here on a body comes
  const pieces = await new Promise<Uint8Array[]>((resolve, reject) => {
    cancel.onAbort(() => reject(cancel.reason as Error));
    readAll(req, maxBytes).then(resolve, () => undefined); // its end is told by `cancel`
  });
  const bytes = Buffer.concat(pieces.splice(0)); // listeners and promises stay as long as the reply takes, the body must not
  if (bytes.length > maxBytes) throw tooLarge();
  if (bytes.length === 0)
    throw new ApiError("invalid_json", "The request body is empty; expected a JSON object.");
  if (!isUtf8(bytes)) throw new ApiError("invalid_json", "The request body is not valid UTF-8.");
  const decoded = bytes.toString("utf8");
  const text = decoded.charCodeAt(0) === 0xfeff ? decoded.slice(1) : decoded;
  return parseLarge(text, MAX_BODY_VALUES).catch((error: unknown) => {
    throw invalidJson(error);
  });
}

/** The pieces of a request's body, up to and with the one that makes it larger than `maxBytes`. */
function readAll(req: IncomingMessage, maxBytes: number): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    req.on("data", (bytes: Buffer) => {
      if (size > maxBytes) return; // the result is complete: the rest is thrown away
      size += bytes.length;
      pieces.push(bytes);
      if (size > maxBytes) resolve(pieces);
    });
    req.on("end", () => resolve(pieces)).on("error", reject);
  });
}

function invalidJson(error: unknown): ApiError {
  if (error instanceof RangeError)
    return new ApiError("invalid_json", `The request body holds ${error.message}.`);
  // V8's message quotes the body, which is the client's own business; only the position is repeated.
  const position =
    error instanceof SyntaxError ? /position \d+/.exec(error.message)?.[0] : undefined;
  return new ApiError(
    "invalid_json",
    `The request body is not valid JSON${position ? ` (at ${position})` : ""}.`,
  );
}
