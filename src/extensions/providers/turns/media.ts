// Images and files in a conversation: by address, or as data in a `data:` address.
import type { ContentPart } from "../../../core/openai/request.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asString } from "../../../core/schema/untrusted-json.ts";

export interface Media {
  readonly url: string;
  /** That of a `data:` address. Undefined: the address is another one. */
  readonly mediaType: string | undefined;
  /** The part of a `data:` address after its comma, in base64. */
  readonly data: string;
}

type MediaPart = Exclude<ContentPart, { readonly type: "text" }>;

/** Throws a ProviderError if the media have neither data nor an address. */
export function mediaOf(item: MediaPart): Media {
  const file = item.type === "file" ? asString(item.file["file_data"]) : undefined;
  const url = item.type === "image_url" ? item.image_url.url : (file ?? "");
  const comma = url.indexOf(",");
  const mediaType = comma === -1 ? undefined : mediaTypeIn(url.slice(0, comma));
  if (mediaType === undefined && (item.type !== "image_url" || isDataUrl(url)))
    throw new ProviderError(
      "upstream_rejected",
      `the ${item.type} is without data that can be said in this format`,
    );
  return { url, mediaType, data: url.slice(comma + 1) };
}

const DATA = "data:";
const BASE64 = ";base64";
const isDataUrl = (url: string): boolean => url.slice(0, DATA.length).toLowerCase() === DATA;

/**
 * The media type in the head of a `data:` address, `data:image/png;base64`. Undefined if it is
 * malformed. This is no regular expression: the client's parameters may be megabytes, and a
 * backtracking one would exhaust the stack.
 */
function mediaTypeIn(head: string): string | undefined {
  const semicolon = head.indexOf(";");
  const isBase64 = isDataUrl(head) && head.slice(-BASE64.length).toLowerCase() === BASE64;
  if (!isBase64 || semicolon <= DATA.length || head.includes(";;")) return undefined;
  return head.slice(DATA.length, semicolon);
}
