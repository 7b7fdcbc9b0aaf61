// How the answers of vendors of OpenAI-compatible models are read, whole and streamed: thinking, token
// counts, tool calls, errors. By the dialect alone, without a gateway.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { traitsOf } from "../../../../src/config/vendors.ts";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { wholeReply } from "../../../../src/core/providers/decoding.ts";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { VENDORS } from "../../../support/config.ts";
import { chunk, completion } from "../../../support/provider.ts";

type Json = Record<string, any>;

const targetOf = (vendor: string, settings: object = {}) => ({
  upstreamModel: "m",
  reasoning: true,
  traits: traitsOf(VENDORS, { vendor }, { reasoning: true, ...settings }),
});

const read = (vendor: string, events: readonly object[], settings?: object): Part[] => {
  const { push } = compatibleDialect.decoder(targetOf(vendor, settings));
  return events.flatMap((event) => push(event));
};
const readWhole = (vendor: string, message: object, finish = "stop"): Part[] =>
  wholeReply(compatibleDialect, completion(message, finish), targetOf(vendor));

/** The texts and calls of these parts. Ids that were made up are "generated". */
function summary(parts: readonly Part[]) {
  const joined = (type: "text" | "reasoning") =>
    parts.map((part) => (part.type === type ? part.text : "")).join("");
  const argumentsOf = (call: number) =>
    parts.map((part) => (part.type === "tool_arguments" && part.call === call ? part.text : ""));
  const calls = parts.flatMap((part) => {
    if (part.type !== "tool_call") return [];
    const id = /^call_[0-9a-f]{24}$/.test(part.id) ? "generated" : part.id;
    return [[id, part.name, argumentsOf(part.call).join("")]];
  });
  return { text: joined("text"), reasoning: joined("reasoning"), calls };
}

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
      const expected = { text: "Hello.", reasoning: "Let me see.", calls: [] };
      assert.deepEqual(summary(readWhole(vendor, message)), expected);
      const events = deltas.map((delta) => chunk(delta));
      assert.deepEqual(summary(read(vendor, events)), expected);
    });

  it("elsewhere, and in texts, what comes twice is meant twice", () => {
    const twice = (name: string) => [chunk({ [name]: "ha" }), chunk({ [name]: "ha" })];
    assert.equal(summary(read("deepseek", twice("reasoning_content"))).reasoning, "haha");
    assert.equal(summary(read("xai", twice("content"))).text, "haha");
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
      const usage = read(vendor, [event]).flatMap((part) =>
        part.type === "usage" ? [part.usage] : [],
      );
      assert.equal(usage.length, 1);
      const { prompt = 0, completion = 0, ...shares } = usage[0]!;
      const expected = { prompt: 20, completion: 7, cacheHit: 0, reasoning: 0, ...counts };
      assert.deepEqual(makeUsage({ prompt, completion, ...shares }), makeUsage(expected));
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
      "in fragments",
      "openai",
      { content: null, tool_calls: wholeTwo },
      deltas(
        call({ index: 0, id: "a" }, "f", ""),
        call({ index: 0 }, undefined, ARGS.slice(0, 9)),
        call({ index: 0 }, undefined, ARGS.slice(9)),
        call({ index: 1, id: "b" }, "g", "{}"),
      ),
      known,
    ],
    [
      "each whole in one delta",
      "ollama",
      { content: "", tool_calls: wholeTwo.map((each, index) => ({ index, ...each })) },
      deltas(call({ index: 0, id: "a" }, "f", ARGS), call({ index: 1, id: "b" }, "g", "{}")),
      known,
    ],
    [
      "all in one delta",
      "ollama",
      { content: "", tool_calls: wholeTwo },
      [
        chunk({
          role: "assistant",
          content: "",
          tool_calls: wholeTwo.map((each, index) => ({ index, ...each })),
        }),
      ],
      known,
    ],
    [
      "all with index 0",
      "ollama",
      { content: "", tool_calls: wholeTwo.map((each) => ({ index: 0, ...each })) },
      deltas(call({ index: 0, id: "a" }, "f", ARGS), call({ index: 0, id: "b" }, "g", "{}")),
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
      "without ids",
      "sglang",
      { content: null, tool_calls: idless },
      deltas(call({ index: 0 }, "f", ARGS), call({ index: 1 }, "g", "{}")),
      unknown,
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
        assert.deepEqual(
          summary(parts).calls.map(([id, called, text]) => [id, called, text || "{}"]),
          [
            [ids[0], "f", args[0]],
            [ids[1], "g", args[1]],
          ],
        );
    });
});

