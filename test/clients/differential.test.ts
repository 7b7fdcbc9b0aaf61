// The request's schema as /openapi.json publishes it, asked by Ajv, against the check that requests
// meet: requests that have every field between them, with each fault at each place, one at a time.
// Both must say the same, but for the rules of BEYOND_SCHEMA.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ValidateFunction } from "ajv";
import { requestCheck } from "../../src/core/extension/places.ts";
import { ValidationError } from "../../src/core/schema/checker.ts";
import { installed } from "../support/config.ts";
import { configFor, json, startGateway } from "../support/gateway.ts";
import { notInstalled } from "./lab.ts";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
/** Where a value stands in what holds it. */
type Place = {
  readonly holder: Json[] | { [name: string]: Json };
  readonly key: string;
  readonly value: Json;
};
/** Changes the value at a place. */
type Fault = (at: Place) => void;

/**
 * The rules that JSON Schema has no words for; each is asked only of a request that the schema
 * accepts, which it breaks or not.
 */
const BEYOND_SCHEMA: Readonly<Record<string, (request: any) => boolean>> = {
  "tool_choice names a tool of the list": ({ tools, tool_choice }) =>
    tool_choice?.function !== undefined &&
    !tools.some((tool: any) => tool.function.name === tool_choice.function.name),
  "function_call names one of the functions": ({ functions, function_call }) =>
    function_call?.name !== undefined &&
    !functions.some(({ name }: any) => name === function_call.name),
  "a tool's result answers a call before it": ({ messages }) => {
    const made = (until: number) =>
      messages
        .slice(0, until)
        .flatMap(({ role, tool_calls }: any) => (role === "assistant" ? (tool_calls ?? []) : []));
    return messages.some(
      ({ role, tool_call_id }: any, index: number) =>
        role === "tool" && !made(index).some(({ id }: any) => id === tool_call_id),
    );
  },
  "a schema has at most 100 levels": (request) =>
    schemasIn(request).some((given) => levels(given) > 100),
  "a schema has at most 10,000 values": (request) =>
    schemasIn(request).some((given) => values(given) > 10_000),
};

/** The schemas of a request; they are passed on as they are. */
const schemasIn = ({ tools, functions, response_format }: any): unknown[] => [
  ...(tools ?? []).map((tool: any) => tool.function.parameters),
  ...(functions ?? []).map(({ parameters }: any) => parameters),
  response_format?.type === "json_schema" ? response_format.json_schema.schema : undefined,
];
const membersOf = (value: unknown): unknown[] =>
  typeof value === "object" && value !== null ? Object.values(value) : [];
/** How many values it has, itself among them. */
const values = (value: unknown): number =>
  membersOf(value).reduce<number>((sum, member) => sum + values(member), 1);
/** How deep it is: objects and lists in each other. */
const levels = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? 1 + Math.max(0, ...membersOf(value).map(levels))
    : 0;

/** The words of all enumerations, and names and ids. */
const WORDS = [
  ...["x", "null", "text", "refusal", "image_url", "input_audio", "file", "function", "custom"],
  ...["system", "user", "assistant", "tool", "developer", "none", "auto", "required", "any"],
  ...["json_object", "json_schema", "enabled", "disabled", "adaptive", "high", "get_time"],
  ...["call_0", "call_1"],
];
/**
 * The values beside every boundary, and numbers that are integers in one language and not in
 * another.
 */
const NUMBERS = [
  ...[0, -0, 1, 2, 3, 4, 20, 21, -1, -2, -3, 0.5, 1.5, -0.5, 1.0000001, 2.0000001],
  ...[-2.0000001, -0.0000001, 20.5, 1e-300, 1e300, 2 ** 31, 2 ** 53 - 1, 2 ** 53],
  ...[2 ** 53 + 2, -(2 ** 53), 1e21],
];

const nested = (depth: number): Json =>
  JSON.parse(`${'{"a":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`);

/** An object with so many values: itself, a list, and what is in that. */
const wide = (size: number): Json => ({ a: Array.from({ length: size - 2 }, () => 0) });

/** So many tokens, each with a bias. */
const biases = (size: number): Json =>
  Object.fromEntries(Array.from({ length: size }, (_, id) => [String(id), 1]));

