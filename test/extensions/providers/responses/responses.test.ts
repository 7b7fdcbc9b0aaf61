// The Responses API of a provider: the request for a conversation, the reading of replies, and the
// reasoning that goes back with its calls.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { createResponsesDialect } from "../../../../src/extensions/providers/responses/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { checkConfig } from "../../../support/config.ts";
import { configFor, json, readStream, startGateway, user } from "../../../support/gateway.ts";
import {
  type Behaviour,
  inTurn,
  startProvider,
  status,
  stream,
} from "../../../support/provider.ts";
import type { Scope } from "../../../support/scope.ts";
import { issueLines } from "../../../support/token-service.ts";
import {
  askedBy,
  calledOf,
  calling,
  callOf,
  errorOf,
  replyTo,
  resultOf,
  targetOf,
} from "../dialect-bench.ts";

const ROW = { vendor: "openai", dialect: "responses" };
const THINKER = targetOf(ROW, { reasoning: true });
const thinkingBy = (thinking: string) => targetOf({ ...ROW, thinking }, { reasoning: true });
const PLAIN = targetOf(ROW, { upstream_model: "gpt-4.1" });
const dialect = () => createResponsesDialect(createSignatureStore());
const THOUGHT = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAA" };
const CALL = { type: "function_call", call_id: "call_1", name: "f", arguments: '{"a":1}' };
const message = (...content: object[]) => ({ type: "message", role: "assistant", content });
const saying = (text: string) => message({ type: "output_text", text, annotations: [] });
const FIGURES = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 8, cache_write_tokens: 4 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 3 },
};
const whole = (output: readonly object[], more: object = {}) => ({
  object: "response",
  status: "completed",
  error: null,
  incomplete_details: null,
  output,
  usage: FIGURES,
  ...more,
});
const ended = (output: readonly object[], more: object = {}, type = "response.completed") => ({
  type,
  response: whole(output, more),
});
const piece = (type: string, output_index: number, more: object) => ({
  type: `response.${type}`,
  output_index,
  ...more,
});
const item = (end: "added" | "done", output_index: number, of: object) =>
  piece(`output_item.${end}`, output_index, { item: of });

