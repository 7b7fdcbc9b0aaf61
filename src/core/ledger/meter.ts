// Counts one reply: how it ended, and how many tokens it took. The figures are the provider's own
// if it gave any, else an estimate that is marked as one.
import { textOf, type ChatRequest } from "../openai/request.ts";
import type { FinishReason, Part } from "../openai/parts.ts";
import { makeUsage, type Usage, type UsageReport } from "../openai/usage.ts";

/**
 * "provider": its own figures. "estimated": at least one figure is an estimate. "none": nothing to
 * be billed.
 */
export type UsageSource = "provider" | "estimated" | "none";

/** The tokens of a reply so far. */
export interface MeterReading {
  /** All 0 where `source` is "none". */
  readonly usage: Usage;
  /** Whether the figures are the provider's own, or estimated. */
  readonly source: UsageSource;
}

/** The provider's last figures for the completion. */
interface CompletionFigures {
  readonly tokens: number;
  readonly reasoning: number;
  /** Bytes of the reply that had come before this statement, reasoning included. */
  readonly bytesBefore: number;
}

export const NO_USAGE: MeterReading = {
  usage: makeUsage({ prompt: 0, completion: 0, cacheHit: 0, reasoning: 0 }),
  source: "none",
};

/** A report with a larger figure, or a larger sum of prompt and completion, is wrong. */
const MAX_TOKENS = 1_000_000_000;

/**
 * Four bytes of UTF-8 a token: a rule of thumb that is near for English text, and high for most
 * other languages. An estimate is at most half of MAX_TOKENS, so that prompt and completion
 * together stay within it.
 */
const tokensIn = (bytes: number): number => Math.min(MAX_TOKENS / 2, Math.ceil(bytes / 4));

/** Estimates the tokens of a request's images, audio and files. */
export type CountMedia = (chat: ChatRequest) => number;

/**
 * Estimates the prompt's tokens: texts, tool calls, tools, media, and the parts of a native request
 * that a chat completion cannot express. Response schemas and reasoning that the client sends back
 * do not count.
 */
export function estimatePrompt(chat: ChatRequest, countMedia: CountMedia): number {
  let bytes = chat.native?.untranslatedBytes ?? 0;
  if (chat.tools) bytes += Buffer.byteLength(JSON.stringify(chat.tools));
  for (const message of chat.messages) {
    bytes += Buffer.byteLength(textOf(message.content ?? ""));
    if (message.role !== "assistant") continue;
    for (const { function: called } of message.tool_calls)
      bytes += Buffer.byteLength(called.name) + Buffer.byteLength(called.arguments);
  }
  return Math.min(MAX_TOKENS / 2, Math.max(1, tokensIn(bytes) + countMedia(chat)));
}

/** Counts one reply. */
export class Meter {
  /**
   * The provider has the request and has not refused it, so the prompt is billed even without a
   * reply.
   */
  hasPrompt = false;
  /** The provider's last figures for the prompt. */
  #prompt: (Omit<UsageReport, "prompt"> & { readonly prompt: number }) | undefined;
  #completion: CompletionFigures | undefined;
  /** Reasoning tokens from an event that stated no other completion tokens. */
  #reasoningAlone = 0;
  #bytes = 0;
  #reasoningBytes = 0;
  #calls = 0;
  #finish: FinishReason | null = null;
  readonly #chat: ChatRequest;
  readonly #countMedia: CountMedia;
  readonly #most: number;

  /** `countMedia`: as the provider counts them. `most`: the tokens that the reply may have. */
  constructor(chat: ChatRequest, countMedia: CountMedia, most = Infinity) {
    this.#chat = chat;
    this.#countMedia = countMedia;
    this.#most = most;
  }

  /** Counts one part that the provider sent, shown to the client or not. */
  observe(part: Part): void {
    if (part.type === "usage") this.#report(part.usage);
    else if (part.type === "finish") this.#finish = part.reason;
    else if (part.type !== "native") {
      const size = Buffer.byteLength(part.type === "tool_call" ? part.name : part.text);
      this.#bytes += size;
      if (part.type === "reasoning") this.#reasoningBytes += size;
      if (part.type === "tool_call") this.#calls += 1;
    }
  }

  /** The tokens so far. */
  usage(): MeterReading {
    const prompt = this.#prompt;
    const isEmpty = this.#bytes === 0 && this.#finish === null && !this.hasPrompt;
    if (isEmpty && !prompt && !this.#completion) return NO_USAGE;
    const stated = this.#wholeCompletion();
    const counts = stated
      ? { completion: stated.tokens, reasoning: stated.reasoning }
      : this.#estimateCompletion();
    const counted = prompt ?? { prompt: estimatePrompt(this.#chat, this.#countMedia), cacheHit: 0 };
    const usage = makeUsage({ ...counted, ...counts });
    return { usage, source: stated && prompt ? "provider" : "estimated" };
  }

  /**
   * Null until the provider has finished. "tool_calls" where it says "stop" after a tool call, and
   * "stop" where it says "tool_calls" without any (wire.md "Finish reasons").
   */
  finishReason(): FinishReason | null {
    if (this.#calls > 0) return this.#finish === "stop" ? "tool_calls" : this.#finish;
    return this.#finish === "tool_calls" ? "stop" : this.#finish;
  }

  /**
   * Takes over what a report states. A report with a figure, or a sum, that cannot be true is
   * ignored.
   */
  #report(stated: UsageReport): void {
    const promptTokens = stated.prompt ?? this.#prompt?.prompt ?? 0;
    const completionTokens = stated.completion ?? this.#completion?.tokens ?? 0;
    const highest = Math.max(
      promptTokens + completionTokens,
      stated.prompt === undefined ? 0 : stated.cacheHit,
      stated.cacheWrite ?? 0,
      stated.reasoning,
    );
    if (highest > MAX_TOKENS || promptTokens + completionTokens === 0) return;
    const { prompt, completion: tokens, reasoning } = stated;
    // Some servers state the prompt once, and 0 in later events.
    if (prompt || (prompt === 0 && !this.#prompt)) this.#prompt = { ...stated, prompt };
    if (tokens === undefined) this.#reasoningAlone = reasoning;
    else this.#completion = { tokens, reasoning, bytesBefore: this.#bytes };
  }

  /**
   * The provider's figures if they cover the whole reply: they came with or after the last text,
   * and are not 0 although there is text.
   */
  #wholeCompletion(): CompletionFigures | undefined {
    const figures = this.#completion;
    if (figures?.bytesBefore !== this.#bytes) return undefined;
    return this.#bytes === 0 || figures.tokens > 0 ? figures : undefined;
  }

  /**
   * The completion's tokens where the provider's figures do not cover it. Its early figures are a
   * lower bound.
   */
  #estimateCompletion() {
    const reasoningSeen = tokensIn(this.#reasoningBytes);
    const reasoningUnseen = Math.max(0, this.#reasoningAlone - reasoningSeen);
    const estimated = Math.min(this.#most, tokensIn(this.#bytes) + reasoningUnseen);
    return {
      completion: Math.max(this.#completion?.tokens ?? 0, estimated),
      reasoning: Math.max(this.#completion?.reasoning ?? 0, reasoningSeen + reasoningUnseen),
    };
  }
}
