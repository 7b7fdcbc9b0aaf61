// Estimates the most that a request can cost, and its tokens. If the client states no max_tokens,
// there are several offers with replies of different length, and the provider gets the bound of the
// offer that is held. The cost is an upper bound, so that no budget is overspent. The tokens are
// only an estimate, as vendors count them for their own rate limits.
import { integer } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Caller } from "../../../core/accounts/keyring.ts";
import type { AcceptedRequest } from "../../../core/chat/context.ts";
import type { Config } from "../../../core/config.ts";
import { estimatePrompt } from "../../../core/ledger/meter.ts";
import { picoOf, type Price } from "../../../core/ledger/price.ts";
import type { ChatRequest, ContentPart, Message } from "../../../core/openai/request.ts";
import type { Attempt } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { asArray, asCount, asObject, asString } from "../../../core/schema/untrusted-json.ts";

/** An amount that may be held for a request, enough for each of its candidates. */
export interface Offer {
  /** The amount that each budget must have free, in pico-units. No less than `cost`. */
  readonly room: bigint;
  /** The amount to hold: the most that the request can cost, in pico-units. */
  readonly cost: bigint;
  /** The tokens of the reply that `cost` pays for. Absent: the client's bound applies. */
  readonly maxTokens?: number;
}

/** The estimate of a request, whichever candidate serves it. */
export interface Estimate {
  /** At least one, the smallest last. The first for which there is room is held. */
  readonly offers: readonly Offer[];
  /** The estimated tokens of the prompt and the reply. They count against token limits. */
  readonly tokens: number;
}

/**
 * The tokens of a reply that count against token limits if the client states no max_tokens. A lower
 * maximum of the model counts instead.
 */
export const assumedOutputTokens = defineSetting("limits.assumed_output_tokens", 1_000, () =>
  integer(1, 10_000_000),
);

/** Tokens that a provider adds to a prompt with tools. */
const TOKENS_FOR_TOOLS = 600;
/** The most tokens of a tool whose description the provider adds, by its documentation. */
const TOKENS_FOR_KNOWN_TOOL = 1_300;
/** Tokens that a dialect may add to the bound of a reply, so that the model can think. */
const TOKENS_FOR_THINKING = 1_024;
/** The shortest reply that is offered, in tokens: a shorter one is not worth its prompt. */
const MIN_OUTPUT = 256;
/** An offer must leave room for others: this many times the cost of its reply must be free. */
const REPLIES_THAT_FIT = 4n;

/** The cost of the request with one candidate, in pico-units. */
interface CandidateCost {
  /** The cost without the reply. */
  readonly fixed: bigint;
  /** The cost of each token of the reply. */
  readonly perToken: bigint;
  /** The most tokens of the reply. */
  readonly maxTokens: number;
}

/** The request whose cost is estimated. */
type Estimated = Pick<AcceptedRequest, "chat" | "candidates" | "config"> & {
  readonly caller: Pick<Caller, "account">;
};

/** Estimates a request. `hasBudget`: a budget needs the cost; if not, only `tokens` is right. */
export function estimateOf(request: Estimated, hasBudget: boolean): Estimate {
  const { chat, candidates, config, caller } = request;
  const assumed = assumedOutputTokens.of(config);
  const recoveries = recoveriesOf(chat, config);
  // Serializing a large request takes milliseconds, and only a budget needs its size.
  const serialized = hasBudget ? mostPromptTokens(chat) : 0;
  let tokens = 0;
  const costs = candidates.map((model) => {
    const media = model.provider.countMedia(chat);
    const maxTokens = maxOutput(chat, model);
    const thinking = model.reasoning && chat.wantsThinking ? TOKENS_FOR_THINKING : 0;
    const counted = chat.maxTokens === undefined ? Math.min(maxTokens, assumed) : maxTokens;
    tokens = Math.max(tokens, estimatePrompt(chat, () => media) + counted + thinking);
    const reasoned = hasBudget ? mostReasonedTokens(chat, model, caller.account) : 0;
    const prompt = Math.max(serialized, reasoned) + media;
    // An attempt that continues a reply is billed for its beginning as a part of the prompt.
    const longest = prompt + (recoveries > 0 ? maxTokens + thinking : 0);
    const { output = 0, ...inputPrices }: Partial<Price> = model.highestPrice(longest) ?? {};
    // Each token of the prompt counts at the highest input price.
    const input = Math.max(0, ...Object.values(inputPrices).map((price) => price ?? 0));
    const perToken = picoOf(recoveries + 1, output) + picoOf(recoveries, input);
    const prompts = BigInt(recoveries + 1) * picoOf(prompt, input);
    return { fixed: prompts + BigInt(thinking) * perToken, perToken, maxTokens };
  });
  const isUnbounded = hasBudget && chat.maxTokens === undefined;
  return { offers: isUnbounded ? shrinkingOffers(costs) : [fullOffer(costs)], tokens };
}

