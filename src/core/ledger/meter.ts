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

export interface Meter {
  /** Counts one part that the provider sent, shown to the client or not. */
  observe(part: Part): void;
  /** The tokens so far. */
  usage(): MeterReading;
  /**
   * The provider has finished and has counted all of its reply. Nothing that may still come is
   * billed.
   */
  isFinal(): boolean;
  /**
   * Null until the provider has finished. "tool_calls" where it says "stop" after a tool call
   * (wire.md "Finish reasons").
   */
  finishReason(): FinishReason | null;
}

/** The provider's last figures for the prompt. */
type PromptFigures = Omit<UsageReport, "prompt"> & { readonly prompt: number };

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

/**
 * A figure, or a sum of prompt and completion, beyond this is an error of the provider's, not a
 * count of tokens.
 */
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
 * An estimate of the prompt's tokens: texts, tool calls, tools and media, and in another client API
 * what only a provider of its format reads. Response schemas and
 * reasoning that the client sends back are left out.
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

/** `countMedia`: as the provider counts them. `most`: the tokens that the reply may have. */
export function createMeter(chat: ChatRequest, countMedia: CountMedia, most = Infinity): Meter {
  let prompt: PromptFigures | undefined;
  let completion: CompletionFigures | undefined;
  /** Tokens of reasoning, as an event stated that did not count the rest of the completion. */
  let reasoningAlone = 0;
  let bytes = 0;
  let reasoningBytes = 0;
  let calls = 0;
  let finish: FinishReason | null = null;

  /**
   * Takes over what a report states. A report with a figure, or a sum, that cannot be true is
   * ignored.
   */
  function report(stated: UsageReport): void {
    const promptTokens = stated.prompt ?? prompt?.prompt ?? 0;
    const completionTokens = stated.completion ?? completion?.tokens ?? 0;
    const highest = Math.max(
      promptTokens + completionTokens,
      stated.prompt === undefined ? 0 : stated.cacheHit,
      stated.cacheWrite ?? 0,
      stated.reasoning,
    );
    if (highest > MAX_TOKENS || promptTokens + completionTokens === 0) return;
    if (stated.prompt !== undefined) prompt = { ...stated, prompt: stated.prompt };
    if (stated.completion !== undefined)
      completion = { tokens: stated.completion, reasoning: stated.reasoning, bytesBefore: bytes };
    else reasoningAlone = stated.reasoning;
  }

  /**
   * The figures cover the whole reply: they came with or after the last text, and are not 0
   * although there is text.
   */
  function isComplete(figures: CompletionFigures): boolean {
    return figures.bytesBefore === bytes && (bytes === 0 || figures.tokens > 0);
  }

  /**
   * The completion's tokens where the provider's figures do not cover it. Its early figures are a
   * lower bound.
   */
  function estimateCompletion(): { readonly completion: number; readonly reasoning: number } {
    const reasoningSeen = tokensIn(reasoningBytes);
    const reasoningUnseen = Math.max(0, reasoningAlone - reasoningSeen);
    const estimated = Math.min(most, tokensIn(bytes) + reasoningUnseen);
    return {
      completion: Math.max(completion?.tokens ?? 0, estimated),
      reasoning: Math.max(completion?.reasoning ?? 0, reasoningSeen + reasoningUnseen),
    };
  }

  return {
    observe(part) {
      if (part.type === "usage") {
        report(part.usage);
        return;
      }
      if (part.type === "finish") {
        finish = part.reason;
        return;
      }
      if (part.type === "native") return;
      const size = Buffer.byteLength(part.type === "tool_call" ? part.name : part.text);
      bytes += size;
      if (part.type === "reasoning") reasoningBytes += size;
      if (part.type === "tool_call") calls += 1;
    },
    usage() {
      if (bytes === 0 && finish === null && !prompt && !completion) return NO_USAGE;
      const stated = completion && isComplete(completion) ? completion : undefined;
      const counts = stated
        ? { completion: stated.tokens, reasoning: stated.reasoning }
        : estimateCompletion();
      const counted = prompt ?? { prompt: estimatePrompt(chat, countMedia), cacheHit: 0 };
      const usage = makeUsage({ ...counted, ...counts });
      return { usage, source: stated && prompt ? "provider" : "estimated" };
    },
    isFinal: () =>
      finish !== null && prompt !== undefined && completion !== undefined && isComplete(completion),
    finishReason: () => (finish === "stop" && calls > 0 ? "tool_calls" : finish),
  };
}
