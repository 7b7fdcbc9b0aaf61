// How many tokens of a prompt its media are. This is an estimate, used where a provider gave no
// figures and for the room in a model's context.
//
// The rules are what the vendors publish in their documentation. Each vendor's own count may depart
// from them by model.
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
// A file that counts as text is four bytes a token.
import type { ChatRequest } from "../../../core/openai/request.ts";
import { mediumTokens, type MediaRules } from "./media.ts";

/**
 * Reads of image headers in one request: a JPEG can have any number of segments before its size.
 */
const MAX_READS = 20_000;

const OPENAI: MediaRules = {
  tokensASecond: 10,
  tokensAPage: 765,
  imageTokens(width, height, isLow) {
    if (isLow) return 85;
    const fit = Math.min(1, 2_048 / Math.max(width, height));
    const shorter = Math.min(width, height) * fit;
    const scale = fit * Math.min(1, 768 / shorter);
    return 85 + 170 * tiles(width * scale, height * scale, 512);
  },
};

const ANTHROPIC: MediaRules = {
  tokensASecond: 10,
  tokensAPage: 3_100,
  imageTokens(width, height) {
    const scale = Math.min(1, 1_568 / Math.max(width, height));
    return Math.min(1_600, Math.ceil((width * scale * height * scale) / 750));
  },
};

const GEMINI: MediaRules = {
  tokensASecond: 32,
  tokensAPage: 258,
  imageTokens: (width, height) =>
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

/** The tokens of all media in a request. `vendor`: an unknown one counts as OpenAI. */
export function mediaTokens(chat: ChatRequest, vendor: string): number {
  const rules = RULES.get(vendor) ?? OPENAI;
  const reads = { left: MAX_READS };
  let tokens = 0;
  for (const { content } of chat.messages) {
    if (typeof content === "string" || content === null) continue;
    for (const part of content)
      if (part.type !== "text") tokens += mediumTokens(part, rules, reads);
  }
  return tokens;
}
