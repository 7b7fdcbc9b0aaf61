// The valid requests from which scripts/fuzz.ts makes its cases, and the mutations of their JSON.

import type { createRandom } from "../../test/support/random.ts";
import { TOOLS } from "../conformance/tester.ts";

/** A source of seeded random choices. */
export type Random = ReturnType<typeof createRandom>;

const user = (content: unknown) => ({ role: "user", content });
const part = (type: string, text: string) => ({ type, text });
const {
  tools: [tool],
} = TOOLS;
const schema = tool!.function.parameters;
const hello = { model: "demo-chat", messages: [user("Say hello")] };
const call = { id: "c", type: "function", function: { name: "get_time", arguments: "{}" } };
const use = { type: "tool_use", id: "t", name: "get_time", input: { city: "Oslo" } };
const thinking = { type: "enabled", budget_tokens: 1_024 };
const streamed = { model: "demo-reasoner", stream: true };

type Valid = readonly [target: string, body: object];

/** Valid chat requests, as clients send them. */
const CHATS: readonly object[] = [
  hello,
  {
    model: "auto/chat",
    messages: [
      { role: "system", content: "Be brief." },
      user("Grüße, 你好, 👋"),
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c", content: "14:05" },
    ],
    tools: [tool],
    tool_choice: "auto",
    stream: true,
    max_tokens: 20,
    temperature: 0.5,
    stop: ["\n\n"],
  },
  {
    model: "auto/reasoning",
    messages: [user([part("text", "6 times "), part("text", "7?")])],
    stream: true,
    stream_options: { include_usage: true },
    logprobs: true,
    top_logprobs: 2,
    thinking,
    max_tokens: 10,
  },
  {
    ...hello,
    seed: 7,
    user: "u",
    response_format: { type: "json_schema", json_schema: { name: "x", schema } },
  },
];

/** Requests of the other APIs. */
const OTHERS: readonly Valid[] = [
  ["/v1/messages/count_tokens", hello],
  [
    "/v1/messages",
    {
      ...streamed,
      max_tokens: 2_000,
      thinking,
      system: [{ ...part("text", "Be brief."), cache_control: { type: "ephemeral" } }],
      tools: [{ name: "get_time", input_schema: schema }],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      messages: [
        user([part("text", "What time is it?")]),
        { role: "assistant", content: [use] },
        user([{ type: "tool_result", tool_use_id: "t", content: "14:05" }]),
      ],
      metadata: { user_id: "u" },
      stop_sequences: ["never"],
    },
  ],
  [
    "/v1/responses",
    {
      ...streamed,
      instructions: "Be brief.",
      reasoning: { effort: "low", summary: "auto" },
      include: ["reasoning.encrypted_content"],
      tools: [
        { type: "function", name: "get_time", parameters: schema },
        { type: "namespace", name: "n", tools: [{ type: "function", name: "f" }] },
        { type: "custom", name: "patch" },
        { type: "web_search" },
      ],
      input: [
        user([part("input_text", "What time is it?")]),
        { type: "function_call", call_id: "c", name: "get_time", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "14:05" },
      ],
      text: { format: { type: "text" }, verbosity: "low" },
      tool_choice: "auto",
      max_output_tokens: 100,
    },
  ],
];

/** A request that must get 200. Half of those that support streaming are streams. */
export function validRequest({ pick, random: chance }: Random): Valid {
  const [target, body] =
    chance() < 0.3 ? pick(OTHERS) : (["/v1/chat/completions", pick(CHATS)] as const);
  const { stream_options: _, ...whole } = body as Record<string, unknown>;
  return [target, chance() < 0.5 && whole["stream"] ? { ...whole, stream: false } : body];
}

