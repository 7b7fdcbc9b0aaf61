// What a reply came to: how it ended, and how many tokens it took, by the provider's own count if it gave one, else by an
// estimate that is marked as one.
import { textOf, type ChatRequest } from "../protocol/chat-request.ts";
import { makeUsage, type FinishReason, type Part, type Usage } from "../protocol/reply.ts";

export type UsageSource = "provider" | "estimated" | "none";
export const NOTHING = {
  usage: makeUsage({ prompt: 0, completion: 0, cacheHit: 0, reasoning: 0 }),
  source: "none",
} as const;
/** Four bytes of UTF-8 a token: a rule of thumb that is near for English text, and high for most other languages. */
const tokensIn = (bytes: number): number => Math.ceil(bytes / 4);

/** An estimate of the prompt's tokens: texts, tool calls and tools; not media, response schemas or echoed thinking. */
export function estimatePrompt(chat: ChatRequest): number {
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
  return Math.max(1, tokensIn(bytes));
}

export type Meter = ReturnType<typeof createMeter>;
export function createMeter(chat: ChatRequest) {
  let reported: Usage | undefined;
  let bytesThen = 0; // when it was reported
  let bytes = 0;
  let reasoningBytes = 0;
  let calls = 0;
  let finish: FinishReason | null = null;
  return {
    /** Every part that the provider sent, shown to the client or not. */
    observe(part: Part): void {
      if (part.type === "usage") [reported, bytesThen] = [part.usage, bytes];
      else if (part.type === "finish") finish = part.reason;
      else {
        const size = Buffer.byteLength(part.type === "tool_call" ? part.name : part.text);
        bytes += size;
        if (part.type === "reasoning") reasoningBytes += size;
        if (part.type === "tool_call") calls += 1;
      }
    },
    /** The provider's figures, else an estimate from what was seen; "none" if nothing was generated. */
    usage(): { readonly usage: Usage; readonly source: UsageSource } {
      // Figures from the beginning of a stream that broke off know nothing of what was generated since.
      if (reported && (bytes === bytesThen || (finish !== null && reported.completion_tokens > 0)))
        return { usage: reported, source: "provider" };
      if (bytes === 0 && finish === null) return NOTHING;
      const {
        prompt_tokens: prompt = estimatePrompt(chat),
        prompt_cache_hit_tokens: cacheHit = 0,
      } = reported ?? {};
      return {
        usage: makeUsage({
          prompt,
          completion: tokensIn(bytes),
          cacheHit,
          reasoning: tokensIn(reasoningBytes),
        }),
        source: "estimated",
      };
    },
    /** Null until the provider has finished. Some say "stop" although they call tools (WIRE.md 2). */
    finishReason: (): FinishReason | null =>
      finish === "stop" && calls > 0 ? "tool_calls" : finish,
  };
}