const TEXT = { type: "text", text: '{["' };
const URL = "https://example.com/a.png";
const OBJECTS: readonly Json[] = [
  {},
  { type: "object", properties: { city: { type: "string" } } },
  nested(99),
  nested(100),
];
const MEDIA: readonly Json[] = [
  { type: "image_url", image_url: { url: URL } },
  { type: "image_url", image_url: { url: URL, detail: "low" } },
  { type: "image_url", image_url: { url: URL, detail: null } },
  { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
  { type: "input_audio", input_audio: { data: null, format: null } },
  { type: "file", file: { file_data: "AA==", filename: "a", file_id: null } },
  { type: "file", file: { file_data: null, filename: null, file_id: "f" } },
];

/** What each field of a request may have, beside null, but for those that hang together. */
const FIELDS: Readonly<Record<string, readonly Json[]>> = {
  temperature: [0, 1.3, 2],
  top_p: [0, 0.3, 1],
  frequency_penalty: [-2, 0.3, 2],
  presence_penalty: [-2, 0.3, 2],
  max_tokens: [1, 100, 2 ** 53 - 1],
  max_completion_tokens: [1],
  n: [1],
  stop: ["end", [], ["end", "end", "end", "end"]],
  response_format: [
    { type: "text" },
    { type: "json_object" },
    { type: "json_schema", json_schema: { name: "x" } },
    ...OBJECTS.map((schema) => ({
      type: "json_schema",
      json_schema: { name: "x", description: "", schema, strict: false },
    })),
  ],
  thinking: ["enabled", "disabled", "adaptive"].map((type) => ({ type, budget_tokens: "ignored" })),
  logprobs: [true, false],
  top_logprobs: [0, 7, 20],
  seed: [1, -1, 2 ** 53 - 1],
  user: ["u", "", {}],
  parallel_tool_calls: [true, false],
  reasoning_effort: ["none", "high", "max"],
  logit_bias: [{}, { "50256": -100 }, { "0": 100 }],
  verbosity: ["low", "medium", "high"],
  prompt_cache_key: ["", "a\nb", "x".repeat(64), "\u{1F600}".repeat(64)],
  prompt_cache_retention: ["in_memory", "24h"],
  safety_identifier: ["", "u"],
  modalities: [[], ["text"]],
  web_search_options: [null],
  moderation: [null],
  metadata: [{ a: "b" }],
  store: [false],
  service_tier: ["auto"],
};

const FUNCTION = {
  name: "get_time",
  description: "",
  parameters: { type: "object" },
  strict: true,
};
const TOOLS = ["get_time", "A-z_0", "x".repeat(64)].map((name) => ({
  type: "function",
  function: { ...FUNCTION, name },
}));
const CHOSEN = { type: "function", function: { name: "get_time" } };
const IDS = ["call_0", "call_1"];
const CALLS = IDS.map((id) => ({ id, ...CHOSEN, function: { name: "any name", arguments: "{}" } }));
const ASSISTANT = { role: "assistant", reasoning_content: "Let me think." };

/** Messages of every role, with every part. */
const MESSAGES: readonly Json[] = [
  { role: "system", content: "" },
  { role: "developer", content: [TEXT] },
  { role: "user", content: [TEXT, ...MEDIA], name: "x" },
  { ...ASSISTANT, content: "Hi.", refusal: null, tool_calls: null, function_call: null },
  { ...ASSISTANT, content: [TEXT, { type: "refusal", refusal: "No." }], tool_calls: [] },
  { ...ASSISTANT, content: null, refusal: "No." },
  { ...ASSISTANT, content: null, tool_calls: CALLS },
  ...IDS.map((tool_call_id) => ({ role: "tool", tool_call_id, content: "14:05" })),
];
const PLAIN = { model: "m", messages: [{ role: "user", content: "Hi." }] };
const each = (at: number) =>
  Object.fromEntries(Object.entries(FIELDS).map(([name, values]) => [name, values.at(at)!]));

/** Valid requests, which have every field between them. */
const WHOLE: readonly Json[] = [
  PLAIN,
  { ...PLAIN, stream: false, stream_options: null, tools: [], tool_choice: "none", functions: [] },
  { model: "m", messages: [...MESSAGES], tools: TOOLS, tool_choice: CHOSEN, ...each(0) },
  {
    ...PLAIN,
    ...each(-1),
    stream: true,
    stream_options: { include_usage: true },
    functions: [FUNCTION],
    function_call: { name: "get_time" },
  },
  { ...PLAIN, tools: TOOLS, tool_choice: "auto", functions: [] },
  { ...PLAIN, functions: [FUNCTION], function_call: "auto", tools: [] },
];
/** The same, and one with each value of FIELDS, which is valid too. */
const VALID: readonly Json[] = [
  ...WHOLE,
  ...Object.entries(FIELDS).flatMap(([name, values]) =>
    [null, ...values].map((value) => ({ ...PLAIN, [name]: value })),
  ),
];

const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
const put = ({ holder, key }: Place, value: Json): void => {
  Object.defineProperty(holder, key, { value, writable: true, enumerable: true });
};
const remove: Fault = ({ holder, key }) => {
  if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else Reflect.deleteProperty(holder, key);
};
const first = (value: Json): Json =>
  value !== null && typeof value === "object" ? (Object.values(value)[0] ?? null) : value;
const become =
  (change: (value: any) => Json): Fault =>
  (at) =>
    put(at, copy(change(at.value)));

/** By the type of what they are done to. */
const FAULTS: Readonly<Record<string, readonly Fault[]>> = {
  any: [
    remove,
    ...[null, true, false, 0.5, "x", [], {}, ["x"]].map((value) => become(() => value)),
    become((value) => [value]),
    become((value) => [value, value]),
    become((value) => ({ value })),
    become((value) => ({ type: "text", text: value })),
  ],
  number: [
    ...[1, -1, 0.5, 1e-7, -1e-7].map((step) => become((value) => value + step)),
    ...NUMBERS.map((number) => become(() => number)),
  ],
  string: ["", "é", "a b", "x".repeat(64), "x".repeat(65), ...WORDS].map((text) =>
    become(() => text),
  ),
  array: [
    become(first),
    become((list) => list.toReversed()),
    become((list) => list.slice(1)),
    ...[4, 5, 128, 129].map((length) =>
      become((list) => Array.from({ length }, () => first(list))),
    ),
  ],
  object: [
    become(first),
    ...[100, 101, 150].map((depth) => become(() => nested(depth))),
    ...[1_000, 1_001, 10_000, 10_001].map((size) => become(() => wide(size))),
    ...[1_024, 1_025].map((size) => become(() => biases(size))),
    // A request without functions, and an assistant's message, are among the objects.
    ...["none", "auto"].map((choice) => become((value) => ({ ...value, function_call: choice }))),
    ...["x-unknown", "__proto__", "constructor", "toString"].map((name) =>
      become((value) => ({ ...value, [name]: "x" })),
    ),
  ],
};

const typeOf = (value: Json): string => {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value;
};

/** Every place in it, to a depth that all fields are within. */
function placesOf(holder: Json, depth = 9): Place[] {
  if (holder === null || typeof holder !== "object" || depth === 0) return [];
  return Object.entries(holder).flatMap(([key, value]) => [
    { holder, key, value },
    ...placesOf(value, depth - 1),
  ]);
}

const checkRequest = requestCheck(installed);

function checked(request: Json): boolean {
  try {
    checkRequest(request);
    return true;
  } catch (error) {
    if (error instanceof ValidationError) return false;
    throw error;
  }
}

/**
 * Asks the schema and the check, which must agree. The rule of BEYOND_SCHEMA that alone is why the
 * request is refused, or whether it is accepted.
 */
function compare(accepts: ValidateFunction, request: Json): string | boolean {
  const fits = accepts(request);
  const beyond = fits
    ? Object.keys(BEYOND_SCHEMA).filter((rule) => BEYOND_SCHEMA[rule]!(request))
    : [];
  const expected = fits && beyond.length === 0;
  const differences = beyond.map((rule) => `, but ${rule}`).join("");
  assert.equal(
    checked(request),
    expected,
    `the schema ${fits ? "accepts" : "refuses"} it${differences}; the check does not agree: ${JSON.stringify(request)}`,
  );
  return beyond.length === 1 ? beyond[0]! : expected;
}

/** Every request with one fault. */
function* faulty(): Generator<Json> {
  for (const request of WHOLE)
    for (const [at, { value }] of placesOf({ request }).entries())
      for (const fault of [...FAULTS["any"]!, ...(FAULTS[typeOf(value)] ?? [])]) {
        const box = copy({ request });
        fault(placesOf(box)[at]!);
        yield copy(box.request ?? null);
      }
}

describe("the published request schema and the check", { skip: notInstalled() }, async () => {
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  const supports = ["tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"];

  it("say the same of every fault of a request", async (t) => {
    const gateway = await startGateway(
      t,
      configFor("http://127.0.0.1:9", ["m"], { models: { m: { supports } } }),
    );
    const schema = (await json(await fetch(`${gateway.url}/openapi.json`))).components.schemas
      .ChatCompletionRequest;
    const accepts = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema);
    const tried = new Set(VALID.flatMap((request) => Object.keys(request!)));
    const untried = Object.keys(schema.properties).filter((name) => !tried.has(name));
    assert.deepEqual(untried, []);
    for (const request of VALID)
      assert.equal(compare(accepts, request), true, JSON.stringify([request, accepts.errors]));
    const outcomes = new Map<string | boolean, number>();
    for (const request of faulty()) {
      const outcome = compare(accepts, request);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    t.diagnostic(JSON.stringify([...outcomes]));
    const met = [...outcomes.keys()].sort();
    assert.deepEqual(met, [...Object.keys(BEYOND_SCHEMA), false, true].sort());
  });
});
