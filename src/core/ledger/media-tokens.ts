// How many tokens of a prompt its media are: an estimate for the books where a provider gave no figures, and for the room in a context.
//
// The rules are what the vendors publish in their documentation; each vendor's own count may depart from them by model.
// - OpenAI ("Images and vision", "Calculating costs"), also for all that speak its format: an image of `detail: "low"` is 85 tokens.
//   Any other is scaled down to fit 2048 x 2048, then until its shorter side is 768 pixels, and is 85 tokens and 170 for each tile of
//   512 x 512. Audio in a user's message is one token for each 100 ms ("Managing costs" of the Realtime API). A page of a PDF is given
//   to the model as text and as an image; only the image is counted here, at 765 tokens (1024 x 1024).
// - Anthropic ("Vision"): width x height / 750, after an image with a side of more than 1568 pixels was scaled down to that, and at
//   most about 1600. A page of a PDF ("PDF support") is 1500 to 3000 tokens of text, of which 1500 are taken, and an image as large as
//   an image can be.
// - Gemini ("Understand and count tokens"): 258 for an image of at most 384 pixels a side, else 258 for each tile of 768 x 768; audio
//   32 a second; a page of a PDF 258.
//
// An image's size is read from the first bytes of its PNG, JPEG, GIF or WebP; where only an address is known, or the format is another,
// it counts as 1024 x 1024. The length of a WAV is read from its header, other audio counts as 128 kbit/s. A PDF has a page for each
// 50 KiB; a file that is only named has 10. A file of another type is counted as the text that it holds, four bytes a token.
import type { ChatRequest, ContentPart } from "../openai/request.ts";
import type { MediaRules } from "../openai/usage.ts";
import { asString } from "../schema/untrusted-json.ts";

/** What one piece of media is, as far as its tokens depend on it. */
type Medium =
  | {
      readonly type: "image";
      readonly width: number;
      readonly height: number;
      readonly low: boolean;
    }
  | { readonly type: "audio"; readonly seconds: number }
  | { readonly type: "pages"; readonly count: number }
  | { readonly type: "text"; readonly bytes: number };

const UNKNOWN_SIDE = 1_024;
/** No vendor takes larger images; a header may claim anything. */
const MAX_SIDE = 8_192;
const COMPRESSED_AUDIO_BYTES_A_SECOND = 16_000;
const PDF_BYTES_A_PAGE = 50 * 1024;
const UNKNOWN_PAGES = 10;
/** How many places may be looked at in all images of a request: a JPEG can have any number of segments before its size. */
const MAX_LOOKS = 20_000;
/** How many of them in one image. */
const MAX_LOOKS_IN_IMAGE = 200;
/** How far the media type of a `data:` address is looked for, in characters. */
const MAX_HEAD_CHARS = 256;

const IMAGE_TOKENS: { readonly [rules in MediaRules]: (width: number, height: number) => number } =
  {
    openai(width, height) {
      const scale = Math.min(1, 2_048 / Math.max(width, height));
      const shorter = Math.min(width, height) * scale;
      const last = scale * Math.min(1, 768 / shorter);
      return 85 + 170 * tiles(width * last, height * last, 512);
    },
    anthropic(width, height) {
      const scale = Math.min(1, 1_568 / Math.max(width, height));
      return Math.min(1_600, Math.ceil((width * scale * height * scale) / 750));
    },
    gemini: (width, height) =>
      258 * (Math.max(width, height) <= 384 ? 1 : tiles(width, height, 768)),
  };
const AUDIO_TOKENS_A_SECOND = { openai: 10, anthropic: 10, gemini: 32 } as const;
const TOKENS_A_PAGE = { openai: 765, anthropic: 3_100, gemini: 258 } as const;
const LOW_DETAIL_TOKENS = 85;

/** Squares of `side` pixels that it takes to cover an image. Scaling leaves fractions of a pixel, which are no tile. */
const tiles = (width: number, height: number, side: number): number =>
  Math.ceil(Math.round(width) / side) * Math.ceil(Math.round(height) / side);

/** The tokens of all media in a request. */
export function mediaTokens(chat: ChatRequest, rules: MediaRules): number {
  const looks = { left: MAX_LOOKS };
  let tokens = 0;
  for (const { content } of chat.messages) {
    if (typeof content === "string" || content === null) continue;
    for (const part of content)
      if (part.type !== "text") tokens += tokensOf(mediumOf(part, looks), rules);
  }
  return tokens;
}

function tokensOf(medium: Medium, rules: MediaRules): number {
  if (medium.type === "audio") return Math.ceil(medium.seconds * AUDIO_TOKENS_A_SECOND[rules]);
  if (medium.type === "pages") return medium.count * TOKENS_A_PAGE[rules];
  if (medium.type === "text") return Math.ceil(medium.bytes / 4);
  if (medium.low && rules === "openai") return LOW_DETAIL_TOKENS;
  return IMAGE_TOKENS[rules](medium.width, medium.height);
}

interface Looks {
  left: number;
}

