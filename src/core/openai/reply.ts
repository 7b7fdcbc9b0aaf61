// Writes a reply in the public format: as one document (wire.md "Whole replies"), or as a stream of
// chunks (wire.md "Chunks").
import { randomHex } from "../ids.ts";
import type { FinishReason, Part, TextPart, TokenLogprob, ToolCallPart } from "./parts.ts";
import type { Usage } from "./usage.ts";

/** The fields that a whole reply, or each of its chunks, begins with. */
export interface ReplyHead {
  /** Always the gateway's own, never the provider's. */
  readonly id: string;
  /** In seconds since 1970. */
  readonly created: number;
  /** The canonical name of the model that serves. */
  readonly model: string;
  /**
   * `fp_` and hexadecimal digits, which stand for the provider and its model (wire.md "Whole
   * replies").
   */
  readonly system_fingerprint: string;
}

/** `now`: the wall clock, in milliseconds. */
export const replyHead = (model: string, fingerprint: string, now: number): ReplyHead => ({
  id: `chatcmpl-${randomHex(16)}`,
  created: Math.floor(now / 1000),
  model,
  system_fingerprint: fingerprint,
});

/** The client's choices that decide the form of its reply. */
export interface ReplyOptions {
  /** Whether reasoning is shown. Its tokens are in the usage in any case (wire.md "Thinking"). */
  readonly showReasoning: boolean;
  /** Whether log probabilities are shown. If not, `logprobs` is null. */
  readonly showLogprobs: boolean;
  /**
   * Whether a stream ends with a usage chunk (wire.md "Usage in streams"). A whole reply always has
   * its usage.
   */
  readonly includeUsage: boolean;
}

/** The comment that marks the place where another attempt continues a stream. */
export const RECOVERED = ": recovered\n\n";

/** Turns parts into the public format. */
export interface ReplyWriter {
  /** Returns the text that can be sent at once, "" if there is none. */
  add(parts: readonly Part[]): string;
  /**
   * Returns the rest of the reply, once the provider has finished. The reason is held back until
   * then: some providers send it more than once, or text after it, and a client must see it last.
   */
  end(usage: Usage, reason: FinishReason): string;
  /**
   * Another attempt, of this model, continues a stream that broke. Returns the text that marks the
   * place for the client. Absent: the format has no such mark.
   */
  readonly resumed?: (model: string, fingerprint: string) => string;
}

/**
 * The field of a message or a delta that has the texts of each kind. Their log probabilities have
 * the same name.
 */
const TEXT_FIELDS = {
  text: "content",
  reasoning: "reasoning_content",
  refusal: "refusal",
} as const;

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; arguments: string };
}

/** Writes one document. */
export function createWholeWriter(
  { id, ...head }: ReplyHead,
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
        } else if ("text" in part) addText(part);
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
      const choice = { index: 0, message, logprobs: hasLogprobs ? logprobs : null, finish_reason };
      return JSON.stringify({ id, object: "chat.completion", ...head, choices: [choice], usage });
    },
  };
}

/** The beginning that all chunks share. */
function openingOf({ id, ...rest }: ReplyHead): string {
  const head = JSON.stringify({ id, object: "chat.completion.chunk", ...rest }).slice(0, -1);
  return `data: ${head},"choices":[`;
}

/**
 * Writes a stream of chunks. The constant part of a chunk is serialized once; for each part only
 * the delta is serialized.
 */
export function createChunkWriter(
  head: ReplyHead,
  { showReasoning, showLogprobs, includeUsage }: ReplyOptions,
): ReplyWriter {
  let open = openingOf(head);
  const close = includeUsage ? `],"usage":null}\n\n` : "]}\n\n";
  const callsWithoutArguments = new Set<number>();
  let roleSent = false;
  /** Whether something other than thinking was written. */
  let hasContent = false;

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
   * The chunk with the role, which comes once, before the first delta (wire.md "Chunks"). "" after
   * that.
   */
  function roleChunk(first: Part["type"]): string {
    hasContent ||= first !== "reasoning";
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
    if (part.type === "tool_call") return callChunks(part);
    if (part.type === "tool_arguments") return argumentsChunk(part.call, part.text);
    if (part.type === "reasoning" && !showReasoning) return "";
    return "text" in part ? textChunks(part) : "";
  }

  return {
    resumed(model, system_fingerprint) {
      open = openingOf({ ...head, model, system_fingerprint });
      return RECOVERED;
    },
    add: (parts) => parts.reduce((text, part) => text + write(part), ""),
    end(usage, reason) {
      let text = roleSent ? "" : roleChunk("text");
      for (const call of [...callsWithoutArguments]) text += argumentsChunk(call, "{}");
      // Clients send the message back, and content may be null only next to tool calls.
      text += chunk(hasContent ? {} : { content: "" }, reason);
      if (includeUsage) text += `${open}],"usage":${JSON.stringify(usage)}}\n\n`;
      return `${text}data: [DONE]\n\n`;
    },
  };
}
