// POST /v1/messages and related paths over sockets: keys, errors, silence, books, what a provider
// of the same format gets and returns, fallback between formats, token counts, the list of models.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, KEY, merge, startGateway, user } from "../../../support/gateway.ts";
import { eventsIn, messageIn } from "../../../support/api-events.ts";
import {
  chunk,
  completion,
  held,
  silent,
  speak,
  startProvider,
  status,
  stream,
  type Behaviour,
  type Behaviours,
  type Provider,
} from "../../../support/provider.ts";
import { post } from "../post.ts";
import { waitFor } from "../../../support/wait.ts";

type Json = Record<string, any>;

const MESSAGES = "/v1/messages";
const REQUEST = { max_tokens: 100, messages: user("Hi") };
/** The headers of a Messages API client. */
const VERSION = { "anthropic-version": "2023-06-01", "x-api-key": KEY };

/** A gateway with models of an OpenAI-compatible provider and of an Anthropic provider. */
async function start(
  t: TestContext,
  { lab = {}, claude = {} }: { readonly lab?: Behaviours; readonly claude?: Behaviours },
  over: object = {},
) {
  const labProvider = await startProvider(t, lab);
  const anthropic = await startProvider(t, claude);
  const labModels = typeof lab === "function" ? ["m"] : Object.keys(lab);
  const claudeModels = typeof claude === "function" ? ["c"] : Object.keys(claude);
  const both = [...labModels, ...claudeModels];
  const base = {
    apis: ["messages"],
    providers: {
      claude: { vendor: "anthropic", base_url: anthropic.url, api_key: "sk-provider-secret" },
    },
    models: Object.fromEntries(claudeModels.map((name) => [name, { provider: "claude" }])),
    aliases: both.length > 0 ? { both: { models: both } } : {},
  };
  const config = configFor(labProvider.url, labModels, merge(base, over) as object);
  const gateway = await startGateway(t, config);
  const ask = (body: unknown, headers: Record<string, string> = {}, path = MESSAGES) => {
    const request = typeof body === "string" ? body : { ...REQUEST, ...(body as object) };
    return post(gateway.url + path, request, { authorization: "", "x-api-key": KEY, ...headers });
  };
  return { ...gateway, ask, lab: labProvider, claude: anthropic };
}

async function errorOf(response: Response) {
  const { type, error, request_id } = await json(response);
  assert.equal(type, "error");
  assert.equal(request_id, response.headers.get("x-request-id"));
  assert.equal(request_id, response.headers.get("request-id"));
  assert.deepEqual(Object.keys(error), ["type", "message"]);
  return [response.status, error.type, error.message];
}

const MESSAGE = {
  id: "msg_upstream",
  type: "message",
  role: "assistant",
  model: "claude-upstream",
};
const whole = (content: unknown[], more: object = {}) => ({
  ...MESSAGE,
  content,
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 20, output_tokens: 7 },
  ...more,
});

const FINE = status(200, whole([{ type: "text", text: "Fine." }]));
const said = (events: readonly Json[]): Behaviour => stream(events, "eof");
const started = {
  type: "message_start",
  message: whole([], { stop_reason: null, usage: { input_tokens: 20, output_tokens: 1 } }),
};
const endedBy = (delta: Json) => [
  { type: "message_delta", delta, usage: { output_tokens: 7 } },
  { type: "message_stop" },
];
const ended = endedBy({ stop_reason: "end_turn", stop_sequence: null });

it("a silent stream gets pings", async (t) => {
  const reply = held();
  const { ask } = await start(t, { lab: reply.behaviour }, { server: { keep_alive_ms: 5 } });
  const response = await ask({ model: "m", stream: true });
  let text = "";
  const reading = (async () => {
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) text += piece;
  })();
  await waitFor(() => text.split("event: ping").length > 4, "pings");
  reply.finish();
  await reading;
  assert.equal(messageIn(eventsIn(text))["content"][0].text, "Fine.");
});

