// What a client makes of an answer, in all three formats: whether it is whole, and which figures it has.

import type { IncomingMessage } from "node:http";
import type { Asked } from "./client.ts";
import type { Counts } from "./money.ts";

export type Verdict = Pick<Asked, "verdict" | "served" | "usage" | "code" | "text">;

const CUT: Verdict = { verdict: "cut" };

function chatCounts(usage: any): Counts | undefined {
  if (!usage) return undefined;
  return {
    prompt: usage.prompt_tokens,
    hit: usage.prompt_cache_hit_tokens,
    write: usage.prompt_tokens_details.cache_write_tokens ?? 0,
    write1h: usage.prompt_tokens_details.cache_write_1h_tokens ?? 0,
    completion: usage.completion_tokens,
    reasoning: usage.completion_tokens_details.reasoning_tokens,
  };
}

/** A reply of the Messages API. It does not say how much was thought, or is kept for an hour. */
const messageVerdict = (served: string, usage: any, text: string): Verdict => ({
  verdict: "whole",
  served,
  text,
  usage: {
    prompt: usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
    hit: usage.cache_read_input_tokens,
    write: usage.cache_creation_input_tokens,
    completion: usage.output_tokens,
  },
});

/** A reply of the Responses API. It does not say what is kept for an hour. */
const responseVerdict = ({ model, usage, output }: any): Verdict => ({
  verdict: "whole",
  served: model,
  text: textIn(output.flatMap(({ content }: any) => content ?? [])),
  usage: {
    prompt: usage.input_tokens,
    hit: usage.input_tokens_details.cached_tokens,
    write: usage.input_tokens_details.cache_write_tokens,
    completion: usage.output_tokens,
    reasoning: usage.output_tokens_details.reasoning_tokens,
  },
});

const whole = (served: string, usage: any, text: string): Verdict => ({
  verdict: "whole",
  served,
  text,
  usage: chatCounts(usage),
});

/** The text of blocks or of their deltas. */
const textIn = (parts: readonly any[]): string => parts.map(({ text }) => text ?? "").join("");

function onDocument(res: IncomingMessage, text: string, { api }: Pick<Asked, "api">): Verdict {
  if (!res.complete) return CUT;
  const reply = JSON.parse(text);
  if (reply.error) return { verdict: "error", code: reply.error.code };
  if (api === "chat") return whole(reply.model, reply.usage, reply.choices[0].message.content);
  if (api === "responses") return responseVerdict(reply);
  return messageVerdict(reply.model, reply.usage, textIn(reply.content));
}

/** The data of the events that have come whole. */
const eventsIn = (text: string): string[] =>
  text
    .split("\n\n")
    .slice(0, -1)
    .flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? []);

function onChunks(events: string[]): Verdict {
  const last = events.pop();
  if (last?.startsWith('{"error"')) return { verdict: "error", code: JSON.parse(last).error.code };
  if (last !== "[DONE]") return CUT;
  // Each chunk has the model that made it; the last one that of the model that finished.
  const chunks = events.map((event) => JSON.parse(event));
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  const { model, usage } = chunks.at(-1);
  return whole(model, usage, text);
}

function onMessageEvents(texts: readonly string[]): Verdict {
  const events = texts.map((text) => JSON.parse(text));
  const last = events.at(-1);
  if (last?.type === "error") return { verdict: "error" };
  if (last?.type !== "message_stop") return CUT;
  const start = events.find(({ type }) => type === "message_start").message;
  const end = events.findLast(({ type, usage }) => type === "message_delta" && usage);
  const text = textIn(events.flatMap(({ delta }) => delta ?? []));
  return messageVerdict(start.model, { ...start.usage, ...end?.usage }, text);
}

function onResponseEvents(texts: readonly string[]): Verdict {
  const events = texts.map((text) => JSON.parse(text));
  const last = events.at(-1);
  if (last?.type === "response.failed") return { verdict: "error", code: last.response.error.code };
  if (last?.type !== "response.completed" && last?.type !== "response.incomplete") return CUT;
  const deltas = events.filter(({ type }) => type === "response.output_text.delta");
  const text = deltas.map(({ delta }) => delta).join("");
  const verdict = responseVerdict(last.response);
  // Its pieces must be the text of the whole.
  return text === verdict.text ? verdict : { ...verdict, text: `${text}, not ${verdict.text}` };
}

export function verdictOn(
  res: IncomingMessage,
  text: string,
  about: Pick<Asked, "api" | "stream">,
): Verdict {
  if (res.statusCode !== 200 || !about.stream) return onDocument(res, text, about);
  const events = eventsIn(text);
  if (about.api === "responses") return onResponseEvents(events);
  return about.api === "chat" ? onChunks(events) : onMessageEvents(events);
}