/** The most tokens of a reply, without those that a dialect may add. */
function maxOutput({ maxTokens }: ChatRequest, model: Model): number {
  if (maxTokens === undefined) return longestReply(model);
  return Math.min(model.traits.max_output_tokens ?? Infinity, maxTokens);
}

/** The cost of the most expensive candidate with a reply of `tokens` tokens. */
function costWith(costs: readonly CandidateCost[], tokens: number): bigint {
  let highest = 0n;
  for (const { fixed, perToken, maxTokens } of costs) {
    const cost = fixed + BigInt(Math.min(tokens, maxTokens)) * perToken;
    if (cost > highest) highest = cost;
  }
  return highest;
}

/** The whole cost of the request. The provider gets no bound beyond the client's. */
function fullOffer(costs: readonly CandidateCost[]): Offer {
  const cost = costWith(costs, Infinity);
  return { room: cost, cost };
}

/**
 * Offers the longest reply, half of it, a quarter, and so on. Each must leave room for others. The
 * last offer, a reply of MIN_OUTPUT tokens, may take everything that is free.
 */
function shrinkingOffers(costs: readonly CandidateCost[]): readonly Offer[] {
  if (costs.every(({ perToken }) => perToken === 0n)) return [fullOffer(costs)];
  const prompt = costWith(costs, 0);
  const longest = Math.max(...costs.map((each) => each.maxTokens));
  const offers: Offer[] = [];
  for (let maxTokens = longest; maxTokens > MIN_OUTPUT; maxTokens = Math.floor(maxTokens / 2)) {
    const cost = costWith(costs, maxTokens);
    offers.push({ room: prompt + REPLIES_THAT_FIT * (cost - prompt), cost, maxTokens });
  }
  const maxTokens = Math.min(longest, MIN_OUTPUT);
  const cost = costWith(costs, maxTokens);
  return [...offers, { room: cost, cost, maxTokens }];
}

/**
 * How many attempts may continue a broken stream. Each of them is billed; other failed attempts are
 * not. The settings belong to `recovery`: if it is absent, so are they, and none may.
 */
function recoveriesOf(chat: ChatRequest, { aliases, models, retry }: Config): number {
  const { recovery } = asObject(aliases.get(chat.model) ?? models.get(chat.model));
  if (recovery !== "continue" || !chat.stream) return 0;
  return asCount(asObject(retry)["max_recoveries"]) ?? 0;
}

/** The most tokens of a prompt, in the gateway's format or in that of the client's API. */
function mostPromptTokens(chat: ChatRequest): number {
  const { messages, tools, response_format, native } = chat;
  const tokens = tokensIn({ messages: messages.map(withoutMedia), tools, response_format }, chat);
  return native ? Math.max(tokens, tokensIn(native.body, chat) - mediaIn(messages)) : tokens;
}

/** A message without base64, and without `marked`, which repeats the content. */
function withoutMedia(message: Message): object {
  const { content, marked } = message;
  if (!marked && (typeof content === "string" || !content)) return message;
  const parts = typeof content === "string" ? content : content?.map(withoutBase64);
  return { ...message, content: parts, marked: undefined };
}

/**
 * The most tokens of a prompt as the dialect of a reasoning model writes it. The dialect may add
 * reasoning that preceded earlier tool calls, which the client did not send. 0 if the model does
 * not reason or there were no calls, or if the dialect cannot write the request: then the model is
 * not tried.
 */
function mostReasonedTokens(
  chat: ChatRequest,
  { provider, ...model }: Model,
  account: string,
): number {
  const isCall = (message: Message) =>
    message.role === "assistant" && message.tool_calls.length > 0;
  if (!model.reasoning || !chat.messages.some(isCall)) return 0;
  try {
    const { body } = provider.dialectFor(account).request(chat, model);
    return tokensIn(body, chat) - mediaIn(chat.messages);
  } catch {
    return 0;
  }
}

