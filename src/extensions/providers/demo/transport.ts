// The demo model as a provider: a Transport that answers like an OpenAI-compatible server. The
// gateway treats it like any other provider.
import { setTimeout as pause } from "node:timers/promises";
import { createChunkWriter, createWholeWriter, replyHead } from "../../../core/openai/reply.ts";
import type { Part, TokenLogprob } from "../../../core/openai/parts.ts";
import { textOf } from "../../../core/openai/request.ts";
import { makeUsage, type Usage } from "../../../core/openai/usage.ts";
import type { Transport } from "../../../core/upstream/transport.ts";
import { composeReply, type DemoReply, type DemoRequest } from "./reply.ts";

/** `paceMs`: the time between two tokens of a stream, in milliseconds. */
export const createDemoTransport =
  ({ paceMs }: { readonly paceMs: number }): Transport =>
  async (_url, { body, cancel }) => {
    if (cancel.aborted) throw cancel.reason;
    const request: DemoRequest = JSON.parse(body);
    const reply = composeReply(request);
    const createWriter = request.stream ? createChunkWriter : createWholeWriter;
    const showReasoning = reply.reasoning.length > 0;
    const options = { showReasoning, showLogprobs: true, includeUsage: true };
    const writer = createWriter(replyHead(request.model, "demo", 0), options);

    async function* write(): AsyncGenerator<Uint8Array> {
      for (const part of partsOf(request, reply)) {
        const text = writer.add([part]);
        if (text === "") continue; // a whole reply is sent at once
        yield Buffer.from(text);
        if (paceMs > 0) await pace();
        if (cancel.aborted) throw cancel.reason;
      }
      yield Buffer.from(writer.end(usageOf(request, reply), reply.finish));
    }

    /** Ignores the error of an aborted pause: the caller throws the reason of `cancel`. */
    const pace = () => pause(paceMs, undefined, { signal: cancel.signal }).catch(() => undefined);

    const contentType = request.stream ? "text/event-stream" : "application/json";
    // Not Node's Headers, which load all of its fetch.
    const headers = { get: (name: string) => (/^content-type$/i.test(name) ? contentType : null) };
    return { status: 200, headers, body: write() };
  };

function partsOf(request: DemoRequest, { reasoning, answer, call }: DemoReply): Part[] {
  const thoughts = reasoning.map((text): Part => ({ type: "reasoning", text }));
  if (!call) {
    const texts = answer.map(
      (text): Part => ({ type: "text", text, logprobs: logprobsOf(text, request) }),
    );
    return [...thoughts, ...texts];
  }
  const pieces = answer.map((text): Part => ({ type: "tool_arguments", call: 0, text }));
  return [...thoughts, { type: "tool_call", call: 0, ...call }, ...pieces];
}

/** The tokens of a message's role and borders. */
const TOKENS_A_MESSAGE = 4;
const CHARS_A_TOKEN = 4;

/**
 * All of a conversation before its last question counts as cached, as with a real provider. The
 * tokens of the prompt are estimated from its length.
 */
function usageOf({ tools, messages }: DemoRequest, { reasoning, answer }: DemoReply): Usage {
  const tokensUpTo = (end: number): number => {
    let chars = JSON.stringify(tools ?? "").length;
    for (const { content } of messages.slice(0, end)) chars += textOf(content ?? "").length;
    return TOKENS_A_MESSAGE * end + Math.ceil(chars / CHARS_A_TOKEN);
  };
  const isQuestion = ({ role }: DemoRequest["messages"][number]) => role === "user";
  const last = messages.findLastIndex(isQuestion);
  const isFirst = last === messages.findIndex(isQuestion);
  return makeUsage({
    prompt: tokensUpTo(messages.length),
    completion: reasoning.length + answer.length,
    cacheHit: isFirst ? 0 : tokensUpTo(last),
    reasoning: reasoning.length,
  });
}

/**
 * Invented log probabilities of a token and its alternatives, each less likely than the one before.
 * Undefined: the client did not ask for them.
 */
function logprobsOf(
  token: string,
  { logprobs, top_logprobs: length = 0 }: DemoRequest,
): TokenLogprob[] | undefined {
  if (!logprobs) return undefined;
  const ranked = (text: string, rank: number) => ({
    token: text,
    logprob: -0.1 - rank,
    bytes: [...Buffer.from(text)],
  });
  const top_logprobs = Array.from({ length }, (_, rank) => ranked(token + "~".repeat(rank), rank));
  return [{ ...ranked(token, 0), top_logprobs }];
}
