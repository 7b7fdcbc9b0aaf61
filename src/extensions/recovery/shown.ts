// What a client has been shown of a reply, as far as recovery depends on it.
import type { Part } from "../../core/openai/parts.ts";
import type { ChatRequest } from "../../core/openai/request.ts";
import type { Deliver } from "../../core/routing/fallback.ts";

export interface Shown {
  /** Delivers, and takes note. */
  readonly deliver: Deliver;
  /** All text that was shown. Of `server.max_reply_bytes` characters at most: more is not kept. */
  text(): string;
  /**
   * Something else than text was shown too: a tool call, reasoning, a refusal, an event as it came.
   * Or more text than is kept.
   */
  hasOther(): boolean;
  /** Grows with everything that is shown. */
  size(): number;
}

export function watchShown({ showThinking }: ChatRequest, deliver: Deliver): Shown {
  let text = "";
  let other = false;
  let size = 0;

  function noteText(added: string, limit: number): void {
    text += added;
    if (text.length <= limit) return;
    text = "";
    other = true;
  }

  function note(part: Part, limit: number): void {
    if (part.type === "tool_call") {
      other = true;
      size += part.name.length;
    }
    if (part.type === "native") {
      other = true;
      size += 1;
    }
    if (!("text" in part) || part.text === "") return;
    if (part.type === "reasoning" && !showThinking) return;
    size += part.text.length;
    if (part.type !== "text") other = true;
    else if (!other) noteText(part.text, limit);
  }

  return {
    deliver(parts, serving) {
      const { maxReplyBytes } = serving.model.provider;
      for (const part of parts) note(part, maxReplyBytes);
      return deliver(parts, serving);
    },
    text: () => text,
    hasOther: () => other,
    size: () => size,
  };
}