describe("errors", () => {
  it("distinguish a request that is too large from a provider that is too slow", async (t) => {
    const bounds = { server: { max_body_bytes: 1_000 }, timeouts: { first_token_ms: 20 } };
    const { ask } = await start(t, { lab: silent }, bounds);
    for (const [body, expected] of [
      [{ system: "x".repeat(1_000) }, [413, "request_too_large"]],
      [{}, [503, "timeout_error"]],
    ] as const)
      assert.deepEqual((await errorOf(await ask({ model: "m", ...body }))).slice(0, 2), expected);
  });

  it("have Anthropic's format before a reply has begun", async (t) => {
    const full = { error: { message: "prompt is too long: 9 > 8", type: "invalid_request_error" } };
    const lab = { m: speak("Fine."), broken: status(500), busy: status(429) };
    const narrow = { account: "acme", key: "sk-n", models: ["m"] };
    const keys = [{ account: "acme", key: KEY }, narrow];
    const { url, ask } = await start(t, { lab, claude: { full: status(400, full) } }, { keys });
    const get = (path: string, key = KEY) =>
      fetch(url + path, { headers: { ...VERSION, "x-api-key": key } });
    const cases: [Response, number, string, RegExp][] = [
      [await fetch(url + MESSAGES, { method: "POST" }), 401, "authentication_error", /Bearer/],
      [await ask("{"), 400, "invalid_request_error", /not valid JSON/],
      [await ask({ model: "m", max_tokens: 0 }), 400, "invalid_request_error", /'max_tokens'/],
      [await ask({ model: "none" }), 404, "not_found_error", /"none" does not exist/],
      [await ask({ model: "busy" }, { "x-api-key": "sk-n" }), 403, "permission_error", /may not/],
      [await fetch(url + MESSAGES), 405, "invalid_request_error", /POST only/],
      [await ask({ model: "broken" }), 503, "api_error", /./],
      [await ask({ model: "busy" }), 503, "overloaded_error", /./],
      [await ask({ model: "full" }), 400, "invalid_request_error", /^prompt is too long: /],
      [await get("/v1/models/nope"), 404, "not_found_error", /"nope"/],
      [await get("/v1/models", "sk-wrong"), 401, "authentication_error", /./],
    ];
    for (const [response, code, type, words] of cases) {
      const [givenCode, givenType, message] = await errorOf(response);
      assert.deepEqual([givenCode, givenType], [code, type]);
      assert.match(message, words);
      // A client that retries a request that cannot succeed shows nothing meanwhile.
      const expected = code < 500 ? "false" : null;
      assert.equal(response.headers.get("x-should-retry"), expected);
    }
  });

  it("name the client's field that no model supports", async (t) => {
    const models = { m: { provider: "lab", supports: [], omit: ["stop"] } };
    const { ask } = await start(t, { lab: speak("Fine.") }, { models });
    const image = { type: "image", source: { type: "url", url: "https://x.example/i.png" } };
    const loop = [
      ...user("Hi"),
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: [image] }] },
    ];
    const format = { type: "json_schema", schema: { type: "object" } };
    const found = [{ role: "user", content: [{ type: "search_result" }] }];
    const cases: [body: Json, place: string, end?: string][] = [
      [{ system: "x", messages: [{ role: "user", content: [image] }] }, "messages[0].content"],
      [{ messages: loop }, "messages[2].content", ": could not process image."],
      [{ messages: found }, "messages[0].content[0]"],
      [{ stop_sequences: ["END"] }, "stop_sequences"],
      [{ output_config: { format } }, "output_config.format"],
      [{ output_format: format }, "output_format"],
    ];
    for (const [body, place, end = ""] of cases) {
      const [code, , message] = await errorOf(await ask({ model: "m", ...body }));
      assert.equal(code, 400);
      assert.ok(message.startsWith(`Invalid '${place}': `) && message.endsWith(end), message);
    }
  });

  it("are an event after a reply has begun", async (t) => {
    const { ask } = await start(t, { lab: stream([chunk({ content: "On" })], "cut") });
    const response = await ask({ model: "m", stream: true });
    const events = eventsIn(await response.text());
    const { type, error, request_id } = events.at(-1)!;
    assert.deepEqual([type, error.type], ["error", "api_error"]);
    assert.equal(request_id, response.headers.get("x-request-id"));
    assert.ok(events.some(({ delta }) => delta?.text === "On"));
  });
});

