// Counts what a streamed reply keeps in memory until its end. A stream of chat completions keeps
// nothing. In the other APIs the end repeats what was said, or waits for arguments of calls.
import type { Part } from "../../../core/openai/parts.ts";
import { tooMuch } from "../../../core/routing/attempt-errors.ts";
import type { Complete } from "../../../core/routing/fallback.ts";

/** The characters of a part that are kept. */
const kept = (part: Part): number => ("text" in part ? part.text.length : 0);

/** Completes requests so that a stream of another API keeps no more than a whole reply may have. */
export const countingKept =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    if (!chat.stream || !chat.native) return complete(chat, candidates, deliver, context);
    let total = 0;
    return complete(
      chat,
      candidates,
      (parts, serving) => {
        const { maxReplyBytes } = serving.model.provider;
        const size = parts.reduce((sum, part) => sum + kept(part), 0);
        total += size;
        context.retain(size);
        if (total > maxReplyBytes)
          throw tooMuch(`a reply of more than ${maxReplyBytes} characters`);
        return deliver(parts, serving);
      },
      context,
    );
  };
