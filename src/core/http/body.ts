// The body of a JSON request as text: its headers are checked, its size is bounded, its bytes are
// decoded strictly. Parsing is left to the caller.
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Exchange } from "./exchange.ts";
import { ApiError } from "../openai/errors.ts";
import { addPiece } from "../pieces.ts";

const BYTE_ORDER_MARK = 0xfeff;

/**
 * Reads a body of at most `maxBytes`, and resolves with what `read` makes of its text. Throws an
 * ApiError if its headers rule it out; rejects with one if it is refused, and with the reason of
 * `cancel` if that is aborted first.
 */
export function readBody<T>(
  { req, res, cancel, retain }: Pick<Exchange, "req" | "res" | "cancel" | "retain">,
  maxBytes: number,
  read: (text: string) => T | Promise<T>,
): Promise<T> {
  checkHeaders(req, maxBytes);
  // A body that cannot be kept is refused before it is read. Only bytes that have come are counted:
  // a client that announces much and sends nothing does not keep others out.
  const announced = Number(req.headers["content-length"] ?? 0);
  retain(announced);
  if (cancel.aborted) throw cancel.reason; // nothing was counted, so nothing is given back
  retain(-announced);
  // The client may wait for this permission (Expect: 100-continue) before it sends the body.
  if (req.headers.expect !== undefined && req.httpVersion === "1.1") res.writeContinue();
  delete req.headers.expect; // It is met: from here on the body is on its way.
  const pieces: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    cancel.onAbort(() => reject(cancel.reason as Error));
    req.on("data", (piece: Buffer) => {
      if (size > maxBytes || cancel.aborted) return; // the rest of a refused body is thrown away
      retain(piece.length);
      size += piece.length;
      addPiece(pieces, piece);
      if (size > maxBytes) reject(tooLarge(maxBytes));
    });
    req.on("end", () => {
      if (size > maxBytes || cancel.aborted) return; // it was refused
      try {
        // The array is emptied because listeners keep it for as long as the response takes.
        resolve(read(decoded(Buffer.concat(pieces.splice(0)))));
      } catch (error) {
        reject(error as Error);
      }
    });
    req.on("error", () => undefined);
  });
}

/** Refuses what the headers alone rule out. */
function checkHeaders({ headers }: IncomingMessage, maxBytes: number): void {
  const [mediaType = ""] = (headers["content-type"] ?? "application/json").split(";", 1);
  if (!/^application\/(.+\+)?json$/.test(mediaType.trim().toLowerCase()))
    throw new ApiError("unsupported_media_type", "Content-Type must be application/json.");
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding.trim().toLowerCase() !== "identity")
    throw new ApiError("unsupported_media_type", "Content-Encoding must be identity.");
  if (Number(headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/** The text of the bytes, without a byte order mark. */
function decoded(bytes: Buffer): string {
  if (bytes.length === 0)
    throw new ApiError("invalid_json", "The request body is empty; expected a JSON object.");
  if (!isUtf8(bytes)) throw new ApiError("invalid_json", "The request body is not valid UTF-8.");
  const text = bytes.toString("utf8");
  return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
}

const tooLarge = (maxBytes: number): ApiError =>
  new ApiError("request_too_large", `The request body is larger than ${maxBytes} bytes.`);
