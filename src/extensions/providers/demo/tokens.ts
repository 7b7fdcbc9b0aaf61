// The demo model's tokens: how a text is cut into them, what they are counted as, and how probable
// they are said to be.
import type { TokenLogprob } from "../../../core/openai/parts.ts";
import { textOf } from "../../../core/openai/request.ts";
import { makeUsage, type Usage } from "../../../core/openai/usage.ts";
import type { DemoReply, DemoRequest } from "./conversation.ts";

/**
 * The characters of a prompt that are cut into tokens. The rest counts as a token for four
 * characters.
 */
const MAX_COUNTED_CHARS = 200_000;
/** The tokens of a message's role and borders. */
const TOKENS_A_MESSAGE = 4;

/** Pieces of up to eight letters with the blanks before them. Joined they are the text again. */
export const tokensOf = (text: string): string[] =>
  text.match(/\s*(?:[\p{L}\p{M}\p{N}_]{1,8}|\S)|\s+/gu) ?? [];

/**
 * The repeated part of a conversation, all before its last question, counts as cached, as it does
 * with a real provider.
 */
export function usageOf({ tools, messages }: DemoRequest, { reasoning, answer }: DemoReply): Usage {
  const count = createTokenCount();
  const lengths = messages.map(({ content }) => TOKENS_A_MESSAGE + count(textOf(content ?? "")));
  const declared = count(JSON.stringify(tools ?? ""));
  const upTo = (end: number) =>
    lengths.slice(0, end).reduce((sum, length) => sum + length, declared);
  const questions = [...messages.keys()].filter((at) => messages[at]!.role === "user");
  return makeUsage({
    prompt: upTo(messages.length),
    completion: reasoning.length + answer.length,
    cacheHit: questions.length > 1 ? upTo(questions.at(-1)!) : 0,
    reasoning: reasoning.length,
  });
}

/** Counts the tokens of a prompt's texts. */
function createTokenCount(): (text: string) => number {
  let charsLeft = MAX_COUNTED_CHARS;
  return (text) => {
    const read = text.slice(0, charsLeft);
    charsLeft -= read.length;
    return tokensOf(read).length + Math.ceil((text.length - read.length) / 4);
  };
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
