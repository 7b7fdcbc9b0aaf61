// JSON that costs more than it is long, for scripts/hostile.ts: requests of up to 10 MB to the APIs
// other than chat completions, whose own are tried in test/core/routing/stalls.test.ts, and the
// provider, of all three formats, that answers them.

import { startProvider, status, type Behaviour } from "../test/support/provider.ts";
import type { Scope } from "../test/support/scope.ts";

const MB = 1e6;
const SIZE = 9.5 * MB;
const LARGE_SIZE = 4.5 * MB;

/** Elements, with commas, until they have so many characters together. */
function filled(chars: number, element: (index: number) => string): string {
  const elements: string[] = [];
  let length = 0;
  for (let index = 0; ; index += 1) {
    const next = element(index);
    length += next.length + 1;
    if (length > chars) return elements.join(",");
    elements.push(next);
  }
}
const listOf = (count: number, element: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => element(index)).join(",");

/** A request, by the model that it is for, and the status that it is to get. */
interface CostlyRequest {
  readonly name: string;
  readonly path: string;
  readonly body: (model: string) => string;
  readonly status: number;
}

const USER = '{"role":"user","content":"hi"}';
const functions = (count: number): string =>
  listOf(count, (at) => `{"type":"function","name":"f${at}"}`);
const namespace = (name: string, tools: string): string =>
  `{"type":"namespace","name":"${name}","tools":[${tools}]}`;
const found = `{"type":"additional_tools","tools":[${namespace("n".repeat(256), functions(127))}]}`;
const oneTool = (at: number) =>
  `{"type":"additional_tools","tools":[{"type":"function","name":"f${at}"}]}`;
const custom = (at: number) => `{"type":"custom","name":"f${at}","format":1}`;
const sealed = `{"type":"reasoning","encrypted_content":"sealed1.${"A".repeat(40)}"}`;
const called = `{"type":"function_call","call_id":"a","namespace":"${"n".repeat(70)}","name":"f","arguments":""}`;

const RESPONSES: readonly (readonly [name: string, status: number, tools: string, more: string])[] =
  [
    ["a long namespace", 400, namespace("n".repeat(200_000), functions(20_000)), ""],
    ["a namespace of megabytes", 400, namespace("n".repeat(SIZE), functions(2)), ""],
    ["a namespace of many functions", 400, namespace("n", functions(70_000)), ""],
    ["many functions", 400, functions(70_000), ""],
    ["many free-form tools", 400, listOf(70_000, custom), ""],
    ["tools that are found again and again", 200, "", listOf(700, () => found)],
    ["many tools, one in each item", 400, "", listOf(20_000, oneTool)],
    ["wrong summaries", 400, "", listOf(50_000, () => '{"type":"reasoning","summary":[1]}')],
    ["many sealed texts", 400, "", listOf(70_000, () => sealed)],
    ["calls of a namespace", 200, "", listOf(40_000, () => called)],
  ];
const tool = (at: number) => `{"name":"f${at}","input_schema":{}}`;
const marked = '{"type":"text","text":"x","cache_control":1}';
const MESSAGES: readonly (readonly [
  name: string,
  status: number,
  tools: string,
  content: string,
])[] = [
  ["many tools", 400, listOf(70_000, tool), '"hi"'],
  ["marks that are wrong", 200, "", `[${listOf(60_000, () => marked)}]`],
];

export const REQUESTS: readonly CostlyRequest[] = [
  ...RESPONSES.map(([name, code, tools, more]) => ({
    name,
    path: "/v1/responses",
    body: (model: string) =>
      `{"model":"${model}","tools":[${tools}],"input":[${USER}${more && `,${more}`}]}`,
    status: code,
  })),
  ...MESSAGES.map(([name, code, tools, content]) => ({
    name,
    path: "/v1/messages",
    body: (model: string) =>
      `{"model":"${model}","max_tokens":9,"tools":[${tools}],"messages":[{"role":"user","content":${content}}]}`,
    status: code,
  })),
];

const messagesOf =
  (messages: string) =>
  (model: string): string =>
    `{"model":"${model}","max_tokens":10,"messages":[${messages}]}`;
const shortTurns = messagesOf(
  filled(
    LARGE_SIZE,
    (at) => `{"role":"${at % 2 ? "assistant" : "user"}","content":"${"x".repeat(20)}"}`,
  ),
);
const usedTools = messagesOf(
  filled(
    LARGE_SIZE,
    (at) =>
      `{"role":"assistant","content":[{"type":"tool_use","id":"c${at}","name":"f","input":{"a":1}}]},` +
      `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c${at}","content":"${"y".repeat(90)}"}]}`,
  ),
);
const calledFunctions = filled(
  LARGE_SIZE,
  (at) =>
    `{"type":"function_call","call_id":"c${at}","name":"f","arguments":"{}"},` +
    `{"type":"function_call_output","call_id":"c${at}","output":"${"y".repeat(60)}"}`,
);

/** Requests of 4.5 MB to each of the APIs. */
export const LARGE: readonly Pick<CostlyRequest, "path" | "body">[] = [
  { path: "/v1/chat/completions", body: shortTurns },
  { path: "/v1/messages", body: shortTurns },
  { path: "/v1/messages", body: usedTools },
  { path: "/v1/responses", body: (model) => `{"model":"${model}","input":[${calledFunctions}]}` },
  { path: "/v1/messages/count_tokens", body: shortTurns },
];

export const FORMATS = ["openai", "anthropic", "gemini"] as const;
const openai =
  '{"choices":[{"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}';
const anthropic =
  '{"type":"message","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","usage":{}}';
const gemini = '{"candidates":[{"content":{"parts":[{"text":"Hi."}]},"finishReason":"STOP"}]}';
const short: Behaviour = (asked) => {
  const { path } = asked;
  const native = path.includes("/v1beta/") ? gemini : openai;
  status(200, path.endsWith("/v1/messages") ? anthropic : native)(asked);
};

/** Of a gateway's configuration: a provider of each format, and a model of each. */
export async function costlyConfig(scope: Scope): Promise<object> {
  const { url: base_url } = await startProvider(scope, short);
  const supports = ["tools", "images"];
  return {
    apis: ["messages", "responses"],
    providers: {
      openai: { dialect: "openai", base_url },
      anthropic: { vendor: "anthropic", base_url },
      gemini: { vendor: "gemini", base_url },
    },
    models: {
      // The one that the gateway's own trial asks for.
      m: { provider: "openai" },
      ...Object.fromEntries(FORMATS.map((name) => [name, { provider: name, supports }])),
    },
    retry: { max_retries: 0 },
    breaker: { failures: 1_000_000 },
  };
}
