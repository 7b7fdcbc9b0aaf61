// Estimates the tokens of a prompt's images, audio and files. The estimate is used where a
// provider stated no figures, and for the room in a model's context.
//
// The rules are those of the vendors' documentation. A vendor's own count may differ by model.
// - OpenAI ("Images and vision", "Calculating costs"), also for every provider that speaks its
//   format: an image of `detail: "low"` is 85 tokens. Any other is scaled down to fit 2048 x 2048,
//   then until its shorter side is 768 pixels, and is 85 tokens and 170 for each tile of 512 x 512.
//   Audio in a user's message is one token for each 100 ms ("Managing costs" of the Realtime API).
//   A page of a PDF is given to the model as text and as an image; only the image is counted here,
//   at 765 tokens (1024 x 1024).
// - Anthropic ("Vision"): width x height / 750, after an image with a side of more than 1568 pixels
//   was scaled down to that, and at most about 1600. A page of a PDF ("PDF support") is 1500 to
//   3000 tokens of text, of which 1500 are taken, and an image as large as an image can be.
// - Gemini ("Understand and count tokens"): 258 for an image of at most 384 pixels a side, else 258
//   for each tile of 768 x 768; audio 32 a second; a page of a PDF 258.
//
// An image counts as 1024 x 1024 where only its address is known or its format is unknown. Audio
// other than WAV counts as 128 kbit/s. A PDF has a page for each 50 KiB; a file of which only the
// name or the address is known has 10. Any other file counts as the text that it holds.
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { ChatRequest, ContentPart } from "../../../core/openai/request.ts";
import { asString } from "../../../core/schema/untrusted-json.ts";
import { bytesAt, imageSize, MAX_READS, type ImageSize, type ReadsLeft } from "./image-size.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.mediaTokens, mediaTokens);
}

/** How a vendor counts media. */
interface MediaRules {
  /** The tokens of a second of audio. */
  readonly tokensASecond: number;
  /** The tokens of a page of a PDF. */
  readonly tokensAPage: number;
  /** The tokens of an image. `isLow`: the client asked for low detail. */
  imageTokens(size: ImageSize, isLow: boolean): number;
}

const OPENAI: MediaRules = {
  tokensASecond: 10,
  tokensAPage: 765,
  imageTokens({ width, height }, isLow) {
    if (isLow) return 85;
    const fit = Math.min(1, 2_048 / Math.max(width, height));
    const scale = Math.min(fit, 768 / Math.min(width, height));
    return 85 + 170 * tiles(width * scale, height * scale, 512);
  },
};

const ANTHROPIC: MediaRules = {
  tokensASecond: 10,
  tokensAPage: 3_100,
  imageTokens({ width, height }) {
    const scale = Math.min(1, 1_568 / Math.max(width, height));
    return Math.min(1_600, Math.ceil((width * scale * height * scale) / 750));
  },
};

const GEMINI: MediaRules = {
  tokensASecond: 32,
  tokensAPage: 258,
  imageTokens: ({ width, height }) =>
    258 * (Math.max(width, height) <= 384 ? 1 : tiles(width, height, 768)),
};

/** The vendors whose rules are known. */
const RULES = new Map([
  ["openai", OPENAI],
  ["anthropic", ANTHROPIC],
  ["gemini", GEMINI],
]);

/**
 * Squares of `side` pixels that cover an image. Scaling leaves fractions of a pixel, which need no
 * tile.
 */
const tiles = (width: number, height: number, side: number): number =>
  Math.ceil(Math.round(width) / side) * Math.ceil(Math.round(height) / side);

/** A content part that is not text. */
type MediaPart = Exclude<ContentPart, { type: "text" }>;

const COMPRESSED_AUDIO_BYTES_A_SECOND = 16_000;
const PDF_BYTES_A_PAGE = 50 * 1024;
const UNKNOWN_PAGES = 10;
/** In a file that counts as text. */
const BYTES_A_TOKEN = 4;

/** The tokens of all media in a request. `vendor`: an unknown one counts as OpenAI. */
export function mediaTokens(chat: ChatRequest, vendor: string): number {
  const rules = RULES.get(vendor) ?? OPENAI;
  const reads = { left: MAX_READS };
  const media = chat.messages.flatMap(({ content }) =>
    Array.isArray(content) ? content.filter((part) => part.type !== "text") : [],
  );
  return media.reduce((sum, part) => sum + mediumTokens(part, rules, reads), 0);
}

function mediumTokens(part: MediaPart, rules: MediaRules, reads: ReadsLeft): number {
  switch (part.type) {
    case "image_url": {
      const { url, detail } = part.image_url;
      const { base64 = "" } = dataIn(url) ?? {};
      return rules.imageTokens(imageSize(base64, reads), detail === "low");
    }
    case "input_audio":
      return audioTokens(asString(part.input_audio["data"]) ?? "", rules);
    case "file":
      return fileTokens(part.file, rules, reads);
  }
}

function fileTokens(file: MediaFile, rules: MediaRules, reads: ReadsLeft): number {
  const text = asString(file["file_data"]) ?? "";
  if (text === "" || /^https?:/i.test(text)) return UNKNOWN_PAGES * rules.tokensAPage;
  // Some clients send the base64 text alone. Then the name says what it is.
  const isPdfByName = /\.pdf$/i.test(asString(file["filename"])?.slice(-4) ?? "");
  const { type, base64 } = dataIn(text) ?? {
    type: isPdfByName ? "application/pdf" : "",
    base64: text,
  };
  if (type.startsWith("audio/")) return audioTokens(base64, rules);
  if (type.startsWith("image/")) return rules.imageTokens(imageSize(base64, reads), false);
  const bytes = Buffer.byteLength(base64, "base64");
  if (type !== "application/pdf") return Math.ceil(bytes / BYTES_A_TOKEN);
  return Math.max(1, Math.ceil(bytes / PDF_BYTES_A_PAGE)) * rules.tokensAPage;
}

type MediaFile = Extract<MediaPart, { type: "file" }>["file"];

/** The media type and the data of a `data:` address. Undefined: it is another kind of address. */
function dataIn(url: string): { readonly type: string; readonly base64: string } | undefined {
  // Only the beginning is searched: the parameters of an address may be megabytes.
  const match = /^data:([^;,]*)[^,]*,/i.exec(url.slice(0, 256));
  return match ? { type: match[1]!.toLowerCase(), base64: url.slice(match[0].length) } : undefined;
}

function audioTokens(base64: string, { tokensASecond }: MediaRules): number {
  const head = bytesAt(base64, 0, 34);
  const isWav = head.length === 34 && head.toString("latin1", 8, 16) === "WAVEfmt ";
  // Decoders use the rate and the size of the samples. Few look at the stated product.
  const counted = isWav ? head.readUInt32LE(24) * head.readUInt16LE(32) : 0;
  const stated = isWav ? Math.min(head.readUInt32LE(28), counted) : 0;
  // From 4 bits at 8 kHz to more than 32 bits at 192 kHz in two channels. No other figure can be
  // the speed of a WAV.
  const isSpeed = stated >= 4_000 && stated <= 2_000_000;
  const bytesASecond = isSpeed ? stated : COMPRESSED_AUDIO_BYTES_A_SECOND;
  return Math.ceil((Buffer.byteLength(base64, "base64") / bytesASecond) * tokensASecond);
}
