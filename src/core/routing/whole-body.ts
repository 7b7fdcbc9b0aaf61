// The bodies that are read as a whole: replies in one piece of JSON, and refusals.
import { MAX_REPLY_VALUES, parseLarge } from "../schema/json-bounds.ts";
import { readAll } from "../upstream/body.ts";
import type { UpstreamResponse } from "../upstream/transport.ts";
import { tooMuch, upstreamError } from "./bounds.ts";

/** Of the body of a refusal only the beginning is read. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/**
 * The JSON of a whole reply. Throws a ProviderError if the pieces are no JSON, or hold too much.
 */
export async function parseReply(
  pieces: readonly Uint8Array[],
  maxBytes: number,
): Promise<unknown> {
  const bytes = Buffer.concat(pieces);
  if (bytes.length > maxBytes) throw tooMuch(`a reply of more than ${maxBytes} bytes`);
  try {
    return await parseLarge(bytes.toString(), MAX_REPLY_VALUES);
  } catch (error) {
    if (error instanceof RangeError) throw tooMuch(`a reply with ${error.message}`);
    throw upstreamError("the reply is not JSON", error);
  }
}

/** The text of a refusal. Empty if it has none, or if it breaks off: the status says most. */
export async function readRefusal(body: UpstreamResponse["body"]): Promise<string> {
  if (!body) return "";
  try {
    return Buffer.concat(await readAll(body, MAX_REFUSAL_BYTES)).toString();
  } catch {
    return "";
  }
}
