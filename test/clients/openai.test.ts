// The official openai client for JavaScript, unmodified, against the running gateway: chat
// completions with its helpers, with models of each format behind the gateway.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { within } from "../support/wait.ts";
import {
  AFTER_CALLS,
  assertLeft,
  BAD_ENDINGS,
  BEFORE_BAD_ENDING,
  CALLS,
  callsVia,
  clock,
  collect,
  DIALECTS,
  GENERATED_ID,
  KEY,
  modelName,
  notInstalled,
  OPENING,
  QUESTION,
  REASONING,
  RESTRICTED_KEY,
  startFullLab,
  startLab,
  statuses,
  TEXT,
  type Lab,
} from "./lab.ts";

type Failure = readonly [
  name: string,
  said: readonly [status: number, code: string, param: string | null],
  fields: object,
  options?: object,
  /** What is configured. */
  over?: object,
];
const FAILURES: readonly Failure[] = [
  ["BadRequestError", [400, "invalid_value", "temperature"], { temperature: 3 }],
  ["AuthenticationError", [401, "invalid_api_key", null], {}, { apiKey: "sk-nobody" }],
  [
    "PermissionDeniedError",
    [403, "model_not_allowed", "model"],
    { model: "exact" },
    { apiKey: RESTRICTED_KEY },
  ],
  ["NotFoundError", [404, "model_not_found", "model"], { model: "no-such-model" }],
  ["RateLimitError", [429, "rate_limit_exceeded", null], {}, {}, { limits: { rpm: 0 } }],
  ...DIALECTS.map(
    (behind): Failure => [
      "InternalServerError",
      [503, "upstream_error", "model"],
      { model: modelName(behind, "broken") },
    ],
  ),
];

