// The Vercel AI SDK with its provider for OpenAI-compatible services, unmodified, against the
// running gateway.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  clock,
  collect,
  DIALECTS,
  KEY,
  modelName,
  notInstalled,
  startLab,
  type Lab,
} from "./lab.ts";
import { QUESTION, talks, type Adapter, type Asked } from "./talk.ts";

describe("AI SDK", { skip: notInstalled() }, async () => {
  const { APICallError, generateText, isStepCount, Output, streamText, tool } = await import("ai");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { z } = await import("zod");

  const modelsOf = (lab: Lab, apiKey = KEY) =>
    createOpenAICompatible({
      name: "chat-gateway",
      baseURL: lab.baseURL,
      apiKey,
      includeUsage: true,
      supportsStructuredOutputs: true,
    });
  /** No retries unless a test is about them. Errors are not written to the console. */
  const base = { prompt: QUESTION, maxRetries: 0 };
  const streaming = { ...base, onError: () => undefined };
  const thinking = { providerOptions: { chatGateway: { thinking: { type: "enabled" } } } };
  const get_time = tool({
    description: "The time in a city",
    inputSchema: z.looseObject({ city: z.string() }),
    execute: async ({ city }) => clock(city),
  });
  const stepsOf = (lab: Lab, model: string) => ({
    model: modelsOf(lab)(model),
    tools: { get_time },
    stopWhen: isStepCount(3),
  });

  type Usage = Awaited<ReturnType<typeof generateText>>["usage"];
  const figures = ({ inputTokens, outputTokens, totalTokens, ...details }: Usage) => [
    ...[inputTokens, outputTokens, totalTokens],
    ...[details.inputTokenDetails.cacheReadTokens, details.outputTokenDetails.reasoningTokens],
  ];
  const callOf = (lab: Lab, asked: Asked) => ({
    ...(asked.thinking && thinking),
    ...(asked.temperature !== undefined && { temperature: asked.temperature }),
    ...(asked.requestId !== undefined && { headers: { "X-Request-Id": asked.requestId } }),
    model: modelsOf(lab, asked.key)(asked.model),
    maxRetries: asked.retries ?? 0,
  });

  const adapter: Adapter = {
    async ask(lab, asked) {
      const call = callOf(lab, asked);
      if (!asked.stream) {
        const reply = await generateText({ ...base, ...call });
        const { text, reasoningText: thoughts, finishReason: finish, usage, response } = reply;
        return {
          model: response.modelId,
          text,
          thoughts,
          finish,
          usage: figures(usage),
          pieces: 0,
        };
      }
      const reply = streamText({ ...streaming, ...call });
      const parts = await collect(reply.stream);
      const error = parts.find((part) => part.type === "error")?.error;
      if (error !== undefined) {
        assert.ok(!parts.some(({ type }) => type === "finish-step"));
        throw error;
      }
      return {
        model: (await reply.response).modelId,
        text: await reply.text,
        thoughts: await reply.reasoningText,
        finish: await reply.finishReason,
        usage: figures(await reply.usage),
        pieces: parts.filter(({ type }) => type === "text-delta").length,
      };
    },
    async loop(lab, model, stream) {
      const call = stepsOf(lab, model);
      const streamed = stream ? streamText({ ...streaming, ...call }) : undefined;
      await streamed?.consumeStream();
      const steps = await (streamed?.steps ?? (await generateText({ ...base, ...call })).steps);
      const finishes = steps.map(({ finishReason }) => finishReason);
      assert.deepEqual(finishes, ["tool-calls", "stop"]);
      const [{ toolCalls: calls, toolResults: results } = assert.fail("no step")] = steps;
      assert.deepEqual([calls[0]?.input, results[0]?.output], [{ city: "Oslo" }, "14:05"]);
      return steps.map(({ toolCalls, text }) => toolCalls[0]?.toolName ?? text);
    },
    async parallel(lab, model) {
      const inputs = new Map<string, { id: string; name: string; arguments: string }>();
      const streamed = streamText({ ...streaming, ...stepsOf(lab, model) });
      for await (const part of streamed.stream) {
        if (part.type === "tool-input-start")
          inputs.set(part.id, { id: part.id, name: part.toolName, arguments: "" });
        if (part.type === "tool-input-delta") inputs.get(part.id)!.arguments += part.delta;
      }
      const whole = await generateText({ ...base, ...stepsOf(lab, model) });
      const calls = whole.steps[0]!.toolCalls;
      return {
        streamed: [...inputs.values()],
        whole: calls.map(({ toolCallId, input }) => ({ id: toolCallId, args: input })),
        answer: whole.text === (await streamed.text) ? whole.text : undefined,
      };
    },
    async json(lab, name) {
      const model = modelsOf(lab)(name);
      const loose = await generateText({ ...base, model, output: Output.json() });
      const schema = z.object({ city: z.string(), hours: z.int().min(7), open: z.boolean() });
      const output = Output.object({ schema });
      const whole = await generateText({ ...base, model, output });
      const streamed = streamText({ ...streaming, model, output });
      const partial = (await collect(streamed.partialOutputStream)).at(-1);
      return { loose: loose.output, strict: [whole.output, partial, await streamed.output] };
    },
    async read(lab, model, told) {
      const abort = new AbortController();
      const { signal: abortSignal } = abort;
      const { stream } = streamText({ ...streaming, model: modelsOf(lab)(model), abortSignal });
      const types: string[] = [];
      for await (const part of stream) {
        types.push(part.type);
        if (part.type === "text-delta") told(part.text, () => abort.abort());
        if (part.type === "error") throw part.error;
        assert.ok(part.type !== "finish" || part.finishReason === "error");
      }
      assert.ok(types.includes("abort") && !types.includes("finish"), types.join());
    },
    assertBroken: (error) =>
      assert.match(JSON.stringify(error) + String(error), /failed before its reply was complete/),
    refusal(error) {
      assert.ok(APICallError.isInstance(error));
      const { statusCode: status = 0, responseHeaders, responseBody = "", data } = error;
      assert.equal(error.isRetryable, status >= 429);
      const id = responseHeaders?.["x-request-id"];
      const { request_id, param } = JSON.parse(responseBody).error;
      assert.equal(request_id, id);
      return { status, code: (data as { error: { code: string } }).error.code, param, id };
    },
    ownPauseMs: 2_000,
  };
  talks(adapter);

  for (const behind of DIALECTS) {
    it(`${behind}: calls no tool where the client says none`, async (t) => {
      const call = stepsOf(await startLab(t), modelName(behind, "demo-chat"));
      const { toolCalls, finishReason } = await generateText({
        ...base,
        ...call,
        toolChoice: "none",
      });
      assert.deepEqual([toolCalls, finishReason], [[], "stop"]);
    });

    it(`${behind}: thinks before a call, and takes its thoughts along into the next step`, async (t) => {
      const call = stepsOf(await startLab(t), modelName(behind, "demo-reasoner"));
      const { steps } = await generateText({ ...base, ...thinking, ...call });
      assert.match(steps[0]?.reasoningText ?? "", /The tool get_time can tell/);
      assert.equal(steps[1]?.text, "The tool says: 14:05");
    });
  }
});
