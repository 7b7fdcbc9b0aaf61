// Two providers' formats, as far as the provider of the run needs them. The figures of one reply
// are stated as each format counts them.

import type { Counts } from "./money.ts";

export interface Wire {
  /** The format has no reply without figures. */
  readonly alwaysCounts: boolean;
  whole(text: string, counts: Counts | undefined): string;
  start(counts: Counts): string;
  text(text: string): string;
  /** Events that finish the reply, with the figures where the format always states them. */
  finish(counts: Counts): string;
  /** An event with nothing but the figures. */
  figures(counts: Counts): string;
  readonly end: string;
}

const data = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;

const openaiUsage = ({ prompt, hit, write, write1h, completion, reasoning }: Counts): object => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  prompt_tokens_details: {
    cached_tokens: hit,
    cache_write_tokens: write,
    cache_creation: { ephemeral_1h_input_tokens: write1h },
  },
  completion_tokens_details: { reasoning_tokens: reasoning },
});
const choice = (more: object): object => ({ choices: [{ index: 0, ...more }] });

export const openaiWire: Wire = {
  alwaysCounts: false,
  whole: (text, counts) =>
    JSON.stringify({
      ...choice({ message: { role: "assistant", content: text }, finish_reason: "stop" }),
      ...(counts && { usage: openaiUsage(counts) }),
    }),
  start: () => data(choice({ delta: { role: "assistant", content: "" }, finish_reason: null })),
  text: (text) => data(choice({ delta: { content: text }, finish_reason: null })),
  finish: () => data(choice({ delta: {}, finish_reason: "stop" })),
  figures: (counts) => data({ choices: [], usage: openaiUsage(counts) }),
  end: "data: [DONE]\n\n",
};

const inputUsage = ({ prompt, hit, write, write1h }: Counts): object => ({
  input_tokens: prompt - hit - write,
  cache_read_input_tokens: hit,
  cache_creation_input_tokens: write,
  cache_creation: {
    ephemeral_5m_input_tokens: write - write1h,
    ephemeral_1h_input_tokens: write1h,
  },
});
const outputUsage = ({ completion, reasoning }: Counts): object => ({
  output_tokens: completion,
  output_tokens_details: { thinking_tokens: reasoning },
});
const message = (content: readonly object[], stop_reason: string | null, usage: object) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude",
  content,
  stop_reason,
  stop_sequence: null,
  usage,
});
const event = (type: string, more: object): string => `event: ${type}\n${data({ type, ...more })}`;

export const anthropicWire: Wire = {
  alwaysCounts: true,
  whole: (text, counts) =>
    JSON.stringify(
      message([{ type: "text", text }], "end_turn", {
        ...(counts && { ...inputUsage(counts), ...outputUsage(counts) }),
      }),
    ),
  start: (counts) =>
    event("message_start", {
      message: message([], null, { ...inputUsage(counts), output_tokens: 1 }),
    }) + event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  text: (text) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  finish: (counts) =>
    event("content_block_stop", { index: 0 }) +
    event("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: outputUsage(counts),
    }),
  figures: (counts) => event("message_delta", { delta: {}, usage: outputUsage(counts) }),
  end: event("message_stop", {}),
};
