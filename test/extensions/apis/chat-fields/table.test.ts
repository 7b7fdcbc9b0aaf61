// The manual's table of request fields against the gateway: each field is sent, and what the
// provider and the client see of it must be what the table says. There is a probe for each row, and
// a row for each probe.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { fieldTable, type Fate } from "../../../support/field-table.ts";
import { installed, VENDORS } from "../../../support/config.ts";
import { requestCheck } from "../../../../src/core/extension/defaults.ts";
import { configFor, KEY } from "../../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../../support/memory.ts";
import { speak } from "../../../support/provider.ts";
import { suiteScope, type Scope } from "../../../support/scope.ts";

type Json = Record<string, any>;

interface Probe {
  /** Fields beside the model and one message of the user. One of them has the probed field. */
  readonly request: Json;
  /** Absent: `error.param` of a refused field is the field. */
  readonly param?: string;
}

const user = (content: unknown) => ({ role: "user", content });
const says = (fields: Json): Probe => ({ request: { messages: [fields, user("hi")] } });
const part = (fields: Json): Probe => ({
  request: { messages: [user([fields, { type: "image_url", image_url: { url: "http://x/y" } }])] },
});
const image = { type: "image_url", image_url: { url: "http://x/y.png", detail: "low" } };
const audio = { type: "input_audio", input_audio: { data: "AA==", format: "wav" } };
const file = { type: "file", file: { file_data: "AA==", filename: "a.pdf" } };
const declared = { name: "f", description: "d", parameters: { type: "object" } };
const tools = [{ type: "function", function: { ...declared, strict: true } }];
const named = { type: "function", function: { name: "f" } };
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
const called = {
  messages: [
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: "1" },
  ],
};
const format = {
  type: "json_schema",
  json_schema: { name: "x", description: "d", schema: { type: "object" }, strict: true },
};

/** Several fields that one request probes. */
const each = (names: readonly string[], probe: Probe): Readonly<Record<string, Probe>> =>
  Object.fromEntries(names.map((name) => [name, probe]));
const field = (name: string, value: unknown, more: Json = {}): Readonly<Record<string, Probe>> => ({
  [name]: { request: { [name]: value, ...more } },
});

const PROBES: Readonly<Record<string, Probe>> = {
  ...field("model", "m"),
  ...field("messages", [user("other")]),
  ...field("audio", { voice: "alloy", format: "wav" }),
  ...field("frequency_penalty", 0.5),
  ...field("presence_penalty", 0.5),
  ...field("function_call", { name: "f" }, { functions: [declared] }),
  ...field("functions", [declared]),
  ...field("logit_bias", { "50256": -100 }),
  ...field("logprobs", true),
  ...field("top_logprobs", 3, { logprobs: true }),
  ...field("max_completion_tokens", 9),
  ...field("max_tokens", 9),
  ...field("metadata", { a: "b" }),
  ...each(["modalities"], { request: { modalities: ["text", "audio"] }, param: "modalities[1]" }),
  ...field("moderation", { model: "omni-moderation-latest" }),
  ...field("n", 2),
  ...field("parallel_tool_calls", false, { tools }),
  ...field("prediction", { type: "content", content: "x" }),
  ...field("prompt_cache_key", "k"),
  ...field("prompt_cache_options", { mode: "explicit" }),
  ...field("prompt_cache_retention", "24h"),
  ...field("reasoning_effort", "low"),
  ...field("response_format", { type: "json_object" }),
  ...field("safety_identifier", "ada@example.com"),
  ...field("seed", 7),
  ...field("service_tier", "priority"),
  ...field("stop", ["END"]),
  ...field("store", true),
  ...field("stream", true),
  ...field("stream_options", { include_usage: true }, { stream: true }),
  ...field("temperature", 0.5),
  ...field("top_p", 0.5),
  ...field("tool_choice", "auto", { tools }),
  ...field("tools", tools),
  ...field("user", "ada@example.com"),
  ...field("verbosity", "low"),
  ...field("web_search_options", {}),

  "messages[].role": says({ role: "system", content: "x" }),
  "messages[].content": says({ role: "system", content: "x" }),
  "messages[].name": says({ role: "user", content: "x", name: "ada" }),
  "messages[].tool_call_id": { request: called },
  "messages[].tool_calls": { request: called },
  "messages[].refusal": says({ role: "assistant", refusal: "No." }),
  "messages[].audio": says({ role: "assistant", content: "x", audio: { id: "audio_1" } }),
  "messages[].function_call": says({
    role: "assistant",
    content: "x",
    function_call: { name: "f", arguments: "{}" },
  }),
  "messages[].content[].type": part(image),
  "messages[].content[].text": part({ type: "text", text: "x" }),
  "messages[].content[].refusal": says({
    role: "assistant",
    content: [{ type: "refusal", refusal: "No." }],
  }),
  ...each(
    ["", ".url", ".detail"].map((name) => `messages[].content[].image_url${name}`),
    part(image),
  ),
  ...each(
    ["", ".data", ".format"].map((name) => `messages[].content[].input_audio${name}`),
    part(audio),
  ),
  ...each(
    ["", ".file_data", ".filename"].map((name) => `messages[].content[].file${name}`),
    part(file),
  ),
  "messages[].content[].file.file_id": {
    ...part({ type: "file", file: { file_id: "f" } }),
    param: "messages[0].content[0].file.file_id",
  },
  "messages[].content[].prompt_cache_breakpoint": part({
    type: "text",
    text: "x",
    prompt_cache_breakpoint: { mode: "explicit" },
  }),
  ...each(
    ["id", "type", "function", "function.name", "function.arguments"].map(
      (name) => `messages[].tool_calls[].${name}`,
    ),
    { request: called },
  ),
  "messages[].tool_calls[].custom": {
    ...says({
      role: "assistant",
      tool_calls: [{ id: "c", type: "custom", custom: { name: "f", input: "x" } }],
    }),
    param: "messages[0].tool_calls[0].type",
  },

  ...each(
    ["", ".name", ".description", ".parameters", ".strict"].map(
      (name) => `tools[].function${name}`,
    ),
    { request: { tools } },
  ),
  "tools[].type": { request: { tools } },
  "tools[].custom": {
    request: { tools: [{ type: "custom", custom: { name: "f" } }] },
    param: "tools[0].type",
  },
  ...each(["tool_choice.type", "tool_choice.function", "tool_choice.function.name"], {
    request: { tools, tool_choice: named },
  }),
  "tool_choice.allowed_tools": {
    request: {
      tools,
      tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [named] } },
    },
    param: "tool_choice.type",
  },
  "tool_choice.custom": {
    request: { tools, tool_choice: { type: "custom", custom: { name: "f" } } },
    param: "tool_choice.type",
  },
  ...each(["functions[].name", "functions[].description", "functions[].parameters"], {
    request: { functions: [declared] },
  }),
  "response_format.type": { request: { response_format: { type: "json_object" } } },
  ...each(
    ["", ".name", ".description", ".schema", ".strict"].map(
      (name) => `response_format.json_schema${name}`,
    ),
    { request: { response_format: format } },
  ),
  "stream_options.include_usage": {
    request: { stream: true, stream_options: { include_usage: true } },
  },
  "stream_options.include_obfuscation": {
    request: { stream: true, stream_options: { include_obfuscation: true } },
  },
};

