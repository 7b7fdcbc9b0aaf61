// The demo model's reply: thoughts, then a text, JSON or the arguments of a tool call, as lists of
// tokens that `stop` and `max_tokens` cut. The same request always gets the same reply.
import { sha256 } from "../../../core/hash.ts";
import type { FinishReason } from "../../../core/openai/parts.ts";
import { textOf, type ChatRequest } from "../../../core/openai/request.ts";
import { exampleOf } from "./example.ts";

/** The gateway's request to the provider. Most of its fields are those of the checked request. */
export type DemoRequest = Omit<ChatRequest, "thinking"> & {
  max_tokens?: number;
  thinking?: { type: string };
};

/** The model's answer, as tokens. */
export interface DemoReply {
  /** The tokens of the reasoning. */
  readonly reasoning: readonly string[];
  /** The tokens of the text or, if there is a call, of its arguments. */
  readonly answer: readonly string[];
  /** Undefined: the answer is a text. */
  readonly call: { readonly id: string; readonly name: string } | undefined;
  /** "length" if max_tokens cut the reply. */
  readonly finish: FinishReason;
}

type Tool = NonNullable<ChatRequest["tools"]>[number]["function"];

const ABOUT =
  "This is the demo model: no network, and the same answer every time. " +
  "Put a provider into gateway.json for a real one.";

export function composeReply(request: DemoRequest): DemoReply {
  const { messages, thinking, max_tokens: limit = Infinity } = request;
  const question = quoted(textOf(messages.findLast(({ role }) => role === "user")?.content ?? ""));
  const tool = toolFor(request);
  const plan = tool ? `The tool ${tool.name} can tell, so I call it` : "I can answer this myself";
  const thoughts = `The question is: “${question}”. ${plan}, and I will keep it short.`;
  const allReasoning = tokensOf(thinking?.type === "enabled" ? thoughts : "");
  const allAnswer = tokensOf(tool ? argumentsFor(tool, question) : textFor(request, question));
  const reasoning = allReasoning.slice(0, limit);
  const answer = allAnswer.slice(0, limit - reasoning.length);
  const isCut = allReasoning.length + allAnswer.length > limit;
  const finish = tool ? "tool_calls" : "stop";
  // The id differs from conversation to conversation.
  const id = () => `call_${sha256(JSON.stringify(messages)).slice(0, 24)}`;
  return {
    reasoning,
    answer,
    // There is no call if the reasoning used all tokens.
    call: tool && answer.length > 0 ? { id: id(), name: tool.name } : undefined,
    finish: isCut ? "length" : finish,
  };
}

/**
 * The tool that tool_choice names, else the first. Undefined: none is called. With "auto" a tool's
 * result ends the calls.
 */
function toolFor({ messages, tools = [], tool_choice: choice }: DemoRequest): Tool | undefined {
  if (choice === undefined || choice === "none") return undefined;
  if (choice === "auto" && messages.at(-1)?.role === "tool") return undefined;
  const name = typeof choice === "object" ? choice.function.name : undefined;
  return tools.find((tool) => name === undefined || tool.function.name === name)?.function;
}

const argumentsFor = ({ parameters }: Tool, question: string): string =>
  JSON.stringify(exampleOf({ type: "object", ...parameters }, question));

/** A text or JSON, up to the first stop sequence. */
function textFor(request: DemoRequest, question: string): string {
  const text = fullTextFor(request, question);
  const ends = (request.stop ?? []).map((sequence) => text.indexOf(sequence));
  return text.slice(0, Math.min(text.length, ...ends.filter((index) => index !== -1)));
}

function fullTextFor({ messages, response_format: format }: DemoRequest, question: string): string {
  const last = messages.at(-1);
  if (format?.type === "json_schema")
    return JSON.stringify(exampleOf(format.json_schema.schema ?? {}, question));
  if (format?.type === "json_object")
    return JSON.stringify({ question, answer: "This is the demo model." });
  if (last?.role === "tool") return `The tool says: ${quoted(last.content)}`;
  return `You said: “${question}”.\n\n${ABOUT}`;
}

/** The first 120 characters, in one line. Reads at most 100,000. */
const quoted = (text: string): string =>
  [...text.trim().slice(0, 100_000).replace(/\s+/g, " ").slice(0, 240)].slice(0, 120).join("");

/** Splits a text into pieces of up to eight letters, each with the blanks before it. */
const tokensOf = (text: string): string[] =>
  text.match(/\s*(?:[\p{L}\p{M}\p{N}_]{1,8}|\S)|\s+/gu) ?? [];
