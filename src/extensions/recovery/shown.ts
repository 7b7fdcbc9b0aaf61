// What a client has been shown of a reply, as far as recovery depends on it.
import type { Part } from "../../core/openai/parts.ts";
import type { ChatRequest } from "../../core/openai/request.ts";
import type { Deliver } from "../../core/routing/fallback.ts";
import type { Model } from "../../core/routing/model.ts";
import { asArray } from "../../core/schema/untrusted-json.ts";

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

/** Whether a client of the Responses API has asked for the reasoning in sealed form. */
const wantsSealed = ({ native }: ChatRequest): boolean =>
  native?.dialect === "responses" &&
  asArray(native.body["include"]).includes("reasoning.encrypted_content");

export function watchShown(chat: ChatRequest, deliver: Deliver): Shown {
  const { showThinking } = chat;
  const sealsReasoning = wantsSealed(chat);
  let text = "";
  let other = false;
  let size = 0;

  function noteText(added: string, limit: number): void {
    text += added;
    if (text.length <= limit) return;
    text = "";
    other = true;
  }

  /** How much the client sees of a part: its characters, or 1 where it has none. */
  function sizeOf(part: Part, model: Model): number {
    if (part.type === "tool_call" || part.type === "native") return 1;
    if (!("text" in part)) return 0;
    const isSeen = part.type !== "reasoning" || sealsReasoning || (showThinking && model.reasoning);
    return isSeen ? part.text.length : 0;
  }

  function note(part: Part, model: Model): void {
    const seen = sizeOf(part, model);
    size += seen;
    if (part.type !== "text") other ||= seen > 0;
    else if (!other) noteText(part.text, model.provider.maxReplyBytes);
  }

  return {
    deliver(parts, serving) {
      for (const part of parts) note(part, serving.model);
      return deliver(parts, serving);
    },
    text: () => text,
    hasOther: () => other,
    size: () => size,
  };
}