const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -0, -1, 1, 0.5, 2.000001, 1e308, -1e308, 2 ** 53],
  ...[12345678901234567890n, 4294967296, "", "x", "null", "\u0000", "\ud800", "\udfff\ud800"],
  ...["\ufeff", "auto/chat", "x".repeat(5_000), "🧨".repeat(600), [], {}, [[]], [null]],
  ...[{ toString: 1 }, { length: -1 }, [1, "2", {}], { type: "text" }, { type: "enabled" }],
  ...[{ type: "function", function: null }],
];
const RAW_VALUES = [
  ...["1e400", "-1e400", "-", "01", "NaN", "undefined", ".5", "0x1f", "'x'", "1".repeat(4_000)],
  ...['"\\u12"', '"\\x"', '"\n"', "{,}", "[1,]", '{"a":1,"a":2}', "/**/", "tru"],
];
const KEYS = [
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "", "stream", "n", "stop"],
  ...["tools", "model", "messages", "unknown_field", "max_completion_tokens"],
  ...["reasoning_effort"],
];
const NO_UTF8 = ["\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe4\xbd", "\x80", "\0"];

const WAYS = [
  ...(["value", "value", "value", "raw value", "key", "less", "more"] as const),
  ...(["deep value", "bytes", "mark", "cut", "tail", "whole"] as const),
];
type Way = (typeof WAYS)[number];

const deep = ({ between }: Random, depth: number): string =>
  between(0, 1)
    ? `${"[".repeat(depth)}${"]".repeat(depth)}`
    : `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

/** All fields and elements below a value. */
function nodesOf(holder: any): [holder: any, key: string][] {
  return Object.keys(holder).flatMap((key) => {
    const value = holder[key];
    const below = typeof value === "object" && value !== null ? nodesOf(value) : [];
    return [[holder, key] as [any, string], ...below];
  });
}

/** A text that JSON.stringify cannot write, which replaces a value after it. Undefined: none. */
function rawText(how: Way, random: Random): string | undefined {
  if (how === "raw value") return random.pick(RAW_VALUES);
  return how === "deep value" ? deep(random, random.between(1, 8_000)) : undefined;
}

/** Changes one place of the tree, if the mutation is of that kind. */
function mutateTree(tree: unknown, how: Way, { pick, between }: Random): void {
  const [holder, key] = pick(nodesOf(tree));
  if (how === "value") holder[key] = pick(VALUES);
  else if (how.endsWith(" value")) holder[key] = "<raw>";
  else if (how === "key")
    Object.defineProperty(holder, pick(KEYS), { value: pick(VALUES), enumerable: true });
  else if (how === "less" && Array.isArray(holder)) holder.splice(Number(key), 1);
  else if (how === "less") delete holder[key];
  else if (how === "more") holder[key] = Array.from({ length: between(2, 200) }, () => holder[key]);
}

const jsonOf = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? Number(each) : each)) ?? "";

/** Mutations of the bytes of a body. */
const BYTES: Partial<Record<Way, (text: Buffer, random: Random) => Buffer | string>> = {
  bytes(text, { pick, between }) {
    const at = between(0, text.length);
    const bad = Buffer.from(pick(NO_UTF8), "latin1");
    return Buffer.concat([text.subarray(0, at), bad, text.subarray(at)]);
  },
  mark: (text, { pick }) =>
    pick([`\ufeff${text}`, `\ufeff\ufeff${text}`, Buffer.from(`\ufeff${text}`, "utf16le")]),
  cut: (text, { between }) => text.subarray(0, between(0, text.length)),
  tail: (text, { pick }) => `${text}${pick(["x", "{}", ",", "\0", " \n\t", "]", `${text}`])}`,
  whole: (_, { pick }) => pick([...RAW_VALUES, ...VALUES.map(jsonOf), " ", ""]),
};

/** The mutated text of a body. */
export function mutateJson(body: object, random: Random): Buffer {
  const how = random.pick(WAYS);
  const tree: unknown = structuredClone(body);
  mutateTree(tree, how, random);
  const raw = rawText(how, random);
  const text = Buffer.from(
    raw === undefined ? jsonOf(tree) : jsonOf(tree).replace('"<raw>"', () => raw),
  );
  return Buffer.from((BYTES[how]?.(text, random) ?? text) as string);
}