describe("a provider of the same format", () => {
  const blocks = [
    { type: "thinking", thinking: "Hm.", signature: "EqQB" },
    { type: "server_tool_use", id: "s", name: "web_search", input: { query: "x" } },
    { type: "web_search_tool_result", tool_use_id: "s", content: [] },
    { type: "text", text: "So.", citations: [{ url: "https://x.example/" }] },
    { type: "tool_use", id: "toolu_1", name: "f", input: {} },
  ];

  const began = (index: number, content_block: Json) => ({
    type: "content_block_start",
    index,
    content_block,
  });
  const grew = (index: number, delta: Json) => ({ type: "content_block_delta", index, delta });
  const pieces = [
    grew(0, { type: "thinking_delta", thinking: "H" }),
    grew(0, { type: "thinking_delta", thinking: "m." }),
    grew(0, { type: "signature_delta", signature: "EqQB" }),
    grew(1, { type: "input_json_delta", partial_json: '{"query"' }),
    grew(1, { type: "input_json_delta", partial_json: ':"x"}' }),
    grew(3, { type: "citations_delta", citation: { url: "https://x.example/" } }),
    grew(3, { type: "text_delta", text: "So." }),
  ];
  /** Each block as it begins, before its first delta. */
  const begun = [
    { type: "thinking", thinking: "", signature: "" },
    { ...blocks[1], input: {} },
    blocks[2]!,
    { type: "text", text: "" },
    blocks[4]!,
  ];
  const ending = { stop_reason: "stop_sequence", stop_sequence: "END" };
  /** The blocks as a stream, with some events that the gateway does not know. */
  const events = [
    started,
    { type: "ping" },
    { type: "event_of_tomorrow", x: 1 },
    ...begun.flatMap((content_block, index) => [
      began(index, content_block),
      ...pieces.filter((piece) => piece.index === index),
      { type: "content_block_stop", index },
    ]),
    ...endedBy(ending),
  ];

  it("gets the client's request, member for member", async (t) => {
    const [thought, search, found] = blocks;
    const cited = { type: "text", text: "So.", citations: [{ type: "char_location" }] };
    const ephemeral = { cache_control: { type: "ephemeral" } };
    const request = {
      model: "c",
      system: [{ type: "text", text: "x", cache_control: { type: "ephemeral", ttl: "1h" } }],
      messages: [
        { role: "user", content: [{ type: "text", text: "Hi", ...ephemeral }] },
        { role: "assistant", content: [thought, search, found, cited] },
        { role: "user", content: [{ type: "block_of_tomorrow", x: [1, 2] }] },
      ],
      // The provider judges fields that the gateway does not know, and invalid values.
      max_tokens: 0,
      tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 3 }],
      tool_choice: { type: "several", names: ["web_search"] },
      thinking: { type: "between_tools" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      field_of_tomorrow: { y: 1 },
      top_k: 5,
    };
    const passes = ["web_search", "block_of_tomorrow", "field_of_tomorrow", "x", "user_profiles"];
    const models = { c: { provider: "claude", passes } };
    const { ask, claude } = await start(t, { claude: FINE }, { models });
    const own = {
      "anthropic-beta": "context-management-2025-06-27,x",
      "anthropic-version": "2023-06-01",
      "anthropic-user-profile-id": "up_1",
    };
    const response = await ask(JSON.stringify(request), own);
    assert.equal(response.status, 200, await response.text());
    const { body, headers } = await claude.nth(0);
    assert.equal(JSON.stringify(body), JSON.stringify(request));
    for (const [name, value] of Object.entries(own)) assert.equal(headers[name], value);
    assert.equal(headers["x-api-key"], "sk-provider-secret");
  });

  it("does not get members that the operator has not listed, and the error says who can list them", async (t) => {
    const { ask, claude } = await start(t, { claude: FINE });
    const message =
      "Invalid 'speed': this gateway does not pass it on. Its operator can allow it: " +
      "'passes' with \"speed\" in the provider's settings.";
    for (const path of [MESSAGES, `${MESSAGES}/count_tokens`]) {
      const error = await errorOf(await ask({ model: "c", speed: "fast" }, {}, path));
      assert.deepEqual(error, [400, "invalid_request_error", message]);
    }
    assert.equal(claude.asked.length, 0);
    assert.equal((await ask({ model: "c", service_tier: "auto" })).status, 200);
    assert.equal("service_tier" in (await claude.nth(0)).body, false);
  });

  it("is skipped by an alias for a candidate that lists the member, whatever their sizes", async (t) => {
    const models = {
      c: { context_tokens: 1_000_000 },
      d: { context_tokens: 1_000, passes: ["web_search"] },
    };
    const { ask } = await start(t, { claude: { c: FINE, d: FINE } }, { models });
    const tools = [{ type: "web_search_20250305", name: "web_search" }];
    const messages = user("word ".repeat(5_000));
    const served = async (body: Json) => (await json(await ask({ model: "both", ...body }))).model;
    assert.equal(await served({}), "c");
    for (const body of [{ tools }, { tools, messages }]) assert.equal(await served(body), "d");
    const [code, , message] = await errorOf(await ask({ model: "both", speed: "fast" }));
    assert.deepEqual([code, message.startsWith("Invalid 'speed': ")], [400, true]);
  });

  it("returns error details on which SDKs act, and no others", async (t) => {
    const refusal = (code: number, details: object) =>
      status(code, { type: "error", error: { type: "x", message: "Secret words.", details } });
    const unsupported = { error_code: "thread_unsupported_request", unsupported: ["thinking"] };
    const image = { error_code: "image_dimensions_too_large", max_side_length_pixels: 8_000 };
    const claude = {
      large: refusal(400, { ...image, paths: ["messages.0.content.1", "secret"] }),
      lost: refusal(404, { error_code: "thread_not_found", org: "secret" }),
      mixed: refusal(400, { ...unsupported, unsupported: ["hipaa", "thinking"] }),
      poor: refusal(402, { error_code: "linked_organization_spend_limit_reached" }),
      held: refusal(400, { error_code: "organization_on_hold" }),
      strange: refusal(400, { error_code: "organization_of_tomorrow" }),
      blind: status(400, { message: "this model does not support image input" }),
    };
    const { ask } = await start(t, { claude }, { apis: ["messages", "responses"] });
    for (const [model, expected] of [
      ["large", [400, "invalid_request_error", { ...image, paths: ["messages.0.content.1"] }]],
      ["lost", [404, "not_found_error", { error_code: "thread_not_found" }]],
      ["mixed", [400, "invalid_request_error", unsupported]],
      ["poor", [503, "api_error", undefined]],
      ["held", [503, "api_error", undefined]],
      ["strange", [400, "invalid_request_error", undefined]],
      ["blind", [400, "invalid_request_error", undefined]],
    ] as const) {
      const response = await ask({ model });
      const text = await response.text();
      assert.doesNotMatch(text, /secret|hipaa|organization/i);
      const { error } = JSON.parse(text);
      assert.deepEqual([response.status, error.type, error.details], expected);
    }
    const other = await ask({ model: "lost", input: "Hi" }, {}, "/v1/responses");
    assert.deepEqual([other.status, (await json(other)).error.details], [400, undefined]);
  });

  it("returns error messages on which Claude Code acts, and no others", async (t) => {
    for (const [said, words = said] of [
      ["messages.0.content.1.image.source: exceeds 5 MB", "messages.0.content.1.image"],
      ["PDF found, expected tags: 'text', 'image'", "could not process pdf"],
      ["adaptive thinking is not supported"],
      ["does not support the effort parameter"],
      ["role 'system' is not supported"],
      ["Unexpected role system as an input message role", "Unexpected role: no input message role"],
      ["Input should be 'user' or 'assistant'"],
      ["Invalid `signature` in `thinking` block"],
      ["x.y: Extra inputs are not permitted"],
      ["Unexpected value(s) `a-1`, `b-2` for the `anthropic-beta` header"],
    ] as [said: string, words?: string][]) {
      const { ask } = await start(t, { claude: status(400, { message: `Acme: ${said} by Acme` }) });
      const [, , message] = await errorOf(await ask({ model: "c" }));
      assert.equal(message, `The model refused this request as invalid: ${words}.`);
    }
  });

  it("rejects threads, with the error details that SDKs expect", async (t) => {
    const { ask } = await start(t, { lab: speak("Fine."), claude: status(200, whole([])) });
    for (const model of ["m", "c"]) {
      const response = await ask({ model, thread: { type: "create" } });
      const { details } = (await json(response)).error;
      const expected = { error_code: "thread_unsupported_request" };
      assert.deepEqual([response.status, details], [400, expected]);
      const wrong = await json(await ask({ model, thread: "create" }));
      assert.equal("details" in wrong.error, false);
    }
  });

  it("gets its own model name, at most that model's max_tokens, and a thinking budget that fits", async (t) => {
    const cases: [max: number | undefined, limit: number, sent: object][] = [
      [undefined, 32_000, { type: "enabled", budget_tokens: 31_999 }],
      [8_192, 8_192, { type: "enabled", budget_tokens: 8_191 }],
      [1_025, 1_025, { type: "enabled", budget_tokens: 1_024 }],
      [1_024, 1_024, { type: "disabled" }],
    ];
    const models = cases.map(([max_output_tokens]) => [
      `c${max_output_tokens}`,
      { provider: "claude", upstream_model: "claude-x", max_output_tokens },
    ]);
    const over = { models: Object.fromEntries(models) };
    const { ask, claude } = await start(t, { claude: FINE }, over);
    const thinking = { type: "enabled", budget_tokens: 31_999 };
    for (const [index, [max, limit, sent]] of cases.entries()) {
      await (await ask({ model: `c${max}`, max_tokens: 32_000, thinking })).text();
      const { body } = await claude.nth(index);
      assert.deepEqual([body["model"], body["max_tokens"]], ["claude-x", limit]);
      assert.deepEqual(body["thinking"], sent);
    }
    // The provider judges a thinking budget that the client itself states wrongly.
    const wrong = { max_tokens: 2_000, thinking: { type: "enabled", budget_tokens: 2_000 } };
    await (await ask({ model: "c", ...wrong })).text();
    const { max_tokens, thinking: judged } = (await claude.nth(cases.length)).body;
    assert.deepEqual({ max_tokens, thinking: judged }, wrong);
  });

  it("passes its events and blocks on, including unknown ones", async (t) => {
    const { ask, accessOf } = await start(t, { claude: said(events) });
    const response = await ask({ model: "c", stream: true });
    const [first, ...rest] = eventsIn(await response.text());
    assert.deepEqual(rest, events.slice(1));
    assert.deepEqual(first!["message"], { ...started.message, model: "c" });
    const line = await accessOf(response.headers.get("x-request-id")!);
    assert.deepEqual([line["prompt_tokens"], line["completion_tokens"]], [20, 7]);
  });

  it("serves a client without streaming if it only streams", async (t) => {
    const models = { c: { stream_only: true } };
    const { ask } = await start(t, { claude: said(events) }, { models });
    const message = await json(await ask({ model: "c" }));
    assert.deepEqual(message, whole(blocks, { model: "c", ...ending }));
  });

  it("serves a streaming client if it only answers whole", async (t) => {
    const { ask } = await start(t, { claude: status(200, whole(blocks, ending)) });
    const response = await ask({ model: "c", stream: true });
    const { content, ...message } = messageIn(eventsIn(await response.text()));
    const shown = content.map(({ type, text, name }: Json) => [type, text ?? name]);
    assert.deepEqual(shown, [
      ["text", "So."],
      ["tool_use", "f"],
    ]);
    assert.deepEqual([message["model"], message["stop_reason"]], ["c", "tool_use"]);
  });

  it("cannot pass on anything but events", async (t) => {
    const forged = { type: 'x\ndata: {"type":"injected"}\n\nevent: y' };
    const events = [started, { index: 3 }, "a string", 7, forged, ...ended];
    const { ask } = await start(t, { claude: said(events as Json[]) });
    const response = await ask({ model: "c", stream: true });
    const types = eventsIn(await response.text()).map(({ type }) => type);
    assert.deepEqual(types, ["message_start", "message_delta", "message_stop"]);
  });

  it("does not reveal its own errors to clients", async (t) => {
    const flat = { type: "error", message: "SECRET host" };
    const { ask } = await start(t, { claude: said([...events.slice(0, 6), flat]) });
    const text = await (await ask({ model: "c", stream: true })).text();
    assert.doesNotMatch(text, /SECRET/);
    assert.equal(eventsIn(text).filter(({ type }) => type === "error").length, 1);
  });
});