const SUPPORTS = ["tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"];
/** A model that can do everything, and has another name at its provider. */
const BENCH = {
  providers: { lab: { thinking: "reasoning_effort" } },
  models: { m: { supports: SUPPORTS, upstream_model: "m-large" } },
};

interface Seen {
  /** What the provider was asked. Undefined: it was not. */
  readonly asked: Json | undefined;
  readonly status: number;
  /** The reply, but for what differs between any two of them. */
  readonly reply: string;
}

type Ask = (request: Json) => Promise<Seen>;

function bench(t: Scope): Ask {
  const provider = memoryProvider(t, speak("Hello."));
  const gateway = createMemoryGateway(configFor(provider.url, ["m"], BENCH));
  return async (request) => {
    const before = provider.asked.length;
    const answer = await gateway.chat(request);
    const reply = (await answer.text()).replace(/"(id|request_id|created)":[^,}]+/g, '"$1":0');
    return { asked: provider.asked[before]?.body, status: answer.status, reply };
  };
}

const requestOf = ({ request }: Probe): Json => ({
  model: "m",
  messages: [user("hi")],
  ...request,
});

/** `messages[].content[].text` as steps: in a list, the first element that has the next one. */
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

/** What becomes of the field of a probe, by what the provider and the client see. */
async function fateOf(ask: Ask, name: string, probe: Probe): Promise<Fate> {
  const request = requestOf(probe);
  const seen = await ask(request);
  if (seen.status !== 200) {
    const { error } = JSON.parse(seen.reply);
    assert.deepEqual([seen.status, error.param], [400, probe.param ?? paramOf(name)], name);
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

const paramOf = (name: string): string => name.replaceAll("[]", "[0]");

const VENDOR_NAMES = [...VENDORS.keys()].filter((name) => name !== "demo");

/** A model of each vendor, under the vendor's name. What its provider is asked. */
function vendorsBench(t: Scope) {
  const provider = memoryProvider(t, speak("Hello."));
  const places: Json = { vertex: { project: "p", location: "l" }, bedrock: { region: "r" } };
  const providers = VENDOR_NAMES.map((vendor) => [
    vendor,
    { vendor, base_url: provider.url, api_key: "k", ...places[vendor] },
  ]);
  const gateway = createMemoryGateway({
    providers: Object.fromEntries(providers),
    models: Object.fromEntries(VENDOR_NAMES.map((vendor) => [vendor, { provider: vendor }])),
    keys: [{ account: "acme", key: KEY }],
    retry: { max_retries: 0 },
    limits: { rpm: null },
    breaker: { failures: 1_000 },
  });
  return async (model: string, request: Json): Promise<Json> => {
    const before = provider.asked.length;
    await gateway.chat({ ...request, model });
    return provider.asked[before]?.body ?? assert.fail(model);
  };
}

/** The vendors whose providers see the field in the request, each as its documentation has it. */
async function takersOf(
  ask: ReturnType<typeof vendorsBench>,
  name: string,
  request: Json,
): Promise<string[]> {
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
  const ask = bench(scope);
  const askVendor = vendorsBench(scope);

  it("has a row for each probe here, and for each row there is a probe", () => {
    assert.deepEqual([...table.keys()].toSorted(), Object.keys(PROBES).toSorted());
  });

  it("has every field of a body that the gateway checks", () => {
    const { properties } = requestCheck(installed).schema;
    const own = ["thinking"];
    for (const name of Object.keys(properties as object))
      assert.ok(table.has(name) || own.includes(name), name);
  });

  for (const [name, { fate, vendors }] of table) {
    it(`says of ${name} what becomes of it`, async () => {
      const probe = PROBES[name]!;
      if (vendors) assert.deepEqual(await takersOf(askVendor, name, requestOf(probe)), vendors);
      else assert.equal(await fateOf(ask, name, probe), fate);
    });
  }
});
