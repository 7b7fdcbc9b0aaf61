// Counts the bytes that a streamed reply keeps in memory until its end. A stream of chat
// completions keeps nothing. In the Responses API the last events repeat the whole reply. In the
// Messages API hidden thoughts are kept, and what follows a call waits for the call's arguments.
// That memory grows with the text and with the number of blocks.
import type { Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { tooLarge } from "../../../core/routing/attempt-errors.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";

/** The most blocks of a reply: texts, thoughts and calls. Its last events take time for each. */
const MAX_BLOCKS = 10_000;
/** The bytes that count for each block, for its fields other than the text. */
const BLOCK_BYTES = 512;
/** The bytes that count for a token's log probability, and for each alternative. */
const LOGPROB_BYTES = 64;

const sizeOf = (part: Part): number => {
  const logprobs = "logprobs" in part ? (part.logprobs ?? []) : [];
  const tokens = logprobs.reduce((sum, { top_logprobs = [] }) => sum + 1 + top_logprobs.length, 0);
  return ("text" in part ? part.text.length : 0) + LOGPROB_BYTES * tokens;
};

const KINDS: readonly Part["type"][] = ["text", "refusal", "reasoning"];

/** Adds up the blocks of a reply, and the bytes that are kept of it. */
function createSum({ native, wantsThinking, showThinking }: ChatRequest) {
  /** Whether texts are kept. In the Messages API they may be from the first call on. */
  let isTextKept = native?.dialect !== "anthropic" || (wantsThinking && !showThinking);
  let kind: Part["type"] | undefined;
  /** Whether native events are held until the end of the reply: from message_delta on. */
  let isHeld = false;
  const sum = { blocks: 0, bytes: 0 };

  function isBeginning(part: Part): boolean {
    if (part.type === "native") return asObject(part.event)["type"] === "content_block_start";
    const before = kind;
    kind = part.type;
    return part.type === "tool_call" || (part.type !== before && KINDS.includes(part.type));
  }
  return (parts: readonly Part[]): Readonly<typeof sum> => {
    for (const part of parts) {
      const begun = isBeginning(part) ? 1 : 0;
      sum.blocks += begun;
      isTextKept ||= part.type === "tool_call";
      sum.bytes += (isTextKept ? sizeOf(part) : 0) + BLOCK_BYTES * begun;
      if (part.type !== "native") continue;
      isHeld ||= asObject(part.event)["type"] === "message_delta";
      if (isHeld) sum.bytes += JSON.stringify(part.event).length;
    }
    return sum;
  };
}

/**
 * Ends replies of the other APIs that have more than MAX_BLOCKS blocks, and streams that keep more
 * than `maxReplyBytes`.
 */
export const countingKept =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    if (!chat.native) return complete(chat, candidates, deliver, context);
    const add = createSum(chat);
    let retained = 0;
    return complete(
      chat,
      candidates,
      (parts, serving) => {
        const { maxReplyBytes } = serving.model.provider;
        const { blocks, bytes } = add(parts);
        if (blocks > MAX_BLOCKS) throw tooLarge(`a reply of more than ${MAX_BLOCKS} blocks`);
        // The bytes of a reply that is not streamed were counted when they arrived.
        if (!chat.stream) return deliver(parts, serving);
        context.retain(bytes - retained);
        retained = bytes;
        if (bytes > maxReplyBytes)
          throw tooLarge(`a reply of more than ${maxReplyBytes} characters`);
        return deliver(parts, serving);
      },
      context,
    );
  };
