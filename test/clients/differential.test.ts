// The request's schema as /openapi.json publishes it, asked by Ajv, against the check that requests
// meet: random requests, valid and mutated, 10,000 of them where LONG_TESTS is set. Both must say
// the same, but for the rules of BEYOND_SCHEMA. DIFFERENTIAL_SEED repeats a run.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ValidateFunction } from "ajv";
import { requestCheck } from "../../src/core/extension/defaults.ts";
import { ValidationError } from "../../src/core/schema/checker.ts";
import { installed } from "../support/config.ts";
import { configFor, json, startGateway } from "../support/gateway.ts";
import { speak, startProvider } from "../support/provider.ts";
import { LONG } from "../support/long.ts";
import { createRandom } from "../support/random.ts";
import { notInstalled } from "./lab.ts";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Fault = (at: Place, box: Json) => void;
type Place = {
  readonly holder: Json[] | { [name: string]: Json };
  readonly key: string;
  readonly value: Json;
};

const SEED = Number(process.env["DIFFERENTIAL_SEED"] ?? Date.now() % 1_000_000);
/** The usual run tries some. */
const REQUESTS = LONG ? 10_000 : 2_000;
/**
 * With LONG_TESTS each rule must be broken. Chance may leave one out, so there may be so many more
 * requests until none is.
 */
const MOST_REQUESTS = LONG ? 200_000 : REQUESTS;
/** Every so many of them goes through the gateway. */
const STEP = 33;

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
  "what is passed on as it is has at most 100 levels": (request) =>
    [...schemasIn(request), ...mediaIn(request)].some((given) => levels(given) > 100),
  "a schema has at most 10,000 values, a medium 1,000": (request) =>
    schemasIn(request).some((given) => values(given) > 10_000) ||
    mediaIn(request).some((given) => values(given) > 1_000),
};

/** The schemas of a request; they are passed on as they are, and so are media. */
const schemasIn = ({ tools, functions, response_format }: any): unknown[] => [
  ...(tools ?? []).map((tool: any) => tool.function.parameters),
  ...(functions ?? []).map(({ parameters }: any) => parameters),
  response_format?.type === "json_schema" ? response_format.json_schema.schema : undefined,
];
const mediaIn = ({ messages }: any): unknown[] =>
  messages
    .flatMap(({ role, content }: any) => (role === "user" && Array.isArray(content) ? content : []))
    .map((part: any) =>
      part.type === "input_audio" || part.type === "file" ? part[part.type] : undefined,
    );

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