const spoken = status(200, whole([{ type: "text", text: "Native." }]));

it("an alias over several formats falls back from one format to another", async (t) => {
  const tools = [{ name: "f", input_schema: { type: "object" } }];
  const broken = status(500, {});
  const toNative = await start(t, { lab: broken, claude: spoken });
  const native = await json(await toNative.ask({ model: "both", tools }));
  assert.deepEqual([native.model, native.content[0].text], ["c", "Native."]);
  assert.deepEqual((await toNative.claude.nth(0)).body["tools"], tools);

  const cut = said([started, { type: "ping" }]);
  const aliases = { both: { models: ["c", "m"] } };
  const toOther = await start(t, { lab: speak("Other."), claude: cut }, { aliases });
  const response = await toOther.ask({ model: "both", tools, stream: true });
  const message = messageIn(eventsIn(await response.text()));
  assert.deepEqual([message["model"], message["content"][0].text], ["m", "Other."]);
  const { body } = await toOther.lab.nth(0);
  assert.deepEqual([body["tools"][0].function.name, body["tool_choice"]], ["f", "auto"]);
});

/** A gateway with models of a Gemini provider. */
async function startGemini(t: TestContext, answer: object, lab: Behaviours = {}) {
  const gemini = await startProvider(t, status(200, answer));
  const google = { vendor: "gemini", base_url: gemini.url, api_key: "k" };
  const modelOf = (upstream_model: string) => ({ provider: "google", upstream_model });
  const models = { g: modelOf("gemini-x"), full: modelOf("models/gemini-x") };
  return { ...(await start(t, { lab }, { providers: { google }, models })), gemini };
}

