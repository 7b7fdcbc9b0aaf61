// The demo model as a provider: an OpenAI-compatible server in the form of one more Transport. The
// gateway treats it like any other provider, so the offline path is the real one.
import { setTimeout as pause } from "node:timers/promises";
import { createChunkWriter, createWholeWriter, replyHead } from "../../../core/openai/reply.ts";
import type { Part } from "../../../core/openai/parts.ts";
import type { Transport } from "../../../core/upstream/transport.ts";
import { composeReply, type DemoReply, type DemoRequest } from "./reply.ts";
import { logprobsOf, usageOf } from "./tokens.ts";

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

    /**
     * An aborted pause fails with an error of its own. The contract demands the reason, which the
     * caller throws.
     */
    const pace = () => pause(paceMs, undefined, { signal: cancel.signal }).catch(() => undefined);

    const contentType = request.stream ? "text/event-stream" : "application/json";
    return { status: 200, headers: new Headers({ "content-type": contentType }), body: write() };
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