describe("a vendor's errors", () => {
  const FORBIDDEN = "The caller does not have permission to execute the specified operation";
  const CASES: [vendor: string, status: number, body: object, expected: string][] = [
    [
      "openrouter",
      200,
      { error: { code: 429, message: "Rate limited" }, user_id: "u" },
      "model_overloaded",
    ],
    [
      "openrouter",
      200,
      {
        error: { code: 502, message: "Provider returned error", metadata: { provider_name: "x" } },
      },
      "upstream_error",
    ],
    [
      "openrouter",
      200,
      { error: { code: 402, message: "Insufficient credits" } },
      "model_unavailable",
    ],
    [
      "vllm",
      200,
      {
        error: {
          code: 400,
          message: "This model's maximum context length is 8 tokens",
          type: "BadRequestError",
          param: null,
        },
      },
      "context_length_exceeded",
    ],
    [
      "vllm",
      200,
      {
        object: "error",
        message: "engine is dead",
        type: "InternalServerError",
        param: null,
        code: 500,
      },
      "upstream_error",
    ],
    [
      "sglang",
      200,
      {
        object: "error",
        message: "The input (9 tokens) is longer than the model's context length (8 tokens).",
        type: "BadRequestError",
        param: null,
        code: 400,
      },
      "context_length_exceeded",
    ],
    ["zhipu", 200, { error: { code: "1234", message: "Network error" } }, "upstream_error"],
    ["xai", 200, { code: "internal", error: "Something broke" }, "upstream_error"],
    ["generic", 200, { error: "out of memory" }, "upstream_error"],
    [
      "groq",
      200,
      { error: { message: "no", type: "invalid_request_error", code: "context_length_exceeded" } },
      "context_length_exceeded",
    ],

    [
      "mistral",
      400,
      {
        object: "error",
        message: "Prompt contains 9 tokens, too large for model with 8 maximum context length",
        type: "invalid_request_error",
        param: null,
        code: "3051",
      },
      "context_length_exceeded",
    ],
    [
      "mistral",
      429,
      {
        object: "error",
        message: "Service tier capacity exceeded for this model.",
        type: "service_tier_capacity_exceeded",
        param: null,
        code: "3505",
      },
      "model_overloaded",
    ],
    [
      "mistral",
      422,
      {
        detail: [
          { type: "extra_forbidden", loc: ["body", "x"], msg: "Extra inputs are not permitted" },
        ],
      },
      "upstream_rejected",
    ],
    [
      "mistral",
      422,
      {
        object: "error",
        message: { detail: [{ loc: ["body"], msg: "no" }] },
        type: "invalid_request_error",
        param: null,
        code: null,
      },
      "upstream_rejected",
    ],
    ["mistral", 401, { message: "Unauthorized", request_id: "x" }, "model_unavailable"],
    [
      "zhipu",
      429,
      { error: { code: "1113", message: "\u4f59\u989d\u4e0d\u8db3" } },
      "model_unavailable",
    ],
    [
      "zhipu",
      429,
      {
        error: {
          code: "1113",
          message: "Insufficient balance or no resource package. Please recharge.",
        },
      },
      "model_unavailable",
    ],
    [
      "zhipu",
      429,
      { error: { code: "1302", message: "High concurrency usage of this API" } },
      "model_overloaded",
    ],
    [
      "zhipu",
      400,
      { error: { code: "1210", message: "API call parameter error" } },
      "upstream_rejected",
    ],
    [
      "xai",
      400,
      {
        code: "Client specified an invalid argument",
        error: "Argument not supported on this model: stop",
      },
      "upstream_rejected",
    ],
    ["xai", 400, { code: "context_length_exceeded", error: "no" }, "context_length_exceeded"],
    [
      "xai",
      400,
      {
        code: "Client specified an invalid argument",
        error:
          "Incorrect API key provided: sk-***. You can obtain an API key from https://console.x.ai.",
      },
      "model_unavailable",
    ],
    [
      "xai",
      403,
      { code: FORBIDDEN, error: "Your team doesn't have any credits yet." },
      "model_unavailable",
    ],
    [
      "deepseek",
      402,
      {
        error: {
          message: "Insufficient Balance",
          type: "unknown_error",
          param: null,
          code: "invalid_request_error",
        },
      },
      "model_unavailable",
    ],
    [
      "llama.cpp",
      400,
      {
        error: {
          code: 400,
          message: "the request exceeds the available context size",
          type: "exceed_context_size_error",
          n_prompt_tokens: 9,
          n_ctx: 8,
        },
      },
      "context_length_exceeded",
    ],
    [
      "llama.cpp",
      503,
      { error: { code: 503, message: "Loading model", type: "unavailable_error" } },
      "model_overloaded",
    ],
    [
      "openrouter",
      429,
      { error: { code: 429, message: "Rate limit exceeded" } },
      "model_overloaded",
    ],
    [
      "openai",
      429,
      {
        error: {
          code: "insufficient_quota",
          type: "insufficient_quota",
          message: "You exceeded your current quota",
        },
      },
      "model_unavailable",
    ],
    [
      "qwen",
      400,
      {
        error: {
          code: "data_inspection_failed",
          type: "data_inspection_failed",
          message: "Input data may contain inappropriate content.",
        },
      },
      "content_filter",
    ],

    [
      "xai",
      400,
      {
        code: "Client specified an invalid argument",
        error:
          "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
      },
      "context_length_exceeded",
    ],
    [
      "zhipu",
      400,
      { error: { code: "1261", message: "Prompt exceeds max length" } },
      "context_length_exceeded",
    ],
    [
      "zhipu",
      400,
      { error: { code: "1210", message: "tokens in request more than max tokens allowed" } },
      "context_length_exceeded",
    ],
    [
      "moonshot",
      400,
      {
        error: {
          message:
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
          type: "invalid_request_error",
        },
      },
      "context_length_exceeded",
    ],
    [
      "qwen",
      400,
      {
        error: {
          code: "invalid_parameter_error",
          message:
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
          param: null,
          type: "invalid_request_error",
        },
      },
      "context_length_exceeded",
    ],
    [
      "xai",
      403,
      {
        code: FORBIDDEN,
        error:
          "Content violates usage guidelines. Team: t, API key ID: k, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO",
      },
      "content_filter",
    ],
    [
      "openrouter",
      403,
      {
        error: {
          code: 403,
          message: "Your chosen model requires moderation and your input was flagged",
          metadata: { reasons: ["violence"], flagged_input: "x" },
        },
      },
      "content_filter",
    ],
  ];
  for (const [vendor, status, body, expected] of CASES)
    it(`${vendor}: ${status} ${JSON.stringify(body)} is ${expected}`.slice(0, 150), () => {
      const error =
        status === 200
          ? thrownBy(() => read(vendor, [body]))
          : compatibleDialect.refusal(status, { get: () => null }, body);
      assert.equal(error.code, expected);
    });

  it("openrouter: an error in a choice of a 200", () => {
    const choice = { index: 0, message: { content: "" }, finish_reason: "error" };
    const body = { choices: [{ ...choice, error: { code: 503, message: "overloaded" } }] };
    assert.equal(thrownBy(() => read("openrouter", [body])).code, "model_overloaded");
  });

  function thrownBy(work: () => unknown): ProviderError {
    try {
      work();
    } catch (error) {
      assert.ok(error instanceof ProviderError);
      return error;
    }
    assert.fail("nothing was thrown");
  }
});