const WORDS = [
  ..."x null text refusal image_url input_audio file function custom system user assistant".split(
    " ",
  ),
  ..."tool developer none auto required any json_object json_schema enabled disabled adaptive".split(
    " ",
  ),
  ..."high get_time call_0_0 call_1_0".split(" "),
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
const mediaOf = (given: Json): readonly Json[] => [
  { type: "image_url", image_url: { url: URL } },
  { type: "image_url", image_url: { url: URL, detail: "low" } },
  { type: "image_url", image_url: { url: URL, detail: null } },
  { type: "input_audio", input_audio: given },
  { type: "file", file: given },
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
  prompt_cache_key: ["", "x".repeat(64), "\u{1F600}".repeat(64)],
  prompt_cache_retention: ["in_memory", "24h"],
  safety_identifier: ["", "u"],
  modalities: [[], ["text"]],
  web_search_options: [null],
  moderation: [null],
};

function createRequests(seed: number) {
  const { random, between, pick } = createRandom(seed);
  const chance = (share: number) => random() < share;
  /** A field that may be left out. */
  const some = (values: readonly Json[]): Json | undefined => {
    if (chance(0.5)) return undefined;
    return chance(0.25) ? null : pick(values);
  };

  // ---- valid requests

  const contentOf = (...parts: readonly Json[]): Json =>
    pick<Json>(["", "Hello.", [], [pick(parts)], [TEXT, pick(parts)]]);

  /** A message, or calls with their results. */
  function turn(index: number): object[] {
    const calls = [`call_${index}_0`, `call_${index}_1`].map((id) => ({
      id,
      type: some(["function"]),
      function: { name: pick(["get_time", "any name"]), arguments: some(["", "{}", "not JSON"]) },
    }));
    const assistant = { role: "assistant", reasoning_content: some([1, "Let me think."]) };
    const refusal = { type: "refusal", refusal: "No." };
    return pick<object[]>([
      [{ role: pick(["system", "developer"]), content: contentOf(TEXT) }],
      [{ role: "user", content: contentOf(...mediaOf(pick(OBJECTS))), name: some([5]) }],
      [
        {
          ...assistant,
          content: contentOf(TEXT, refusal),
          refusal: some([1, "No."]),
          tool_calls: some([[]]),
          function_call: some([null]),
        },
      ],
      [{ ...assistant, refusal: "No.", content: some([""]), tool_calls: some([[]]) }],
      [
        { ...assistant, content: some([contentOf(TEXT)]), tool_calls: calls },
        ...calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: contentOf(TEXT) })),
      ],
    ]);
  }

  const declared = (index: number) => ({
    name: pick(["get_time", `A-z_${index}`, "x".repeat(64)]),
    description: some([""]),
    parameters: some(OBJECTS),
    strict: some([true]),
  });

  /** Tools, or the functions that clients sent before there were tools, or none of both. */
  function callables(): object {
    const functions = [declared(0), declared(1), declared(2)].slice(0, between(1, 3));
    const { name } = functions[0]!;
    const tools = functions.map((each) => ({ type: "function", function: each }));
    if (chance(0.05)) tools.push(...Array.from({ length: 128 - tools.length }, () => tools[0]!));
    const chosen = { type: "function", function: { name } };
    return pick<object>([
      { tools, tool_choice: some(["none", "auto", "required", chosen]), functions: some([[]]) },
      { functions, function_call: some(["none", "auto", { name }]), tools: some([[]]) },
      { tools: some([[]]), tool_choice: some(["none"]), functions: some([[]]) },
    ]);
  }

  function valid(): object {
    const stream = some([true, false]);
    const options = stream ? [{ include_usage: true }, { include_usage: null }, {}] : [null];
    return {
      model: "m",
      messages: [0, 1, 2, 3].slice(0, between(1, 4)).flatMap(turn),
      ...callables(),
      stream,
      stream_options: some(options),
      ...Object.fromEntries(Object.entries(FIELDS).map(([name, values]) => [name, some(values)])),
    };
  }

  // ---- what is done to them

  const put = ({ holder, key }: Pick<Place, "holder" | "key">, value: Json): void => {
    Object.defineProperty(holder, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  };
  const remove = ({ holder, key }: Place): void => {
    if (Array.isArray(holder)) holder.splice(Number(key), 1);
    else delete holder[key];
  };
  const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
  const first = (value: Json): Json =>
    value !== null && typeof value === "object" ? (Object.values(value)[0] ?? null) : value;
  const any = (): Json =>
    pick<() => Json>([
      () => null,
      () => chance(0.5),
      () => pick(NUMBERS),
      () => pick(WORDS),
      () => [],
      () => ({}),
      () => [pick(WORDS)],
    ])();
  const become =
    (change: (value: any) => Json): Fault =>
    (at) =>
      put(at, copy(change(at.value)));
  const anywhere = (box: Json): Place => pick([...placesOf(box).values()].flat());

  /** By the type of what they are done to. */
  const FAULTS: Readonly<Record<string, readonly Fault[]>> = {
    any: [
      remove,
      become(any),
      become(() => null),
      become(() => pick([true, false])),
      become((value) => [value]),
      become((value) => [value, value]),
      become((value) => ({ value })),
      become((value) => ({ type: "text", text: value })),
      (at, box) => put(anywhere(box), copy(at.value)),
      (at, box) => {
        // two change places
        const [other, { value }] = [anywhere(box), at];
        put(at, copy(other.value));
        put(other, copy(value));
      },
    ],
    number: [
      ...[1, -1, 0.5, 1e-7, -1e-7].map((step) => become((value) => value + step)),
      ...NUMBERS.map((number) => become(() => number)),
    ],
    string: [
      ...["", "", "é", "a b", "x".repeat(64), "x".repeat(65)].map((text) => become(() => text)),
      ...[1, 2, 3].map(() => become(() => pick(WORDS))),
    ],
    array: [
      become(() => []),
      become(first),
      become((list) => list.toReversed()),
      become((list) => list.slice(1)),
      ...[4, 5, 128, 129].map((length) =>
        become((list) => Array.from({ length }, () => first(list))),
      ),
    ],
    object: [
      become(() => ({})),
      become(first),
      ...[100, 101, 150].map((depth) => become(() => nested(depth))),
      ...[1_000, 1_001, 10_000, 10_001].map((size) => become(() => wide(size))),
      ...[1_024, 1_025].map((size) => become(() => biases(size))),
      // A request without functions, and an assistant's message, are among the objects.
      ...["none", "auto"].map((choice) => become((value) => ({ ...value, function_call: choice }))),
    ],
  };

  const given = new Map<string, number>();
  /**
   * One fault at one place: of those that can be, one of the least often given, so that each field
   * has each of its faults.
   */
  function harm(box: Json): void {
    const able = [...placesOf(box)].flatMap(([field, places]) =>
      [...FAULTS["any"]!, ...(FAULTS[typeOf(places[0]!.value)] ?? [])].map((fault, index) => ({
        name: `${field} ${index}`,
        fault,
        places,
      })),
    );
    const times = ({ name }: { name: string }) => given.get(name) ?? 0;
    const least = Math.min(...able.map(times));
    const chosen = pick(able.filter((each) => times(each) === least));
    given.set(chosen.name, least + 1);
    chosen.fault(pick(chosen.places), box);
  }

  const addUnknown = (box: Json): void => {
    const objects = [...placesOf(box)]
      // Its names are ids of tokens, and are checked.
      .filter(([field]) => !field.includes("logit_bias"))
      .flatMap(([, places]) => places)
      .flatMap(({ value }) =>
        typeOf(value) === "object" ? [value as { [name: string]: Json }] : [],
      );
    if (objects.length > 0)
      put(
        { holder: pick(objects), key: pick(["x-unknown", "__proto__", "constructor", "toString"]) },
        any(),
      );
  };

  /**
   * One request in five is valid; most of the others have one fault, some two, be it that this does
   * no harm.
   */
  return (): { readonly request: Json; readonly faults: number } => {
    const box = copy({ request: valid() }) as { request: Json };
    const faults = pick([0, 1, 1, 1, 2]);
    for (let i = 0; i < faults; i += 1) {
      harm(box);
      box.request ??= null; // it was removed
    }
    if (chance(0.3)) addUnknown(box);
    return { request: copy(box.request), faults };
  };
}