it("a model gets Gemini's signatures back, and thoughts that the client does not see", async (t) => {
  const functionCall = { id: "8f2b1a3c", name: "f", args: { a: 1 } };
  const content = { role: "model", parts: [{ functionCall, thoughtSignature: "c2ln" }] };
  const answer = { candidates: [{ content, finishReason: "STOP" }] };
  const tool_calls = [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }];
  const said = { content: null, reasoning_content: "Hm.", tool_calls };
  const scene = await startGemini(t, answer, status(200, completion(said)));
  const repeated = async (model: string, provider: Provider) => {
    const asked = { model, thinking: { type: "adaptive", display: "omitted" } };
    const { content } = await json(await scene.ask(asked));
    const result = { type: "tool_result", tool_use_id: content.at(-1).id, content: "x" };
    const turns = [
      { role: "assistant", content },
      { role: "user", content: [result] },
    ];
    await scene.ask({ ...asked, messages: [...REQUEST.messages, ...turns] });
    return (await provider.nth(1)).body;
  };
  const { contents } = await repeated("g", scene.gemini);
  assert.equal(contents[1].parts[0].thoughtSignature, "c2ln");
  const { messages } = await repeated("m", scene.lab);
  assert.equal(messages[1].reasoning_content, "Hm.");
});

describe("POST /v1/messages/count_tokens", () => {
  const COUNT = "/v1/messages/count_tokens";

  it("returns the count of the provider that would serve, and its note on removed content", async (t) => {
    const answer = { input_tokens: 42, context_management: { original_input_tokens: 50 } };
    const behaviour = status(200, answer);
    const keys = { api_key: null, api_keys: [{ key: "sk-of-many" }], query: { version: "2" } };
    const over = { providers: { claude: keys }, models: { d: { passes: ["web_search"] } } };
    const { ask, claude } = await start(t, { claude: { c: behaviour, d: behaviour } }, over);
    const ofReply = { stream: true, temperature: 0.5, top_k: 3, stop_sequences: ["END"] };
    const ofPrompt = { system: "x", tools: [{ type: "web_search_20250305", name: "web_search" }] };
    const body = { model: "both", metadata: { user_id: "u" }, ...ofPrompt, ...ofReply };
    assert.deepEqual(await json(await ask(body, {}, COUNT)), answer);
    const { path, body: sent, headers } = await claude.nth(0);
    assert.equal(path, `${COUNT}?version=2`);
    assert.deepEqual(sent, { model: "d", messages: REQUEST.messages, ...ofPrompt });
    assert.equal(headers["x-api-key"], "sk-of-many");
    assert.match(String(headers["user-agent"]), /^chat-gateway\/\d+\.\d+\.\d+$/);
  });

  it("returns Gemini's count of the translated request", async (t) => {
    const { ask, gemini } = await startGemini(t, { totalTokens: 43 });
    for (const [index, model] of ["g", "full"].entries()) {
      assert.deepEqual(await json(await ask({ model }, {}, COUNT)), { input_tokens: 43 });
      const { path, body } = await gemini.nth(index);
      assert.equal(path, "/v1beta/models/gemini-x:countTokens");
      const { model: counted, contents } = body["generateContentRequest"];
      const expected = [{ role: "user", parts: [{ text: "Hi" }] }];
      assert.deepEqual([counted, contents], ["models/gemini-x", expected]);
    }
  });

  it("returns an estimate, marked as such, for other providers and after first_token_ms", async (t) => {
    const odd = status(200, { input_tokens: "many" });
    const long = status(200, { input_tokens: 42, padding: "x".repeat(1_000_000) });
    const claude = { down: status(500), odd, long, slow: silent };
    const providers = { claude: { timeouts: { first_token_ms: 20 } } };
    const { ask, lab } = await start(t, { lab: speak("Fine."), claude }, { providers });
    const expected = { input_tokens: 1, estimated: true };
    for (const model of ["m", ...Object.keys(claude)])
      assert.deepEqual(await json(await ask({ model }, {}, COUNT)), expected);
    assert.equal(lab.asked.length, 0);
  });

  it("estimates content that only a provider of the format reads", async (t) => {
    const { ask } = await start(t, { claude: status(500) });
    const found = { type: "search_result", content: [{ type: "text", text: "x".repeat(8_000) }] };
    const body = { model: "c", messages: [{ role: "user", content: [found] }] };
    const { input_tokens } = await json(await ask(body, {}, COUNT));
    assert.equal(input_tokens, Math.ceil(JSON.stringify(found).length / 4));
  });

  it("is rejected like a request for a reply", async (t) => {
    const accounts = { acme: { rpm: 2, max_in_flight: 1 } };
    const { ask } = await start(t, { lab: speak("Fine.") }, { accounts });
    const cases: [body: Json, code: number, type: string, headers?: Record<string, string>][] = [
      [{}, 401, "authentication_error", { "x-api-key": "sk-wrong" }],
      [{ model: "none" }, 404, "not_found_error"],
      [{ messages: [] }, 400, "invalid_request_error"],
      [{}, 429, "rate_limit_error"],
    ];
    for (const [body, code, type, headers] of cases) {
      const error = await errorOf(await ask({ model: "m", ...body }, headers, COUNT));
      assert.deepEqual(error.slice(0, 2), [code, type]);
    }
  });
});

