// How a reply is put together: a dialect says what its provider said as a list of parts, and two writers turn these into the public
// format, whole (WIRE.md 2) or as chunks (WIRE.md 3). One vocabulary, so that a stream's concatenated deltas equal the whole reply.
import { asArray, asCount, asObject, asString } from "../schema/untrusted-json.ts";
import { randomHex } from "../ids.ts";

/** One thing that a provider said. `call` counts tool calls from 0; id and name come once, before the arguments, which come in pieces. */
export type Part =
  | {
      readonly type: "text" | "reasoning" | "refusal";
      readonly text: string;
      readonly logprobs?: TokenLogprob[] | undefined;
    }
  | {
      readonly type: "tool_call";
      readonly call: number;
      readonly id: string;
      readonly name: string;
    }
  | { readonly type: "tool_arguments"; readonly call: number; readonly text: string }
  | { readonly type: "finish"; readonly reason: FinishReason }
  | { readonly type: "usage"; readonly usage: UsageReport };

/** What the whole reply, or each of its chunks, carries: an id of our own, never the provider's; `created` in seconds. */
export const replyHead = (model: string, fingerprint: string, now: number) => ({
  id: `chatcmpl-${randomHex(16)}`,
  created: Math.floor(now / 1000),
  model,
  system_fingerprint: fingerprint,
});
type ReplyHead = ReturnType<typeof replyHead>;
/** What was asked for. Without `showReasoning` thinking is left out, its tokens are in the usage all the same (WIRE D5). `includeUsage`: a
 * stream ends with a usage chunk (WIRE D7); whole replies always carry usage. */
interface ReplyOptions {
  readonly showReasoning: boolean;
  readonly showLogprobs: boolean;
  readonly includeUsage: boolean;
}

interface Token {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[] | null;
}
export interface TokenLogprob extends Token {
  readonly top_logprobs: readonly Token[];
}
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";
/** What one event of a provider states of the tokens so far. A figure is undefined if the event does not state it; `cacheHit` is a
 * part of `prompt` and `reasoning` of `completion`, 0 where nothing is said of them. */
export interface UsageReport {
  readonly prompt: number | undefined;
  readonly completion: number | undefined;
  readonly cacheHit: number;
  readonly reasoning: number;
}
/** Token statistics. hit + miss = prompt, prompt + completion = total; reasoning tokens are inside completion. WIRE.md 2. */
export type Usage = Readonly<ReturnType<typeof makeUsage>>;
/** Usage from what a provider counts. Sums and shares are computed here, never taken over (WIRE.md 2). */
type Counts = Record<"prompt" | "completion" | "cacheHit" | "reasoning", number>;
export function makeUsage({ prompt, completion, cacheHit, reasoning }: Counts) {
  const hit = Math.min(cacheHit, prompt);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_cache_hit_tokens: hit,
    prompt_cache_miss_tokens: prompt - hit,
    prompt_tokens_details: { cached_tokens: hit },
    completion_tokens_details: { reasoning_tokens: Math.min(reasoning, completion) },
  };
}

/** A token as a provider tells of it. WIRE.md 2: `bytes` is never missing, `top_logprobs` always a list. */
export const tokenLogprob = (given: unknown): TokenLogprob => ({
  ...tokenFields(given),
  top_logprobs: asArray(asObject(given)["top_logprobs"]).map(tokenFields),
});

function tokenFields(given: unknown): Token {
  const { token, logprob, bytes: list } = asObject(given);
  const bytes = Array.isArray(list) ? list.map((byte) => asCount(byte) ?? 0) : null;
  return {
    token: asString(token) ?? "",
    logprob: Number.isFinite(logprob) ? Number(logprob) : -9999,
    bytes,
  };
}

/** What a reply becomes: `add` gives the text that can be sent at once, `end` the rest, when the provider has finished: the reason why is
 * held back until then, for some send it more than once, or text after it, and a client must see it last. */
export interface ReplyWriter {
  add(parts: readonly Part[]): string;
  end(usage: Usage, reason: FinishReason): string;
}

/** Where the texts of each kind stand, and their log probabilities. */
const FIELDS = { text: "content", reasoning: "reasoning_content", refusal: "refusal" } as const;

