// Checks the manual's table of request fields against the gateway: each field is sent, and what the
// provider and the client see of it must match the table. Each row has a probe, and each probe has
// a row.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { fieldTable, type Fate } from "../../../support/readme.ts";
import { installed, VENDORS } from "../../../support/config.ts";
import { requestCheck } from "../../../../src/core/extension/places.ts";
import { configFor, KEY, startGateway } from "../../../support/gateway.ts";
import { speak, startProvider } from "../../../support/provider.ts";
import { suiteScope, type Scope } from "../../../support/scope.ts";

type Json = Record<string, any>;

/** A request with these fields, the model and one user message. */
const requestOf = (fields: Json): Json => ({ model: "m", messages: [user("hi")], ...fields });

const user = (content: unknown) => ({ role: "user", content });
const assistant = (fields: Json): Json => ({ messages: [{ role: "assistant", ...fields }] });
const declared = { name: "f", description: "d", parameters: { type: "object" } };
const tools = [{ type: "function", function: { ...declared, strict: true } }];
const named = { type: "function", function: { name: "f" } };
const custom = { type: "custom", custom: { name: "f" } };
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
const json_schema = { name: "x", description: "d", schema: { type: "object" }, strict: true };
const parts = [
  { type: "text", text: "x", prompt_cache_breakpoint: { mode: "explicit" } },
  { type: "image_url", image_url: { url: "http://x/y.png", detail: "low" } },
  { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
  { type: "file", file: { file_data: "AA==", filename: "a.pdf" } },
];

/** Accepted requests. Each field is probed in the first request that has it. */
const ACCEPTED: readonly Json[] = [
  { frequency_penalty: 0.5, presence_penalty: 0.5, temperature: 0.5, top_p: 0.5, seed: 7 },
  { logit_bias: { "50256": -100 }, metadata: { a: "b" }, store: true, verbosity: "low" },
  { prompt_cache_key: "k", prompt_cache_retention: "24h" },
  { stop: ["END"] },
  { safety_identifier: "ada@example.com" },
  { user: "ada@example.com", reasoning_effort: "low", service_tier: "priority" },
  { prediction: { type: "content", content: "x" }, prompt_cache_options: { mode: "explicit" } },
  { audio: { voice: "alloy", format: "wav" } },
  { functions: [declared], function_call: { name: "f" } },
  { logprobs: true, top_logprobs: 3 },
  { max_completion_tokens: 9 },
  { max_tokens: 9 },
  { response_format: { type: "json_schema", json_schema } },
  { stream: true, stream_options: { include_usage: true, include_obfuscation: true } },
  { tools, tool_choice: named, parallel_tool_calls: false },
  { messages: [{ role: "user", content: "x", name: "ada" }] },
  assistant({ refusal: "No." }),
  assistant({ content: "x", audio: { id: "audio_1" } }),
  { messages: [user(parts)] },
  assistant({ content: [{ type: "refusal", refusal: "No." }] }),
  {
    messages: [
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c", content: "1" },
    ],
  },
];
/** Fields whose contents are not rows of the table. */
const OPAQUE = new Set([
  ...["logit_bias", "metadata", "prediction", "prompt_cache_options", "prompt_cache_breakpoint"],
  ...["audio", "function_call", "parameters", "schema"],
]);

/** By field: a request that is rejected for it, and `error.param` if that names another field. */
const REFUSED: Readonly<Record<string, readonly [request: Json, param?: string]>> = {
  modalities: [{ modalities: ["text", "audio"] }, "modalities[1]"],
  moderation: [{ moderation: { model: "omni-moderation-latest" } }],
  n: [{ n: 2 }],
  web_search_options: [{ web_search_options: {} }],
  "tools[].custom": [{ tools: [custom] }, "tools[0].type"],
  "tool_choice.allowed_tools": [
    {
      tools,
      tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [named] } },
    },
    "tool_choice.type",
  ],
  "tool_choice.custom": [{ tools, tool_choice: custom }, "tool_choice.type"],
  "messages[].function_call": [
    assistant({ content: "x", function_call: { name: "f", arguments: "{}" } }),
  ],
  "messages[].tool_calls[].custom": [
    assistant({ tool_calls: [{ id: "c", ...custom }] }),
    "messages[0].tool_calls[0].type",
  ],
  "messages[].content[].file.file_id": [
    { messages: [user([{ type: "file", file: { file_id: "f" } }])] },
    "messages[0].content[0].file.file_id",
  ],
};

/** The names of all fields in a request, as the table writes them. */
function namesIn(json: unknown, place = ""): string[] {
  if (json === null || typeof json !== "object") return [];
  if (Array.isArray(json)) return json.flatMap((element) => namesIn(element, `${place}[]`));
  return Object.entries(json).flatMap(([key, value]) => {
    const name = place === "" ? key : `${place}.${key}`;
    return [name, ...(OPAQUE.has(key) ? [] : namesIn(value, name))];
  });
}

type Probe = Readonly<{ request: Json; param: string }>;
const PROBES = new Map<string, Probe>();
for (const [name, [fields, param]] of Object.entries(REFUSED))
  PROBES.set(name, { request: requestOf(fields), param: param ?? name.replaceAll("[]", "[0]") });
for (const request of ACCEPTED.map(requestOf))
  for (const name of namesIn(request))
    if (!PROBES.has(name)) PROBES.set(name, { request, param: name });

const SUPPORTS = ["tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"];
/** A model that supports everything, and has another name at its provider. */
const BENCH = {
  providers: { lab: { thinking: "reasoning_effort" } },
  models: { m: { supports: SUPPORTS, upstream_model: "m-large" } },
};

