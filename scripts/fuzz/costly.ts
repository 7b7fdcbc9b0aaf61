// JSON whose processing is expensive for its length, for scripts/fuzz.ts and the tests of stalls:
// requests of up to 10 MB, replies of up to 62 MB, and a provider of all three formats.

import http from "node:http";
import { listening } from "../../test/support/listening.ts";
import type { Scope } from "../../test/support/scope.ts";

const MB = 1e6;

/** Comma-separated elements of `chars` characters in all. */
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
/** `count` comma-separated elements. */
export const listOf = (count: number, element: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => element(index)).join(",");
/** An object of `chars` characters whose names all differ. */
export const newNames = (chars: number): string =>
  `{${filled(chars, (at) => `"k${at.toString(36)}":1`)}}`;
const newObjects = (chars: number): string =>
  `[${filled(chars, (at) => `{${listOf(100, (name) => `"${at}_${name}":1`)}}`)}]`;
/** Arrays in arrays. */
export const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

/** A request that is expensive to process. */
export type CostlyRequest = ReturnType<ReturnType<typeof requestsTo>>;

/** The body of a request, by its model. `fields`: those after `model`. */
const bodyWith =
  (fields: string) =>
  (model: string): string =>
    `{"model":"${model}",${fields}}`;
/** Requests to this path, each with the expected status. */
const requestsTo = (path: string) => (name: string, status: number, fields: string) => ({
  name,
  path,
  status,
  body: bodyWith(fields),
});

/** A short message. */
export const USER = '{"role":"user","content":"hi"}';
/** A chat request. `more`: its fields after `messages`. */
export const request = (more: string, messages = USER) =>
  bodyWith(`"messages":[${messages}]${more}`);
/** The field `tools` with one tool. */
export const tool = (parameters: string): string =>
  `,"tools":[{"type":"function","function":{"name":"f","parameters":${parameters}}}]`;
const saying = (content: string): string => `{"role":"user","content":${content}}`;
const call = (id: string): string => `{"id":"${id}","function":{"name":"f"}}`;
const assistant = (calls: string): string =>
  `{"role":"assistant","content":null,"tool_calls":[${calls}]}`;
const turn = (at: number, text: string): string =>
  `{"role":"${at % 2 ? "assistant" : "user"}","content":"${text}"}`;
/**
 * `count` tool calls that share an id, and others with the ids that the gateway would give them.
 */
const clashing = (count: number): string =>
  `${listOf(count, (at) => call(`repeated_${at + 1}`))},${listOf(count, () => call("a"))}`;
/** The size in bytes of the largest of these requests. */
export const FULL_SIZE = 9.5 * MB;

/** Requests to chat completions of up to 10 MB, the most that the gateway reads. */
export function chatRequests(): CostlyRequest[] {
  const names = JSON.stringify(newNames(7 * MB));
  const calls = `[{"id":"a","function":{"name":"f","arguments":${names}}}]`;
  const lenient = '{"role":"assistant","content":"x","refusal":1,"reasoning_content":1}';
  const parts = listOf(95_000, () => '{"type":"text","text":"x"}');
  const members = `${'{"aaaaaaaaaaaaaaaa":'.repeat(450_000)}1${"}".repeat(450_000)}`;
  const row = requestsTo("/v1/chat/completions");
  const refused = (name: string, more: string) => row(name, 400, `"messages":[${USER}]${more}`);
  const served = (name: string, messages: string) => row(name, 200, `"messages":[${messages}]`);
  return [
    { ...row("10 MB of brackets", 400, ""), body: () => "[".repeat(10 * MB) },
    refused("names in a tool", tool(newNames(FULL_SIZE))),
    refused("names that are ignored", `,"x":${newNames(FULL_SIZE)}`),
    refused("objects of new names", `,"x":${newObjects(FULL_SIZE)}`),
    refused("numbers", `,"x":[${filled(FULL_SIZE, () => "1")}]`),
    refused("a schema nested 450,000 deep", tool(members)),
    served("ids that clash", `${USER},${assistant(clashing(33_000))}`),
    served("turns of a call each", `${USER},${listOf(29_000, () => assistant(call("a")))}`),
    served(
      "short messages",
      listOf(99_000, (at) => turn(at, "x")),
    ),
    served("arguments of names", `${USER},{"role":"assistant","tool_calls":${calls}}`),
    served("lenient fields with wrong values", `${USER},${listOf(45_000, () => lenient)}`),
    served("10 MB of text", saying(`"${"x".repeat(10 * MB - 200)}"`)),
    served("95,000 parts", saying(`[${parts}]`)),
  ];
}