/** The reply as one document. */
export function createWholeWriter(
  { id, created, model, system_fingerprint }: ReplyHead,
  options: ReplyOptions,
): ReplyWriter {
  const texts = { content: "", reasoning_content: "", refusal: "" };
  const probs: { [field in keyof typeof texts]?: TokenLogprob[] | null } = {
    content: null,
    refusal: null,
  };
  const calls: { id: string; type: "function"; function: { name: string; arguments: string } }[] =
    [];
  return {
    add(parts) {
      for (const part of parts) {
        if (part.type === "tool_call")
          calls.push({
            id: part.id,
            type: "function",
            function: { name: part.name, arguments: "" },
          });
        else if (part.type === "tool_arguments") calls[part.call]!.function.arguments += part.text;
        else if (
          part.type !== "finish" &&
          part.type !== "usage" &&
          (part.type !== "reasoning" || options.showReasoning)
        ) {
          const field = FIELDS[part.type];
          texts[field] += part.text;
          if (options.showLogprobs)
            for (const prob of part.logprobs ?? []) {
              probs[field] ??= [];
              probs[field].push(prob);
            }
        }
      }
      return "";
    },
    end(usage, finish_reason) {
      for (const call of calls) call.function.arguments ||= "{}";
      const message = {
        role: "assistant",
        content: texts.content || (calls.length > 0 || texts.refusal !== "" ? null : ""),
        reasoning_content: options.showReasoning ? texts.reasoning_content : undefined,
        refusal: texts.refusal || undefined,
        tool_calls: calls.length > 0 ? calls : undefined,
      };
      const choice = {
        index: 0,
        message,
        logprobs: Object.values(probs).some((list) => list) ? probs : null,
        finish_reason,
      };
      return JSON.stringify({
        id,
        object: "chat.completion",
        created,
        model,
        system_fingerprint,
        choices: [choice],
        usage,
      });
    },
  };
}

/** The streamed reply. The head of each chunk is made once; per part only the delta is serialised. */
export function createChunkWriter({ id, ...head }: ReplyHead, options: ReplyOptions): ReplyWriter {
  const open = `data: ${JSON.stringify({ id, object: "chat.completion.chunk", ...head }).slice(0, -1)},"choices":[`;
  const close = options.includeUsage ? `],"usage":null}\n\n` : "]}\n\n";
  const bare = new Set<number>(); // calls without arguments so far

  const chunk = (
    delta: object,
    finish: FinishReason | null = null,
    logprobs: object | null = null,
  ): string =>
    `${open}{"index":0,"delta":${JSON.stringify(delta)},"logprobs":${JSON.stringify(logprobs)},"finish_reason":${JSON.stringify(finish)}}${close}`;

  /** The role comes once, in a chunk of its own before the first delta (WIRE 3.3). */
  let role = (first: Part["type"]): string => {
    role = () => "";
    return chunk({
      role: "assistant",
      content: first === "text" ? "" : null,
      ...(options.showReasoning && { reasoning_content: "" }),
    });
  };

  /** The events for one part, as text to send; empty if the client is to see nothing of it. */
  function write(part: Part): string {
    if (
      part.type === "finish" ||
      part.type === "usage" ||
      (part.type === "reasoning" && !options.showReasoning)
    )
      return "";
    if (part.type === "tool_call") {
      bare.add(part.call);
      return (
        role(part.type) +
        chunk({
          tool_calls: [
            {
              index: part.call,
              id: part.id,
              type: "function",
              function: { name: part.name, arguments: "" },
            },
          ],
        })
      );
    }
    if (part.type === "tool_arguments") {
      if (part.text === "") return "";
      bare.delete(part.call);
      return chunk({ tool_calls: [{ index: part.call, function: { arguments: part.text } }] });
    }
    const logprobs = options.showLogprobs && part.logprobs;
    if (part.text === "" && !logprobs) return "";
    const field = FIELDS[part.type];
    return (
      role(part.type) +
      chunk(
        { [field]: part.text },
        null,
        logprobs ? { content: null, refusal: null, [field]: logprobs } : null,
      )
    );
  }

  return {
    add: (parts) => parts.reduce((text, part) => text + write(part), ""),
    /** Finish chunk, usage chunk if asked for, `[DONE]`. */
    end(usage, reason) {
      const noArguments = [...bare].map((call) =>
        write({ type: "tool_arguments", call, text: "{}" }),
      );
      const counted = options.includeUsage ? `${open}],"usage":${JSON.stringify(usage)}}\n\n` : "";
      return [role("text"), ...noArguments, chunk({}, reason), counted, "data: [DONE]\n\n"].join(
        "",
      );
    },
  };
}