describe("openai for JavaScript", { skip: notInstalled() }, async () => {
  const { default: OpenAI } = await import("openai");
  const { zodResponseFormat } = await import("openai/helpers/zod");
  const { z } = await import("zod");

  /** No retries unless a test is about them. */
  const completionsOf = (lab: Lab, options: object = {}) =>
    new OpenAI({ baseURL: lab.baseURL, apiKey: KEY, maxRetries: 0, ...options }).chat.completions;

  async function start(t: TestContext, over: object = {}) {
    const lab = await startLab(t, over);
    return { lab, completions: completionsOf(lab) };
  }

  const messages = [{ role: "user" as const, content: QUESTION }];
  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
  };
  const tool = {
    type: "function" as const,
    function: { name: "get_time", description: "The time in a city", parameters },
  };
  const tools = { messages, tools: [tool], tool_choice: "auto" as const };
  const ON = { thinking: { type: "enabled" } };

  type Message = { content?: string | null; reasoning_content?: string };
  const figures = (usage: any) => [
    ...[usage?.prompt_tokens, usage?.completion_tokens, usage?.total_tokens],
    ...[usage?.prompt_tokens_details?.cached_tokens],
    ...[usage?.completion_tokens_details?.reasoning_tokens],
  ];
  type Called = { tool_calls?: readonly { type: string }[] | undefined };
  type Call = { id: string; type: string; function: { name: string; arguments: string } };
  const callsOf = ({ tool_calls = [] }: Called) =>
    tool_calls.filter(({ type }) => type === "function") as unknown as Call[];
  const resultsOf = (message: Called) =>
    callsOf(message).map((call) => ({
      role: "tool" as const,
      tool_call_id: call.id,
      content: clock(JSON.parse(call.function.arguments).city),
    }));

  for (const behind of DIALECTS) {
    const named = (name: string) => modelName(behind, name);
    describe(`${behind} behind the gateway`, () => {
      it(`a streamed reply is the whole reply in pieces`, async (t) => {
        const { completions } = await start(t);
        const stream_options = { include_usage: true };
        const body = { model: named("exact"), messages };
        const whole = await completions.create(body);
        const [{ message, finish_reason } = assert.fail()] = whole.choices;
        assert.deepEqual([whole.model, finish_reason], [named("exact"), "stop"]);
        assert.equal("reasoning_content" in message, false);
        assert.equal(message.content, TEXT);
        assert.deepEqual(figures(whole.usage), [20, 7, 27, 8, 3]);
        const streaming = { ...body, stream_options, stream: true as const };
        const chunks = await collect(await completions.create(streaming));
        assert.ok(chunks.length > 5);
        const pieces = chunks.map(({ choices }) => choices[0]?.delta.content ?? "");
        assert.deepEqual([pieces.join(""), chunks[0]?.model], [TEXT, named("exact")]);
        const finishes = chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? []);
        const [last] = chunks.slice(-1);
        assert.deepEqual([finishes, last?.choices], [["stop"], []]);
        const helped = completions.stream({ ...body, stream_options });
        const [final] = (await helped.finalChatCompletion()).choices;
        assert.deepEqual(
          [final?.message.role, final?.message.content, final?.finish_reason],
          ["assistant", TEXT, "stop"],
        );
        for (const usage of [last?.usage, await helped.totalUsage()])
          assert.deepEqual(figures(usage), figures(whole.usage));
      });

      for (const stream of [false, true])
        it(`${stream ? "streamed" : "whole"}: goes round its tool loop`, async (t) => {
          const { completions } = await start(t);
          const called: string[] = [];
          const run = ({ city }: { city: string }) => {
            called.push(city);
            return clock(city);
          };
          const runnable = {
            ...tool,
            function: { ...tool.function, parse: JSON.parse, function: run },
          };
          const body = { ...tools, model: named("parallel"), tools: [runnable] };
          const runner = stream
            ? completions.runTools({ ...body, stream: true })
            : completions.runTools(body);
          assert.equal(await runner.finalContent(), AFTER_CALLS);
          const roles = runner.messages.map(({ role }) => role);
          assert.deepEqual(roles, ["user", "assistant", "tool", "tool", "assistant"]);
          assert.deepEqual(called, ["Oslo", "Lima"]);
        });

      it("parallel calls arrive byte for byte in interleaved fragments", async (t) => {
        const { completions } = await start(t);
        const body = { ...tools, model: named("parallel"), stream: true as const };
        const fragments: { id: string; name: string; arguments: string }[] = [];
        for await (const { choices } of await completions.create(body)) {
          for (const { index, id, function: called } of choices[0]?.delta.tool_calls ?? []) {
            fragments[index] ??= { id: "", name: "", arguments: "" };
            const call = fragments[index];
            call.id += id ?? "";
            call.name += called?.name ?? "";
            call.arguments += called?.arguments ?? "";
          }
        }
        assert.deepEqual(fragments, callsVia(behind, true));
      });

      it("calls that were thought about go back as they came, with their thoughts and results", async (t) => {
        const { lab, completions } = await start(t);
        const base = { ...tools, ...ON, model: named("parallel") };
        const whole = (await completions.create(base)).choices[0]!;
        assert.equal(whole.finish_reason, "tool_calls");
        assert.equal((whole.message as Message).reasoning_content, REASONING);
        const [streamed] = (await completions.stream(base).finalChatCompletion()).choices;
        const sent = callsVia(behind, false).map(({ id, name, arguments: args }) => ({
          id,
          type: "function",
          function: { name, arguments: args },
        }));
        for (const message of [whole.message, streamed!.message]) {
          const made = callsOf(message).map((call) => [
            call.id,
            JSON.parse(call.function.arguments),
          ]);
          assert.deepEqual(
            made,
            CALLS.map(({ id, arguments: args }) => [id, JSON.parse(args)]),
          );
          const results = resultsOf(message);
          const history = [...messages, message, ...results];
          const answer = await completions.create({ ...base, messages: history });
          assert.equal(answer.choices[0]?.message.content, AFTER_CALLS);
          // This may stand in place of a signature that was lost; here none may be.
          const body = JSON.stringify(lab.provider(behind).asked.at(-1)!.body);
          assert.doesNotMatch(body, /skip_thought_signature_validator/);
          const { messages: heard, thinking } = lab.provider(behind).heard.at(-1)!;
          assert.deepEqual([heard[1]!["tool_calls"], heard.slice(2)], [sent, results]);
          assert.equal(thinking.type, "enabled");
        }
      });

      it("structured output, whole and streamed", async (t) => {
        const { completions } = await start(t);
        const base = { model: named("shaped"), messages };
        const schema = z.object({ city: z.string(), hours: z.int().min(7), open: z.boolean() });
        const strict = { ...base, response_format: zodResponseFormat(schema, "opening") };
        for (const { choices } of [
          await completions.parse(strict),
          await completions.stream(strict).finalChatCompletion(),
        ])
          assert.deepEqual(choices[0]?.message.parsed, OPENING);
      });

      /** The text of a stream, until it breaks off or is left at its beginning's end. */
      async function read(lab: Lab, name: string, leaves = false): Promise<string> {
        const body = { model: named(name), messages, stream: true as const };
        const stream = await completionsOf(lab).create(body);
        let text = "";
        try {
          for await (const { choices } of stream) {
            assert.equal(choices[0]?.finish_reason, null);
            text += choices[0]?.delta.content ?? "";
            if (leaves && text === BEFORE_BAD_ENDING) stream.controller.abort();
          }
          assert.ok(leaves, "the stream broke off and was taken for a reply");
        } catch (error) {
          assert.ok(error instanceof OpenAI.APIError);
          const { code, type, error: told } = error;
          assert.deepEqual([code, type], ["upstream_error", "service_unavailable_error"]);
          assert.match((told as { request_id: string }).request_id, GENERATED_ID);
        }
        return text;
      }

      it("leaving in mid-stream closes the provider's connection", async (t) => {
        const { lab } = await start(t);
        const text = await within(read(lab, "endless", true), "the stream that was left");
        assert.equal(text, BEFORE_BAD_ENDING);
        await assertLeft(lab, behind);
      });

      for (const name of BAD_ENDINGS)
        it(`${name}: a stream that breaks off is an error, never a reply`, async (t) => {
          const { lab } = await start(t);
          assert.equal(await read(lab, name), BEFORE_BAD_ENDING);
        });
    });
  }

  for (const [name, said, fields, options, over] of FAILURES)
    it(`${name} of ${JSON.stringify(fields)}, whole and streamed`, async (t) => {
      const { lab } = await start(t, over);
      const id = `my-${said[1]}`;
      for (const stream of [false, true]) {
        const body = { model: "demo-chat", messages, stream, ...fields };
        const asked = completionsOf(lab, options).create(body, { headers: { "X-Request-Id": id } });
        await assert.rejects(asked, (error: any) => {
          assert.ok(error instanceof OpenAI[name as "NotFoundError"]);
          const { status, code, param, requestID } = error;
          assert.deepEqual([status, code, param, requestID], [...said, id]);
          assert.equal((error.error as { request_id?: string }).request_id, id);
          assert.doesNotMatch(JSON.stringify(error) + String(error), /own words/);
          return true;
        });
      }
    });

  it("comes back after a 429 when the gateway said, under the same id", async (t) => {
    const lab = await startFullLab(t);
    const began = performance.now();
    const headers = { "X-Request-Id": "again" };
    const asked = completionsOf(lab, { maxRetries: 1 }).create(
      { model: "exact", messages },
      { headers },
    );
    const { choices } = await within(asked, "the retry");
    assert.equal(choices[0]?.message.content, TEXT);
    const paused = performance.now() - began;
    assert.ok(paused > 990, `Retry-After of 1 second was obeyed, not ${paused} ms`);
    assert.deepEqual(await statuses(lab, 3), [200, 429, 200]);
    const ids = lab.access.slice(1).map((line) => line["request_id"]);
    assert.deepEqual(ids, ["again", "again"]);
  });

  it("does not buy a generation again that took too long", async (t) => {
    const lab = await startLab(t, { timeouts: { first_token_ms: 50 } });
    const completions = completionsOf(lab, { maxRetries: 2 });
    await assert.rejects(completions.create({ model: "silent", messages }), {
      status: 503,
      code: "upstream_timeout",
    });
    assert.equal(lab.provider("openai").asked.length, 1);
  });
});