const LARGE_SIZE = 4.5 * MB;
const shortTurns = filled(LARGE_SIZE, (at) => turn(at, "x".repeat(20)));
const messagesOf = (messages: string) => bodyWith(`"max_tokens":10,"messages":[${messages}]`);
const usedTools = filled(
  LARGE_SIZE,
  (at) =>
    `{"role":"assistant","content":[{"type":"tool_use","id":"c${at}","name":"f","input":{"a":1}}]},` +
    `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c${at}","content":"${"y".repeat(90)}"}]}`,
);
const calledFunctions = filled(
  LARGE_SIZE,
  (at) =>
    `{"type":"function_call","call_id":"c${at}","name":"f","arguments":"{}"},` +
    `{"type":"function_call_output","call_id":"c${at}","output":"${"y".repeat(60)}"}`,
);

/** Requests of 4.5 MB to each of the APIs, by the model that each is for. */
export const LARGE: readonly Pick<CostlyRequest, "path" | "body">[] = [
  { path: "/v1/chat/completions", body: messagesOf(shortTurns) },
  { path: "/v1/messages", body: messagesOf(usedTools) },
  { path: "/v1/responses", body: bodyWith(`"input":[${calledFunctions}]`) },
  { path: "/v1/messages/count_tokens", body: messagesOf(shortTurns) },
];

/** Requests to the Responses API of up to 10 MB. */
export function responsesRequests(): CostlyRequest[] {
  const to = requestsTo("/v1/responses");
  const row = (name: string, status: number, { tools = "", input = USER }) =>
    to(name, status, `"tools":[${tools}],"input":[${USER},${input}]`);
  const namedFunction = (at: number): string => `{"type":"function","name":"f${at}"}`;
  const functions = (count: number): string => listOf(count, namedFunction);
  const namespace = (name: string, count: number): string =>
    `{"type":"namespace","name":"${name}","tools":[${functions(count)}]}`;
  const added = (tools: string): string => `{"type":"additional_tools","tools":[${tools}]}`;
  const found = added(namespace("n".repeat(256), 127));
  const custom = (at: number): string => `{"type":"custom","name":"f${at}","format":1}`;
  const sealed = `{"type":"reasoning","encrypted_content":"sealed1.${"A".repeat(40)}"}`;
  const called = `{"type":"function_call","call_id":"a","namespace":"${"n".repeat(70)}","name":"f","arguments":""}`;
  return [
    row("a long namespace", 400, { tools: namespace("n".repeat(200_000), 20_000) }),
    row("a namespace of megabytes", 400, { tools: namespace("n".repeat(FULL_SIZE), 2) }),
    row("a namespace of many functions", 400, { tools: namespace("n", 70_000) }),
    row("many functions", 400, { tools: functions(70_000) }),
    row("many free-form tools", 400, { tools: listOf(70_000, custom) }),
    row("tools that are found again and again", 200, { input: listOf(700, () => found) }),
    row("many tools, one in each item", 400, {
      input: listOf(20_000, (at) => added(namedFunction(at))),
    }),
    row("summaries that are wrong", 400, {
      input: listOf(50_000, () => '{"type":"reasoning","summary":[1]}'),
    }),
    row("many sealed texts", 400, { input: listOf(70_000, () => sealed) }),
    row("calls of a namespace", 200, { input: listOf(40_000, () => called) }),
  ];
}

