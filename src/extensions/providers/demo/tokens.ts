// The demo model's tokens: what they are counted as, and how probable they are said to be.
import type { TokenLogprob } from "../../../core/openai/parts.ts";
import { textOf } from "../../../core/openai/request.ts";
import { makeUsage, type Usage } from "../../../core/openai/usage.ts";
import type { DemoReply, DemoRequest } from "./reply.ts";

/** The tokens of a message's role and borders. */
const TOKENS_A_MESSAGE = 4;
const CHARS_A_TOKEN = 4;

/**
 * The repeated part of a conversation, all before its last question, counts as cached, as it does
 * with a real provider. The tokens of the prompt are counted by its length.
 */
export function usageOf({ tools, messages }: DemoRequest, { reasoning, answer }: DemoReply): Usage {
  const tokensUpTo = (end: number): number => {
    let chars = JSON.stringify(tools ?? "").length;
    for (const { content } of messages.slice(0, end)) chars += textOf(content ?? "").length;
    return TOKENS_A_MESSAGE * end + Math.ceil(chars / CHARS_A_TOKEN);
  };
  const isQuestion = ({ role }: DemoRequest["messages"][number]) => role === "user";
  const last = messages.findLastIndex(isQuestion);
  const isFirst = last === messages.findIndex(isQuestion);
  return makeUsage({
    prompt: tokensUpTo(messages.length),
    completion: reasoning.length + answer.length,
    cacheHit: isFirst ? 0 : tokensUpTo(last),
    reasoning: reasoning.length,
  });
}

/**
 * A made-up probability, and those of the runners-up, each less likely than the one before.
 * Undefined: not asked for.
 */
export function logprobsOf(
  token: string,
  { logprobs, top_logprobs: length = 0 }: DemoRequest,
): TokenLogprob[] | undefined {
  if (!logprobs) return undefined;
  const ranked = (text: string, rank: number) => ({
    token: text,
    logprob: -0.1 - rank,
    bytes: [...Buffer.from(text)],
  });
  const top_logprobs = Array.from({ length }, (_, rank) => ranked(token + "~".repeat(rank), rank));
  return [{ ...ranked(token, 0), top_logprobs }];
}
