// What a client makes of an answer, in all three formats: whether it is whole, and which text and
// figures it has.

import type { IncomingMessage } from "node:http";
import type { Api, Asked } from "./client.ts";

export type Verdict = Pick<Asked, "verdict" | "served" | "usage" | "code" | "text">;

type Seen = Pick<Asked, "usage" | "text">;

/** The text of blocks, or of the deltas of them. */
const textIn = (parts: readonly any[]): string => parts.map((part) => part?.text ?? "").join("");

/** The text and the figures of a whole reply. */
const SEEN: Readonly<Record<Api, (reply: any) => Seen>> = {
  chat: ({ choices, usage }) => ({
    text: choices[0].message.content,
    usage: usage && {
      prompt: usage.prompt_tokens,
      hit: usage.prompt_cache_hit_tokens,
      write: usage.prompt_tokens_details.cache_write_tokens ?? 0,
      write1h: usage.prompt_tokens_details.cache_write_1h_tokens ?? 0,
      completion: usage.completion_tokens,
      reasoning: usage.completion_tokens_details.reasoning_tokens,
    },
  }),
  // It does not say how much was thought, or is kept for an hour.
  messages: ({ content, usage }) => ({
    text: textIn(content),
    usage: {
      prompt:
        usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
      hit: usage.cache_read_input_tokens,
      write: usage.cache_creation_input_tokens,
      completion: usage.output_tokens,
    },
  }),
  // It does not say what is kept for an hour.
  responses: ({ output, usage }) => ({
    text: textIn(output.flatMap(({ content }: any) => content ?? [])),
    usage: {
      prompt: usage.input_tokens,
      hit: usage.input_tokens_details.cached_tokens,
      write: usage.input_tokens_details.cache_write_tokens,
      completion: usage.output_tokens,
      reasoning: usage.output_tokens_details.reasoning_tokens,
    },
  }),
};

const DONE = "[DONE]";

/** The data of the events that have come whole. */
const eventsIn = (text: string): any[] =>
  text
    .split("\n\n")
    .slice(0, -1)
    .flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? [])
    .map((data) => (data === DONE ? DONE : JSON.parse(data)));

/** The reply or the error that the events of a stream come to. Undefined: they do not end. */
const REPLIES: Readonly<Record<Api, (events: readonly any[]) => any>> = {
  chat(events) {
    const last = events.at(-1);
    if (last !== DONE) return last?.error && last;
    // Each chunk has the model that made it; the last one that of the model that finished.
    const chunks = events.slice(0, -1);
    const content = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    return { ...chunks.at(-1), choices: [{ message: { content } }] };
  },
  messages(events) {
    const last = events.at(-1);
    if (last?.type !== "message_stop") return last?.error && last;
    const { message } = events.find(({ type }) => type === "message_start");
    const end = events.findLast(({ type, usage }) => type === "message_delta" && usage);
    const content = events.flatMap(({ delta }) => delta ?? []);
    return { ...message, content, usage: { ...message.usage, ...end?.usage } };
  },
  responses(events) {
    const { type, response } = events.at(-1) ?? {};
    if (type === "response.failed") return response;
    if (type !== "response.completed" && type !== "response.incomplete") return undefined;
    const deltas = events.filter((event) => event.type === "response.output_text.delta");
    return { ...response, output: [{ content: deltas.map(({ delta }) => ({ text: delta })) }] };
  },
};

export function verdictOn(
  res: IncomingMessage,
  text: string,
  { api, stream }: Pick<Asked, "api" | "stream">,
): Verdict {
  const isStream = res.statusCode === 200 && stream;
  if (!isStream && !res.complete) return { verdict: "cut" };
  const reply = isStream ? REPLIES[api](eventsIn(text)) : JSON.parse(text);
  if (!reply) return { verdict: "cut" };
  if (reply.error) return { verdict: "error", code: reply.error.code };
  return { verdict: "whole", served: reply.model, ...SEEN[api](reply) };
}
