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
import { createReadBudget } from "./image-size.ts";
import { mediumOf, type Medium } from "./media.ts";

/** The vendors whose rules are known. */
type MediaRules = "openai" | "anthropic" | "gemini";

type ImageRule = (width: number, height: number) => number;

/**
 * Reads of image headers in one request: a JPEG can have any number of segments before its size.
 */
const MAX_READS = 20_000;
const AUDIO_TOKENS_A_SECOND = { openai: 10, anthropic: 10, gemini: 32 } as const;
const TOKENS_A_PAGE = { openai: 765, anthropic: 3_100, gemini: 258 } as const;
const LOW_DETAIL_TOKENS = 85;

const IMAGE_TOKENS: { readonly [rules in MediaRules]: ImageRule } = {
  openai(width, height) {
    const fit = Math.min(1, 2_048 / Math.max(width, height));
    const shorter = Math.min(width, height) * fit;
    const scale = fit * Math.min(1, 768 / shorter);
    return 85 + 170 * tiles(width * scale, height * scale, 512);
  },
  anthropic(width, height) {
    const scale = Math.min(1, 1_568 / Math.max(width, height));
    return Math.min(1_600, Math.ceil((width * scale * height * scale) / 750));
  },
  gemini: (width, height) => 258 * (Math.max(width, height) <= 384 ? 1 : tiles(width, height, 768)),
};

/**
 * Squares of `side` pixels that cover an image. Scaling leaves fractions of a pixel, which need no
 * tile.
 */
const tiles = (width: number, height: number, side: number): number =>
  Math.ceil(Math.round(width) / side) * Math.ceil(Math.round(height) / side);

/** The counts of requests in progress: each candidate of an alias needs them. */
const counted = new WeakMap<ChatRequest, Map<string, number>>();

/** The tokens of all media in a request. `rules` is a vendor; an unknown one counts as OpenAI. */
export function mediaTokens(chat: ChatRequest, rules: string): number {
  const counts = counted.get(chat) ?? new Map<string, number>();
  counted.set(chat, counts);
  const tokens = counts.get(rules) ?? countMedia(chat, isKnown(rules) ? rules : "openai");
  counts.set(rules, tokens);
  return tokens;
}

const isKnown = (rules: string): rules is MediaRules => Object.hasOwn(IMAGE_TOKENS, rules);

function countMedia(chat: ChatRequest, rules: MediaRules): number {
  const budget = createReadBudget(MAX_READS);
  let tokens = 0;
  for (const { content } of chat.messages) {
    if (typeof content === "string" || content === null) continue;
    for (const part of content)
      if (part.type !== "text") tokens += tokensOf(mediumOf(part, budget), rules);
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