/**
 * The most tokens of a prompt. In the tokenizers in use a token is at least one byte, so each byte
 * of the JSON counts as one. Its names and punctuation outweigh what a provider adds to a message.
 */
function tokensIn(body: object, { tools, native }: ChatRequest): number {
  const declared = [...(tools ?? []), ...asArray(native?.body["tools"])];
  const known = declared.filter(isKnownTool).length * TOKENS_FOR_KNOWN_TOOL;
  const forTools = declared.length > 0 ? TOKENS_FOR_TOOLS + known : 0;
  return Buffer.byteLength(JSON.stringify(body)) + forTools;
}

/** Whether the provider itself describes a tool. Its type ends with a date: `bash_20250124`. */
const isKnownTool = (tool: unknown): boolean =>
  /_\d{8}$/.test(asString(asObject(tool)["type"]) ?? "");

/**
 * The characters of base64 in the media of a conversation, which countMedia() counts. Base64 in any
 * other place is a part of the prompt.
 */
function mediaIn(messages: readonly Message[]): number {
  const parts = messages.flatMap(({ content }) =>
    typeof content === "string" ? [] : (content ?? []),
  );
  return parts.reduce((length, part) => length + base64Length(mediaOf(part)?.text ?? ""), 0);
}

/** The member of a content part that has its data or its URL. Undefined: it has none. */
function mediaOf(part: ContentPart) {
  const inner = asObject(asObject(part)[part.type]);
  const name = ["url", "data", "file_data"].find((each) => typeof inner[each] === "string");
  return name === undefined ? undefined : { inner, name, text: asString(inner[name]) ?? "" };
}

function withoutBase64(part: ContentPart): object {
  const media = mediaOf(part);
  if (!media) return part;
  const { inner, name, text } = media;
  const head = text.slice(0, text.length - base64Length(text));
  return { ...part, [part.type]: { ...inner, [name]: head } };
}

/** The length of base64, without the head of a data URI. Other APIs have no such head. URL: 0. */
const base64Length = (text: string): number =>
  text.startsWith("http") ? 0 : text.length - text.indexOf(",") - 1;

// An offer has one bound for all candidates, which the candidate with the longest replies decides.
// For each other model the hold pays only up to that model's own maximum. So the bound that is sent
// to a model is lowered to its maximum.

/** For models without a known maximum: most providers refuse requests for too many tokens. */
const UNKNOWN_OUTPUT = 8_192;

/** The most tokens of a model's reply if the client states no bound. */
function longestReply({ traits, contextTokens = Infinity }: Model): number {
  const { max_output_tokens, default_output_tokens = UNKNOWN_OUTPUT } = traits;
  return max_output_tokens ?? Math.min(default_output_tokens, contextTokens);
}

/** Whether a reply is bounded, but not by the client. */
const isBoundByBudget = ({ max_tokens, max_completion_tokens, maxTokens }: ChatRequest): boolean =>
  maxTokens !== undefined && max_tokens === undefined && max_completion_tokens === undefined;

/** Completes requests with the bound of a budget lowered to what each model can reply. */
export const aroundBounds =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    if (!isBoundByBudget(chat)) return complete(chat, candidates, deliver, context);
    const attempt = withLoweredBound(context.attempt);
    return complete(chat, candidates, deliver, { ...context, attempt });
  };

/**
 * The same attempt, with the bound lowered to the model's maximum, and to the room that the prompt
 * leaves in its window: providers refuse a request for more.
 */
const withLoweredBound =
  (attempt: Attempt): Attempt =>
  (chat, serving, deliver, options) => {
    const { model } = serving;
    const most = Math.min(longestReply(model), roomIn(model, chat));
    const maxTokens = Math.min(chat.maxTokens ?? Infinity, most);
    return attempt({ ...chat, maxTokens }, serving, deliver, options);
  };

/** A bound is never lowered below this for the window, in tokens: the estimate may be too high. */
const LEAST_OUTPUT = 256;

/**
 * The tokens that a prompt leaves for the reply. The prompt may be 50 % longer than its estimate,
 * so half the estimate is kept free too, but at most half of the rest of the window.
 */
function roomIn({ contextTokens, provider }: Model, chat: ChatRequest): number {
  if (contextTokens === undefined) return Infinity;
  const prompt = estimatePrompt(chat, provider.countMedia);
  const rest = contextTokens - prompt;
  return Math.max(LEAST_OUTPUT, Math.floor(rest - Math.min(prompt, rest) / 2));
}
