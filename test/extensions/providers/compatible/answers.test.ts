// How the answers of vendors of OpenAI-compatible models are read, whole and streamed: thinking, token
// counts, tool calls, errors. By the dialect alone, without a gateway.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { wholeReply } from "../../../../src/core/providers/decoding.ts";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { chunk, completion } from "../../../support/provider.ts";
import { errorOf, replyOf, targetOf } from "../dialect-bench.ts";

type Json = Record<string, any>;

const targetAt = (vendor: string) => targetOf({ vendor }, { reasoning: true });

const read = (vendor: string, events: readonly object[]): Part[] => {
  const { push } = compatibleDialect.decoder(targetAt(vendor));
  return events.flatMap((event) => push(event));
};
const readWhole = (vendor: string, message: object, finish = "stop"): Part[] =>
  wholeReply(compatibleDialect, completion(message, finish), targetAt(vendor));

describe("thinking in a vendor's answer", () => {
  const piece = (type: string, text: string) =>
    type === "thinking" ? { type, thinking: [{ type: "text", text }] } : { type, text };
  const field = (name: string): [object, object[]] => [
    { content: "Hello.", [name]: "Let me see." },
    [
      { role: "assistant", content: "", [name]: null },
      { [name]: "Let " },
      { content: null, [name]: "me see." },
      { content: "Hel" },
      { content: "lo." },
    ],
  ];
  const details = [{ type: "reasoning.text", text: "Let me see." }];
  const both = { reasoning: "Let me see.", reasoning_content: "Let me see." };
  const CASES: [vendor: string, name: string, message: object, deltas: object[]][] = [
    ["deepseek", "reasoning_content", ...field("reasoning_content")],
    ["groq", "reasoning", ...field("reasoning")],
    [
      "openrouter",
      "reasoning beside reasoning_details",
      { content: "Hello.", reasoning: "Let me see.", reasoning_details: details },
      [
        { content: "", reasoning: "Let me see.", reasoning_details: details },
        { content: "Hello.", reasoning: null },
      ],
    ],
    [
      "vllm",
      "both fields, of which it is said once",
      { content: "Hello.", ...both },
      [both, { content: "Hello." }],
    ],
    [
      "mistral",
      "parts of the content",
      {
        content: [piece("thinking", "Let me "), piece("thinking", "see."), piece("text", "Hello.")],
      },
      [
        { content: [piece("thinking", "Let ")] },
        { content: [piece("thinking", "me see.")] },
        { content: [piece("text", "Hel")] },
        { content: "lo." },
      ],
    ],
    [
      "xai",
      "deltas that come twice",
      { content: "Hello.", reasoning_content: "Let me see." },
      [
        { reasoning_content: "Let " },
        { reasoning_content: "Let " },
        { reasoning_content: "me see." },
        { reasoning_content: "me see." },
        { content: "Hello." },
      ],
    ],
  ];
  for (const [vendor, name, message, deltas] of CASES)
    it(`${vendor}: ${name}`, () => {
      const events = deltas.map((delta) => chunk(delta));
      for (const parts of [readWhole(vendor, message), read(vendor, events)]) {
        const { text, reasoning } = replyOf(parts);
        assert.deepEqual([text, reasoning], ["Hello.", "Let me see."]);
      }
    });

  it("elsewhere, and in texts, what comes twice is meant twice", () => {
    const twice = (name: string) => [chunk({ [name]: "ha" }), chunk({ [name]: "ha" })];
    assert.equal(replyOf(read("deepseek", twice("reasoning_content"))).reasoning, "haha");
    assert.equal(replyOf(read("xai", twice("content"))).text, "haha");
  });
});

describe("token counts in a vendor's answer", () => {
  const base = { prompt_tokens: 20, completion_tokens: 7, total_tokens: 27 };
  const details = (cached_tokens: number, more: object = {}) => ({
    prompt_tokens_details: { cached_tokens, ...more },
  });
  const thought = { completion_tokens_details: { reasoning_tokens: 3 } };
  type Counts = Partial<Parameters<typeof makeUsage>[0]>;
  const CASES: [vendor: string, stated: object, counts: Counts][] = [
    [
      "openai",
      { ...details(8, { cache_write_tokens: 2 }), ...thought },
      { cacheHit: 8, reasoning: 3, cacheWrite: 2 },
    ],
    ["openai", { total_tokens: 89 }, {}],
    [
      "deepseek",
      { prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 12, ...thought },
      { cacheHit: 8, reasoning: 3 },
    ],
    ["mistral", { num_cached_tokens: 8, prompt_tokens_details: null }, { cacheHit: 8 }],
    ["mistral", { num_cached_tokens: 8, ...details(5) }, { cacheHit: 8 }],
    ["mistral", { prompt_token_details: { cached_tokens: 8 } }, { cacheHit: 8 }],
    ["moonshot", { cached_tokens: 8 }, { cacheHit: 8 }],
    [
      "xai",
      { total_tokens: 30, ...details(8), ...thought },
      { completion: 10, cacheHit: 8, reasoning: 3 },
    ],
    ["gemini-openai", { total_tokens: 89 }, { completion: 69, reasoning: 62 }],
    ["gemini-openai", { total_tokens: 89, ...thought }, { completion: 69, reasoning: 65 }],
    ["gemini-openai", { total_tokens: 30, ...thought }, { completion: 10, reasoning: 3 }],
    ["gemini-openai", { total_tokens: 20 }, {}],
    ["qwen", details(8, { cache_creation_input_tokens: 4 }), { cacheHit: 8, cacheWrite: 4 }],
    [
      "openrouter",
      { cost: 0.001, ...details(8, { cache_write_tokens: 13 }) },
      { cacheHit: 8, cacheWrite: 12 },
    ],
    ["ollama", {}, {}],
    ["vllm", { prompt_tokens_details: null, completion_tokens_details: null }, {}],
    [
      "generic",
      { cached_tokens: 21, completion_tokens_details: { reasoning_tokens: 8 } },
      { cacheHit: 20, reasoning: 7 },
    ],
  ];
  for (const [vendor, stated, counts] of CASES)
    it(`${vendor}: ${JSON.stringify(stated)}`, () => {
      const event = { choices: [], usage: { ...base, ...stated } };
      const expected = { prompt: 20, completion: 7, cacheHit: 0, reasoning: 0, ...counts };
      assert.deepEqual(replyOf(read(vendor, [event])).usage, makeUsage(expected));
    });
});