describe("a request to the Responses API", () => {
  it("has the conversation as items, and nothing is stored", () => {
    const schema = { type: "object", properties: { a: { type: "number" } } };
    const declared = { name: "f", description: "d", parameters: schema, strict: true };
    const image_url = { url: "https://example.org/a.png" };
    const file = { file_data: "data:application/pdf;base64,aGk=", filename: "a.pdf" };
    const fields = {
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What?" },
            { type: "image_url", image_url },
            { type: "image_url", image_url: { ...image_url, detail: "low" } },
            { type: "file", file },
            { type: "file", file: { file_data: file.file_data } },
          ],
        },
        {
          ...calling(callOf("c1", "f", '{ "a":1}'), callOf("c2", "f", "")),
          content: "Let me see.",
        },
        resultOf("c1", "one"),
        resultOf("c2", "two"),
        { role: "assistant", content: "It is so." },
        { role: "user", content: "Why?" },
      ],
      tools: [
        { type: "function", function: declared },
        { type: "function", function: { name: "bare" } },
      ],
      tool_choice: { type: "function", function: { name: "f" } },
      parallel_tool_calls: false,
      response_format: { type: "json_schema", json_schema: { name: "n", schema, strict: true } },
      temperature: 0.5,
      max_tokens: 100,
      logprobs: true,
      top_logprobs: 2,
      stream: true,
      user: "u1",
    };
    const { path, headers, body } = askedBy(dialect(), fields, PLAIN);
    assert.deepEqual([path, headers["authorization"]], ["/responses", "Bearer sk-provider-secret"]);
    const { user: pseudonym, ...others } = body;
    assert.match(pseudonym, /^[0-9a-f]{32}$/);
    const look = (detail: string) => ({ type: "input_image", image_url: image_url.url, detail });
    assert.deepEqual(others, {
      model: "gpt-4.1",
      input: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "input_text", text: "What?" },
            look("auto"),
            look("low"),
            { type: "input_file", ...file },
            { type: "input_file", ...file, filename: "document.pdf" },
          ],
        },
        { type: "message", role: "assistant", content: "Let me see.", phase: "commentary" },
        { type: "function_call", call_id: "c1", name: "f", arguments: '{ "a":1}' },
        { type: "function_call", call_id: "c2", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: "one" },
        { type: "function_call_output", call_id: "c2", output: "two" },
        { type: "message", role: "assistant", content: "It is so.", phase: "final_answer" },
        { role: "user", content: "Why?" },
      ],
      stream: true,
      store: false,
      include: ["message.output_text.logprobs"],
      tools: [
        { type: "function", ...declared },
        {
          type: "function",
          name: "bare",
          parameters: { type: "object", properties: {} },
          strict: false,
        },
      ],
      tool_choice: { type: "function", name: "f" },
      text: { format: { type: "json_schema", name: "n", schema, strict: true } },
      temperature: 0.5,
      top_logprobs: 2,
      max_output_tokens: 100,
      parallel_tool_calls: false,
    });
  });

  const shown = { type: "enabled" };
  const TOOL = { type: "function", function: { name: "f" } };
  const NO_PARAMETERS = { type: "object", properties: {} };
  const jsonObject = { type: "json_object" };
  for (const [fields, sent, target = THINKER] of [
    [{}, { reasoning: { effort: "none" }, include: ["reasoning.encrypted_content"] }],
    [{ reasoning_effort: "high" }, { reasoning: { effort: "high" }, temperature: undefined }],
    [{ thinking: shown }, { reasoning: { effort: "medium", summary: "auto" } }],
    ...["openai", "azure", "bedrock"].map(
      (vendor) =>
        [
          { reasoning_effort: "minimal" },
          { reasoning: { effort: "low" } },
          targetOf({ vendor, dialect: "responses" }, { reasoning: true }),
        ] as const,
    ),
    [{}, { reasoning: undefined }, targetOf({ ...ROW, thinking_off: false }, { reasoning: true })],
    [{}, { reasoning: undefined }, targetOf({ dialect: "responses" }, { reasoning: true })],
    [{ thinking: shown }, { reasoning: undefined, include: undefined }, PLAIN],
    [{ thinking: shown }, { reasoning: { effort: "medium" } }, thinkingBy("no_summary")],
    [{ thinking: shown }, { reasoning: undefined }, thinkingBy("none")],
    [{ max_tokens: 1 }, { max_output_tokens: 16 }],
    [
      { seed: 3, user: "u" },
      { seed: undefined, text: undefined, stream: undefined },
    ],
    [{ response_format: jsonObject }, { text: { format: jsonObject } }],
    [{ tools: [TOOL] }, { tool_choice: "none" }],
    [
      { tools: [TOOL] },
      { tools: undefined, tool_choice: undefined },
      targetOf({ dialect: "responses", ...{ tool_choice: "auto" } }),
    ],
    [
      { tools: [{ type: "function", function: { name: "f", parameters: {} } }] },
      { tools: [{ type: "function", name: "f", parameters: NO_PARAMETERS, strict: false }] },
      targetOf({ dialect: "responses" }),
    ],
  ] as const)
    it(`has ${JSON.stringify(sent)} for ${JSON.stringify(fields)}`, () => {
      const { body } = askedBy(dialect(), fields, target);
      const found = Object.keys(sent).map((name) => [name, body[name]]);
      assert.deepEqual(Object.fromEntries(found), sent);
    });

  it("has the extra fields that the provider takes, each in its place", async (t) => {
    const provider = await startProvider(t, status(200, whole([saying("Hi.")])));
    const providers = { p: { ...ROW, base_url: provider.url, api_key: "k" } };
    const config = configFor(provider.url, [], { providers, models: { m: { provider: "p" } } });
    const { chat } = await startGateway(t, config);
    const extras = { verbosity: "low", prompt_cache_key: "k1", safety_identifier: "s" };
    const answer = await chat({ model: "m", messages: user("hi"), user: "u", ...extras });
    assert.equal((await json(answer)).choices[0].message.content, "Hi.");
    const { text, prompt_cache_key, safety_identifier, user: name } = provider.asked[0]!.body;
    assert.deepEqual([text, prompt_cache_key, name], [{ verbosity: "low" }, "k1", undefined]);
    assert.match(safety_identifier, /^[0-9a-f]{32}$/);
  });

  it("replaces an id that an earlier call had, in the call and in its result", () => {
    const twice = calling(callOf("f:0", "f"), callOf("f:0", "g"));
    const messages = [...calledOf("f:0"), twice, resultOf("f:0", "of f"), resultOf("f:0", "of g")];
    const { input } = askedBy(dialect(), { messages }, PLAIN).body as any;
    const ids = input.map(({ call_id }: { call_id: string }) => call_id);
    assert.equal(ids[0], "f:0");
    assert.match(ids[2], /^call_[0-9a-f]{24}$/);
    assert.equal(new Set(ids).size, 3);
    assert.deepEqual(ids.slice(4), [ids[2], ids[3]]);
    assert.equal(ids[1], ids[0]);
  });

  it("wraps arguments of a call that are no object, which other servers refuse", () => {
    const messages = [calling(callOf("c1", "f", '{"a')), resultOf("c1")];
    const [call] = askedBy(dialect(), { messages }, PLAIN).body["input"];
    assert.equal(call.arguments, '{"_raw":"{\\"a"}');
  });

  it("replaces an id of a call that is too long, in the call and in its result", () => {
    const { input } = askedBy(dialect(), { messages: calledOf("x".repeat(65)) }, PLAIN).body;
    const [call, result] = input;
    assert.match(call.call_id, /^call_[0-9a-f]{24}$/);
    assert.equal(result.call_id, call.call_id);
  });
});

