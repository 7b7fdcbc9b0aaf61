// The demo model's wire (what it says is in compose.ts): an OpenAI-compatible provider in the process, as one more fetch, that writes as
// the gateway does. It is treated like any other, so the offline path is the real one. The same request gets the same reply.
import { setTimeout as pause } from "node:timers/promises";
import type { Send } from "../http/fetch.ts";
import { textOf } from "../protocol/chat-request.ts";
import { createChunkWriter, createWholeWriter, makeUsage, type Part } from "../protocol/reply.ts";
import type { TokenLogprob, Usage } from "../protocol/shapes.ts";
import { composeReply, tokensOf, type DemoRequest } from "./compose.ts";

/** `paceMs` is the time between two tokens of a stream. */
export function createDemoFetch({ paceMs }: { readonly paceMs: number }): Send {
  return async (_url, { body, cancel }) => {
    if (cancel.aborted) throw cancel.reason;
    const request: DemoRequest = JSON.parse(body);
    const { reasoning, answer, call, finish } = composeReply(request);
    const create = request.stream ? createChunkWriter : createWholeWriter;
    const head = { id: "demo", created: 0, model: request.model, system_fingerprint: "demo" };
    const writer = create(head, { showReasoning: reasoning.length > 0, showLogprobs: true, includeUsage: true });
    const thoughts = reasoning.map((text): Part => ({ type: "reasoning", text }));
    const begun: Part[] = call ? [{ type: "tool_call", call: 0, ...call }] : [];
    const piece = (text: string, tokens: readonly string[]): Part =>
      call ? { type: "tool_arguments", call: 0, text } : { type: "text", text, logprobs: logprobsOf(tokens, request) };
    const said = request.stream ? answer.map((token) => piece(token, [token])) : [piece(answer.join(""), answer)];

    async function* reply(): AsyncGenerator<Uint8Array> {
      for (const part of [...thoughts, ...begun, ...said]) {
        const text = writer.add([part]);
        if (text === "") continue; // a whole reply comes at once
        yield Buffer.from(text);
        // An aborted pause fails with an error of its own; the contract asks for the reason.
        if (paceMs > 0) await pause(paceMs, undefined, { signal: cancel.signal }).catch(() => undefined);
        if (cancel.aborted) throw cancel.reason;
      }
      yield Buffer.from(writer.end(usageOf(request, reasoning.length, reasoning.length + answer.length), finish));
    }

    const headers = new Headers({ "content-type": request.stream ? "text/event-stream" : "application/json" });
    return { status: 200, headers, body: reply() };
  };
}

/** What a conversation repeats, all before its last question, is cached, as it is with a real provider. */
function usageOf({ tools, messages }: DemoRequest, reasoning: number, completion: number): Usage {
  const lengths = messages.map(({ content }) => 4 + tokensOf(textOf(content ?? "")).length); // 4 for its role and its borders
  const upTo = (end: number) => lengths.slice(0, end).reduce((sum, length) => sum + length, tokensOf(JSON.stringify(tools ?? "")).length);
  const questions = [...messages.keys()].filter((at) => messages[at]!.role === "user");
  const cacheHit = questions.length > 1 ? upTo(questions.at(-1)!) : 0;
  return makeUsage({ prompt: upTo(messages.length), completion, cacheHit, reasoning });
}

/** A made-up probability of each, and the runners-up, each less likely than the one before; nothing if that was not asked for. */
function logprobsOf(tokens: readonly string[], { logprobs, top_logprobs: length = 0 }: DemoRequest): TokenLogprob[] | undefined {
  if (!logprobs) return undefined;
  const ranked = (text: string, rank: number) => ({ token: text, logprob: -0.1 - rank, bytes: [...Buffer.from(text)] });
  const runnersUp = (token: string) => Array.from({ length }, (_, rank) => ranked(token + "~".repeat(rank), rank));
  return tokens.map((token) => ({ ...ranked(token, 0), top_logprobs: runnersUp(token) }));
}