it("GET /v1/models has Anthropic's format in one page, and the usual one for other clients", async (t) => {
  const { url } = await start(t, { lab: { a: speak(""), b: speak("") } });
  const get = async (query: string, headers: Record<string, string> = VERSION) => {
    const answer = await fetch(`${url}/v1/models${query}`, { headers });
    const ids = ["x-request-id", "request-id"].map((name) => answer.headers.get(name));
    return { body: await json(answer), ids };
  };
  const list = async (query: string) => (await get(query)).body;
  const { data, ...page } = await list("");
  const ids = data.map(({ id }: Json) => id);
  assert.deepEqual(ids, ["a", "b", "both"]);
  assert.deepEqual(page, { has_more: false, first_id: "a", last_id: "both" });
  const { type, display_name, max_tokens, created_at } = data[0];
  assert.deepEqual([type, display_name, max_tokens], ["model", "a", null]);
  assert.ok(!Number.isNaN(Date.parse(created_at)));
  assert.deepEqual(await list("?limit=2"), { data, ...page });
  assert.deepEqual(await list("/b"), data[1]);
  // The request id in the header that Anthropic's clients read.
  const [id, own] = (await get("")).ids;
  assert.equal(own, id);
  const others = await get("", { authorization: `Bearer ${KEY}` });
  assert.deepEqual([others.body.object, others.ids[1]], ["list", null]);
  assert.equal((await get("", { "x-api-key": KEY })).body.error.code, "missing_api_key");
});
