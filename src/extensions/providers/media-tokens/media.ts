// The tokens of an image, audio clip or file in a request.
//
// The size of an image is read from its first bytes. It counts as 1024 x 1024 where only its
// address is known or its format is unknown. The length of a WAV is read from its header; other
// audio counts as 128 kbit/s. A PDF has a page for each 50 KiB; a file of which only the name or
// the address is known has 10. A file of another type, or of none, counts as the text that it
// holds.
import type { ContentPart } from "../../../core/openai/request.ts";
import { asString } from "../../../core/schema/untrusted-json.ts";
import { byteLength, bytesAt } from "./base64.ts";
import { imageSize, type ImageSize, type ReadsLeft } from "./image-size.ts";

/** How a vendor counts media. */
export interface MediaRules {
  /** The tokens of a second of audio. */
  readonly tokensASecond: number;
  /** The tokens of a page of a PDF. */
  readonly tokensAPage: number;
  /** The tokens of an image. The sides are in pixels. `isLow`: the client asked for low detail. */
  imageTokens(width: number, height: number, isLow: boolean): number;
}

/** A content part that is not text. */
type MediaPart = Exclude<ContentPart, { type: "text" }>;

const UNKNOWN_SIDE = 1_024;
/** No vendor takes larger images, and a header may claim anything. */
const MAX_SIDE = 8_192;
const COMPRESSED_AUDIO_BYTES_A_SECOND = 16_000;
const PDF = "application/pdf";
const PDF_BYTES_A_PAGE = 50 * 1024;
const UNKNOWN_PAGES = 10;
/** Of a file that counts as text. */
const BYTES_A_TOKEN = 4;
/** The media type of a `data:` address is looked for in this many characters. */
const MAX_HEAD_CHARS = 256;

export function mediumTokens(part: MediaPart, rules: MediaRules, reads: ReadsLeft): number {
  if (part.type === "file") return fileTokens(part.file, rules, reads);
  if (part.type === "input_audio")
    return audioTokens(asString(part.input_audio["data"]) ?? "", rules);
  const { url, detail } = part.image_url;
  const size = sizeOf(dataIn(url)?.base64 ?? "", reads);
  return rules.imageTokens(size.width, size.height, detail === "low");
}

function fileTokens(
  file: Readonly<Record<string, unknown>>,
  rules: MediaRules,
  reads: ReadsLeft,
): number {
  const text = asString(file["file_data"]) ?? "";
  const name = asString(file["filename"]) ?? "";
  if (text === "" || /^https?:/i.test(text)) return UNKNOWN_PAGES * rules.tokensAPage;
  // Some clients send the base64 text alone. Then the name says what it is.
  const usualType = name.toLowerCase().endsWith(".pdf") ? PDF : "";
  const { mediaType, base64 } = dataIn(text) ?? { mediaType: usualType, base64: text };
  if (mediaType.startsWith("audio/")) return audioTokens(base64, rules);
  if (mediaType.startsWith("image/")) {
    const { width, height } = sizeOf(base64, reads);
    return rules.imageTokens(width, height, false);
  }
  const bytes = byteLength(base64);
  if (mediaType !== PDF) return Math.ceil(bytes / BYTES_A_TOKEN);
  return Math.max(1, Math.ceil(bytes / PDF_BYTES_A_PAGE)) * rules.tokensAPage;
}

/** The two halves of a `data:` address. Undefined: it is another kind of address. */
function dataIn(url: string): { readonly mediaType: string; readonly base64: string } | undefined {
  const head = url.slice(0, MAX_HEAD_CHARS);
  const comma = head.indexOf(",");
  if (!/^data:/i.test(head) || comma === -1) return undefined;
  const mediaType = head.slice("data:".length, comma).split(";", 1)[0]!.trim().toLowerCase();
  return { mediaType, base64: url.slice(comma + 1) };
}

function sizeOf(base64: string, reads: ReadsLeft): ImageSize {
  const { width, height } = imageSize(base64, reads) ?? { width: 0, height: 0 };
  if (width === 0 || height === 0) return { width: UNKNOWN_SIDE, height: UNKNOWN_SIDE };
  return { width: Math.min(width, MAX_SIDE), height: Math.min(height, MAX_SIDE) };
}

function audioTokens(base64: string, { tokensASecond }: MediaRules): number {
  const head = bytesAt(base64, 0, 34);
  const isWav = head.length === 34 && head.toString("latin1", 8, 16) === "WAVEfmt ";
  // Decoders go by the rate and the size of the samples, and few look at their product.
  const counted = isWav ? head.readUInt32LE(24) * head.readUInt16LE(32) : 0;
  const stated = isWav ? Math.min(head.readUInt32LE(28), counted) : 0;
  // From 4 bits at 8 kHz to more than 32 bits at 192 kHz in two channels. No other figure can be
  // the speed of a WAV.
  const isSpeed = stated >= 4_000 && stated <= 2_000_000;
  const bytesASecond = isSpeed ? stated : COMPRESSED_AUDIO_BYTES_A_SECOND;
  return Math.ceil((byteLength(base64) / bytesASecond) * tokensASecond);
}
