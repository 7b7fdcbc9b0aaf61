// The demo model: an OpenAI-compatible provider in the process, as one more fetch, that writes as the gateway does. It is treated like
// any other, so the offline path is the real one. It says thoughts, then a text, JSON or the arguments of a tool call, as lists of
// tokens that end where `stop` and `max_tokens` say. All of it follows from the request: the same one gets the same reply.
import { setTimeout as pause } from "node:timers/promises";
import { sha256 } from "../../core/hash.ts";
import type { Transport } from "../../core/upstream/fetch.ts";
import { textOf, type ChatRequest } from "../../core/openai/request.ts";
import { createChunkWriter } from "../../core/openai/chunk-writer.ts";
import type { TokenLogprob } from "../../core/openai/logprobs.ts";
import type { FinishReason, Part } from "../../core/openai/parts.ts";
import { replyHead } from "../../core/openai/reply.ts";
import { makeUsage, type Usage } from "../../core/openai/usage.ts";
import { createWholeWriter } from "../../core/openai/whole-writer.ts";
import { exampleOf } from "./example.ts";

/** The request that the gateway sends, as far as it is looked at: most fields go out as the check of the client's request left them. */
export type DemoRequest = Omit<ChatRequest, "thinking"> & {
  max_tokens?: number;
  thinking?: { type: string };
};
const ABOUT =
  "This is the demo model: no network, and the same answer every time. Put a provider into gateway.json for a real one.";

/** `paceMs` is the time between two tokens of a stream. */
export const createDemoFetch =
  ({ paceMs }: { readonly paceMs: number }): Transport =>
  async (_url, { body, cancel }) => {
    if (cancel.aborted) throw cancel.reason;
    const request: DemoRequest = JSON.parse(body);
    const { reasoning, answer, call, finish } = composeReply(request);
    const options = { showReasoning: reasoning.length > 0, showLogprobs: true, includeUsage: true };
    const writer = (request.stream ? createChunkWriter : createWholeWriter)(
      replyHead(request.model, "demo", 0),
      options,
    );
    const thoughts = reasoning.map((text): Part => ({ type: "reasoning", text }));
    const said = answer.map(
      (text): Part =>
        call
          ? { type: "tool_arguments", call: 0, text }
          : { type: "text", text, logprobs: logprobsOf(text, request) },
    );

    async function* reply(): AsyncGenerator<Uint8Array> {
      for (const part of [
        ...thoughts,
        ...(call ? [{ type: "tool_call" as const, call: 0, ...call }] : []),
        ...said,
      ]) {
        const text = writer.add([part]);
        if (text === "") continue; // a whole reply comes at once
        yield Buffer.from(text);
        // An aborted pause fails with an error of its own; the contract asks for the reason.
        if (paceMs > 0)
          await pause(paceMs, undefined, { signal: cancel.signal }).catch(() => undefined);
        if (cancel.aborted) throw cancel.reason;
      }
      yield Buffer.from(
        writer.end(usageOf(request, reasoning.length, reasoning.length + answer.length), finish),
      );
    }

    return {
      status: 200,
      headers: new Headers({
        "content-type": request.stream ? "text/event-stream" : "application/json",
      }),
      body: reply(),
    };
  };

/** What a conversation repeats, all before its last question, is cached, as it is with a real provider. */
function usageOf({ tools, messages }: DemoRequest, reasoning: number, completion: number): Usage {
  const count = createTokenCount();
  const lengths = messages.map(({ content }) => 4 + count(textOf(content ?? ""))); // 4 for its role and its borders
  const declared = count(JSON.stringify(tools ?? ""));
  const upTo = (end: number) =>
    lengths.slice(0, end).reduce((sum, length) => sum + length, declared);
  const questions = [...messages.keys()].filter((at) => messages[at]!.role === "user");
  const cacheHit = questions.length > 1 ? upTo(questions.at(-1)!) : 0;
  return makeUsage({ prompt: upTo(messages.length), completion, cacheHit, reasoning });
}

/** A made-up probability, and the runners-up, each less likely than the one before; nothing if that was not asked for. */
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
  return [
    {
      ...ranked(token, 0),
      top_logprobs: Array.from({ length }, (_, rank) => ranked(token + "~".repeat(rank), rank)),
    },
  ];
}

/** Pieces of up to eight letters with the space before them; joined they are the text again. */
const tokensOf = (text: string): string[] =>
  text.match(/\s*(?:[\p{L}\p{M}\p{N}_]{1,8}|\S)|\s+/gu) ?? [];

/** Counts the tokens of a prompt's texts: those of the first 200,000 characters, and of what follows one for four characters. */
function createTokenCount(): (text: string) => number {
  let left = 200_000;
  return (text) => {
    const read = text.slice(0, left);
    left -= read.length;
    return tokensOf(read).length + Math.ceil((text.length - read.length) / 4);
  };
}

/** The answer is a text or, if there is a call, its arguments; tokens beyond the limit are left out. */
export function composeReply(request: DemoRequest) {
  const {
    messages,
    tools = [],
    tool_choice: choice = "none",
    thinking,
    max_tokens: limit = Infinity,
  } = request;
  const question = quoted(textOf(messages.findLast(({ role }) => role === "user")?.content ?? ""));
  // The tool that tool_choice names, else the first; with "auto" none once a tool has answered.
  const fitting = tools.filter(
    (each) => typeof choice !== "object" || each.function.name === choice.function.name,
  );
  const tool =
    choice === "none" || (choice === "auto" && messages.at(-1)?.role === "tool")
      ? undefined
      : fitting[0]?.function;
  const plan = tool ? `The tool ${tool.name} can tell, so I call it` : "I can answer this myself";
  const allReasoning =
    thinking?.type === "enabled"
      ? tokensOf(`The question is: “${question}”. ${plan}, and I will keep it short.`)
      : [];
  const allAnswer = tokensOf(
    tool ? jsonFor({ type: "object", ...tool.parameters }, question) : textFor(request, question),
  );
  const reasoning = allReasoning.slice(0, limit);
  const answer = allAnswer.slice(0, limit - reasoning.length);
  let finish: FinishReason;
  if (allReasoning.length + allAnswer.length > limit) finish = "length";
  else finish = tool ? "tool_calls" : "stop";
  // Another conversation, another id. Where thinking took all of the limit there is no call.
  const call =
    tool && answer.length > 0
      ? { id: `call_${sha256(JSON.stringify(messages)).slice(0, 24)}`, name: tool.name }
      : undefined;
  return { reasoning, answer, call, finish };
}

/** A text or JSON, up to the first of the sequences to stop at. */
function textFor(
  { messages, response_format: format, stop = [] }: DemoRequest,
  question: string,
): string {
  const last = messages.at(-1);
  let text = `You said: “${question}”.\n\n${ABOUT}`;
  if (format?.type === "json_schema") text = jsonFor(format.json_schema.schema ?? {}, question);
  else if (format?.type === "json_object")
    text = JSON.stringify({ question, answer: "This is the demo model." });
  else if (last?.role === "tool") text = `The tool says: ${quoted(last.content)}`;
  const ends = stop.map((sequence) => text.indexOf(sequence)).filter((index) => index !== -1);
  return text.slice(0, Math.min(text.length, ...ends));
}

const jsonFor = (schema: Record<string, unknown>, question: string): string =>
  JSON.stringify(exampleOf(schema, question));
/** In one line, of 120 characters at most, none of them cut in half; of the first 100,000 that were given. */
const quoted = (text: string): string =>
  [...text.trim().slice(0, 100_000).replace(/\s+/g, " ").slice(0, 240)].slice(0, 120).join("");
