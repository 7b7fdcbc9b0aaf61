// The demo model's wire (what it says is in compose.ts): an OpenAI-compatible provider in the process, as one more fetch. The
// gateway treats it like any other, so the offline path is the real one. The same request gets the same reply.
import { setTimeout as pause } from "node:timers/promises";
import type { Send } from "../http/fetch.ts";
import { textOf } from "../protocol/chat-request.ts";
import { composeReply, tokensOf, type DemoRequest } from "./compose.ts";

/** `paceMs` is the time between two tokens of a stream. */
export function createDemoFetch({ paceMs }: { readonly paceMs: number }): Send {
  return async (_url, { body, cancel }) => {
    if (cancel.aborted) throw cancel.reason;
    const request: DemoRequest = JSON.parse(body);
    const { reasoning, answer, call, finish } = composeReply(request);
    const usage = usageOf(request, reasoning.length, reasoning.length + answer.length);
    const head = { id: "demo", object: request.stream ? "chat.completion.chunk" : "chat.completion", created: 0, model: request.model };
    const json = (choice: object, more?: object) => JSON.stringify({ ...head, choices: [{ index: 0, ...choice }], ...more });

    /** Text, or arguments of the call. Every piece of a call has its id and name, as it is with some providers. */
    const said = (text: string) =>
      call
        ? { tool_calls: [{ index: 0, id: call.id, type: "function", function: { name: call.name, arguments: text } }] }
        : { content: text };
    const logprobs = (tokens: readonly string[]) =>
      request.logprobs && !call ? { content: tokens.map((token) => logprob(token, request.top_logprobs ?? 0)) } : null;

    async function* reply(): AsyncGenerator<Uint8Array> {
      const message = { role: "assistant", content: null, reasoning_content: reasoning.join("") || undefined, ...said(answer.join("")) };
      if (!request.stream) return yield Buffer.from(json({ message, logprobs: logprobs(answer), finish_reason: finish }, { usage }));
      const thoughts = reasoning.map((token) => ({ delta: { reasoning_content: token } }));
      const pieces = answer.map((token) => ({ delta: said(token), logprobs: logprobs([token]) }));
      for (const choice of [...thoughts, ...pieces]) {
        yield Buffer.from(`data: ${json(choice)}\n\n`);
        // An aborted pause fails with an error of its own; the contract asks for the reason.
        if (paceMs > 0) await pause(paceMs, undefined, { signal: cancel.signal }).catch(() => undefined);
        if (cancel.aborted) throw cancel.reason;
      }
      yield Buffer.from(`data: ${json({ delta: {}, finish_reason: finish }, { usage })}\n\ndata: [DONE]\n\n`);
    }

    const headers = new Headers({ "content-type": request.stream ? "text/event-stream" : "application/json" });
    return { status: 200, headers, body: reply() };
  };
}

/** What a conversation repeats, all before its last question, is cached, as it is with a real provider. */
function usageOf({ tools, messages }: DemoRequest, reasoning: number, completion: number): object {
  let prompt = tokensOf(JSON.stringify(tools ?? "")).length;
  const before: number[] = []; // what stands before each question
  for (const { role, content } of messages) {
    if (role === "user") before.push(prompt);
    prompt += 4 + tokensOf(textOf(content ?? "")).length; // 4 for its role and its borders
  }
  const cached = before.length > 1 ? before.at(-1)! : 0;
  const details = { prompt_tokens_details: { cached_tokens: cached }, completion_tokens_details: { reasoning_tokens: reasoning } };
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, ...details };
}

/** A made-up probability, and the runners-up, each less likely than the one before. */
function logprob(token: string, runnersUp: number): object {
  const ranked = (text: string, rank: number) => ({ token: text, logprob: -0.1 - rank, bytes: [...Buffer.from(text)] });
  return { ...ranked(token, 0), top_logprobs: Array.from({ length: runnersUp }, (_, rank) => ranked(token + "~".repeat(rank), rank)) };
}