describe("a reply of the Responses API is the same whole and streamed", () => {
  const USAGE = makeUsage({ prompt: 20, completion: 7, cacheHit: 8, cacheWrite: 4, reasoning: 3 });
  const summary = ["First.", "Second."].map((text) => ({ type: "summary_text", text }));
  const thinking = { type: "reasoning", id: "rs_1", summary };
  const second = { ...CALL, call_id: "call_2", arguments: "{}" };
  const BOTH = [
    ["call_1", "f", '{"a":1}'],
    ["call_2", "f", "{}"],
  ];
  const compaction = { type: "compaction", encrypted_content: "gAAA", content: [{ text: "?" }] };
  const refused = message({ type: "refusal", refusal: "I cannot." });
  const cut = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  const filtered = { status: "incomplete", incomplete_details: { reason: "content_filter" } };
  const rows: [string, object[], object[], object, object?, string?][] = [
    [
      "thinking, a text and two calls in pieces",
      [thinking, saying("Hello."), CALL, second],
      [
        { type: "response.created", response: { status: "in_progress", output: [], error: null } },
        item("added", 0, { type: "reasoning", id: "rs_1", summary: [] }),
        piece("reasoning_summary_part.added", 0, { summary_index: 0 }),
        piece("reasoning_summary_text.delta", 0, { delta: "Fir" }),
        piece("reasoning_summary_text.delta", 0, { delta: "st." }),
        piece("reasoning_summary_part.added", 0, { summary_index: 1 }),
        piece("reasoning_summary_text.delta", 0, { delta: "Second." }),
        item("done", 0, thinking),
        item("added", 1, message()),
        piece("content_part.added", 1, { part: { type: "output_text", text: "" } }),
        piece("output_text.delta", 1, { delta: "Hel" }),
        piece("output_text.delta", 1, { delta: "lo." }),
        piece("output_text.done", 1, { text: "Hello." }),
        item("done", 1, saying("Hello.")),
        item("added", 2, { ...CALL, arguments: "" }),
        item("added", 3, { ...second, arguments: "" }),
        piece("function_call_arguments.delta", 2, { delta: '{"a"' }),
        piece("function_call_arguments.delta", 2, { delta: ":1}" }),
        piece("function_call_arguments.done", 2, { arguments: '{"a":1}' }),
        item("done", 2, CALL),
        item("done", 3, second),
      ],
      {
        text: "Hello.",
        reasoning: "First.\n\nSecond.",
        calls: BOTH,
        finish: "tool_calls",
      },
    ],
    [
      "items that come only at their ends",
      [thinking, saying("I will."), saying("Done."), CALL],
      [thinking, saying("I will."), saying("Done."), CALL].map((of, at) => item("done", at, of)),
      {
        text: "I will.\n\nDone.",
        reasoning: "First.\n\nSecond.",
        calls: [["call_1", "f", '{"a":1}']],
        finish: "tool_calls",
      },
    ],
    [
      "a reply that comes only in the last event",
      [saying("Hello.")],
      [],
      { text: "Hello.", reasoning: "", calls: [], finish: "stop" },
    ],
    [
      "the thoughts of an open model, beside items of unknown types",
      [
        { type: "reasoning", content: [{ type: "reasoning_text", text: "Hm." }], summary: [] },
        compaction,
        saying("Hello."),
      ],
      [
        piece("reasoning_text.delta", 0, { delta: "Hm." }),
        item("added", 1, { type: "compaction" }),
        item("done", 1, compaction),
        piece("output_text.delta", 2, { delta: "Hello." }),
      ],
      { text: "Hello.", reasoning: "Hm.", calls: [], finish: "stop" },
    ],
    [
      "thoughts between calls",
      [thinking, CALL, { ...thinking, id: "rs_2" }, second],
      [
        piece("reasoning_summary_text.delta", 0, { delta: "First.\n\nSecond." }),
        item("done", 1, CALL),
        piece("reasoning_summary_text.delta", 2, { delta: "First.\n\nSecond." }),
        item("done", 3, second),
      ],
      {
        text: "",
        reasoning: "First.\n\nSecond.\n\nFirst.\n\nSecond.",
        calls: BOTH,
        finish: "tool_calls",
      },
    ],
    [
      "events without indexes, as llama.cpp writes them",
      [thinking, saying("Hello."), CALL, second],
      [
        { type: "response.reasoning_text.delta", item_id: "rs_1", delta: "First.\n\nSecond." },
        { type: "response.output_item.done", item: thinking },
        { type: "response.output_text.delta", item_id: "msg_1", delta: "Hello." },
        { type: "response.output_item.done", item: { ...saying("Hello."), id: "msg_1" } },
        ...[CALL, second].flatMap((call) => [
          { type: "response.output_item.added", item: { ...call, arguments: "" } },
          {
            type: "response.function_call_arguments.delta",
            item_id: call.call_id,
            delta: call.arguments,
          },
        ]),
        ...[CALL, second].map((call) => ({ type: "response.output_item.done", item: call })),
      ],
      {
        text: "Hello.",
        reasoning: "First.\n\nSecond.",
        calls: BOTH,
        finish: "tool_calls",
      },
    ],
    [
      "a thought and a text with one index",
      [thinking, saying("Hello.")],
      [
        piece("reasoning_summary_text.delta", 0, { delta: "First.\n\nSecond." }),
        piece("output_text.delta", 0, { delta: "Hel" }),
        piece("output_text.delta", 0, { delta: "lo." }),
      ],
      { text: "Hello.", reasoning: "First.\n\nSecond.", calls: [], finish: "stop" },
    ],
    [
      "thoughts that come twice, as SGLang writes those of gpt-oss",
      [thinking, saying("Hello.")],
      [
        piece("reasoning_text.delta", 0, { delta: "First.\n\n" }),
        piece("reasoning_summary_part.added", 0, { summary_index: 0 }),
        piece("reasoning_summary_text.delta", 0, { delta: "First.\n\n" }),
        piece("reasoning_text.delta", 0, { delta: "Second." }),
        piece("reasoning_summary_text.delta", 0, { delta: "Second." }),
        item("done", 1, saying("Hello.")),
      ],
      { text: "Hello.", reasoning: "First.\n\nSecond.", calls: [], finish: "stop" },
    ],
    [
      "arguments that come only at their end",
      [CALL],
      [
        item("added", 0, { ...CALL, arguments: "" }),
        piece("function_call_arguments.done", 0, { arguments: '{"a":1}' }),
      ],
      { text: "", reasoning: "", calls: [["call_1", "f", '{"a":1}']], finish: "tool_calls" },
    ],
    [
      "arguments that come only in the last event, after a call with its own",
      [thinking, second, CALL],
      [
        item("done", 0, thinking),
        item("added", 1, { ...second, arguments: "" }),
        piece("function_call_arguments.delta", 1, { delta: "{}" }),
        item("added", 2, { ...CALL, arguments: "" }),
      ],
      {
        text: "",
        reasoning: "First.\n\nSecond.",
        calls: [...BOTH].reverse(),
        finish: "tool_calls",
      },
    ],
    [
      "arguments that come only in the last event, without an index",
      [CALL],
      [{ type: "response.output_item.added", item: { ...CALL, arguments: "" } }],
      { text: "", reasoning: "", calls: [["call_1", "f", '{"a":1}']], finish: "tool_calls" },
    ],
    [
      "a text and a call that come only in the last event",
      [thinking, saying("Hello."), CALL],
      [piece("reasoning_summary_text.delta", 0, { delta: "First.\n\nSecond." })],
      {
        text: "Hello.",
        reasoning: "First.\n\nSecond.",
        calls: [["call_1", "f", '{"a":1}']],
        finish: "tool_calls",
      },
    ],
    [
      "a refusal",
      [refused],
      [piece("refusal.delta", 0, { delta: "I cannot." }), item("done", 0, refused)],
      { text: "", reasoning: "", refusal: "I cannot.", calls: [], finish: "stop" },
    ],
    [
      "a reply at its bound",
      [saying("Hel")],
      [piece("output_text.delta", 0, { delta: "Hel" })],
      { text: "Hel", reasoning: "", calls: [], finish: "length" },
      cut,
      "response.incomplete",
    ],
    [
      "a reply that the filter ended",
      [saying("Hel")],
      [piece("output_text.delta", 0, { delta: "Hel" })],
      { text: "Hel", reasoning: "", calls: [], finish: "content_filter" },
      filtered,
      "response.incomplete",
    ],
  ];
  for (const [name, output, events, reply, more, type] of rows)
    it(name, () => {
      const all = [...events, ended(output, more, type)];
      const found = replyTo(dialect, whole(output, more), all, THINKER);
      assert.deepEqual(found, { ...reply, usage: USAGE });
    });

  it("is over with the last event, whose items may be counted otherwise", () => {
    const decoder = dialect().decoder(THINKER);
    const text = piece("output_text.delta", 1, { delta: "Hi." });
    assert.deepEqual(decoder.push(text), [{ type: "text", text: "Hi." }]);
    const stray = piece("function_call_arguments.delta", 5, { delta: "{}" });
    assert.deepEqual([decoder.push(stray), decoder.ended!()], [[], false]);
    const types = decoder.push(ended([saying("Hi.")])).map(({ type }) => type);
    assert.deepEqual([types, decoder.ended!()], [["finish", "usage"], true]);
  });

  it("arguments come in the pieces that the provider sent, and once", () => {
    const { push } = dialect().decoder(PLAIN);
    const events = [
      item("added", 0, { ...CALL, arguments: "" }),
      piece("function_call_arguments.delta", 0, { delta: '{"a"' }),
      piece("function_call_arguments.delta", 0, { delta: ":1}" }),
      item("done", 0, CALL),
    ];
    const texts = events.flatMap(push).map((part) => "text" in part && part.text);
    assert.deepEqual(texts, [false, '{"a"', ":1}"]);
  });

  for (const [usage, reported] of [
    [{ input_tokens: 5 }, { prompt: 5, completion: undefined, cacheHit: 0, reasoning: 0 }],
    [{ output_tokens: 6 }, { prompt: undefined, completion: 6, cacheHit: 0, reasoning: 0 }],
    [{ total_tokens: 7 }, undefined],
    [null, undefined],
  ] as const)
    it(`usage that is ${JSON.stringify(usage)}`, () => {
      const parts = dialect().decoder(PLAIN).push(whole([], { usage }));
      const found = parts.flatMap((part) => (part.type === "usage" ? part.usage : []));
      assert.deepEqual(found, reported ? [reported] : []);
    });

  it("log probabilities", () => {
    const logprobs = [{ token: "Hi", logprob: -0.5, bytes: [72, 105], top_logprobs: [] }];
    const { push } = dialect().decoder(PLAIN);
    const [inPiece] = push(piece("output_text.delta", 0, { delta: "Hi", logprobs }));
    const said = message({ type: "output_text", text: "Hi", logprobs });
    const [inWhole] = dialect()
      .decoder(PLAIN)
      .push(whole([said]));
    assert.deepEqual([inPiece, inWhole], Array(2).fill({ type: "text", text: "Hi", logprobs }));
  });
});

