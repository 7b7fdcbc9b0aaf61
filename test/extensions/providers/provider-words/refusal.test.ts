// The meaning of a provider's error: the rules, errors inside a 200, and the time until a retry.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import {
  refusal,
  throwErrorIn,
} from "../../../../src/extensions/providers/provider-words/index.ts";
import { durationMs } from "../../../../src/extensions/providers/provider-words/wait-times.ts";
import { thrownBy } from "../../../support/wait.ts";

const NO_HEADERS = { get: () => null };
const forbidden = (error: string) => ({ code: "The caller does not have permission", error });

type Refused = [status: number, error: string | object];
const BLAMES: Partial<Record<ProviderError["code"], ProviderError["blame"]>> = {
  model_unavailable: "operator",
  model_overloaded: "provider",
  upstream_error: "provider",
};
const coded = (code: string, message: string) => ({ error: { code, message } });
/** By meaning. A string is the message of an error, anything else is the body. */
const CASES: Readonly<Record<string, Refused[]>> = {
  "context_length_exceeded, not counted by the breaker": [
    [400, "Input Tokens Exceeded: x"],
    [400, "The input is longer than the model's context length."],
    [400, "tokens in request more than max tokens allowed"],
    [400, "the request exceeds the available context size. try increasing"],
    [400, "length of prompt_tokens (9) must be less than max_seq_len (8)."],
    [400, "Input length 9 exceeds the maximum length 8. Request id: x"],
    [400, "Input length (9 tokens) exceeds the maximum allowed length (8 tokens). Use a shorter"],
    [400, "Prompt has 9 tokens, but the configured context size is 8 tokens"],
    [400, "The engine prompt length 9 exceeds the max_model_len 8. Please reduce prompt."],
    [400, "Range of input length should be [1, 983616]"],
    [400, "Failed to start sampling: [input_too_large] Current message (9 tokens) exceeds budget"],
    [400, "The sum of prompt length (9.0), query length (0) should not exceed max_num_tokens (8)"],
    [400, "prompt tokens (9) exceed model maximum (8) for openai.gpt-5.6"],
    [400, "too many total text bytes: 9043213 > 9000000"],
    [400, "total message size 2306631 exceeds limit 2097152"],
    [400, "Your request exceeded model token limit: 262144"],
    [400, "This model's maximum prompt length is 8 tokens."],
    [400, coded("1261", "Prompt 超长")],
    [400, { error: { code: 400, message: "no", type: "exceed_context_size_error" } }],
    [424, { error: { message: "no", originalMessage: "Input is too long for requested model." } }],
    [400, { code: "context_length_exceeded", error: "no" }],
    [400, { object: "error", message: "too large for model with 8 maximum context length" }],
    [400, { error: "prompt is too long" }],
    [400, [{ error: { message: "prompt is too long" } }]],
    [400, { detail: [{ msg: "prompt is too long" }] }],
    [413, { errors: [{ message: "exceeded this model context window limit" }], success: false }],
    [413, coded("tokens_limit_reached", "Request body too large")],
    [400, "Total tokens of image and text exceed max message tokens."],
    [400, { message: "max tokens of 200000 exceeded", request_id: "x" }],
    [400, { errors: [{ message: "input tokens 9 cannot exceed the total tokens limit 8" }] }],
    [422, { error: "Input validation error: `inputs` must have less than 8 tokens. Given: 9" }],
  ],
  "content_filter, not counted by the breaker": [
    [403, "Content policy"],
    [451, { error: { metadata: { raw: '{"error":{"type":"censorship_blocked"}}' } } }],
    [403, "Your chosen model requires moderation"],
    [403, "Request blocked: prompt injection patterns detected"],
    [403, { error: { code: 403, metadata: { error_type: "content_policy_violation" } } }],
    [400, coded("cyber_policy", "flagged for potentially high-risk cyber activity")],
    [400, coded("bio_policy", "no")],
    [400, coded("misalignment_policy_violation", "no")],
    [403, forbidden("Content violates usage guidelines. Team: t")],
    [400, "Content Exists Risk"],
    [400, coded("invalid_prompt", "Invalid prompt: we've limited access to this content for")],
    [400, coded("data_inspection_failed", "no")],
    [400, coded("1301", "potentially unsafe content")],
    [400, coded("InputTextSensitiveContentDetected", "no")],
  ],
  "upstream_rejected, not counted by the breaker": [
    [
      400,
      "This model doesn't support the stopSequences field. Remove stopSequences and try again.",
    ],
    [400, "Invalid schema for function 'set_context_length': no"],
    [400, "Invalid schema for function 'cyber_policy': no"],
    [400, "My text says API key not valid."],
    [400, "It says Model Not Exist"],
    [
      400,
      "Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #/properties/a: cannot resolve $ref",
    ],
    [400, 'Unexpected text:\ndata: {"code":"Arrearage"}'],
    [400, "'safety_identifier' is unknown; names are case-sensitive"],
    [400, coded("1210", "API call parameter error")],
    [431, "<html>Request Header Fields Too Large</html>"],
    [422, { object: "error", message: { detail: [{ msg: "no" }] }, code: "1" }],
    [404, "No such File object: x"],
    [403, "You do not have permission to access the File abc or it may not exist."],
    [403, "a@b does not have storage.objects.get access to the Google Cloud Storage object."],
  ],
  "model_unavailable, counted by the breaker": [
    [400, "API key not valid."],
    [400, "Incorrect API key provided: sk-***."],
    [400, { error: { message: "No connected db.", type: "no_db_connection", code: "400" } }],
    [400, "/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to"],
    [400, "Model Not Exist"],
    [400, "The supported API model names are deepseek-flash, but you passed deepseek-chat."],
    [400, { code: 20012, message: "Model does not exist. Please check it carefully.", data: null }],
    [400, "Organization Policy constraint constraints/vertexai.allowedModels violated for `p`"],
    [400, "The model returned the following errors: You have not filled out the required use-case"],
    [400, "x/y is not a valid model ID"],
    [400, { error: { code: "model_decommissioned" } }],
    [400, coded("model_not_available", "Unable to access non-serverless")],
    [400, "Project `1` is not allowed to use Publisher Model `projects/p/models/claude-x`"],
    [400, { code: "invalid-argument", error: "Model not found: grok-2-latest" }],
    [400, "invalid params, unknown model 'x' (2013)"],
    [400, coded("model_terms_required", "Please accept the terms")],
    [400, { message: "Access to Anthropic models is not allowed from unsupported countries" }],
    [400, { message: "Access to this model is not available for channel program accounts." }],
    [400, coded("model_not_supported", "not by any provider you enabled")],
    [400, coded("unknown_model", "Unknown model: x")],
    [400, coded("unavailable_model", "Unavailable model: x")],
    [400, coded("unsupported_api_for_model", "not accessible via the /chat/completions endpoint")],
    [400, "Model id : org/model , has no provider supported"],
    [400, "Model org/model does not exist"],
    [400, "model 'qwen3' not found"],
    [400, "model `xai.grok-4.3` isn't supported on this route"],
    [400, "The model 'openai.gpt-5.5' does not support the '/v1/chat/completions' API"],
    [400, { error: { code: "400", message: "Param Incorrect", param: "Not supported model x" } }],
    [400, coded("OperationNotSupported", "The chatCompletion operation")],
    [400, "Publisher Model `projects/p/models/claude-x` is not servable in region us-west1."],
    [400, { object: "error", message: "Invalid model: x", type: "invalid_model", code: "1500" }],
    [400, { errors: [{ message: "No such model @cf/x or task", code: 5007 }] }],
    [400, "Your organization must be verified to stream this model."],
    [400, { error: { code: "Arrearage" } }],
    [403, "Your resource has been temporarily blocked: it may violate our content policy."],
    [418, "x"],
    [429, coded("insufficient_quota", "You exceeded your quota")],
    [429, coded("billing_not_active", "Your account is not active, please check your billing")],
    [429, coded("1113", "余额不足")],
    [429, coded("SetLimitExceeded", "the model service has been paused")],
    [429, "Insufficient balance or no resource package."],
    [429, { error: { type: "exceeded_current_quota_error", message: "suspended" } }],
    [429, { code: "x", error: "Your team t has either used all available credits or" }],
    [429, "Your prepayment credits are depleted. Please go to AI Studio."],
    [429, "Your project has exceeded its monthly spending cap. Please go to AI Studio."],
    [429, "you (x) have reached your session usage limit, upgrade for higher limits: https://x"],
    [429, { error: { message: "x", type: "budget_exceeded", code: "429" } }],
    [429, { errors: [{ message: "AiError: you have used up your daily free allocation" }] }],
    [429, coded("QuotaExceeded", "Your account [1] has exhausted its free trial quota")],
  ],
  "model_unavailable, not counted by the breaker": [
    [402, "You need fewer max_tokens"],
    [402, { error: { code: 402, metadata: { reason: "weight_exceeds_budget" } } }],
    [403, " <!DOCTYPE html><p>No"],
    [404, "No endpoints found that support tool use."],
    [400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
    [400, 'tool_choice="required" requires --tool-call-parser to be set'],
    [400, 'tool_choice=function "get_weather" requires --tool-call-parser to be set'],
    [400, "This model only supports single tool-calls at once!"],
    [400, "registry.ollama.ai/library/gemma3:4b does not support tools"],
    [400, "org/model is not a multimodal model"],
    [400, "Model only supports text input; received unsupported content type 'image_url'."],
    [400, "Unsupported chat content part type: 'file'. Supported types: audio_embeds, audio_url"],
    [400, "This model doesn't support tool use."],
    [400, "This model does not support image inputs"],
    [
      400,
      "Organization Policy constraint constraints/vertexai.allowedPartnerModelFeatures violated",
    ],
    [400, "output_config.format: Extra inputs are not permitted"],
    [400, "The model returned the following errors: tools.0.custom.strict: Extra inputs are not"],
    [400, "Model do not support image input."],
    [500, "tools param requires --jinja flag"],
    [500, "image input is not supported - hint: x"],
    [500, "no user query found in messages"],
    [400, "Cannot have 2 or more assistant messages at the end of the list."],
    [400, "logprobs is not supported with tools + stream"],
    [400, "tool_choice 'required' or a named tool cannot be combined with response_format, regex"],
    [500, "\n------------\nWhile executing CallExpression at line 79, column 24 in source:\n..."],
    [
      400,
      "Unable to generate parser for this template. Automatic parser generation failed: \n------------\nWhile executing CallExpression at line 1, column 226 in source:",
    ],
    [400, "Requests ending with a model turn are not supported unless the last part is a"],
    [400, "This model does not support assistant message prefill. The conversation must end"],
    [400, "Assistant response prefill is incompatible with enable_thinking."],
    [400, "Reasoning is mandatory for this endpoint and cannot be disabled."],
    [400, coded("1210", "This model always engages in thinking and cannot be disabled; please")],
    [400, "Function tools with reasoning_effort are not supported for gpt-5.6-sol in /v1/chat"],
    [400, "Thinking level MINIMAL is not supported for this model. Please retry"],
    [400, "Thinking budget is not supported for this model."],
    [400, "chat_template is not supported for Mistral tokenizers."],
    [
      400,
      [{ error: { message: "Unable to submit request because thinking_level MEDIUM is not" } }],
    ],
    [400, "Unable to submit request because Thinking can't be disabled for this model."],
    [400, "Budget 0 is invalid. This model only works in thinking mode."],
    [400, "The model does not support setting thinking_budget to 0."],
    [
      400,
      { code: "invalid-argument", error: "Model x does not support parameter reasoningEffort." },
    ],
    [400, "Unsupported value: 'reasoning_effort' does not support 'none' with this model."],
    [400, "Unsupported value: 'none' is not supported with the 'gpt-6.1-sol' model. Supported"],
    [400, "prompt_cache_retention is not supported on this model"],
    [400, "This model is compatible only with 24h extended prompt caching"],
    [400, "`reasoning_effort` must be one of `none` or `default`"],
    [
      500,
      "Unexpected reasoning effort high. Supported types are xhigh (default), medium, and low.",
    ],
    [400, "`reasoning_effort` is not supported with this model"],
    [400, "Unsupported parameter: 'reasoning_effort' is not supported with this model."],
    [400, "reasoning_effort='medium' is not supported for this model. Must be one of (<R"],
    [400, "Reasoning prompt mode is not enabled for this model"],
    [400, 'think value "medium" is not supported for this model'],
    [400, "Unsupported thinking type for the current model: disabled Request id: 02"],
    [400, '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive"'],
    [400, "Function calling is not enabled for models/gemma-3-27b-it"],
    [400, "Developer instruction is not enabled for models/gemma-3-27b-it"],
  ],
  "model_overloaded, not counted by the breaker": [
    [429, "Request too large"],
    [413, coded("rate_limit_exceeded", "Request too large")],
  ],
  "model_overloaded, counted by the breaker": [
    [402, { error: { code: 402, metadata: { reason: "in_flight_budget_exhausted" } } }],
    [409, "x"],
    [429, "Visit /account/billing"],
    [429, coded("insufficient_quota", "See https://x/model-studio/error-code#token-limit")],
    [498, coded("capacity_exceeded", "flex tier capacity exceeded")],
    [503, "Loading model"],
    [529, "x"],
  ],
  "upstream_error, not counted by the breaker": [
    [400, { error: { code: "tool_use_failed" } }],
    [500, "Failed to generate JSON"],
    [500, "The model produced invalid content."],
    [500, "The model produced output that does not match the expected peg-native format"],
    [500, 'got exception: Unexpected empty grammar stack after accepting piece: {"name (4913)'],
    [500, "Invalid diff: now finding less tool calls!"],
    [500, "error parsing tool call: raw='{'"],
    [500, "Failed to parse input at pos 13: <tool_use>"],
    [500, "failed to parse XML: XML syntax error on line 1: element <tool_call> closed by"],
    [500, "expected element type <function> but have <parameter>"],
    [500, "Context size has been exceeded."],
    [400, "Failed to initialize samplers: failed to parse grammar"],
    [
      500,
      'Engine protocol predict request returned 400: {"error":{"code":400,"message":"Failed to initialize samplers: failed to parse grammar","type":"invalid_request_error"}}',
    ],
    [424, "x"],
  ],
  "upstream_error, counted by the breaker": [
    [500, "x"],
    [301, "x"],
    [400, { status: 400, detail: "Function id '1': DEGRADED function cannot be invoked" }],
    [400, 'Failed to load model "gpt-oss-20b". Error: Error loading model.'],
    [400, "model is not loaded"],
    [400, "No models loaded. Please load a model in the developer page"],
  ],
};

describe("an answer other than 200", () => {
  for (const [meaning, answers] of Object.entries(CASES))
    for (const [status, error] of answers)
      it(`${status} with ${JSON.stringify(error)} is ${meaning}`, () => {
        const forms = typeof error === "string" ? [{ error: { message: error } }, error] : [error];
        for (const body of forms) {
          const { code, blame, countsForBreaker, detail } = refusal(status, NO_HEADERS, body);
          assert.equal(`${code}, ${countsForBreaker ? "" : "not "}counted by the breaker`, meaning);
          assert.deepEqual([blame, detail.status], [BLAMES[code] ?? "client", status]);
        }
      });

  for (const [status, error] of [
    [401, {}],
    [402, { message: "Insufficient Balance" }],
    [403, {}],
    [400, { status: "API_KEY_INVALID" }],
    [400, { message: "Gemini API free tier is not available in your country. Please enable" }],
    [400, { message: "You have reached your specified API usage limits. You will" }],
    [400, { message: "You have reached your specified workspace API usage limits. You will" }],
    [400, { code: "blocked_api_access", message: "API access is blocked" }],
    [400, { code: "spend_limit_reached", message: "x" }],
    [400, { message: "Budget has been exceeded!", type: "budget_exceeded", code: "400" }],
    [429, { code: "project_spend_limit_exceeded", message: "x" }],
    [429, { code: "credit_balance_exhausted", message: "x" }],
    [429, { type: "rate_limit_error", details: { error_code: "enforced_spend_limit_reached" } }],
    [400, { message: "This organization has been disabled." }],
    [400, { code: "organization_restricted", message: "Organization has been restricted." }],
    [400, { type: "invalid_request_error", details: { error_code: "organization_on_hold" } }],
    [400, { type: "invalid_request_error", details: { error_code: "cmek_key_disabled" } }],
    [400, { message: "Operation not allowed" }],
    [400, { message: "Your account is not authorized to invoke this API operation." }],
    [412, { code: "PRECONDITION_FAILED", message: "Account x is suspended, possibly due to" }],
  ] as const)
    it(`${status} with ${JSON.stringify(error)} rejects the key, so another one may be tried`, () =>
      assert.equal(refusal(status, NO_HEADERS, { error }).detail.operator, "key"));

  it("may come as an event, as Alibaba's to a request for a stream", () => {
    const event =
      'id:1\nevent:error\n:HTTP_STATUS/400\ndata:{"code":"Arrearage","message":"x"}\n\n';
    assert.equal(refusal(400, NO_HEADERS, event).detail.operator, "key");
  });

  it("keeps the provider's message in the detail only", () => {
    const { message, detail } = refusal(500, NO_HEADERS, { error: { message: "sk-secret" } });
    assert.equal(detail.providerMessage, "sk-secret");
    assert.ok(!message.includes("sk-secret"));
  });

  it("has a note in the place of a compressed message, unless the transport decompressed it", () => {
    const headers = { get: (name: string) => (name === "content-encoding" ? "gzip" : null) };
    const json = JSON.stringify({ error: { message: "no such key" } });
    const { detail } = refusal(401, headers, gzipSync(json).toString());
    const note = "a text that is compressed (gzip) although identity was asked for";
    assert.deepEqual([detail.providerMessage, detail.operator], [note, "key"]);
    const plain = refusal(401, headers, JSON.parse(json));
    assert.equal(plain.detail.providerMessage, "no such key");
  });
});

describe("the wait before a retry", () => {
  const NOW = Date.parse("2026-01-01T00:00:00Z");
  const DELAYED = { error: { details: [{ "@type": "x" }, { retryDelay: "17s" }] } };
  const CASES: [headers: Record<string, string>, ms: number | undefined, body?: object][] = [
    [{}, undefined],
    [{ "retry-after": "17" }, 17_000],
    [{ "retry-after": " 0.5 " }, 500],
    [{ "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" }, 30_000],
    [{ "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" }, 0],
    [{ "retry-after": "-5" }, undefined],
    [{}, 17_000, DELAYED],
    [{}, 29_000, { error: { metadata: { retry_after_seconds: 29 } } }],
    [{ "retry-after": "3" }, 3_000, DELAYED],
    [{ "retry-after-ms": "120", "retry-after": "1" }, 120],
    [{ "retry-after-ms": "soon" }, undefined],
    [{ "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s" }, 360_000],
    [{ "x-ratelimit-remaining-requests": "0" }, undefined],
    [{ "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1.5s" }, 1_500],
    [{ "x-ratelimit-remaining-tokens": "7", "x-ratelimit-reset-tokens": "1h" }, undefined],
    [
      {
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:20Z",
      },
      20_000,
    ],
  ];
  for (const [headers, ms, body = {}] of CASES)
    it(`is ${ms} ms by ${JSON.stringify(headers)} and ${JSON.stringify(body)}`, () => {
      const { detail } = refusal(429, { get: (name) => headers[name] ?? null }, body, NOW);
      assert.equal(detail.retryAfterMs, ms);
    });

  it("may be a duration in any common format", () => {
    for (const [text, ms] of [
      ["20ms", 20],
      ["1h2m3s", 3_723_000],
      ["7.66s", 7_660],
      ["3", 3_000],
    ] as const)
      assert.equal(durationMs(text), ms, text);
    for (const text of ["", "s", "1d", "1s2", "-1s", "1767225600", "1767225600000"])
      assert.ok(Number.isNaN(durationMs(text)), text);
  });
});

describe("an error inside a 200", () => {
  const errorIn = (json: unknown) => thrownBy(ProviderError, () => throwErrorIn(json));
  const choices = [{ message: { content: "Hi." } }];

  for (const json of [
    null,
    { error: "" },
    { error: {}, choices },
    { error: { code: 0, message: "" }, choices },
    { object: "chat.completion" },
    { code: 0, message: "ok" },
    { code: 200, message: "ok" },
    { code: null, message: "ok" },
    { code: 503, message: "" },
    { code: 503, message: "busy", choices },
    { base_resp: { status_code: 0, status_msg: "" } },
  ])
    it(`is not found in ${JSON.stringify(json)}`, () => throwErrorIn(json));

  for (const [json, status] of [
    [{ error: { code: 429 } }, 429],
    [{ error: {} }, 500],
    [{ error: { code: 429 }, choices }, 429],
    [{ choices: [{ finish_reason: "stop" }], x_groq: { error: "over capacity" } }, 500],
    [{ error: { code: "502" } }, 502],
    [{ error: { code: "RESOURCE", status: "503" } }, 503],
    [{ error: { type: "overloaded_error" } }, 529],
    [{ error: { type: "rate_limit_error" } }, 429],
    [{ code: "Throttling.AllocationQuota", message: "Allocated quota exceeded" }, 429],
    [{ error: { status: "RESOURCE_EXHAUSTED", message: "no" } }, 429],
    [{ error: { status: "UNAUTHENTICATED", message: "no" } }, 401],
    [{ error: { status: "INVALID_ARGUMENT", message: "no" } }, 400],
    [{ error: { type: "authentication_error" } }, 401],
    [{ error: { type: "permission_error" } }, 401],
    [{ error: { type: "billing_error" } }, 401],
    [{ error: { type: "not_found_error" } }, 404],
    [{ error: { type: "request_too_large" } }, 413],
    [{ error: { type: "invalid_request_error" } }, 400],
    [{ error: { code: "context_length_exceeded", message: "no" } }, 400],
    [{ error: { message: "Prompt is too long" } }, 400],
    [{ error: { code: "bio_policy", message: "no" } }, 400],
    [{ error: { code: "misalignment_policy_violation", message: "no" } }, 400],
    [{ error: { code: "invalid_prompt", message: "no" } }, 400],
    [{ error: { code: "invalid_image", message: "no" } }, 400],
    [{ error: { code: "image_file_not_found", message: "no" } }, 400],
    [{ error: { code: "unsupported_image_media_type", message: "no" } }, 400],
    [{ error: { code: "slow_down", message: "no" } }, 529],
    [{ error: { message: "Incorrect API key" } }, 500],
    [[{ error: { code: 400 } }], 400],
    [{ object: "error", code: 404 }, 404],
    [{ error: { message: "no", http_code: "400" } }, 400],
    [{ error: { code: "1113", message: "in arrears" } }, 429],
    [{ error: { code: "1234", message: "Network error" } }, 500],
    [{ error: { code: "1301", message: "potentially unsafe content" } }, 400],
    [{ error: { code: "1302", message: "High concurrency" } }, 429],
    [{ error: { code: "1305", message: "busy" } }, 529],
    [{ message: "busy", code: 503 }, 503],
    [{ message: "busy", code: "overloaded" }, 529],
    [{ code: "internal", error: "Something broke" }, 500],
  ] as const)
    it(`${JSON.stringify(json)} stands for status ${status}`, () =>
      assert.equal(errorIn(json).detail.status, status));

  for (const [status_code, status_msg, status, code] of [
    [1000, "unknown error", 500, "upstream_error"],
    [1002, "rate limit", 429, "model_overloaded"],
    [1004, "not authorized", 401, "model_unavailable"],
    [1008, "insufficient balance", 402, "model_unavailable"],
    [1026, "input new_sensitive", 400, "content_filter"],
    [1027, "output new_sensitive", 400, "content_filter"],
    [1039, "token limit", 429, "model_overloaded"],
    [2013, "invalid params", 400, "upstream_rejected"],
    [2013, "invalid params, unknown model 'x'", 400, "model_unavailable"],
    [2013, "context window exceeds limit", 400, "context_length_exceeded"],
    [2049, "invalid api key", 401, "model_unavailable"],
    ["1008", "insufficient balance", 402, "model_unavailable"],
  ] as const)
    it(`in MiniMax's base_resp with ${status_code} (${status_msg}) is ${code}`, () => {
      const read = errorIn({ choices: null, base_resp: { status_code, status_msg } });
      assert.deepEqual([read.code, read.detail.status], [code, status]);
      assert.equal(read.detail.providerMessage, status_msg);
    });
});
