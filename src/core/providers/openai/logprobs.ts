// Which log probabilities are the reasoning's, and which are the text's.
import { tokenLogprob } from "../../openai/logprobs.ts";

/** Two lists of tokens as the provider sent them. */
interface SplitLogprobs {
  readonly reasoning: unknown;
  readonly text: unknown;
}

/**
 * Some servers list the tokens of both under `content`, the reasoning's first. Those that the text
 * does not need, counted from its end in bytes, are the reasoning's, and stay hidden where the
 * reasoning does.
 */
export function splitLogprobs(
  { content, reasoning_content }: Record<string, unknown>,
  reasoning: string,
  text: string,
): SplitLogprobs {
  if (reasoning === "" || !Array.isArray(content) || Array.isArray(reasoning_content))
    return { reasoning: reasoning_content, text: content };
  let first = content.length;
  let missing = Buffer.byteLength(text);
  while (first > 0 && missing > 0) {
    first -= 1;
    const { token, bytes } = tokenLogprob(content[first]);
    missing -= bytes?.length ?? Buffer.byteLength(token);
  }
  return { reasoning: content.slice(0, first), text: content.slice(first) };
}