/** Requests to the Messages API of up to 10 MB. */
export function messagesRequests(): CostlyRequest[] {
  const row = requestsTo("/v1/messages");
  const tools = listOf(70_000, (at) => `{"name":"f${at}","input_schema":{}}`);
  const marked = listOf(60_000, () => '{"type":"text","text":"x","cache_control":1}');
  return [
    row("many tools", 400, `"max_tokens":9,"tools":[${tools}],"messages":[${USER}]`),
    row("marks that are wrong", 200, `"max_tokens":9,"messages":[${saying(`[${marked}]`)}]`),
  ];
}

/** The formats of the provider, which also are names of its models. */
export const FORMATS = ["openai", "anthropic", "gemini"] as const;
type Format = (typeof FORMATS)[number];
/** A reply in OpenAI's format. */
export const message = (fields: string): string =>
  `{"choices":[{"message":{"role":"assistant",${fields}},"finish_reason":"stop"}]}`;
const anthropic = (content: string): string =>
  `{"type":"message","role":"assistant","content":[${content}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":9}}`;
/** A reply in Gemini's format. */
export const gemini = (parts: string): string =>
  `{"candidates":[{"content":{"parts":[${parts}]},"finishReason":"STOP"}]}`;
/** The replies of the provider until another one is set. */
const SHORT: { readonly [format in Format]: string } = {
  openai: message('"content":"Hi."'),
  anthropic: anthropic('{"type":"text","text":"Hi."}'),
  gemini: gemini('{"text":"Hi."}'),
};

/** A reply that is expensive to process. `model` gives it, and has the name of its format. */
const row = (name: string, model: Format, body: () => string) => ({ name, model, body });
/** Replies of up to 62 MB. The client must get 503 upstream_error for each. */
export const COSTLY_REPLIES = [
  // These two are just below max_reply_bytes. Each keeps two cores busy for a second.
  row("62 MB of names", "openai", () => `{"x":${newNames(62 * MB)}}`),
  row("62 MB of brackets", "openai", () => `{"x":${nested(31 * MB)}}`),
  row("megabytes of objects", "openai", () => message(`"x":${newObjects(15 * MB)}`)),
  row("an input nested 200,000 deep", "anthropic", () =>
    anthropic(`{"type":"tool_use","id":"a","name":"f","input":{"a":${nested(200_000)}}}`),
  ),
  row("100,000 blocks", "anthropic", () =>
    anthropic(listOf(100_000, () => '{"type":"text","text":"x"}')),
  ),
  row("200,000 parts", "gemini", () => gemini(listOf(200_000, () => '{"text":"x"}'))),
];

/** A reply that the provider is to give. */
export interface Reply {
  readonly body: string;
  /** Absent: JSON. */
  readonly type?: string;
  /** Absent: 200. */
  readonly status?: number;
}

/** Starts a provider of all three formats, which it recognizes by their paths. */
export async function startCostly(t: Scope) {
  let next: Reply | undefined;
  const formatOf = (path: string): Format => {
    if (path.endsWith("/v1/messages")) return "anthropic";
    return path.includes("/v1beta/") ? "gemini" : "openai";
  };
  const server = http.createServer((req, res) => {
    req.resume().on("end", () => {
      const short = { body: SHORT[formatOf(req.url ?? "")] };
      const { body, type = "application/json", status = 200 }: Reply = next ?? short;
      res.writeHead(status, { "content-type": type }).end(body);
    });
  });
  const base_url = await listening(t, server);
  return {
    /** A part of the gateway's configuration, with a provider and a model of each format. */
    config: {
      apis: ["messages", "responses"],
      providers: {
        openai: { dialect: "openai", base_url },
        anthropic: { vendor: "anthropic", base_url },
        gemini: { vendor: "gemini", base_url },
      },
      models: {
        // The model of expectChat().
        m: { provider: "openai" },
        ...Object.fromEntries(
          FORMATS.map((name) => [name, { provider: name, supports: ["tools", "images"] }]),
        ),
      },
      retry: { max_retries: 0 },
      breaker: { failures: 1_000_000 },
    },
    /** Sets the reply to all further requests. Undefined: a short one. */
    answer: (reply: Reply | undefined) => {
      next = reply;
    },
  };
}