describe("a reply of the Responses API that fails", () => {
  const failed = (error: object | null, state = "failed") =>
    ended([], { status: state, error }, "response.failed");
  for (const [name, event, code] of [
    [
      "an overload",
      failed({ code: "rate_limit_exceeded", message: "Slow down." }),
      "model_overloaded",
    ],
    ["a server's error", failed({ code: "server_error", message: "Oops." }), "upstream_error"],
    ["no reason", failed(null), "upstream_error"],
    ["another state", failed(null, "cancelled"), "upstream_error"],
    ["a call without a name", item("added", 0, { ...CALL, name: "" }), "upstream_error"],
    ["no state", { type: "response.failed", response: { usage: FIGURES } }, "upstream_error"],
    [
      "an event of its own",
      { type: "error", code: "server_error", message: "Oops." },
      "upstream_error",
    ],
  ] as const)
    it(`is an error with the figures so far: ${name}`, () => {
      const { push } = dialect().decoder(THINKER);
      const error = errorOf(() => push(event));
      assert.equal(error.code, code);
      if ("response" in event) assert.equal(error.usage?.prompt, 20);
    });

  it("ends no stream without the last event, and not by an event of an unknown form", async (t) => {
    const text = piece("output_text.delta", 0, { delta: "Hel" });
    const provider = await startProvider(t, stream([text, { unknown: 1 }], "eof"));
    const providers = { p: { ...ROW, base_url: provider.url, api_key: "k" } };
    const config = configFor(provider.url, [], { providers, models: { m: { provider: "p" } } });
    const { chat } = await startGateway(t, config);
    const asked = { model: "m", messages: user("hi"), stream: true };
    const { done, error } = await readStream(await chat(asked));
    assert.deepEqual([done, error?.code], [false, "upstream_error"]);
  });
});

