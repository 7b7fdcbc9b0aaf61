// The official openai client for JavaScript, unmodified, against the running gateway: chat
// completions and the Responses API with its helpers, with models of each format behind the
// gateway. Other classes of errors are tried with the client for Python. The AI SDK and OpenAI's
// agents on the Responses API are in frameworks.test.ts.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { ResponseInput } from "openai/resources/responses/responses";
import { waitFor, within } from "../support/wait.ts";
import * as facts from "./lab.ts";

describe("openai for JavaScript", { skip: facts.notInstalled() }, async () => {
  const { default: OpenAI } = await import("openai");
  const { zodResponseFormat, zodTextFormat } = await import("openai/helpers/zod");
  const { z } = await import("zod");

  /** No retries unless a test is about them. */
  const clientOf = ({ baseURL }: facts.Lab, options: object = {}) =>
    new OpenAI({ baseURL, apiKey: facts.KEY, maxRetries: 0, ...options });

  async function start(t: TestContext) {
    const lab = await facts.startLab(t);
    const { responses, chat } = clientOf(lab);
    return { lab, responses, completions: chat.completions };
  }

  const messages = [{ role: "user" as const, content: facts.QUESTION }];
  const parameters = facts.PARAMETERS;
  const tool = { type: "function" as const, function: { ...facts.TOOL, parameters } };

  const figures = (usage: any) => [
    ...[usage?.prompt_tokens, usage?.completion_tokens, usage?.total_tokens],
    usage?.prompt_tokens_details?.cached_tokens,
    usage?.completion_tokens_details?.reasoning_tokens,
  ];
  type Called = { tool_calls?: readonly { type: string }[] | undefined };
  type Call = { id: string; type: string; function: { name: string; arguments: string } };
  const callsOf = ({ tool_calls = [] }: Called) =>
    (tool_calls as readonly Call[]).map(({ id, function: called }) => ({
      id,
      name: called.name,
      arguments: called.arguments,
    }));

  for (const behind of facts.DIALECTS) {
    const named = (name: string) => facts.modelName(behind, name);
    describe(`${behind} behind the gateway`, () => {
      it(`a streamed reply is the whole reply in pieces`, async (t) => {
        const { completions } = await start(t);
        const stream_options = { include_usage: true };
        const body = { model: named("exact"), messages };
        const whole = await completions.create(body);
        const [{ message, finish_reason } = assert.fail()] = whole.choices;
        assert.deepEqual([whole.model, finish_reason], [named("exact"), "stop"]);
        assert.equal("reasoning_content" in message, false);
        assert.equal(message.content, facts.TEXT);
        assert.deepEqual(figures(whole.usage), [20, 7, 27, 8, 3]);
        const streaming = { ...body, stream_options, stream: true as const };
        const chunks = await facts.collect(await completions.create(streaming));
        assert.ok(chunks.length > 5);
        const pieces = chunks.map(({ choices }) => choices[0]?.delta.content ?? "");
        assert.deepEqual([pieces.join(""), chunks[0]?.model], [facts.TEXT, named("exact")]);
        const finishes = chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? []);
        const [last] = chunks.slice(-1);
        assert.deepEqual([finishes, last?.choices], [["stop"], []]);
        const helped = completions.stream({ ...body, stream_options });
        const [final] = (await helped.finalChatCompletion()).choices;
        const together = [final?.message.role, final?.message.content, final?.finish_reason];
        assert.deepEqual(together, ["assistant", facts.TEXT, "stop"]);
        for (const usage of [last?.usage, await helped.totalUsage()])
          assert.deepEqual(figures(usage), figures(whole.usage));
      });

      it("calls that were thought about go back as they came, with their thoughts and results", async (t) => {
        const { lab, completions } = await start(t);
        const thinking = { type: "enabled" };
        const model = named("parallel");
        const base = { messages, tools: [tool], tool_choice: "auto" as const, thinking, model };
        const whole = (await completions.create(base)).choices[0]!;
        assert.equal(whole.finish_reason, "tool_calls");
        const thoughts = (whole.message as { reasoning_content?: string }).reasoning_content;
        assert.equal(thoughts, facts.REASONING);
        const [streamed] = (await completions.stream(base).finalChatCompletion()).choices;
        for (const [message, calls] of [
          [whole.message, facts.callsVia(behind, false)],
          [streamed!.message, facts.callsVia(behind, true)],
        ] as const) {
          assert.deepEqual(callsOf(message), calls);
          const results = calls.map((call) => ({
            role: "tool" as const,
            tool_call_id: call.id,
            content: facts.clock(JSON.parse(call.arguments).city),
          }));
          const history = [...messages, message, ...results];
          const answer = await completions.create({ ...base, messages: history });
          assert.equal(answer.choices[0]?.message.content, facts.AFTER_CALLS);
          // This may stand in place of a signature that was lost; here none may be.
          const body = JSON.stringify(lab.provider(behind).asked.at(-1)!.body);
          assert.doesNotMatch(body, /skip_thought_signature_validator/);
          const { messages: heard } = lab.provider(behind).heard.at(-1)!;
          assert.deepEqual(callsOf(heard[1]!), facts.callsVia(behind, false));
          assert.deepEqual(heard.slice(2), results);
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
          assert.deepEqual(choices[0]?.message.parsed, facts.OPENING);
      });

      it("a stream that breaks off is an error, never a reply", async (t) => {
        const { completions } = await start(t);
        for (const name of facts.BAD_ENDINGS) {
          const body = { model: named(name), messages, stream: true as const };
          let text = "";
          const reading = (async () => {
            for await (const { choices } of await completions.create(body)) {
              assert.equal(choices[0]?.finish_reason, null);
              text += choices[0]?.delta.content ?? "";
            }
          })();
          await assert.rejects(reading, (error) => {
            assert.ok(error instanceof OpenAI.APIError);
            const { code, type, error: told } = error;
            assert.deepEqual([code, type], ["upstream_error", "service_unavailable_error"]);
            assert.match((told as { request_id: string }).request_id, facts.GENERATED_ID);
            return true;
          });
          assert.equal(text, facts.BEFORE_BAD_ENDING);
        }
      });

      it("leaving in mid-stream closes the provider's connection", async (t) => {
        const { lab, completions } = await start(t);
        const body = { model: named("endless"), messages, stream: true as const };
        const stream = await completions.create(body);
        const left = (async () => {
          for await (const { choices } of stream)
            if (choices[0]?.delta.content) stream.controller.abort();
        })();
        await within(left, "the stream that was left");
        await facts.assertLeft(lab, behind);
      });

      it("Responses: a conversation with tools goes on with its own items", async (t) => {
        const { lab, responses } = await start(t);
        const request = {
          model: named("parallel"),
          tools: [{ type: "function" as const, name: "get_time", strict: false, parameters }],
          reasoning: { summary: "auto" as const },
          include: ["reasoning.encrypted_content" as const],
          store: false,
        };
        const first = await responses.stream({ ...request, input: messages }).finalResponse();
        const [thought] = first.output;
        assert.ok(thought?.type === "reasoning" && thought.encrypted_content);
        assert.deepEqual(thought.summary, [{ type: "summary_text", text: facts.REASONING }]);
        const calls = first.output.filter((item) => item.type === "function_call");
        assert.deepEqual(
          calls.map(({ call_id, name, arguments: args }) => ({
            id: call_id,
            name,
            arguments: args,
          })),
          facts.callsVia(behind, true),
        );
        const results = calls.map(({ call_id, arguments: args }) => ({
          type: "function_call_output" as const,
          call_id,
          output: facts.clock(JSON.parse(args).city),
        }));
        const input = [...messages, ...first.output, ...results] as ResponseInput;
        const second = await responses.create({ ...request, input });
        assert.equal(second.output_text, facts.AFTER_CALLS);
        const { messages: heard } = lab.provider(behind).heard.at(-1)!;
        assert.equal(heard.filter(({ role }) => role === "tool").length, facts.CALLS.length);
      });
    });
  }

  it("comes back after a 429 when the gateway said, under the same id", async (t) => {
    let now = 0;
    const lab = await facts.startLab(t, { limits: { rpm: 1 } }, { monotonic: () => now });
    const completions = clientOf(lab, { maxRetries: 1 }).chat.completions;
    const ask = () =>
      completions.create({ model: "exact", messages }, { headers: { "X-Request-Id": "again" } });
    await ask();
    now = 59_500; // half a second of the minute is left
    const began = performance.now();
    const asked = ask();
    await waitFor(() => lab.access.some(({ status }) => status === 429), "the refusal");
    now = 60_000;
    const { choices } = await within(asked, "the retry");
    assert.equal(choices[0]?.message.content, facts.TEXT);
    const paused = performance.now() - began;
    assert.ok(paused > 990, `Retry-After of 1 second was obeyed, not ${paused} ms`);
    await waitFor(() => lab.access.length === 3, "the lines of the access log");
    const lines = lab.access.map(({ status, request_id }) => `${status} ${request_id}`);
    assert.deepEqual(lines, ["200 again", "429 again", "200 again"]);
    const impatient = clientOf(lab).chat.completions.create({ model: "exact", messages });
    await assert.rejects(impatient, OpenAI.RateLimitError);
  });

  it("does not buy a generation again that took too long", async (t) => {
    const lab = await facts.startLab(t, { timeouts: { first_token_ms: 50 } });
    const completions = clientOf(lab, { maxRetries: 2 }).chat.completions;
    const asking = completions.create({ model: "silent", messages });
    await assert.rejects(asking, { status: 503, code: "upstream_timeout" });
    assert.equal(lab.provider("openai").asked.length, 1);
  });

  it("Responses: parses structured output, whole and streamed", async (t) => {
    const { responses } = await start(t);
    const format = zodTextFormat(z.object({ answer: z.string() }), "reply");
    const request = { model: "demo-chat", input: facts.QUESTION, text: { format } };
    const whole = await responses.parse(request);
    assert.equal(typeof whole.output_parsed!.answer, "string");
    const streamed = await responses.stream(request).finalResponse();
    assert.deepEqual(streamed.output_parsed, whole.output_parsed);
  });

  it("Responses: refusals and streams that break off are errors of the client's classes", async (t) => {
    const { responses } = await start(t);
    const stored = responses.create({ model: "demo-chat", input: facts.QUESTION, store: true });
    await assert.rejects(stored, (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.deepEqual([error.code, error.param], ["unsupported_value", "store"]);
      assert.match(error.requestID!, /^req_/);
      return true;
    });
    for (const model of facts.BAD_ENDINGS) {
      const events = await responses.create({ model, input: facts.QUESTION, stream: true });
      await assert.rejects(facts.collect(events), OpenAI.APIError);
    }
  });
});
