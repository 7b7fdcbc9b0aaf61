// Images and files in a conversation: by address, or as data in a `data:` address.
import type { MediaPart, Message } from "../../../core/openai/request.ts";
import { asString } from "../../../core/schema/untrusted-json.ts";

import type { FindLack } from "../../routing/capabilities/index.ts";

export interface Media {
  readonly url: string;
  /**
   * The media type of a `data:` address. For an image, the type that its data shows: OpenAI ignores
   * a wrong type such as `image/jpg`, but others refuse it. Undefined: it is no `data:` address.
   */
  readonly mediaType: string | undefined;
  /** The part of a `data:` address after its comma, in base64. */
  readonly data: string;
}

/** Why a format does not accept a part, for the client. Undefined: it does. */
export type MediaRule = (part: MediaPart, media: Media) => string | undefined;

/**
 * A listener of the hook `findLack`, for the format `dialect`: drops candidates that do not
 * accept the media of a request. `rule` absent: they accept all that can be read.
 */
export const findMediaLack =
  (dialect: string, rule?: MediaRule): FindLack =>
  ({ provider }, { messages, native, clientPath = (path) => [...path] }) => {
    // A native request passes unchanged.
    if (provider.dialect !== dialect || native?.dialect === dialect) return undefined;
    for (const [index, { content }] of messages.entries()) {
      const [message] = mediaIn(content).flatMap((part) => faultOf(part, rule) ?? []);
      if (message !== undefined)
        return { path: clientPath(["messages", index, "content"]), message };
    }
    return undefined;
  };

/** The images and files of a message. */
const mediaIn = (content: Message["content"]): readonly MediaPart[] =>
  typeof content === "string" || !content
    ? []
    : content.filter((part) => part.type === "image_url" || part.type === "file");

function faultOf(part: MediaPart, rule: MediaRule = () => undefined): string | undefined {
  const media = mediaOf(part);
  if (media) return rule(part, media);
  const needed = part.type === "file" ? "file_data" : "an address, or data,";
  return `this model takes ${needed} as in 'data:TYPE;base64,DATA'`;
}

/**
 * The media of a part. Undefined: it has neither data in base64 nor an address; findMediaLack drops
 * all candidates of a request that has such a part.
 */
export function mediaOf(item: MediaPart): Media | undefined {
  const file = item.type === "file" ? asString(item.file["file_data"]) : undefined;
  const url = item.type === "image_url" ? item.image_url.url : (file ?? "");
  const comma = url.indexOf(",");
  const mediaType = comma === -1 ? undefined : mediaTypeIn(url.slice(0, comma));
  if (mediaType === undefined && (item.type !== "image_url" || isDataUrl(url))) return undefined;
  const data = url.slice(comma + 1);
  // Some clients send audio as an image. It keeps the type that it states.
  const isImage = mediaType?.startsWith("image/");
  const shown = isImage ? IMAGES.find(([start]) => data.startsWith(start))?.[1] : undefined;
  return { url, mediaType: shown ?? mediaType, data };
}

/** How images begin in base64, with their types. */
const IMAGES = [
  ["/9j/", "image/jpeg"],
  ["iVBORw0KGgo", "image/png"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
] as const;

const DATA = "data:";
const BASE64 = ";base64";
const isDataUrl = (url: string): boolean => url.slice(0, DATA.length).toLowerCase() === DATA;

/**
 * The media type in the head of a `data:` address, `data:image/png;base64`, in lower case.
 * Undefined if it is malformed. Not a regular expression: the client's parameters may be megabytes,
 * and backtracking would exhaust the stack.
 */
function mediaTypeIn(head: string): string | undefined {
  const semicolon = head.indexOf(";");
  const isBase64 = isDataUrl(head) && head.slice(-BASE64.length).toLowerCase() === BASE64;
  if (!isBase64 || semicolon <= DATA.length || head.includes(";;")) return undefined;
  return head.slice(DATA.length, semicolon).toLowerCase();
}
