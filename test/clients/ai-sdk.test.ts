// The Vercel AI SDK with its provider for OpenAI-compatible services, unmodified, against the
// running gateway.

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
  REASONING,
  RESTRICTED_KEY,
  startFullLab,
  startLab,
  statuses,
  TALKERS,
  TEXT,
  type Lab,
} from "./lab.ts";

describe("AI SDK", { skip: notInstalled() }, async () => {
  const { APICallError, generateText, isStepCount, Output, streamText, tool } = await import("ai");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { z } = await import("zod");

  const modelsOf = (lab: Lab, options: object = {}) =>
    createOpenAICompatible({
      name: "chat-gateway",
      baseURL: lab.baseURL,
      apiKey: KEY,
      includeUsage: true,
      supportsStructuredOutputs: true,
      ...options,
    });

  async function start(t: TestContext, over: object = {}) {
    const lab = await startLab(t, over);
    return { ...lab, lab, models: modelsOf(lab) };
  }

  const prompt = "What time is it in Oslo?";
  /** No retries unless a test is about them. */
  const base = { prompt, maxRetries: 0 };
  /** By default streamText writes errors to the console; here they are looked for in the stream. */
  const streaming = { ...base, onError: () => undefined };
  const thinking = { providerOptions: { chatGateway: { thinking: { type: "enabled" } } } };
  const get_time = tool({
    description: "The time in a city",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => clock(city),
  });

  for (const behind of DIALECTS) {
    describe(`${behind} behind the gateway`, () => {
      const named = (name: string) => modelName(behind, name);

      for (const name of TALKERS) {
        it(`${name}: a streamed reply is the whole reply in pieces`, async (t) => {
          const { models } = await start(t);
          const model = models(named(name));
          const whole = await generateText({ ...base, model });
          assert.equal(whole.finishReason, "stop");
          assert.equal(whole.reasoningText, undefined);
          if (name === "exact") assert.equal(whole.text, TEXT);
          const streamed = streamText({ ...streaming, model });
          const pieces = await collect(streamed.textStream);
          assert.ok(pieces.length > 5);
          assert.equal(pieces.join(""), whole.text);
          assert.deepEqual(
            [await streamed.finishReason, (await streamed.response).modelId],
            ["stop", named(name)],
          );
        });
      }

      it("counts tokens the same whole and streamed", async (t) => {
        const { models } = await start(t);
        const { usage } = await generateText({ ...base, model: models(named("exact")) });
        assert.deepEqual([usage.inputTokens, usage.outputTokens, usage.totalTokens], [20, 7, 27]);
        assert.deepEqual(
          [usage.inputTokenDetails.cacheReadTokens, usage.outputTokenDetails.reasoningTokens],
          [8, 3],
        );
        assert.deepEqual(
          await streamText({ ...streaming, model: models(named("exact")) }).usage,
          usage,
        );
      });

      it("goes round its tool loop, whole and streamed", async (t) => {
        const { models } = await start(t);
        const loop = {
          model: models(named("demo-chat")),
          tools: { get_time },
          stopWhen: isStepCount(3),
        };
        const whole = await generateText({ ...base, ...loop });
        const streamed = streamText({ ...streaming, ...loop });
        await streamed.consumeStream();
        for (const steps of [whole.steps, await streamed.steps]) {
          assert.deepEqual(
            steps.map(({ finishReason }) => finishReason),
            ["tool-calls", "stop"],
          );
          assert.deepEqual(
            [steps[0]?.toolCalls[0]?.input, steps[0]?.toolResults[0]?.output],
            [{ city: "Oslo" }, "14:05"],
          );
          assert.equal(steps[1]?.text, "The tool says: 14:05");
        }
      });

      it("calls no tool where the client says none", async (t) => {
        const { models } = await start(t);
        const { toolCalls, finishReason } = await generateText({
          ...base,
          model: models(named("demo-chat")),
          tools: { get_time },
          toolChoice: "none",
        });
        assert.deepEqual([toolCalls, finishReason], [[], "stop"]);
      });

      it("parallel calls arrive byte for byte in interleaved fragments, and their results go back", async (t) => {
        const { models, provider } = await start(t);
        const loop = {
          model: models(named("parallel")),
          tools: { get_time },
          stopWhen: isStepCount(3),
        };
        const inputs: Record<string, string> = {};
        const streamed = streamText({ ...streaming, ...loop });
        for await (const part of streamed.stream)
          if (part.type === "tool-input-delta")
            inputs[part.id] = (inputs[part.id] ?? "") + part.delta;
        assert.deepEqual(
          inputs,
          Object.fromEntries(callsVia(behind, true).map((call) => [call.id, call.arguments])),
        );
        assert.equal(await streamed.text, AFTER_CALLS);

        const whole = await generateText({ ...base, ...loop });
        assert.equal(whole.text, AFTER_CALLS);
        assert.deepEqual(
          whole.steps[0]?.toolCalls.map(({ toolCallId, toolName }) => [toolCallId, toolName]),
          CALLS.map(({ id, name }) => [id, name]),
        );
        const results = CALLS.map(({ id }, index) => ({
          role: "tool",
          tool_call_id: id,
          content: ["14:05", "08:05"][index],
        }));
        for (const at of [1, 3])
          assert.deepEqual(provider(behind).heard[at]?.messages.slice(2), results);
      });

      it("JSON mode and structured output", async (t) => {
        const { models } = await start(t);
        const loose = await generateText({
          ...base,
          model: models(named("demo-chat")),
          output: Output.json(),
        });
        assert.equal((loose.output as { question?: string }).question, prompt);
        const output = Output.object({
          schema: z.object({ city: z.string(), hours: z.int().min(7), open: z.boolean() }),
        });
        const expected = { city: "Oslo", hours: 7, open: true };
        assert.deepEqual(
          (await generateText({ ...base, model: models(named("demo-chat")), output })).output,
          expected,
        );
        const streamed = streamText({ ...streaming, model: models(named("demo-chat")), output });
        assert.deepEqual((await collect(streamed.partialOutputStream)).at(-1), expected);
        assert.deepEqual(await streamed.output, expected);
      });

      it("thinking is asked for with a provider option, and its text surfaces whole and streamed", async (t) => {
        const { models, provider } = await start(t);
        const whole = await generateText({ ...base, ...thinking, model: models(named("exact")) });
        assert.deepEqual([whole.reasoningText, whole.text], [REASONING, TEXT]);
        const streamed = streamText({ ...streaming, ...thinking, model: models(named("exact")) });
        assert.deepEqual([await streamed.reasoningText, await streamed.text], [REASONING, TEXT]);
        assert.deepEqual(
          provider(behind).heard.map(({ thinking }) => thinking),
          [{ type: "enabled" }, { type: "enabled" }],
        );
      });

      it("thinks before a tool call, and takes its thoughts along into the next step", async (t) => {
        const { models } = await start(t);
        const { steps } = await generateText({
          ...base,
          ...thinking,
          model: models(named("demo-reasoner")),
          tools: { get_time },
          stopWhen: isStepCount(3),
        });
        assert.match(steps[0]?.reasoningText ?? "", /The tool get_time can tell/);
        assert.equal(steps[1]?.text, "The tool says: 14:05");
      });

      it("leaving in mid-stream closes the provider's connection", async (t) => {
        const { models, lab } = await start(t);
        const abort = new AbortController();
        const parts: string[] = [];
        let text = "";
        for await (const part of streamText({
          ...streaming,
          model: models(named("endless")),
          abortSignal: abort.signal,
        }).stream) {
          parts.push(part.type);
          if (part.type === "text-delta") text += part.text;
          if (text === BEFORE_BAD_ENDING) abort.abort();
        }
        assert.ok(parts.includes("abort") && !parts.includes("finish"), parts.join());
        await assertLeft(lab, behind);
      });

      for (const name of BAD_ENDINGS) {
        it(`${name}: a stream that breaks off is an error, never a reply`, async (t) => {
          const { models } = await start(t);
          const result = streamText({ ...streaming, model: models(named(name)) });
          const parts = await collect(result.stream);
          assert.equal(
            parts.flatMap((part) => (part.type === "text-delta" ? [part.text] : [])).join(""),
            BEFORE_BAD_ENDING,
          );
          const error = parts.find((part) => part.type === "error")?.error;
          assert.match(
            JSON.stringify(error) + String(error),
            /failed before its reply was complete/,
          );
          const finish = parts.find((part) => part.type === "finish");
          assert.ok(finish === undefined || finish.finishReason === "error");
        });
      }
    });
  }

  const failures = [
    { status: 400, code: "invalid_value", retryable: false, body: { temperature: 3 } },
    { status: 401, code: "invalid_api_key", retryable: false, key: "sk-nobody" },
    {
      status: 403,
      code: "model_not_allowed",
      retryable: false,
      key: RESTRICTED_KEY,
      model: "exact",
    },
    { status: 404, code: "model_not_found", retryable: false, model: "no-such-model" },
    { status: 429, code: "rate_limit_exceeded", retryable: true, over: { limits: { rpm: 0 } } },
    ...DIALECTS.map(
      (behind) =>
        ({
          status: 503,
          code: "upstream_error",
          retryable: true,
          model: modelName(behind, "broken"),
        }) as const,
    ),
  ] as const;
  for (const failure of failures) {
    it(`status ${failure.status}${"model" in failure ? ` of ${failure.model}` : ""}`, async (t) => {
      const lab = await startLab(t, "over" in failure ? failure.over : {});
      const models = modelsOf(lab, "key" in failure ? { apiKey: failure.key } : {});
      const headers = { "X-Request-Id": `my-${failure.code}` };
      const call = {
        ...("body" in failure ? failure.body : {}),
        headers,
        model: models("model" in failure ? failure.model : "demo-chat"),
      };
      const check = (error: unknown): true => {
        assert.ok(APICallError.isInstance(error));
        assert.deepEqual(
          [error.statusCode, error.isRetryable],
          [failure.status, failure.retryable],
        );
        assert.equal((error.data as { error: { code: string } }).error.code, failure.code);
        assert.equal(error.responseHeaders?.["x-request-id"], `my-${failure.code}`);
        assert.equal(JSON.parse(error.responseBody ?? "").error.request_id, `my-${failure.code}`);
        return true;
      };
      await assert.rejects(generateText({ ...base, ...call }), check);
      const parts = await collect(streamText({ ...streaming, ...call }).stream);
      assert.equal(
        parts.some(({ type }) => type === "finish-step"),
        false,
      );
      check(parts.find((part) => part.type === "error")?.error);
    });
  }

  it("knows the request's id: the one it sent, else a generated one", async (t) => {
    const { models } = await start(t);
    const sent = await generateText({
      ...base,
      model: models("demo-chat"),
      headers: { "X-Request-Id": "order 66/a" },
    });
    assert.equal(sent.response.headers?.["x-request-id"], "order 66/a");
    const streamed = streamText({ ...streaming, model: models("demo-chat") });
    assert.match((await streamed.response).headers?.["x-request-id"] ?? "", GENERATED_ID);
  });

  it("comes back after a 429 when the gateway said, under the same id", async (t) => {
    const lab = await startFullLab(t);
    const began = performance.now();
    const call = {
      ...base,
      maxRetries: 1,
      model: modelsOf(lab)("exact"),
      headers: { "X-Request-Id": "again" },
    };
    const { text } = await within(generateText(call), "the retry");
    assert.equal(text, TEXT);
    // The client's own pause would have been two seconds.
    const paused = performance.now() - began;
    assert.ok(
      paused > 990 && paused < 2_000,
      `Retry-After of 1 second was obeyed, not ${paused} ms`,
    );
    assert.deepEqual(await statuses(lab, 3), [200, 429, 200]);
    assert.deepEqual(
      lab.access.slice(1).map((line) => line["request_id"]),
      ["again", "again"],
    );
  });
});