function mediumOf(part: Exclude<ContentPart, { type: "text" }>, looks: Looks): Medium {
  if (part.type === "image_url") {
    const data = dataIn(part.image_url.url);
    return imageOf(data?.base64 ?? "", part.image_url.detail === "low", looks);
  }
  if (part.type === "input_audio") return audioOf(asString(part.input_audio["data"]) ?? "");
  const data = dataIn(asString(part.file["file_data"]) ?? "");
  if (!data) return { type: "pages", count: UNKNOWN_PAGES };
  const bytes = sizeOf(data.base64);
  if (data.mediaType.startsWith("image/")) return imageOf(data.base64, false, looks);
  if (data.mediaType.startsWith("audio/")) return audioOf(data.base64);
  if (data.mediaType === "application/pdf")
    return { type: "pages", count: Math.max(1, Math.ceil(bytes / PDF_BYTES_A_PAGE)) };
  return { type: "text", bytes };
}

/** The two halves of a `data:` address; undefined if it is another. */
function dataIn(url: string): { readonly mediaType: string; readonly base64: string } | undefined {
  const head = url.slice(0, MAX_HEAD_CHARS);
  const comma = head.indexOf(",");
  if (!/^data:/i.test(head) || comma === -1) return undefined;
  const mediaType = head.slice("data:".length, comma).split(";", 1)[0]!.trim().toLowerCase();
  return { mediaType, base64: url.slice(comma + 1) };
}

/** Bytes that a text in base64 stands for. */
function sizeOf(base64: string): number {
  const unpadded = base64.slice(-2).replaceAll("=", "").length - 2;
  return Math.max(0, Math.floor(((base64.length + unpadded) * 3) / 4));
}

/** Decodes `length` bytes at `offset`, or fewer at the end, and no more of the text than these take. */
function bytesAt(base64: string, offset: number, length: number): Buffer {
  const start = Math.floor(offset / 3) * 4;
  const end = start + Math.ceil((length + 2) / 3) * 4;
  const skipped = offset % 3;
  return Buffer.from(base64.slice(start, end), "base64").subarray(skipped, skipped + length);
}

function imageOf(base64: string, low: boolean, looks: Looks): Medium {
  const { width, height } = sizeIn(base64, looks) ?? { width: 0, height: 0 };
  const known = width > 0 && height > 0;
  return {
    type: "image",
    width: known ? Math.min(width, MAX_SIDE) : UNKNOWN_SIDE,
    height: known ? Math.min(height, MAX_SIDE) : UNKNOWN_SIDE,
    low,
  };
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Width and height in pixels, as the header of an image states them; undefined for any other bytes. */
function sizeIn(base64: string, looks: Looks): Size | undefined {
  if (looks.left <= 0) return undefined;
  looks.left -= 1;
  const head = bytesAt(base64, 0, 30);
  if (head.length < 10) return undefined;
  const ascii = head.toString("latin1");
  if (ascii.startsWith("\x89PNG") && head.length >= 24)
    return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
  if (ascii.startsWith("GIF8"))
    return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
  if (ascii.startsWith("RIFF") && ascii.startsWith("WEBP", 8) && head.length >= 30)
    return webpSize(head, ascii);
  return ascii.startsWith("\xff\xd8") ? jpegSize(base64, looks) : undefined;
}

/** The three forms of WebP: lossy, lossless, and extended, which have the size in different places. */
function webpSize(head: Buffer, ascii: string): Size | undefined {
  const form = ascii.slice(12, 16);
  if (form === "VP8 ")
    return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
  if (form === "VP8X")
    return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
  if (form !== "VP8L") return undefined;
  const bits = head.readUInt32LE(21);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

/** Goes from segment to segment of a JPEG to the one that begins a frame, which states the size. */
function jpegSize(base64: string, looks: Looks): Size | undefined {
  let offset = 2;
  for (let look = 0; look < MAX_LOOKS_IN_IMAGE && looks.left > 0; look += 1) {
    looks.left -= 1;
    const segment = bytesAt(base64, offset, 9);
    if (segment.length < 9 || segment[0] !== 0xff) return undefined;
    const marker = segment[1]!;
    if (isFrame(marker)) return { width: segment.readUInt16BE(7), height: segment.readUInt16BE(5) };
    // A filling byte stands alone; any other segment states its own length.
    offset += marker === 0xff ? 1 : 2 + segment.readUInt16BE(2);
  }
  return undefined;
}

/** Markers C0 to CF begin a frame, but for the tables DHT (C4), JPG (C8) and DAC (CC). */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

function audioOf(base64: string): Medium {
  const bytes = sizeOf(base64);
  const head = bytesAt(base64, 0, 32);
  const isWav = head.length === 32 && head.toString("latin1", 8, 16) === "WAVEfmt ";
  const stated = isWav ? head.readUInt32LE(28) : 0;
  // From 8 kHz of 4 bits to more than 192 kHz of 32 bits in two channels; anything else is no speed of a WAV.
  const isSpeed = stated >= 4_000 && stated <= 2_000_000;
  return { type: "audio", seconds: bytes / (isSpeed ? stated : COMPRESSED_AUDIO_BYTES_A_SECOND) };
}