const typeOf = (value: Json): string => {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value;
};

/**
 * Every place in it by its field, with the type that it has there; the elements of a list are one
 * field.
 */
function placesOf(box: Json): Map<string, Place[]> {
  const fields = new Map<string, Place[]>();
  const walk = (holder: Json, path: string, depth: number): void => {
    if (holder === null || typeof holder !== "object" || depth === 0) return;
    for (const [key, value] of Object.entries(holder)) {
      const field = `${path}.${Array.isArray(holder) ? "" : key}`;
      const name = `${field} ${typeOf(value)}`;
      if (!fields.has(name)) fields.set(name, []);
      fields.get(name)!.push({ holder, key, value });
      walk(value, field, depth - 1);
    }
  };
  walk(box, "", 9);
  return fields;
}

const checkRequest = requestCheck(installed);

/** Whether the gateway's own check accepts it. */
function checked(request: Json): boolean {
  try {
    checkRequest(request);
    return true;
  } catch (error) {
    if (error instanceof ValidationError) return false;
    throw error;
  }
}

/** The schemas of whatever is in a list or an object. */
const ELEMENTS = ["items", "additionalProperties"];

/** Where in a schema there is something that a value can break. */
function rulesOf(schema: any, path = "#"): string[] {
  const below = ["properties", "dependentSchemas"].flatMap((word) =>
    Object.entries(schema[word] ?? {}).map(([name, each]) => [`${word}/${name}`, each] as const),
  );
  const branches = (schema.anyOf ?? []).map(
    (each: unknown, index: number) => [`anyOf/${index}`, each] as const,
  );
  const elements = ELEMENTS.filter((word) => schema[word]).map(
    (word) => [word, schema[word]] as const,
  );
  return [
    ...Object.keys(schema)
      .filter((word) => !["properties", "dependentSchemas", "default", ...ELEMENTS].includes(word))
      .map((word) => `${path}/${word}`),
    ...[...below, ...branches, ...elements].flatMap(([step, each]) =>
      rulesOf(each, `${path}/${step}`),
    ),
  ];
}

