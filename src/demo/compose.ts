// What the demo model says: thinking, a text, JSON or a tool call, as lists of tokens, cut by `stop` and `max_tokens`.

import { createHash } from "node:crypto";
import { cut, exampleOf } from "./example.ts";

/** The fields of the gateway's own outgoing request that the demo model looks at. */
export interface DemoRequest {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: unknown; readonly tool_call_id?: string }[];
  readonly stream?: boolean;
  readonly thinking?: { readonly type: string };
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters?: Record<string, unknown> } }[];
  readonly tool_choice?: "none" | "auto" | "required" | { readonly function: { readonly name: string } };
  readonly response_format?: { readonly type: string; readonly json_schema?: { readonly schema?: Record<string, unknown> } };
  readonly stop?: readonly string[];
  readonly max_tokens?: number;
  readonly logprobs?: boolean;
  readonly top_logprobs?: number;
}

export interface DemoReply {
  readonly reasoning: readonly string[];
  readonly content: readonly string[];
  readonly toolCall: { readonly id: string; readonly name: string; readonly arguments: readonly string[] } | undefined;
  readonly finish: "stop" | "length" | "tool_calls";
}

/** Pieces of up to eight letters with the space before them; joined they are the text again. */
export const tokensOf = (text: string): string[] => text.match(/\s*(?:[\p{L}\p{M}\p{N}_]{1,8}|\S)|\s+/gu) ?? [];

export function composeReply(request: DemoRequest): DemoReply {
  const question = textOf(request.messages.findLast((message) => message.role === "user")?.content);
  const tool = chosenTool(request);
  const state: { left: number; finish: DemoReply["finish"] } = { left: request.max_tokens ?? Infinity, finish: tool ? "tool_calls" : "stop" };
  const take = (text: string): string[] => {
    const tokens = tokensOf(text);
    if (tokens.length > state.left) state.finish = "length";
    const taken = tokens.slice(0, state.left);
    state.left -= taken.length;
    return taken;
  };

  const reasoning = request.thinking?.type === "enabled" ? take(thoughts(question, tool?.function.name)) : [];
  if (state.finish === "length") return { reasoning, content: [], toolCall: undefined, finish: "length" };
  if (tool) {
    const { name, parameters } = tool.function;
    const args = take(JSON.stringify(exampleOf({ type: "object", ...parameters }, question)));
    return { reasoning, content: [], toolCall: { id: callId(request), name, arguments: args }, finish: state.finish };
  }
  const content = take(cutAt(request.stop, text(request, question)));
  return { reasoning, content, toolCall: undefined, finish: state.finish };
}

/** The tool that tool_choice names, else the first; with "auto" none once a tool has answered. */
function chosenTool({ tools, tool_choice: choice, messages }: DemoRequest) {
  if (!tools || choice === undefined || choice === "none") return undefined;
  if (typeof choice === "object") return tools.find((tool) => tool.function.name === choice.function.name);
  return choice === "auto" && messages.at(-1)?.role === "tool" ? undefined : tools[0];
}

/** Another conversation, another id; the same conversation, the same. */
const callId = (request: DemoRequest): string =>
  `call_${createHash("sha256").update(JSON.stringify(request.messages)).digest("hex").slice(0, 24)}`;

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? "").join("") : "";
}

const quoted = (text: string): string => {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > 120 ? `${cut(line, 120)}…` : line;
};

function thoughts(question: string, tool: string | undefined): string {
  const words = question.split(/\s+/).filter(Boolean).length;
  const plan = tool === undefined ? "I can answer this myself" : `The tool ${tool} can tell, so I call it`;
  return `The question has ${words} word${words === 1 ? "" : "s"}: “${quoted(question)}”. ${plan}, and I will keep it short.`;
}

function text({ messages, response_format: format }: DemoRequest, question: string): string {
  const last = messages.at(-1);
  if (format?.type === "json_schema") return JSON.stringify(exampleOf(format.json_schema?.schema ?? {}, question));
  if (format?.type === "json_object") return JSON.stringify({ question: quoted(question), answer: "This is the demo model.", offline: true });
  if (last?.role === "tool") return `The tool says: ${quoted(textOf(last.content))}`;
  return [
    `You said: “${quoted(question)}”.`,
    "This is the demo model that lives inside chat-gateway. It needs no network, and it gives the same answer to the same question every time.",
    "Everything around this text is real: the request id, the limit, the stream and the token counts. Put a provider into gateway.json, and the next answer is a model's own.",
  ].join("\n\n");
}

function cutAt(stop: readonly string[] | undefined, text: string): string {
  const ends = (stop ?? []).map((sequence) => text.indexOf(sequence)).filter((index) => index !== -1);
  return ends.length > 0 ? text.slice(0, Math.min(...ends)) : text;
}
