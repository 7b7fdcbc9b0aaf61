// What the demo model says: thoughts, then a text, JSON or the arguments of a tool call, as lists of tokens that end where
// `stop` and `max_tokens` say. All of it follows from the request.
import { sha256 } from "../config/schema.ts";
import { textOf, type ChatRequest } from "../protocol/chat-request.ts";
import type { FinishReason } from "../protocol/shapes.ts";
import { cut, exampleOf } from "./example.ts";

/** The fields that go out as the check of the client's request left them. */
type SameOnTheWire = "model" | "messages" | "stream" | "tools" | "tool_choice" | "response_format" | "stop" | "logprobs" | "top_logprobs";
/** What is looked at in the request that the gateway sends. */
export type DemoRequest = Pick<ChatRequest, SameOnTheWire> & { max_tokens?: number; thinking?: { type: string } };
const ABOUT = "This is the demo model: no network, and the same answer every time. Put a provider into gateway.json for a real one.";
/** Pieces of up to eight letters with the space before them; joined they are the text again. */
export const tokensOf = (text: string): string[] => text.match(/\s*(?:[\p{L}\p{M}\p{N}_]{1,8}|\S)|\s+/gu) ?? [];

/** The answer is a text or, if there is a call, its arguments; tokens beyond the limit are left out. */
export function composeReply(request: DemoRequest) {
  const { messages, thinking, max_tokens: limit = Infinity } = request;
  const question = textOf(messages.findLast(({ role }) => role === "user")?.content ?? "");
  const tool = chosenTool(request)?.function;
  const plan = tool ? `The tool ${tool.name} can tell, so I call it` : "I can answer this myself";
  const thoughts = `The question is: “${quoted(question)}”. ${plan}, and I will keep it short.`;
  const allReasoning = thinking?.type === "enabled" ? tokensOf(thoughts) : [];
  const allAnswer = tokensOf(tool ? jsonFor({ type: "object", ...tool.parameters }, question) : textFor(request, question));
  const reasoning = allReasoning.slice(0, limit);
  const answer = allAnswer.slice(0, limit - reasoning.length);
  const finish: FinishReason = allReasoning.length + allAnswer.length > limit ? "length" : tool ? "tool_calls" : "stop";
  // Another conversation, another id. Where thinking took all of the limit there is no call.
  const call = tool && answer.length > 0 ? { id: `call_${sha256(JSON.stringify(messages)).slice(0, 24)}`, name: tool.name } : undefined;
  return { reasoning, answer, call, finish };
}

/** The tool that tool_choice names, else the first; with "auto" none once a tool has answered. */
function chosenTool({ tools, tool_choice: choice = "none", messages }: DemoRequest) {
  if (typeof choice === "object") return tools?.find((tool) => tool.function.name === choice.function.name);
  return choice === "none" || (choice === "auto" && messages.at(-1)?.role === "tool") ? undefined : tools?.[0];
}

/** A text or JSON, up to the first of the sequences to stop at. */
function textFor({ messages, response_format: format, stop = [] }: DemoRequest, question: string): string {
  const last = messages.at(-1);
  let text = `You said: “${quoted(question)}”.\n\n${ABOUT}`;
  if (format?.type === "json_schema") text = jsonFor(format.json_schema.schema ?? {}, question);
  else if (format?.type === "json_object") text = JSON.stringify({ question: quoted(question), answer: "This is the demo model." });
  else if (last?.role === "tool") text = `The tool says: ${quoted(last.content)}`;
  const ends = stop.map((sequence) => text.indexOf(sequence)).filter((index) => index !== -1);
  return text.slice(0, Math.min(text.length, ...ends));
}

const jsonFor = (schema: Record<string, unknown>, question: string): string => JSON.stringify(exampleOf(schema, question));
const quoted = (text: string): string => cut(text.trim().replace(/\s+/g, " "), 120);
