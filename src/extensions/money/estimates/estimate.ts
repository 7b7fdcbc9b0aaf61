// What a request can cost at most, and what can be held for it if the client stated no bound of the
// reply: then the provider is told the bound that the hold pays for. The cost is an upper bound, so
// that a budget is not overspent: a token of the tokenizers in use is at least one byte. The tokens
// are an estimate, as vendors count them against their own limits.
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

/** What may be held for a request, whichever candidate serves it. */
export interface Offer {
  /** What each budget must have free, in pico-units of the currency. No less than `cost`. */
  readonly room: bigint;
  /** The most that the request can cost, in pico-units. It is held. */
  readonly cost: bigint;
  /** The tokens of the reply that `cost` pays for. Absent: the client's own bound. */
  readonly maxTokens?: number;
}

/** What a request can take at most. */
export interface Estimate {
  /** At least one, the one that needs least room last. The first is held that has room. */
  readonly offers: readonly Offer[];
  /** The tokens of the prompt by estimate, and of the reply. */
  readonly tokens: number;
}

/**
 * The tokens that a reply is taken to have for tokens per minute where the client states no bound.
 * Less where the model has a lower one.
 */
export const assumedOutputTokens = defineSetting("limits.assumed_output_tokens", 1_000, () =>
  integer(1, 10_000_000),
);

/** What a provider writes into the prompt so that a model can call tools. In tokens. */
const TOKENS_FOR_TOOLS = 600;
/** The most that a tool takes that a provider describes itself, by its documents. In tokens. */
const TOKENS_FOR_KNOWN_TOOL = 1_300;
/** By how much a dialect may raise the bound of a reply so that the model can think. In tokens. */
const TOKENS_FOR_THINKING = 1_024;
/** The default of retry.max_recoveries. */
const MAX_RECOVERIES = 2;
/** A longer prompt is no prompt: the product with a price stays an integer. */
const MAX_TOKENS = 1_000_000_000;
/** A shorter reply is not worth its prompt: a budget that has no room for it has none. */
const LEAST_OUTPUT = 256;
/** A reply without a bound of the client's takes at most this part of what is free: a quarter. */
const PARTS = 4n;

/** What a candidate costs if it serves the request, in pico-units. */
interface CandidateCost {
  /** Without a token of the reply. */
  readonly fixed: bigint;
  /** Each token of the reply. */
  readonly perToken: bigint;
  /** The most tokens of the reply. */
  readonly most: number;
}

/** The request whose cost is estimated. */
type Estimated = Pick<AcceptedRequest, "chat" | "candidates" | "config"> & {
  readonly caller: Pick<Caller, "account">;
};

/** `hasBudget`: the reply is bounded by a budget. */
export function estimateOf(request: Estimated, hasBudget: boolean): Estimate {
  const { chat, candidates, config, caller } = request;
  const assumed = assumedOutputTokens.of(config);
  const recoveries = recoveriesOf(chat, config);
  // Only for a budget: to write a large request takes milliseconds.
  const written = hasBudget ? promptBytes(chat) : 0;
  let tokens = 0;
  const costs = candidates.map((model) => {
    const media = model.provider.countMedia(chat);
    const most = mostOutput(chat, model);
    const thinking = model.reasoning && chat.wantsThinking ? TOKENS_FOR_THINKING : 0;
    const counted = chat.maxTokens === undefined ? Math.min(most, assumed) : most;
    tokens = Math.max(tokens, estimatePrompt(chat, () => media) + counted + thinking);
    const remembered = hasBudget ? rememberedBytes(chat, model, caller.account) : 0;
    const prompt = Math.min(MAX_TOKENS, Math.max(written, remembered) + media);
    const { output = 0, ...inputPrices }: Partial<Price> = model.price ?? {};
    // Each prompt token at the dearest price of a class.
    const input = Math.max(0, ...Object.values(inputPrices).map((price) => price ?? 0));
    // An attempt that continues a reply reads the beginning of it as a part of its prompt.
    const perToken = picoOf(recoveries + 1, output) + picoOf(recoveries, input);
    const prompts = BigInt(recoveries + 1) * picoOf(prompt, input);
    return { fixed: prompts + BigInt(thinking) * perToken, perToken, most };
  });
  const isOpen = hasBudget && chat.maxTokens === undefined;
  return { offers: isOpen ? openOffers(costs) : [fullOffer(costs)], tokens };
}

