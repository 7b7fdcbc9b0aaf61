// The demo model: an OpenAI-compatible provider inside the process, as one more implementation of the fetch contract. The
// gateway treats it like any other, so the offline path is the real path. Deterministic: the same request gets the same
// reply, but for the share of the prompt that is reported as cached.

import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Fetch, FetchResponse } from "../http/fetch.ts";
import { composeReply, tokensOf, type DemoRequest } from "./compose.ts";

/** How many prompts are remembered for the cached-token counts; the oldest is forgotten. */
const REMEMBERED_PROMPTS = 1_000;

/** `paceMs` is the time between two tokens of a stream. */
export function createDemoFetch({ paceMs }: { readonly paceMs: number }): Fetch {
  const remembered = new Set<string>();

  /** Prompt tokens, and how many of them stand in a prefix (of whole messages) that was sent before. */
  function countPrompt(request: DemoRequest): { prompt: number; cached: number } {
    let prompt = tokensOf(JSON.stringify(request.tools ?? "")).length;
    let cached = 0;
    let prefix = createHash("sha256").update(JSON.stringify([request.model, request.tools ?? null])).digest("hex");
    for (const message of request.messages) {
      prompt += 4 + tokensOf(typeof message.content === "string" ? message.content : JSON.stringify(message.content)).length;
      prefix = createHash("sha256").update(prefix).update(JSON.stringify(message)).digest("hex");
      if (remembered.delete(prefix)) cached = prompt;
      remembered.add(prefix);
    }
    for (const oldest of remembered) {
      if (remembered.size <= REMEMBERED_PROMPTS) break;
      remembered.delete(oldest);
    }
    return { prompt, cached };
  }

  return async (_url, { body, signal }) => {
    if (signal.aborted) throw signal.reason;
    const request = JSON.parse(body) as DemoRequest;
    const reply = composeReply(request);
    const { prompt, cached } = countPrompt(request);
    const completion = reply.reasoning.length + reply.content.length + (reply.toolCall?.arguments.length ?? 0);
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reply.reasoning.length },
    };
    const head = { id: "demo", created: 0, model: request.model };
    const logprobs = (tokens: readonly string[]) => (request.logprobs ? { content: tokens.map((token) => logprob(token, request.top_logprobs ?? 0)) } : null);
    const call = reply.toolCall && { id: reply.toolCall.id, type: "function", function: { name: reply.toolCall.name, arguments: "" } };

    if (!request.stream) {
      const message = {
        role: "assistant",
        content: call ? null : reply.content.join(""),
        ...(reply.reasoning.length > 0 && { reasoning_content: reply.reasoning.join("") }),
        ...(call && { tool_calls: [{ ...call, function: { ...call.function, arguments: reply.toolCall?.arguments.join("") } }] }),
      };
      const choice = { index: 0, message, logprobs: call ? null : logprobs(reply.content), finish_reason: reply.finish };
      return answer("application/json", [JSON.stringify({ ...head, object: "chat.completion", choices: [choice], usage })]);
    }

    async function* events(): AsyncGenerator<string> {
      const event = (delta: object, finish: string | null = null, probabilities: object | null = null) =>
        `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, logprobs: probabilities, finish_reason: finish }] })}\n\n`;
      const paced = async () => void (paceMs > 0 && (await pause(paceMs, undefined, { signal })));
      yield event({ role: "assistant", content: "" });
      for (const token of reply.reasoning) {
        yield event({ reasoning_content: token });
        await paced();
      }
      if (call) yield event({ tool_calls: [{ index: 0, ...call }] });
      for (const token of reply.toolCall?.arguments ?? []) {
        yield event({ tool_calls: [{ index: 0, function: { arguments: token } }] });
        await paced();
      }
      for (const token of reply.content) {
        yield event({ content: token }, null, logprobs([token]));
        await paced();
      }
      yield event({}, reply.finish);
      yield `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [], usage })}\n\ndata: [DONE]\n\n`;
    }
    return answer("text/event-stream", events());
  };
}

function answer(mediaType: string, texts: Iterable<string> | AsyncIterable<string>): FetchResponse {
  async function* body(): AsyncGenerator<Uint8Array> {
    for await (const text of texts) yield Buffer.from(text);
  }
  return { status: 200, headers: { get: (name) => (name === "content-type" ? mediaType : null) }, body: body() };
}

/** A made-up but stable probability, and the runners-up. */
function logprob(token: string, runnersUp: number): object {
  const probability = -(createHash("sha256").update(token).digest()[0]! + 1) / 1000;
  const entry = (text: string, value: number) => ({ token: text, logprob: value, bytes: [...Buffer.from(text)] });
  const top = Array.from({ length: runnersUp }, (_, rank) => entry(rank === 0 ? token : `${token}${"~".repeat(rank)}`, probability - 2 * rank));
  return { ...entry(token, probability), top_logprobs: top };
}
