// Replies in the format of the Responses API: the order and numbers of the events, and that the
// last event says the same as all others together.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ApiError, errorBody } from "../../../../src/core/openai/errors.ts";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { createResponseWriter } from "../../../../src/extensions/apis/responses-api/writer.ts";
import { assembleResponse, readEvents, type ResponseEvent } from "../../../support/api-events.ts";

const USAGE = makeUsage({ prompt: 20, completion: 7, cacheHit: 8, cacheWrite: 5, reasoning: 3 });
const tools = new Map([
  ["get_time", { type: "function", name: "get_time", namespace: undefined }],
  ["fs__read", { type: "function", name: "read", namespace: "fs" }],
  ["patch", { type: "custom", name: "patch", namespace: undefined }],
  ["tool_search", { type: "tool_search", name: "tool_search", namespace: undefined }],
] as const);

const writer = (stream: boolean, more: object = {}) =>
  createResponseWriter({
    stream,
    model: "m",
    now: 1_700_000_000_500,
    echo: { tools: [] },
    tools,
    showsReasoning: true,
    showsLogprobs: false,
    seal: undefined,
    ...more,
  });

type Finish = Parameters<ReturnType<typeof writer>["end"]>[1];

function streamed(parts: readonly Part[], finish: Finish = "stop", more: object = {}) {
  const { add, end } = writer(true, more);
  return readEvents(parts.map((part) => add([part])).join("") + end(USAGE, finish));
}

/** A reply without random ids and times. */
const comparable = (response: object): unknown =>
  JSON.parse(JSON.stringify(response), (key, value) => (key === "id" ? "id" : value));

const text = (piece: string): Part => ({ type: "text", text: piece });
const reasoning = (piece: string): Part => ({ type: "reasoning", text: piece });
const called = (call: number, name: string): Part => {
  const id = `call_${call}`;
  return { type: "tool_call", call, id, name };
};
const args = (call: number, piece: string): Part => ({ type: "tool_arguments", call, text: piece });
const call = (index: number, name: string, json: string) => [
  called(index, name),
  args(index, json),
];
const types = (events: readonly ResponseEvent[]) =>
  events.map(({ type }) => type.replace("response.", ""));
const last = (events: readonly ResponseEvent[]) => events.at(-1)!["response"];
const outputOf = (...given: Parameters<typeof streamed>): any[] => last(streamed(...given)).output;
const fieldsOf = (items: readonly any[], name: string) => items.map((item) => item[name]);