/** The most tokens of a reply, without what a dialect may add. */
function mostOutput({ maxTokens }: ChatRequest, model: Model): number {
  if (maxTokens === undefined) return Math.min(MAX_TOKENS, longestReply(model));
  return Math.min(MAX_TOKENS, model.traits.max_output_tokens ?? Infinity, maxTokens);
}

/** What the dearest candidate costs with a reply of so many tokens. */
function costWith(costs: readonly CandidateCost[], tokens: number): bigint {
  let highest = 0n;
  for (const { fixed, perToken, most } of costs) {
    const cost = fixed + BigInt(Math.min(tokens, most)) * perToken;
    if (cost > highest) highest = cost;
  }
  return highest;
}

/** Everything that the request can cost, of which the provider is told nothing more. */
function fullOffer(costs: readonly CandidateCost[]): Offer {
  const cost = costWith(costs, MAX_TOKENS);
  return { room: cost, cost };
}

/**
 * The whole reply, or half of it, or a quarter, and so on, as long as that is a part of what is
 * free that leaves room for others; in the end the least, for which everything may be taken.
 */
function openOffers(costs: readonly CandidateCost[]): readonly Offer[] {
  if (costs.every(({ perToken }) => perToken === 0n)) return [fullOffer(costs)];
  const prompt = costWith(costs, 0);
  const most = Math.max(...costs.map((each) => each.most));
  const offers: Offer[] = [];
  for (let maxTokens = most; maxTokens > LEAST_OUTPUT; maxTokens = Math.floor(maxTokens / 2)) {
    const cost = costWith(costs, maxTokens);
    offers.push({ room: prompt + PARTS * (cost - prompt), cost, maxTokens });
  }
  const maxTokens = Math.min(most, LEAST_OUTPUT);
  const cost = costWith(costs, maxTokens);
  return [...offers, { room: cost, cost, maxTokens }];
}

/**
 * How many further attempts may continue a stream that breaks. Each is billed in addition to those
 * before it. Other attempts that fail cost nothing. The settings belong to another extension, which
 * may be absent.
 */
function recoveriesOf(chat: ChatRequest, { aliases, models, retry }: Config): number {
  const { recovery } = asObject(aliases.get(chat.model) ?? models.get(chat.model));
  if (recovery !== "continue" || !chat.stream) return 0;
  return asCount(asObject(retry)["max_recoveries"]) ?? MAX_RECOVERIES;
}

/** The most tokens of a prompt in the format of the gateway or in that of its client. */
function promptBytes(chat: ChatRequest): number {
  const { messages, tools, response_format, native } = chat;
  const own = bytesOf({ messages: messages.map(asPrompt), tools, response_format }, chat);
  return native ? Math.max(own, bytesOf(native.body, chat) - mediaIn(messages)) : own;
}

/** Without base64, and without `marked`, which has the content once more. */
function asPrompt(message: Message): object {
  const { content, marked } = message;
  if (!marked && (typeof content === "string" || !content)) return message;
  const parts = typeof content === "string" ? content : content?.map(withoutBase64);
  return { ...message, content: parts, marked: undefined };
}

/**
 * The bytes of a request as a model that thinks gets it. A dialect may remember the thoughts before
 * a call and send them back with it: they are a part of the prompt that the client did not send. 0
 * where there is nothing to remember, and where the dialect has no words for the request: then the
 * model is not asked.
 */
