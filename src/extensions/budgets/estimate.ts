// The most that a request can cost, and how many tokens it is taken to have, if one of its
// candidates serves it. The cost is an upper bound, so that a budget is not overspent: a token of
// the tokenizers in use is at least one byte. The tokens are an estimate, as vendors count them
// against their own limits.
import type { Config } from "../../core/config.ts";
import { estimatePrompt } from "../../core/ledger/meter.ts";
import { picoOf, type Price } from "../../core/ledger/price.ts";
import { textOf, type ChatRequest } from "../../core/openai/request.ts";
import type { Model } from "../../core/routing/model.ts";
import { asCount, asObject } from "../../core/schema/untrusted-json.ts";
import type { Estimate } from "./contracts.ts";
import { assumedOutputTokens } from "./settings.ts";

/** What a provider puts around each message: its role and marks. In tokens. */
const TOKENS_A_MESSAGE = 16;
/** What a provider writes into the prompt so that a model can call tools. In tokens. */
const TOKENS_FOR_TOOLS = 600;
/** By how much a dialect may raise the bound of a reply so that the model can think. In tokens. */
const TOKENS_FOR_THINKING = 1_024;
/** The default of retry.max_recoveries. */
const MAX_RECOVERIES = 2;
/** A longer prompt is no prompt: the product with a price stays an integer. */
const MAX_TOKENS = 1_000_000_000;

export function estimatesOf(
  chat: ChatRequest,
  candidates: readonly Model[],
  config: Config,
): readonly Estimate[] {
  const bytes = Math.max(promptBytes(chat), nativeBytes(chat));
  const assumedOutput = assumedOutputTokens.of(config);
  const recoveries = recoveriesOf(chat, config);
  return candidates.map((model) => {
    const output = outputOf(chat, model, assumedOutput);
    const media = model.provider.countMedia(chat);
    const prompt = Math.min(MAX_TOKENS, bytes + media);
    const estimated = estimatePrompt(chat, () => media);
    return {
      model: model.name,
      cost: mostOf(prompt, output, recoveries, model.price),
      tokens: estimated + output,
      prompt: {
        cost: model.price ? picoOf(estimated, model.price.input_cache_miss) : 0n,
        tokens: estimated,
      },
    };
  });
}

/** The most tokens of a reply. */
function outputOf(chat: ChatRequest, { traits, reasoning }: Model, assumed: number): number {
  const { max_output_tokens: most = Infinity, default_output_tokens = assumed } = traits;
  const stated = Math.min(chat.maxTokens ?? Infinity, most);
  const bound = stated === Infinity ? default_output_tokens : stated;
  const thinking = reasoning && chat.wantsThinking ? TOKENS_FOR_THINKING : 0;
  return Math.min(MAX_TOKENS, bound + thinking);
}

/**
 * How often another attempt may go on with a stream that broke. Each is billed beside those before
 * it. All other attempts but the last cost nothing. The settings are those of another extension,
 * which need not be there.
 */
function recoveriesOf(chat: ChatRequest, { aliases, models, retry }: Config): number {
  const { recovery } = asObject(aliases.get(chat.model) ?? models.get(chat.model));
  if (recovery !== "continue" || !chat.stream) return 0;
  return asCount(asObject(retry)["max_recoveries"]) ?? MAX_RECOVERIES;
}

/**
 * Each prompt token at the dearest price of a class. An attempt that goes on with a reply reads
 * what there is of it.
 */
function mostOf(
  prompt: number,
  output: number,
  recoveries: number,
  price: Price | undefined,
): bigint {
  if (!price) return 0n;
  const { output: outputPrice, ...inputPrices } = price;
  const input = Math.max(...Object.values(inputPrices).map((one) => one ?? 0));
  const once = picoOf(prompt, input) + picoOf(output, outputPrice);
  return once + BigInt(recoveries) * (once + picoOf(output, input));
}

/** The bytes of everything in a request that a model reads, and what providers add. */
function promptBytes(chat: ChatRequest): number {
  const { tools, response_format: format } = chat;
  let bytes = tools ? TOKENS_FOR_TOOLS + sizeOf(tools) : 0;
  if (format) bytes += sizeOf(format);
  for (const message of chat.messages) {
    bytes += TOKENS_A_MESSAGE + Buffer.byteLength(textOf(message.content ?? ""));
    if (message.role !== "assistant") continue;
    bytes += Buffer.byteLength(message.reasoning_content ?? "");
    if (message.tool_calls.length > 0) bytes += sizeOf(message.tool_calls);
  }
  return bytes + TOKENS_A_MESSAGE;
}

/**
 * The bytes of a request in another client API, as a provider of that format gets it. Media are
 * counted as such.
 */
function nativeBytes({ native }: ChatRequest): number {
  if (!native) return 0;
  return Buffer.byteLength(JSON.stringify(native.body, withoutMedia));
}

/** What JSON.stringify() takes of a member of `this`: the bytes of a medium are left out. */
function withoutMedia(this: unknown, name: string, value: unknown): unknown {
  return name === "data" && asObject(this)["type"] === "base64" ? "" : value;
}

const sizeOf = (value: object): number => Buffer.byteLength(JSON.stringify(value));