describe("tool calls in a vendor's answer", () => {
  const ARGS = '{"city": "\u00d8sl\u00f8"}';
  const call = (more: Json, name?: string, args?: unknown) => ({
    ...more,
    ...(name && { type: "function" }),
    function: { ...(name && { name }), ...(args !== undefined && { arguments: args }) },
  });
  const deltas = (...calls: object[]) => calls.map((each) => chunk({ tool_calls: [each] }));
  const known = ["a", "b"] as const;
  const unknown = ["generated", "generated"] as const;
  const wholeTwo = [call({ id: "a" }, "f", ARGS), call({ id: "b" }, "g", "{}")];
  const idless = [call({}, "f", ARGS), call({}, "g", "{}")];

  const CASES: [
    name: string,
    vendor: string,
    message: object,
    events: object[],
    ids: readonly [string, string],
    args?: readonly [string, string],
  ][] = [
    [
      "each whole in one delta",
      "ollama",
      { content: "", tool_calls: wholeTwo.map((each, index) => ({ index, ...each })) },
      deltas(call({ index: 0, id: "a" }, "f", ARGS), call({ index: 1, id: "b" }, "g", "{}")),
      known,
    ],
    [
      "all with index 0, in fragments",
      "qwen",
      { content: "", tool_calls: wholeTwo.map((each) => ({ index: 0, ...each })) },
      deltas(
        call({ index: 0, id: "a" }, "f", ARGS.slice(0, 9)),
        call({ index: 0, id: "" }, undefined, ARGS.slice(9)),
        call({ index: 0, id: "b" }, "g", "{"),
        call({ index: 0, id: "" }, undefined, "}"),
      ),
      known,
    ],
    [
      "all with index 0 and without ids",
      "ollama",
      { content: "", tool_calls: idless.map((each) => ({ index: 0, ...each })) },
      deltas(call({ index: 0 }, "f", ARGS), call({ index: 0 }, "g", "{}")),
      unknown,
    ],
    [
      "without indexes",
      "mistral",
      { content: "", tool_calls: wholeTwo },
      [chunk({ content: "", tool_calls: wholeTwo })],
      known,
    ],
    [
      "with ids that are null",
      "vllm",
      { content: null, tool_calls: idless.map((each) => ({ ...each, id: null })) },
      deltas(call({ index: 0, id: null }, "f", ARGS), call({ index: 1, id: null }, "g", "{}")),
      unknown,
    ],
    [
      "without ids and indexes",
      "llama.cpp",
      { content: null, tool_calls: idless },
      deltas(
        call({}, "f", ARGS.slice(0, 9)),
        call({}, undefined, ARGS.slice(9)),
        call({}, "g", "{}"),
      ),
      unknown,
    ],
    [
      "arguments that are objects",
      "ollama",
      {
        content: "",
        tool_calls: [call({ id: "a" }, "f", JSON.parse(ARGS)), call({ id: "b" }, "g", {})],
      },
      deltas(
        call({ index: 0, id: "a" }, "f", JSON.parse(ARGS)),
        call({ index: 1, id: "b" }, "g", {}),
      ),
      known,
      [JSON.stringify(JSON.parse(ARGS)), "{}"],
    ],
    [
      "arguments that are empty, null or missing",
      "zhipu",
      { content: "", tool_calls: [call({ id: "a" }, "f", null), call({ id: "b" }, "g")] },
      deltas(call({ index: 0, id: "a" }, "f", ""), call({ index: 1, id: "b" }, "g", null)),
      known,
      ["{}", "{}"],
    ],
  ];
  for (const [name, vendor, message, events, ids, args = [ARGS, "{}"]] of CASES)
    it(`${vendor}: ${name}`, () => {
      for (const parts of [
        readWhole(vendor, message, "tool_calls"),
        read(vendor, [...events, chunk({}, "tool_calls")]),
      ])
        assert.deepEqual(replyOf(parts).calls, [
          [ids[0], "f", args[0]],
          [ids[1], "g", args[1]],
        ]);
    });
});

