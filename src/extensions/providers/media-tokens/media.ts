// The properties of an image, audio clip or file in a request on which its tokens depend.
//
// The size of an image is read from its first bytes. It counts as 1024 x 1024 where only its
// address is known or its format is unknown. The length of a WAV is read from its header; other
// audio counts as 128 kbit/s. A PDF has a page for each 50 KiB; a file of which only the name or
// the address is known has 10. A file of another type, or of none, counts as the text that it
// holds.
import type { ContentPart } from "../../../core/openai/request.ts";
import { asString } from "../../../core/schema/untrusted-json.ts";
import { byteLength, bytesAt } from "./base64.ts";
import { imageSize, type ReadBudget } from "./image-size.ts";

export type Medium =
  | {
      readonly type: "image";
      /** In pixels. */
      readonly width: number;
      readonly height: number;
      /** The client asked for low detail. */
      readonly low: boolean;
    }
  | { readonly type: "audio"; readonly seconds: number }
  | { readonly type: "pages"; readonly count: number }
  | { readonly type: "text"; readonly bytes: number };

/** A content part that is not text. */
export type MediaPart = Exclude<ContentPart, { type: "text" }>;

const UNKNOWN_SIDE = 1_024;
/** No vendor takes larger images, and a header may claim anything. */
const MAX_SIDE = 8_192;
const COMPRESSED_AUDIO_BYTES_A_SECOND = 16_000;
const PDF = "application/pdf";
const PDF_BYTES_A_PAGE = 50 * 1024;
const UNKNOWN_PAGES = 10;
/** The media type of a `data:` address is looked for in this many characters. */
const MAX_HEAD_CHARS = 256;

export function mediumOf(part: MediaPart, budget: ReadBudget): Medium {
  if (part.type === "image_url") {
    const data = dataIn(part.image_url.url);
    return imageOf(data?.base64 ?? "", part.image_url.detail === "low", budget);
  }
  if (part.type === "input_audio") return audioOf(asString(part.input_audio["data"]) ?? "");
  return fileOf(part.file, budget);
}

function fileOf(file: Readonly<Record<string, unknown>>, budget: ReadBudget): Medium {
  const text = asString(file["file_data"]) ?? "";
  const name = asString(file["filename"]) ?? "";
  if (text === "" || /^https?:/i.test(text)) return { type: "pages", count: UNKNOWN_PAGES };
  // Some clients send the base64 text alone. Then the name says what it is.
  const mediaType = name.toLowerCase().endsWith(".pdf") ? PDF : "";
  const data = dataIn(text) ?? { mediaType, base64: text };
  if (data.mediaType.startsWith("image/")) return imageOf(data.base64, false, budget);
  if (data.mediaType.startsWith("audio/")) return audioOf(data.base64);
  const bytes = byteLength(data.base64);
  if (data.mediaType === PDF)
    return { type: "pages", count: Math.max(1, Math.ceil(bytes / PDF_BYTES_A_PAGE)) };
  return { type: "text", bytes };
}

/** The two halves of a `data:` address. Undefined: it is another kind of address. */
function dataIn(url: string): { readonly mediaType: string; readonly base64: string } | undefined {
  const head = url.slice(0, MAX_HEAD_CHARS);
  const comma = head.indexOf(",");
  if (!/^data:/i.test(head) || comma === -1) return undefined;
  const mediaType = head.slice("data:".length, comma).split(";", 1)[0]!.trim().toLowerCase();
  return { mediaType, base64: url.slice(comma + 1) };
}

function imageOf(base64: string, low: boolean, budget: ReadBudget): Medium {
  const { width, height } = imageSize(base64, budget) ?? { width: 0, height: 0 };
  if (width === 0 || height === 0)
    return { type: "image", width: UNKNOWN_SIDE, height: UNKNOWN_SIDE, low };
  return {
    type: "image",
    width: Math.min(width, MAX_SIDE),
    height: Math.min(height, MAX_SIDE),
    low,
  };
}

function audioOf(base64: string): Medium {
  const head = bytesAt(base64, 0, 34);
  const isWav = head.length === 34 && head.toString("latin1", 8, 16) === "WAVEfmt ";
  // Decoders go by the rate and the size of the samples, and few look at their product.
  const counted = isWav ? head.readUInt32LE(24) * head.readUInt16LE(32) : 0;
  const stated = isWav ? Math.min(head.readUInt32LE(28), counted) : 0;
  // From 4 bits at 8 kHz to more than 32 bits at 192 kHz in two channels. No other figure can be
  // the speed of a WAV.
  const isSpeed = stated >= 4_000 && stated <= 2_000_000;
  const bytesASecond = isSpeed ? stated : COMPRESSED_AUDIO_BYTES_A_SECOND;
  return { type: "audio", seconds: byteLength(base64) / bytesASecond };
}