describe("sealed reasoning", () => {
  const CONVERSATION = [
    ...user("hi"),
    { ...calling(callOf("call_1", "f", '{"a":1}'), callOf("call_2")), content: "Let me see." },
    resultOf("call_1"),
    resultOf("call_2"),
  ];
  const typesOf = (input: readonly Record<string, any>[]) =>
    input.map(({ type, role, call_id, id }) => call_id ?? id ?? role ?? type);

  it("goes back before the call that it led to, to the model that sealed it", () => {
    const store = createSignatureStore();
    const later = { ...THOUGHT, id: "rs_2" };
    const output = [
      { ...THOUGHT, status: "completed" },
      saying("Let me see."),
      CALL,
      later,
      { ...CALL, call_id: "call_2" },
    ];
    createResponsesDialect(store).decoder(THINKER).push(whole(output));
    const askedOf = (target = THINKER) =>
      askedBy(createResponsesDialect(store), { messages: CONVERSATION }, target).body["input"];
    const results = ["call_1", "call_2"];
    const expected = ["user", "rs_1", "assistant", "call_1", "rs_2", "call_2", ...results];
    assert.deepEqual(typesOf(askedOf()), expected);
    assert.deepEqual(askedOf()[1], THOUGHT);
    const other = targetOf(ROW, { reasoning: true, upstream_model: "other" });
    const without = ["user", "assistant", ...results, ...results];
    assert.deepEqual(typesOf(askedOf(other)), without);
  });

  it("goes back once if an id is that of two calls", () => {
    const store = createSignatureStore();
    createResponsesDialect(store)
      .decoder(THINKER)
      .push(whole([THOUGHT, CALL]));
    const messages = [...calledOf("call_1"), ...calledOf("call_1")];
    const { input } = askedBy(createResponsesDialect(store), { messages }, THINKER).body;
    const again = input[3].call_id;
    assert.deepEqual(typesOf(input), ["rs_1", "call_1", "call_1", again, again]);
  });

  const unsealed = { type: "reasoning", id: "rs_1", summary: [] };
  for (const [what, before] of [
    ["the provider did not seal it", unsealed],
    ["it is too long", { ...THOUGHT, encrypted_content: "x".repeat(4 * 1024 * 1024) }],
    ["it is no reasoning", { ...THOUGHT, type: "compaction" }],
  ] as const)
    it(`is not kept if ${what}`, () => {
      const kept: string[] = [];
      const store = { get: () => undefined, set: (id: string) => kept.push(id) };
      createResponsesDialect(store)
        .decoder(THINKER)
        .push(whole([before, CALL]));
      assert.deepEqual(kept, []);
    });

  it("goes back with an empty summary if it had none", () => {
    const store = createSignatureStore();
    const { summary: _, ...bare } = THOUGHT;
    createResponsesDialect(store)
      .decoder(THINKER)
      .push(whole([bare, CALL]));
    const { body } = askedBy(createResponsesDialect(store), { messages: CONVERSATION }, THINKER);
    assert.deepEqual(body["input"][1], THOUGHT);
  });

  async function asksAgain(t: Scope, refused: Behaviour) {
    const replies = [
      status(200, whole([THOUGHT, CALL])),
      refused,
      status(200, whole([saying("So.")])),
    ];
    const provider = await startProvider(t, inTurn(...replies));
    const providers = { p: { ...ROW, base_url: provider.url, api_key: "k" } };
    const models = { m: { provider: "p", reasoning: true } };
    const retry = { max_retries: 1, backoff_ms: 1 };
    const { chat } = await startGateway(
      t,
      configFor(provider.url, [], { providers, models, retry }),
    );
    const tools = [{ type: "function", function: { name: "f" } }];
    const asked = { model: "m", tools, tool_choice: "auto" };
    await json(await chat({ ...asked, messages: user("hi") }));
    const messages = [...user("hi"), calling(callOf("call_1", "f", '{"a":1}')), resultOf("call_1")];
    const { choices } = await json(await chat({ ...asked, messages }));
    assert.equal(choices[0].message.content, "So.");
    const sent = provider.asked.map(({ body }) => typesOf(body["input"]).includes("rs_1"));
    assert.deepEqual(sent, [false, true, false]);
  }

  const UNVERIFIED = "The encrypted content gAAA could not be verified.";
  const CODED = { code: "invalid_encrypted_content", message: "could not be verified" };
  for (const [name, refused] of [
    ["with a code", status(400, { error: CODED })],
    ["without a code", status(400, { error: { code: null, message: UNVERIFIED } })],
    [
      "by its id",
      status(404, { error: { code: null, message: "Item with id 'rs_1' not found." } }),
    ],
    ["in an event", stream([{ type: "error", code: null, message: UNVERIFIED }])],
    ["at the end", stream([{ type: "response.failed", response: { error: CODED } }])],
  ] as const)
    it(`is left out of the next attempt if the provider cannot open it, and says so ${name}`, (t) =>
      asksAgain(t, refused));

  it("is no reason to ask again if none was sent", () => {
    const message = "Encrypted content is not supported with this model.";
    const asking = dialect();
    askedBy(asking, { messages: CONVERSATION }, THINKER);
    const { code } = asking.refusal(400, { get: () => null }, { error: { message } });
    assert.equal(code, "upstream_rejected");
  });
});