describe("a vendor's errors", () => {
  const LONG = "context_length_exceeded";
  const FILTERED = "content_filter";
  const REJECTED = "upstream_rejected";
  const CLOSED = "model_unavailable";
  const BROKEN = "upstream_error";
  const BUSY = "model_overloaded";
  const forbidden = (error: string) => ({
    code: "The caller does not have permission to execute the specified operation",
    error,
  });
  const invalid = (error: string) => ({ code: "Client specified an invalid argument", error });
  const flat = (code: number | string, message: unknown) => ({ object: "error", message, code });
  const nested = (code: unknown, message: unknown, type?: string) => ({
    error: { code, message, type },
  });
  /** Status 200: an event of a stream. */
  const CASES: [vendor: string, status: number, body: object, expected: string][] = [
    ["openrouter", 200, nested(429, "Rate limited"), BUSY],
    ["openrouter", 200, nested(502, "Provider returned error"), BROKEN],
    ["openrouter", 200, nested(402, "Insufficient credits"), CLOSED],
    ["openrouter", 403, nested(403, "Your chosen model requires moderation"), FILTERED],
    ["vllm", 200, nested(400, "This model's maximum context length is 8 tokens"), LONG],
    ["vllm", 200, flat(500, "engine is dead"), BROKEN],
    ["sglang", 200, flat(400, "The input is longer than the model's context length."), LONG],
    ["zhipu", 200, nested("1234", "Network error"), BROKEN],
    ["zhipu", 429, nested("1113", "余额不足"), CLOSED],
    ["zhipu", 429, nested("1113", "Insufficient balance or no resource package."), CLOSED],
    ["zhipu", 429, nested("1302", "High concurrency usage of this API"), BUSY],
    ["zhipu", 400, nested("1210", "API call parameter error"), REJECTED],
    ["zhipu", 400, nested("1261", "Prompt exceeds max length"), LONG],
    ["zhipu", 400, nested("1210", "tokens in request more than max tokens allowed"), LONG],
    ["xai", 200, { code: "internal", error: "Something broke" }, BROKEN],
    ["xai", 400, invalid("Argument not supported on this model: stop"), REJECTED],
    ["xai", 400, { code: "context_length_exceeded", error: "no" }, LONG],
    ["xai", 400, invalid("Incorrect API key provided: sk-***."), CLOSED],
    ["xai", 400, invalid("This model's maximum prompt length is 8 tokens."), LONG],
    ["xai", 403, forbidden("Your team doesn't have any credits yet."), CLOSED],
    ["xai", 403, forbidden("Content violates usage guidelines. Team: t"), FILTERED],
    ["generic", 200, { error: "out of memory" }, BROKEN],
    ["groq", 200, nested("context_length_exceeded", "no", "invalid_request_error"), LONG],
    ["mistral", 400, flat("3051", "too large for model with 8 maximum context length"), LONG],
    ["mistral", 429, flat("3505", "Service tier capacity exceeded for this model."), BUSY],
    ["mistral", 422, { detail: [{ msg: "Extra inputs are not permitted" }] }, REJECTED],
    ["mistral", 422, flat("1", { detail: [{ loc: ["body"], msg: "no" }] }), REJECTED],
    ["mistral", 401, { message: "Unauthorized", request_id: "x" }, CLOSED],
    ["deepseek", 402, nested("invalid_request_error", "Insufficient Balance"), CLOSED],
    ["llama.cpp", 400, nested(400, "no", "exceed_context_size_error"), LONG],
    ["llama.cpp", 503, nested(503, "Loading model", "unavailable_error"), BUSY],
    ["openai", 429, nested("insufficient_quota", "You exceeded your current quota"), CLOSED],
    ["qwen", 400, nested("data_inspection_failed", "inappropriate content"), FILTERED],
    ["qwen", 400, nested("x", "Range of input length should be [1, 983616]"), LONG],
    ["moonshot", 400, nested("x", "Your request exceeded model token limit: 262144"), LONG],
  ];
  for (const [vendor, status, body, expected] of CASES)
    it(`${vendor}: ${status} ${JSON.stringify(body)} is ${expected}`.slice(0, 150), () => {
      const error =
        status === 200
          ? errorOf(() => read(vendor, [body]))
          : compatibleDialect.refusal(status, { get: () => null }, body);
      assert.equal(error.code, expected);
      // Else a client could close a model for all others.
      if ([FILTERED, LONG, REJECTED].includes(expected))
        assert.equal(error.countsForBreaker, false);
    });

  it("openrouter: an error in a choice of a 200", () => {
    const choice = { index: 0, message: { content: "" }, finish_reason: "error" };
    const body = { choices: [{ ...choice, error: { code: 503, message: "overloaded" } }] };
    assert.equal(errorOf(() => read("openrouter", [body])).code, "model_overloaded");
  });
});
