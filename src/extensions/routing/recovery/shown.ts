// Records what the client has seen of a reply, as far as recovery depends on it.
import type { Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Deliver } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { asArray } from "../../../core/schema/untrusted-json.ts";

export function watchShown({ native, showThinking }: ChatRequest, deliver: Deliver) {
  // A client of the Responses API can ask for the reasoning in sealed form.
  const include = native?.dialect === "responses" ? asArray(native.body["include"]) : [];
  const sealsReasoning = include.includes("reasoning.encrypted_content");
  let shown: string | undefined = "";

  function isHidden(part: Part, model: Model): boolean {
    if (part.type === "tool_call" || part.type === "native") return false;
    if (!("text" in part) || part.text === "") return true;
    return part.type === "reasoning" && !sealsReasoning && !(showThinking && model.reasoning);
  }

  function note(part: Part, model: Model): void {
    if (shown === undefined || isHidden(part, model)) return;
    const text = part.type === "text" ? shown + part.text : undefined;
    shown = text && text.length <= model.provider.maxReplyBytes ? text : undefined;
  }

  /** Delivers parts to the client, and records them. */
  const recorded: Deliver = (parts, serving) => {
    for (const part of parts) note(part, serving.model);
    return deliver(parts, serving);
  };

  /**
   * All text that was shown. Undefined: it is longer than `server.max_reply_bytes` characters, or
   * the client has seen something else too: a tool call, reasoning, a refusal, or an event of the
   * provider as it came.
   */
  const text = (): string | undefined => shown;

  return { deliver: recorded, text };
}