it("the vendors' addresses of the Responses API", () => {
  const dialect = "responses";
  const api_key = "k";
  const base_url = "https://name.openai.azure.com";
  const { providers, models } = checkConfig({
    providers: {
      openai: { vendor: "openai", dialect, api_key },
      azure: { vendor: "azure", dialect, api_key, base_url },
      bedrock: { vendor: "bedrock", api_key, region: "us-east-2" },
      other: { dialect, base_url: "http://127.0.0.1:8000/v1" },
    },
    models: {
      openai: { provider: "openai" },
      azure: { provider: "azure" },
      bedrock: { provider: "bedrock", dialect },
      other: { provider: "other" },
    },
  });
  const found = [...models].map(([name, { base_url: own, traits }]) => [
    name,
    own ?? providers.get(name)!.base_url,
    traits.path,
    traits.auth,
  ]);
  assert.deepEqual(found, [
    ["openai", "https://api.openai.com/v1", undefined, "bearer"],
    ["azure", base_url, "/openai/v1/responses", "api-key"],
    ["bedrock", "https://bedrock-mantle.us-east-2.api.aws", "/openai/v1/responses", "bearer"],
    ["other", "http://127.0.0.1:8000/v1", undefined, "bearer"],
  ]);
  const wrong = { o: { dialect: "responses", base_url: "http://127.0.0.1:8000/v1/responses" } };
  assert.deepEqual(
    issueLines(() => checkConfig({ providers: wrong, models: {} })),
    ["providers.o.base_url: must not end in /responses: /responses is appended to it"],
  );
});