type Schema = ValidateFunction;
type Made = ReturnType<ReturnType<typeof createRequests>>;

/** What the random requests have come to so far. */
interface Tally {
  /** By rule of BEYOND_SCHEMA: how often it alone was why the schema and the check differ. */
  readonly reasons: Map<string, number>;
  /** By rule of the schema: how often a request with one fault broke it. */
  readonly broken: Map<string, number>;
  readonly count: { accepted: number; refused: number; sent: number };
}

const increase = (counts: Map<string, number>, name: string) =>
  counts.set(name, (counts.get(name) ?? 0) + 1);

/** Asks the schema and the check, which must agree. Whether the request is accepted. */
function compare(accepts: Schema, made: Made, about: string, tally: Tally): boolean {
  const { request, faults } = made;
  const fits = accepts(request);
  const beyond = fits
    ? Object.keys(BEYOND_SCHEMA).filter((rule) => BEYOND_SCHEMA[rule]!(request))
    : [];
  const expected = fits && beyond.length === 0;
  if (faults === 0)
    assert.ok(expected, `made valid, but ${JSON.stringify(accepts.errors ?? beyond)}: ${about}`);
  const differences = beyond.map((rule) => `, but ${rule}`).join("");
  assert.equal(
    checked(request),
    expected,
    `the schema ${fits ? "accepts" : "refuses"} it${differences}; the check does not agree: ${about}`,
  );
  tally.count[expected ? "accepted" : "refused"] += 1;
  if (beyond.length === 1) increase(tally.reasons, beyond[0]!);
  if (faults === 1)
    for (const rule of new Set(accepts.errors?.map(({ schemaPath }) => schemaPath)))
      increase(tally.broken, rule);
  return expected;
}

/** The rules that no request has broken, or not alone. */
const unbroken = ({ reasons, broken }: Tally): string[] =>
  [...reasons, ...broken].filter(([, times]) => times === 0).map(([rule]) => rule);

describe("the published request schema and the check", { skip: notInstalled() }, async () => {
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  const supports = ["tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"];

  it(`say the same of ${REQUESTS} random requests (seed ${SEED})`, async (t) => {
    const provider = await startProvider(t, speak("Hello."));
    const gateway = await startGateway(
      t,
      configFor(provider.url, ["m"], { models: { m: { supports } } }),
    );
    const schema = (await json(await fetch(`${gateway.url}/openapi.json`))).components.schemas
      .ChatCompletionRequest;
    const accepts = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true }).compile(
      schema,
    );
    const next = createRequests(SEED);
    const tally: Tally = {
      reasons: new Map(Object.keys(BEYOND_SCHEMA).map((rule) => [rule, 0])),
      broken: new Map(rulesOf(schema).map((rule) => [rule, 0])),
      count: { accepted: 0, refused: 0, sent: 0 },
    };

    const isEnough = (n: number): boolean =>
      n >= MOST_REQUESTS || (n >= REQUESTS && n % 100 === 0 && unbroken(tally).length === 0);
    for (let n = 0; !isEnough(n); n += 1) {
      const made = next();
      const about = `request ${n} of DIFFERENTIAL_SEED=${SEED}: ${JSON.stringify(made.request)}`;
      const expected = compare(accepts, made, about, tally);
      if (n % STEP > 0) continue;
      const answer = await gateway.chat(made.request);
      const served = (made.request as { model?: Json } | null)?.model === "m" ? 200 : 404;
      assert.equal(answer.status, expected ? served : 400, `${await answer.text()}: ${about}`);
      tally.count.sent += 1;
    }
    t.diagnostic(JSON.stringify({ ...tally.count, ...Object.fromEntries(tally.reasons) }));
    const about = `no request with one fault broke these, with DIFFERENTIAL_SEED=${SEED}`;
    if (LONG) assert.deepEqual(unbroken(tally), [], about);
  });
});
