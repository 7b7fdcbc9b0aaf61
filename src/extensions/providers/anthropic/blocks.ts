// The content blocks of a turn.
import { cut } from "../../../core/schema/checker.ts";
import { asArray, parseJson } from "../../../core/schema/untrusted-json.ts";
import {
  type Call,
  hashedId,
  type Item,
  type MediaRule,
  type SignatureStore,
  mediaOf,
  type Turn,
} from "../turns/index.ts";

/**
 * The thinking blocks before a tool call, unchanged. Empty: the model did not think. Undefined: not
 * known, or forgotten.
 */
export function thoughtsBefore(
  { id }: Call,
  signatures: SignatureStore,
): readonly unknown[] | undefined {
  const kept = signatures.get(id);
  return kept === undefined ? undefined : asArray(parseJson(kept));
}

/** `signatures` is undefined if the model does not think: then thoughts are not sent back. */
export function contentBlocks({ items }: Turn, signatures: SignatureStore | undefined): unknown[] {
  // A turn must begin with its first thoughts, even if text came between them and the call.
  const firstCall = items.find((item) => item.type === "call");
  const thoughts = (call: Call) => (signatures && thoughtsBefore(call, signatures)) ?? [];
  const blocks = firstCall ? [...thoughts(firstCall)] : [];
  for (const item of items) {
    if (item.type === "call" && item !== firstCall) blocks.push(...thoughts(item));
    blocks.push(blockOf(item));
  }
  return blocks;
}

function blockOf(item: Item): object {
  if (item.type === "text") return item;
  if (item.type === "call")
    return { type: "tool_use", id: safeId(item.id), name: item.name, input: item.args };
  const { cache_control } = item;
  if (item.type === "result") {
    const content = item.content.trim() === "" ? "" : item.content;
    return { type: "tool_result", tool_use_id: safeId(item.id), content, cache_control };
  }
  const { url, mediaType, data } = mediaOf(item)!;
  if (item.type !== "image_url" || mediaType === PDF)
    return { type: "document", source: fileSource(mediaType, data), cache_control };
  const source = mediaType ? { type: "base64", media_type: mediaType, data } : { type: "url", url };
  return { type: "image", source, cache_control };
}

const PDF = "application/pdf";
const TEXT = "text/plain";

/** Anthropic accepts documents of two types. */
export const documentRule: MediaRule = ({ type }, { mediaType = "" }) =>
  type !== "file" || [PDF, TEXT].includes(mediaType)
    ? undefined
    : `this model takes files of the types ${PDF} and ${TEXT}, got ${cut(mediaType, 80)}`;

function fileSource(mediaType: string | undefined, data: string): object {
  if (mediaType === PDF) return { type: "base64", media_type: PDF, data };
  // The API takes the text itself, without a byte order mark.
  const text = new TextDecoder().decode(Buffer.from(data, "base64"));
  return { type: "text", media_type: TEXT, data: text };
}

/** Another provider's ids may have characters that Anthropic refuses. */
const safeId = (id: string): string => (/^[\w-]+$/.test(id) ? id : hashedId(id));
