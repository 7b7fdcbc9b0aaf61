// Reads the body of a JSON request as text: checks its headers, bounds its size, and decodes its
// bytes strictly. The caller parses the text.
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Exchange } from "./exchange.ts";
import { ApiError } from "../openai/errors.ts";
import { addPiece } from "../pieces.ts";

const BYTE_ORDER_MARK = 0xfeff;

/**
 * Reads a body of at most `maxBytes`, and resolves with the result of `read` for its text. Throws
 * an ApiError if the headers are refused. Rejects with an ApiError if the body is refused, or with
 * the reason of `cancel` if that is aborted first.
 */
export function readBody<T>(
  { req, res, cancel, retain }: Pick<Exchange, "req" | "res" | "cancel" | "retain">,
  maxBytes: number,
  read: (text: string) => T | Promise<T>,
): Promise<T> {
  checkHeaders(req, maxBytes);
  // Refuse a body before reading it if there is no memory for it. The announced bytes are counted
  // only for this test: a client that announces a large body and sends nothing must not block
  // others.
  const announced = Number(req.headers["content-length"] ?? 0);
  retain(announced);
  if (cancel.aborted) throw cancel.reason; // A refused `retain` has counted nothing.
  retain(-announced);
  // With Expect: 100-continue, the client waits for this permission before it sends the body.
  if (req.headers.expect !== undefined && req.httpVersion === "1.1") res.writeContinue();
  delete req.headers.expect; // Answered. sendError closes connections where it is not.
  const pieces: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    /** Frees the bytes received so far at once: the rest of the body may take seconds to arrive. */
    function refuse(error: unknown): void {
      retain(-pieces.splice(0).reduce((sum, { length }) => sum + length, 0));
      reject(error as Error);
    }
    cancel.onAbort(() => refuse(cancel.reason));
    req.on("data", (piece: Buffer) => {
      if (size > maxBytes || cancel.aborted) return; // Discard the rest of a refused body.
      retain(piece.length);
      if (cancel.aborted) return; // A refused `retain` has counted nothing.
      size += piece.length;
      addPiece(pieces, piece);
      if (size > maxBytes) refuse(tooLarge(maxBytes));
    });
    req.on("end", () => {
      if (size > maxBytes || cancel.aborted) return; // The promise has been rejected.
      try {
        // Empty the array: the listeners keep it in memory until the response ends.
        resolve(read(decoded(Buffer.concat(pieces.splice(0)))));
      } catch (error) {
        reject(error as Error);
      }
    });
    req.on("error", () => undefined);
  });
}

/** Throws an ApiError if the headers show that the body cannot be accepted. */
function checkHeaders({ headers }: IncomingMessage, maxBytes: number): void {
  const [mediaType = ""] = (headers["content-type"] ?? "application/json").split(";", 1);
  if (!/^application\/(.+\+)?json$/.test(mediaType.trim().toLowerCase()))
    throw new ApiError("unsupported_media_type", "Content-Type must be application/json.");
  const encoding = headers["content-encoding"] || "identity";
  if (encoding.trim().toLowerCase() !== "identity")
    throw new ApiError("unsupported_media_type", "Content-Encoding must be identity.");
  if (Number(headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/** Decodes UTF-8, without a byte order mark. */
function decoded(bytes: Buffer): string {
  if (bytes.length === 0)
    throw new ApiError("invalid_json", "The request body is empty; expected a JSON object.");
  if (!isUtf8(bytes)) throw new ApiError("invalid_json", "The request body is not valid UTF-8.");
  const text = bytes.toString("utf8");
  return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
}

const tooLarge = (maxBytes: number): ApiError =>
  new ApiError("request_too_large", `The request body is larger than ${maxBytes} bytes.`);
