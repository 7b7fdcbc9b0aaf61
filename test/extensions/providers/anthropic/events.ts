// Replies in Anthropic's format, and the events of a streamed one.

export const USAGE = {
  input_tokens: 10,
  cache_creation_input_tokens: 2,
  cache_read_input_tokens: 8,
  output_tokens: 7,
};

/** A whole reply. */
export const message = (
  content: readonly object[],
  stop_reason: string | null = "end_turn",
  usage: object = USAGE,
) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-2026",
  content,
  stop_reason,
  stop_sequence: null,
  usage,
});

export const textBlock = (text: string) => ({ type: "text", text });
export const thought = (thinking: string, signature: string) => ({
  type: "thinking",
  thinking,
  signature,
});
export const toolUse = (id: string, name: string, input: object) => ({
  type: "tool_use",
  id,
  name,
  input,
});

export const say = (text: string) => ({ type: "text_delta", text });
export const think = (thinking: string) => ({ type: "thinking_delta", thinking });
export const sign = (signature: string) => ({ type: "signature_delta", signature });
export const input = (partial_json: string) => ({ type: "input_json_delta", partial_json });

export const start = (
  content: readonly object[] = [],
  usage: object = { ...USAGE, output_tokens: 1 },
) => ({ type: "message_start", message: message(content, null, usage) });
/** The events of one content block of a stream. */
export const block = (index: number, content_block: object, ...deltas: readonly object[]) => [
  { type: "content_block_start", index, content_block },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index },
];
export const ended = (
  stop_reason: string | null = "end_turn",
  usage: object = { output_tokens: 7 },
) => ({ type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage });
export const STOP = { type: "message_stop" };

/** Text in two halves, for two deltas. */
const halves = (text: string): readonly string[] => {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
};

/** The events of these blocks. Each begins empty, and has two deltas if it is long enough. */
export const streamOf = (content: readonly Record<string, any>[]) =>
  content.flatMap((whole, index) => {
    if (whole["type"] === "text")
      return block(index, textBlock(""), ...halves(whole["text"]).map(say));
    if (whole["type"] === "thinking") {
      const pieces = halves(whole["thinking"]).map(think);
      return block(index, thought("", ""), ...pieces, ...halves(whole["signature"]).map(sign));
    }
    if (whole["type"] !== "tool_use") return block(index, whole);
    const { input: given } = whole;
    const text = typeof given === "string" ? given : JSON.stringify(given);
    const pieces = text === "{}" ? [""] : halves(text);
    return block(index, { ...whole, input: {} }, ...pieces.map(input));
  });