function rememberedBytes(
  chat: ChatRequest,
  { provider, ...model }: Model,
  account: string,
): number {
  const isCall = (message: Message) =>
    message.role === "assistant" && message.tool_calls.length > 0;
  if (!model.reasoning || !chat.messages.some(isCall)) return 0;
  try {
    const { body } = provider.dialectFor(account).request(chat, model);
    return bytesOf(body, chat) - mediaIn(chat.messages);
  } catch {
    return 0;
  }
}

/**
 * The most tokens of a prompt: a token of the tokenizers in use is at least one byte, so each byte
 * of the JSON counts as one. The names and marks of the JSON are more than what a provider puts
 * around each message.
 */
function bytesOf(body: object, { tools, native }: ChatRequest): number {
  const declared = [...(tools ?? []), ...asArray(native?.body["tools"])];
  const known = declared.filter(isKnownTool).length * TOKENS_FOR_KNOWN_TOOL;
  const forTools = declared.length > 0 ? TOKENS_FOR_TOOLS + known : 0;
  return Buffer.byteLength(JSON.stringify(body)) + forTools;
}

/** Whether the provider describes a tool itself, and its version names it: `bash_20250124`. */
const isKnownTool = (tool: unknown): boolean =>
  /_\d{8}$/.test(asString(asObject(tool)["type"]) ?? "");

/**
 * The characters of base64 in a conversation. Of media, only those are left out that are counted as
 * such: the same base64 text in any other place is a part of the prompt.
 */
function mediaIn(messages: readonly Message[]): number {
  const parts = messages.flatMap(({ content }) =>
    typeof content === "string" ? [] : (content ?? []),
  );
  return parts.reduce((length, part) => length + base64Length(mediaOf(part)?.text ?? ""), 0);
}

/** Of a part that has data, or says where they are: the member that does so. */
function mediaOf(part: ContentPart) {
  if (part.type === "text") return undefined;
  const inner = asObject(asObject(part)[part.type]);
  const names = part.type === "image_url" ? ["url"] : ["data", "file_data"];
  const name = names.find((each) => typeof inner[each] === "string");
  return name === undefined ? undefined : { inner, name, text: asString(inner[name]) ?? "" };
}

function withoutBase64(part: ContentPart): object {
  const media = mediaOf(part);
  if (!media) return part;
  const { inner, name, text } = media;
  const head = text.slice(0, text.length - base64Length(text));
  return { ...part, [part.type]: { ...inner, [name]: head } };
}

/** Without the head of a data URI, which a request in another API has not. */
const base64Length = (text: string): number =>
  text.startsWith("http") ? 0 : text.length - text.indexOf(",") - 1;

// How long a model's reply can be. A budget holds one bound for all candidates, which the one with
// the longest replies decides. For each other model the hold pays only as far as that model's own
// replies go, so the bound that is sent to it is lowered to that.

/** For models without a known bound: most providers refuse a request for too many tokens. */
const UNKNOWN_OUTPUT = 8_192;

/** The most tokens of a reply of this model, where its client states no bound. */
export function longestReply({ traits, contextTokens = Infinity }: Model): number {
  const { max_output_tokens, default_output_tokens = UNKNOWN_OUTPUT } = traits;
  return max_output_tokens ?? Math.min(default_output_tokens, contextTokens);
}

/** Whether the reply is bounded, and not by its client. */
const isBoundByBudget = ({ max_tokens, max_completion_tokens, maxTokens }: ChatRequest): boolean =>
  maxTokens !== undefined && max_tokens === undefined && max_completion_tokens === undefined;

/** Completes requests with the bound of a budget lowered to each model's own maximum. */
export const aroundBounds =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, given) => {
    if (!isBoundByBudget(chat)) return complete(chat, candidates, deliver, given);
    const attempt = within(given.attempt);
    return complete(chat, candidates, deliver, { ...given, attempt });
  };

const within =
  (attempt: Attempt): Attempt =>
  (chat, serving, deliver, options) => {
    const maxTokens = Math.min(chat.maxTokens ?? Infinity, longestReply(serving.model));
    return attempt({ ...chat, maxTokens }, serving, deliver, options);
  };
