// Bodies: a provider's, piece by piece; a request's, read within its bound, decoded strictly, parsed. WIRE.md 1.1, and of its table 4.2
// 413, 415, invalid_json.
import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { setImmediate as turnEnd } from "node:timers/promises";
import { ApiError } from "../openai/errors.ts";
import { jsonExcess, MAX_BODY_VALUES } from "../schema/json-bounds.ts";
import type { Cancel } from "./cancel.ts";

/** From so many characters on, each step of the work on a JSON text is a turn of the event loop of its own. */
const LARGE = 256 * 1024;

/** After a piece with which the reader was busy for so many milliseconds others have a turn: the kernel hands over some 30 pieces of 64 KB
 * in one. */
const LONG_MS = 10;

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

/** JSON.parse of a text from outside. If it is large, its contents are counted first (protocol/json-bounds.ts), and others have a turn
 * of the event loop before and after the parse. Rejects with a RangeError that says what is too much, or the SyntaxError of JSON.parse. */
export async function parseLarge(text: string, maxValues: number): Promise<unknown> {
  if (text.length <= LARGE) return JSON.parse(text);
  const excess = jsonExcess(text, maxValues);
  if (excess !== undefined) throw new RangeError(excess);
  await turnEnd();
  const json: unknown = JSON.parse(text);
  await turnEnd();
  return json;
}

/** The pieces of a body, up to and with the one that makes it larger than `maxBytes`; `progress` is called for every other. */
export function readAll(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  progress?: () => void,
): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    consume(body, (bytes) => {
      if (size > maxBytes) return; // it is cut already
      size += bytes.length;
      pieces.push(bytes);
      if (size > maxBytes) resolve(pieces);
      else progress?.();
    }).then(() => resolve(pieces), reject);
  });
}

/** Hands over a body piece by piece, waiting for the promise if `take` gives one. Resolves at its end; rejects with what it, or `take`,
 * throws. Node's own streams are listened to: to iterate over one costs more than all else that happens to a piece. */
export function consume(
  body: AsyncIterable<Uint8Array>,
  take: (bytes: Uint8Array) => Promise<unknown> | undefined | void,
): Promise<void> {
  const stream = body instanceof Readable ? body : Readable.from(body);
  return new Promise<void>((resolve, reject) => {
    stream.on("data", (bytes: Buffer) => {
      try {
        const began = performance.now();
        let room = take(bytes);
        if (!room && performance.now() - began > LONG_MS) room = turnEnd();
        if (!room) return;
        stream.pause();
        room.then(() => stream.resume(), reject);
      } catch (error) {
        stream.removeAllListeners("data"); // more may come in this very turn
        reject(error);
      }
    });
    stream.on("end", resolve).on("error", reject);
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
