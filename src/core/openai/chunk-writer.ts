// Writes a reply as a stream of chunks. WIRE.md 3. The part of a chunk that is always the same is
// made once. For each part only the delta is serialised.
import type { FinishReason, Part, TextPart, ToolCallPart } from "./parts.ts";
import { TEXT_FIELDS, type ReplyHead, type ReplyOptions, type ReplyWriter } from "./reply.ts";

export function createChunkWriter(
  { id, ...rest }: ReplyHead,
  { showReasoning, showLogprobs, includeUsage }: ReplyOptions,
): ReplyWriter {
  const head = JSON.stringify({ id, object: "chat.completion.chunk", ...rest }).slice(0, -1);
  const open = `data: ${head},"choices":[`;
  const close = includeUsage ? `],"usage":null}\n\n` : "]}\n\n";
  const callsWithoutArguments = new Set<number>();
  let roleSent = false;

  function chunk(
    delta: object,
    finishReason: FinishReason | null = null,
    logprobs: object | null = null,
  ): string {
    const choice = `{"index":0,"delta":${JSON.stringify(delta)}`;
    const ending = `"finish_reason":${JSON.stringify(finishReason)}}`;
    return `${open}${choice},"logprobs":${JSON.stringify(logprobs)},${ending}${close}`;
  }

  /**
   * The chunk with the role, which comes once, before the first delta (WIRE 3.3). "" after that.
   */
  function roleChunk(first: Part["type"]): string {
    if (roleSent) return "";
    roleSent = true;
    const content = first === "text" ? "" : null;
    return chunk({ role: "assistant", content, ...(showReasoning && { reasoning_content: "" }) });
  }

  function textChunks(part: TextPart): string {
    const logprobs = showLogprobs ? part.logprobs : undefined;
    if (part.text === "" && !logprobs) return "";
    const role = roleChunk(part.type);
    const field = TEXT_FIELDS[part.type];
    const byField = logprobs ? { content: null, refusal: null, [field]: logprobs } : null;
    return role + chunk({ [field]: part.text }, null, byField);
  }

  function callChunks({ type, call, id, name }: ToolCallPart): string {
    callsWithoutArguments.add(call);
    const started = { index: call, id, type: "function", function: { name, arguments: "" } };
    return roleChunk(type) + chunk({ tool_calls: [started] });
  }

  function argumentsChunk(call: number, text: string): string {
    if (text === "") return "";
    callsWithoutArguments.delete(call);
    return chunk({ tool_calls: [{ index: call, function: { arguments: text } }] });
  }

  /** The events for one part. "" if the client is to see nothing of it. */
  function write(part: Part): string {
    switch (part.type) {
      case "finish":
      case "usage":
        return "";
      case "tool_call":
        return callChunks(part);
      case "tool_arguments":
        return argumentsChunk(part.call, part.text);
      case "reasoning":
        return showReasoning ? textChunks(part) : "";
      default:
        return textChunks(part);
    }
  }

  return {
    add: (parts) => parts.reduce((text, part) => text + write(part), ""),
    end(usage, reason) {
      let text = roleChunk("text");
      for (const call of [...callsWithoutArguments]) text += argumentsChunk(call, "{}");
      text += chunk({}, reason);
      if (includeUsage) text += `${open}],"usage":${JSON.stringify(usage)}}\n\n`;
      return `${text}data: [DONE]\n\n`;
    },
  };
}