interface Seen {
  /** The provider's request. Undefined: the provider was not called. */
  readonly asked: Json | undefined;
  readonly status: number;
  /** The reply, without the parts that differ in every reply. */
  readonly reply: string;
}

type Ask = (request: Json) => Promise<Seen>;

async function bench(t: Scope): Promise<Ask> {
  const provider = await startProvider(t, speak("Hello."));
  const gateway = await startGateway(t, configFor(provider.url, ["m"], BENCH));
  return async (request) => {
    const before = provider.asked.length;
    const answer = await gateway.chat(request);
    const reply = (await answer.text()).replace(/"(id|request_id|created)":[^,}]+/g, '"$1":0');
    return { asked: provider.asked[before]?.body, status: answer.status, reply };
  };
}

/**
 * Splits `messages[].content[].text` into steps. In a list, a step takes the first element that has
 * the next step's field.
 */
const stepsOf = (name: string): string[] => name.replaceAll("[]", ".[]").split(".");

function holderOf(json: unknown, steps: readonly string[]): Json | undefined {
  if (json === null || typeof json !== "object") return undefined;
  const [step = "", ...rest] = steps;
  if (step !== "[]") return rest.length === 0 ? json : holderOf((json as Json)[step], rest);
  const holders = (json as unknown[]).map((element) => holderOf(element, rest));
  return holders.find((holder) => holder && Object.hasOwn(holder, rest.at(-1)!));
}

/** The value of a field in a body. */
const valueIn = (json: Json | undefined, name: string): unknown =>
  holderOf(json, stepsOf(name))?.[stepsOf(name).at(-1)!];

function without(request: Json, name: string): Json {
  const copy = structuredClone(request);
  const holder = holderOf(copy, stepsOf(name)) ?? assert.fail(`the probe of ${name} lacks it`);
  delete holder[stepsOf(name).at(-1)!];
  return copy;
}

/** What happens to the probed field, as seen by the provider and the client. */
async function fateOf(ask: Ask, name: string, probe: Probe): Promise<Fate> {
  const { request, param } = probe;
  const seen = await ask(request);
  if (seen.status !== 200) {
    const { error } = JSON.parse(seen.reply);
    assert.deepEqual([seen.status, error.param], [400, param], name);
    assert.equal(seen.asked, undefined, `${name}: the provider was asked all the same`);
    return "refused";
  }
  const bare = await ask(without(request, name));
  const sent = valueIn(request, name);
  const isShown = isDeepStrictEqual(valueIn(seen.asked, name), sent);
  const isHeard = !isDeepStrictEqual(seen.asked, bare.asked);
  if (seen.reply !== bare.reply && !isHeard) return "translated";
  if (isShown) return "passed";
  return isHeard ? "translated" : "ignored";
}

const VENDOR_NAMES = [...VENDORS.keys()].filter((name) => name !== "demo");

type AskVendor = (model: string, request: Json) => Promise<Json>;

/**
 * Models named after their vendors. Returns a function that resolves with the provider's request.
 */
async function vendorsBench(t: Scope): Promise<AskVendor> {
  const provider = await startProvider(t, speak("Hello."));
  const places: Json = { vertex: { project: "p", location: "l" }, bedrock: { region: "r" } };
  const providers = VENDOR_NAMES.map((vendor) => [
    vendor,
    { vendor, base_url: provider.url, api_key: "k", ...places[vendor] },
  ]);
  const gateway = await startGateway(t, {
    providers: Object.fromEntries(providers),
    models: Object.fromEntries(VENDOR_NAMES.map((vendor) => [vendor, { provider: vendor }])),
    keys: [{ account: "acme", key: KEY }],
    retry: { max_retries: 0 },
    limits: { rpm: null },
    breaker: { failures: 1_000 },
  });
  return async (model, request) => {
    const before = provider.asked.length;
    await gateway.chat({ ...request, model });
    return provider.asked[before]?.body ?? assert.fail(model);
  };
}

/** The vendors whose providers get the field as the vendor documents it. */
async function takersOf(ask: AskVendor, name: string, request: Json): Promise<string[]> {
  const takers: string[] = [];
  for (const vendor of VENDOR_NAMES) {
    const seen = await ask(vendor, request);
    if (isDeepStrictEqual(seen, await ask(vendor, without(request, name)))) continue;
    assert.deepEqual(valueIn(seen, name), valueIn(request, name), vendor);
    takers.push(vendor);
  }
  return takers;
}

describe("the table of request fields", () => {
  const table = fieldTable();
  const scope = suiteScope();
  let ask: Ask;
  let askVendor: AskVendor;
  before(async () => {
    ask = await bench(scope);
    askVendor = await vendorsBench(scope);
  });

  it("has a probe for each row, and a row for each probe", () => {
    assert.deepEqual([...table.keys()].toSorted(), [...PROBES.keys()].toSorted());
  });

  it("has every body field that the gateway checks", () => {
    const { properties } = requestCheck(installed).schema;
    const own = ["thinking"];
    for (const name of Object.keys(properties as object))
      assert.ok(table.has(name) || own.includes(name), name);
  });

  for (const [name, { fate, vendors }] of table) {
    it(`is right about ${name}`, async () => {
      const probe = PROBES.get(name)!;
      if (vendors) assert.deepEqual(await takersOf(askVendor, name, probe.request), vendors);
      else assert.equal(await fateOf(ask, name, probe), fate);
    });
  }
});