describe("a reply of the Responses API", () => {
  const everything = [
    reasoning("First "),
    reasoning("the city."),
    text("I "),
    text("look."),
    called(0, "get_time"),
    called(1, "patch"),
    args(0, '{"city":'),
    args(1, '{"input":"a\\n'),
    args(0, '"Oslo"}'),
    args(1, 'b"}'),
    called(2, "fs__read"),
    ...call(3, "tool_search", '{"query":"x"}'),
    called(4, "undeclared"),
  ];

  it("is one document, or events with the same content", () => {
    const { add, end } = writer(false);
    assert.equal(everything.map((part) => add([part])).join(""), "");
    const whole = JSON.parse(end(USAGE, "tool_calls"));
    const events = streamed(everything, "tool_calls");
    assert.deepEqual(comparable(last(events)), comparable(whole));
    assert.deepEqual(comparable(assembleResponse(events)), comparable(whole.output));
    assert.deepEqual(
      whole.output.map(({ type, name, namespace, status, arguments: given, input }: any) =>
        JSON.stringify([type, status, name, namespace, given ?? input]),
      ),
      [
        '["reasoning",null,null,null,null]',
        '["message","completed",null,null,null]',
        '["function_call","completed","get_time",null,"{\\"city\\":\\"Oslo\\"}"]',
        '["custom_tool_call","completed","patch",null,"a\\nb"]',
        '["function_call","completed","read","fs","{}"]',
        '["tool_search_call","completed",null,null,{"query":"x"}]',
        '["function_call","completed","undeclared",null,"{}"]',
      ],
    );
    assert.equal(whole.output[1].content[0].text, "I look.");
    assert.equal(whole.created_at, 1_700_000_000);
    assert.deepEqual(whole.usage, {
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 8, cache_write_tokens: 5 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 27,
    });
  });

  it("has the events in OpenAI's order", () => {
    const parts = [reasoning("R"), text("T"), ...call(0, "get_time", "{}")];
    const expected =
      "created in_progress output_item.added reasoning_summary_part.added " +
      "reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done " +
      "output_item.done output_item.added content_part.added output_text.delta " +
      "output_text.done content_part.done output_item.done output_item.added " +
      "function_call_arguments.delta function_call_arguments.done output_item.done completed";
    assert.equal(types(streamed(parts)).join(" "), expected);
  });

  it("ends a complete call before the next item, and a call with unfinished arguments at the end", () => {
    const halves = [...call(1, "get_time", "{"), text("T"), args(1, "}")];
    const [first, last] = [call(0, "patch", '{"input":"a"}'), call(2, "get_time", "{}")];
    const events = streamed([...first, ...halves, ...last, text("U")]);
    const items = events.filter(({ type }) => /output_item/.test(type));
    const order = items.map(({ type, output_index }) => type.split(".").at(-1) + output_index);
    const expected = "added0 done0 added1 added2 done2 added3 done3 added4 done4 done1";
    assert.equal(order.join(" "), expected);
  });

  it("has an empty message if it is complete without text and calls", () => {
    const empty = { type: "output_text", text: "", annotations: [], logprobs: [] };
    for (const parts of [[], [reasoning("R")]]) {
      const events = streamed(parts);
      const message = last(events).output.at(-1);
      assert.deepEqual([message.status, message.content], ["completed", [empty]]);
      assert.deepEqual(comparable(assembleResponse(events)), comparable(last(events).output));
      assert.deepEqual(fieldsOf(outputOf(parts, "length"), "type"), fieldsOf(parts, "type"));
    }
    const answered = [text("T"), reasoning("R")];
    assert.deepEqual(fieldsOf(outputOf(answered), "type"), ["message", "reasoning"]);
  });

  it("may have no tokens written to the provider's cache", () => {
    const plain = makeUsage({ prompt: 20, completion: 7, cacheHit: 8, reasoning: 0 });
    const { usage } = JSON.parse(writer(false).end(plain, "stop"));
    assert.deepEqual(usage.input_tokens_details, { cached_tokens: 8, cache_write_tokens: 0 });
  });

  it("is incomplete if it was cut, and so are its unfinished items", () => {
    const parts = [
      text("Half"),
      ...call(0, "get_time", "{}"),
      ...call(1, "patch", '{"input":"a"}'),
      ...call(2, "tool_search", '{"query":"x"}'),
      ...call(3, "get_time", '{"ci'),
      called(4, "get_time"),
    ];
    for (const [finish, reason] of [
      ["length", "max_output_tokens"],
      ["content_filter", "content_filter"],
    ] as const) {
      const events = streamed(parts, finish);
      assert.equal(events.at(-1)!.type, "response.incomplete");
      const { status, incomplete_details, output } = last(events);
      assert.deepEqual([status, incomplete_details], ["incomplete", { reason }]);
      const whole = Array(4).fill("completed");
      assert.deepEqual(fieldsOf(output, "status"), [...whole, "incomplete", "incomplete"]);
    }
    assert.equal(outputOf([text("Half")], "length")[0].status, "incomplete");
  });

  it("has a refusal as a separate item", () => {
    const events = streamed([text("Well."), { type: "refusal", text: "No." }]);
    const [, refusal] = last(events).output;
    assert.deepEqual(refusal.content, [{ type: "refusal", refusal: "No." }]);
    assert.ok(types(events).includes("refusal.delta"));
    assert.ok(types(events).includes("refusal.done"));
  });

  it("hides reasoning unless requested, and seals it for clients that keep it", () => {
    const parts = [reasoning("First "), reasoning("this."), text("A")];
    const hidden = { showsReasoning: false };
    assert.deepEqual(fieldsOf(outputOf(parts, "stop", hidden), "type"), ["message"]);
    const seal = (content: string) => `sealed:${content}`;
    const events = streamed(parts, "stop", { ...hidden, seal });
    const [item] = last(events).output;
    assert.deepEqual([item.summary, item.encrypted_content], [[], "sealed:First this."]);
    assert.ok(!JSON.stringify(events).replaceAll("sealed:First this.", "").includes("First"));
    const [shown] = outputOf(parts, "stop", { seal });
    assert.deepEqual(shown.summary, [{ type: "summary_text", text: "First this." }]);
    assert.equal(shown.encrypted_content, "sealed:First this.");
  });

  it("has log probabilities only if requested", () => {
    const logprobs = [{ token: "A", logprob: -0.5, bytes: [65], top_logprobs: [] }];
    const parts: Part[] = [{ type: "text", text: "A", logprobs }];
    const found = (more: object) => outputOf(parts, "stop", more)[0].content[0].logprobs;
    const shows = { showsLogprobs: true };
    assert.deepEqual([found({}), found(shows)], [[], logprobs]);
    const bare: Part = { type: "text", text: "", logprobs };
    const items = outputOf([bare, ...call(0, "f", "{}"), bare], "tool_calls", shows);
    assert.deepEqual(fieldsOf(items, "type"), ["function_call"], "they alone make no message");
    const [halved] = outputOf([bare, ...parts], "stop", shows);
    assert.deepEqual(halved.content[0].logprobs, [...logprobs, ...logprobs], "half a character");
    // The bytes are a list even if the provider does not state them.
    const token = { token: "A", logprob: -0.5, bytes: null };
    const unstated = [{ ...token, top_logprobs: [token] }];
    const [{ content }] = outputOf(
      [{ type: "text", text: "A", logprobs: unstated }],
      "stop",
      shows,
    );
    const listed = { ...token, bytes: [] };
    assert.deepEqual(content[0].logprobs, [{ ...listed, top_logprobs: [listed] }]);
  });

  it("has the text of a free-form call, partial if the call was cut", () => {
    const inputOf = (json: string, finish: Finish = "length") => {
      const events = streamed(call(0, "patch", json), finish);
      const { type, status, input } = last(events).output[0];
      assert.equal(type, "custom_tool_call");
      const values = events
        .filter(({ type }) => type.startsWith("response.custom_tool_call_input."))
        .map(({ delta, input }) => delta ?? input);
      assert.deepEqual(values, [input, input]);
      return [input, status];
    };
    const cuts: readonly (readonly [json: string, input: string])[] = [
      ['{"input":"*** Begin', "*** Begin"],
      ['{ "input" :\n "a\\nb \\"c\\" \\\\', 'a\nb "c" \\'],
      ['{"input":"a\\', "a"],
      ['{"input":"a\\u00e', "a"],
      ['{"input":"a\\u00e9', "aé"],
      ['{"input":"a\\ud83d\\ude', "a"],
      ['{"input":"a"', "a"],
      ['{"input":"', ""],
      [' {"inp', ""],
      ["", ""],
      ["*** Begin", "*** Begin"],
      ['{"other":"a', '{"other":"a'],
      ['{"input":"a\\x', '{"input":"a\\x'],
    ];
    for (const [json, input] of cuts) assert.deepEqual(inputOf(json), [input, "incomplete"], json);
    assert.deepEqual(inputOf('{"input":"a"}'), ["a", "completed"]);
    // Arguments that are not JSON are the text itself.
    for (const text of ['{"input":"a', "*** Begin Patch"])
      assert.deepEqual(inputOf(text, "stop"), [text, "completed"]);
  });

  it("names the model that continues it", () => {
    const { add, resumed, end } = writer(true);
    const begun = add([text("Half")]);
    const rest = resumed!("other", "fp_1") + add([text(" and half")]) + end(USAGE, "stop");
    const events = readEvents(begun + rest);
    const { model, output } = last(events);
    assert.deepEqual([events[0]!["response"].model, model], ["m", "other"]);
    assert.equal(output[0].content[0].text, "Half and half");
  });

  it("ends with the error if it fails, and with the completed items", () => {
    const { add, fail } = writer(true);
    const begun = add([reasoning("R"), text("Half")]);
    const broken = new ApiError("upstream_error", "It broke.");
    const events = readEvents(begun + fail(errorBody(broken, "my-id").error));
    const [error, failed] = events.slice(-2);
    const fields = { code: "upstream_error", message: "It broke.", param: null };
    const { type, code, message, param, error: body } = error!;
    assert.deepEqual({ type, code, message, param }, { type: "error", ...fields });
    const own = { type: "service_unavailable_error", request_id: "my-id" };
    assert.deepEqual(body, { ...own, ...fields });
    assert.equal(failed!.type, "response.failed");
    const { status, error: reason, output } = failed!["response"];
    assert.deepEqual([status, reason], ["failed", { code, message }]);
    assert.deepEqual(fieldsOf(output, "type"), ["reasoning"]);
  });

  for (const [code, failure] of [
    ["upstream_rejected", "invalid_prompt"],
    ["content_filter", "invalid_prompt"],
    ["context_length_exceeded", "context_length_exceeded"],
    ["model_overloaded", "model_overloaded"],
  ] as const)
    it(`fails with ${failure} if it ends with the error ${code}`, () => {
      const events = readEvents(writer(true).fail(errorBody(new ApiError(code, "."), "id").error));
      assert.deepEqual([events.at(-2)!["code"], last(events).error.code], [code, failure]);
    });
});
