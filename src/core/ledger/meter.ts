// What a reply came to: how it ended, and how many tokens it took, by the provider's own count if it gave one, else by an
// estimate that is marked as one.
import { textOf, type ChatRequest } from "../openai/request.ts";
import type { FinishReason, Part } from "../openai/parts.ts";
import { makeUsage, type MediaRules, type Usage } from "../openai/usage.ts";
import { mediaTokens } from "./media-tokens.ts";

export type UsageSource = "provider" | "estimated" | "none";
export const NO_USAGE = {
  usage: makeUsage({ prompt: 0, completion: 0, cacheHit: 0, reasoning: 0 }),
  source: "none",
} as const;
/** A figure, or a sum of prompt and completion, beyond this is an error of the provider's, not a count of tokens. */
const MAX_TOKENS = 1_000_000_000;
/** Four bytes of UTF-8 a token: a rule of thumb that is near for English text, and high for most other languages. An estimate takes
 * at most half of MAX_TOKENS, so that prompt and completion together stay within it. */
const tokensIn = (bytes: number): number => Math.min(MAX_TOKENS / 2, Math.ceil(bytes / 4));

/** An estimate of the prompt's tokens: texts, tool calls, tools, and media by `rules`; not response schemas or echoed thinking. */
export function estimatePrompt(chat: ChatRequest, rules: MediaRules): number {
  const calls = chat.messages.flatMap((message) =>
    message.role === "assistant" ? message.tool_calls : [],
  );
  const texts = [
    ...chat.messages.map(({ content }) => textOf(content ?? "")),
    ...calls.map(({ function: { name, arguments: text } }) => name + text),
  ];
  const bytes = [...texts, chat.tools ? JSON.stringify(chat.tools) : ""].reduce(
    (sum, text) => sum + Buffer.byteLength(text),
    0,
  );
  return Math.min(MAX_TOKENS / 2, Math.max(1, tokensIn(bytes) + mediaTokens(chat, rules)));
}

/** What the provider last stated of the prompt. */
interface PromptFigures {
  readonly tokens: number;
  readonly cacheHit: number;
}
/** What the provider last stated of the completion; `bytesBefore`: how much of the reply had come by then, thinking included. */
interface CompletionFigures {
  readonly tokens: number;
  readonly reasoning: number;
  readonly bytesBefore: number;
}

export interface Meter {
  /** Counts one part that the provider sent, shown to the client or not. */
  observe(part: Part): void;
  /** The tokens so far; "none" if nothing was generated and nothing stated. `rules`: how the model's provider counts media. */
  usage(rules: MediaRules): { readonly usage: Usage; readonly source: UsageSource };
  /** The provider has finished, and counted all of its reply: nothing that may still come is billed. */
  isFinal(): boolean;
  /** Null until the provider has finished. Some say "stop" although they call tools (WIRE.md 2). */
  finishReason(): FinishReason | null;
}

export function createMeter(chat: ChatRequest): Meter {
  let prompt: PromptFigures | undefined;
  let completion: CompletionFigures | undefined;
  /** Thinking that the provider counted in an event that does not count the rest of the completion, in tokens. */
  let thinkingAlone = 0;
  let bytes = 0;
  let reasoningBytes = 0;
  let calls = 0;
  let finish: FinishReason | null = null;

  /** Takes over what a report states. One with a figure, or a sum, that cannot be true is none. */
  function report(stated: Extract<Part, { type: "usage" }>["usage"]): void {
    const promptTokens = stated.prompt ?? prompt?.tokens ?? 0;
    const completionTokens = stated.completion ?? completion?.tokens ?? 0;
    const highest = Math.max(
      promptTokens + completionTokens,
      stated.prompt === undefined ? 0 : stated.cacheHit,
      stated.reasoning,
    );
    if (highest > MAX_TOKENS || promptTokens + completionTokens === 0) return;
    if (stated.prompt !== undefined) prompt = { tokens: stated.prompt, cacheHit: stated.cacheHit };
    if (stated.completion !== undefined)
      completion = { tokens: stated.completion, reasoning: stated.reasoning, bytesBefore: bytes };
    else thinkingAlone = stated.reasoning;
  }

  /** The provider counted all that has come: its figure came with or after the last text, and is not 0 for a text that is there. */
  function isComplete(figures: CompletionFigures): boolean {
    return figures.bytesBefore === bytes && (bytes === 0 || figures.tokens > 0);
  }

  return {
    observe(part) {
      if (part.type === "usage") return report(part.usage);
      if (part.type === "finish") {
        finish = part.reason;
        return;
      }
      const size = Buffer.byteLength(part.type === "tool_call" ? part.name : part.text);
      bytes += size;
      if (part.type === "reasoning") reasoningBytes += size;
      if (part.type === "tool_call") calls += 1;
    },
    usage(rules) {
      if (bytes === 0 && finish === null && !prompt && !completion) return NO_USAGE;
      const cacheHit = prompt?.cacheHit ?? 0;
      if (completion && isComplete(completion)) {
        const { tokens, reasoning } = completion;
        const usage = makeUsage({
          prompt: prompt?.tokens ?? estimatePrompt(chat, rules),
          completion: tokens,
          cacheHit,
          reasoning,
        });
        return { usage, source: prompt ? "provider" : "estimated" };
      }
      // What the provider counted early is the least that it can have been.
      const thinkingSeen = tokensIn(reasoningBytes);
      const thinkingUnseen = Math.max(0, thinkingAlone - thinkingSeen);
      const usage = makeUsage({
        prompt: prompt?.tokens ?? estimatePrompt(chat, rules),
        completion: Math.max(completion?.tokens ?? 0, tokensIn(bytes) + thinkingUnseen),
        cacheHit,
        reasoning: Math.max(completion?.reasoning ?? 0, thinkingSeen + thinkingUnseen),
      });
      return { usage, source: "estimated" };
    },
    isFinal: () =>
      finish !== null && prompt !== undefined && completion !== undefined && isComplete(completion),
    finishReason: () => (finish === "stop" && calls > 0 ? "tool_calls" : finish),
  };
}
