// Writes a reply as one document. WIRE.md 2.
import type { TokenLogprob } from "./logprobs.ts";
import type { TextPart } from "./parts.ts";
import { TEXT_FIELDS, type ReplyHead, type ReplyOptions, type ReplyWriter } from "./reply.ts";

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; arguments: string };
}

export function createWholeWriter(
  { id, created, model, system_fingerprint }: ReplyHead,
  { showReasoning, showLogprobs }: ReplyOptions,
): ReplyWriter {
  const texts = { content: "", reasoning_content: "", refusal: "" };
  const logprobs: { [field in keyof typeof texts]?: TokenLogprob[] | null } = {
    content: null,
    refusal: null,
  };
  const calls: ToolCall[] = [];

  function addText(part: TextPart): void {
    if (part.type === "reasoning" && !showReasoning) return;
    const field = TEXT_FIELDS[part.type];
    texts[field] += part.text;
    if (!showLogprobs || !part.logprobs?.length) return;
    const list = logprobs[field] ?? [];
    for (const logprob of part.logprobs) list.push(logprob);
    logprobs[field] = list;
  }

  return {
    add(parts) {
      for (const part of parts) {
        if (part.type === "tool_call") {
          const { id, name } = part;
          calls.push({ id, type: "function", function: { name, arguments: "" } });
        } else if (part.type === "tool_arguments") {
          calls[part.call]!.function.arguments += part.text;
        } else if (part.type !== "finish" && part.type !== "usage") {
          addText(part);
        }
      }
      return "";
    },
    end(usage, finish_reason) {
      for (const call of calls) call.function.arguments ||= "{}";
      const hasOther = calls.length > 0 || texts.refusal !== "";
      const message = {
        role: "assistant",
        content: texts.content || (hasOther ? null : ""),
        reasoning_content: showReasoning ? texts.reasoning_content : undefined,
        refusal: texts.refusal || undefined,
        tool_calls: calls.length > 0 ? calls : undefined,
      };
      const hasLogprobs = Object.values(logprobs).some((list) => list !== null);
      const logprobsOrNull = hasLogprobs ? logprobs : null;
      const choice = { index: 0, message, logprobs: logprobsOrNull, finish_reason };
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
