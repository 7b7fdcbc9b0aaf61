// The official openai client for JavaScript, unmodified, against the running gateway.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  callsVia,
  clock,
  collect,
  DIALECTS,
  GENERATED_ID,
  KEY,
  modelName,
  notInstalled,
  REASONING,
  startLab,
  type Lab,
} from "./lab.ts";
import { QUESTION, talks, type Adapter, type Asked, type Reply } from "./talk.ts";

const CLASSES = {
  400: "BadRequestError",
  401: "AuthenticationError",
  403: "PermissionDeniedError",
  404: "NotFoundError",
  429: "RateLimitError",
  503: "InternalServerError",
} as const;

describe("openai for JavaScript", { skip: notInstalled() }, async () => {
  const { default: OpenAI } = await import("openai");
  const { zodResponseFormat } = await import("openai/helpers/zod");
  const { z } = await import("zod");

  /** No retries unless a test is about them. */
  const clientOf = (lab: Lab, options: object = {}) =>
    new OpenAI({ baseURL: lab.baseURL, apiKey: KEY, maxRetries: 0, ...options });

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
  const toolsOf = (model: string) => ({
    model,
    messages,
    tools: [tool],
    tool_choice: "auto" as const,
  });

  type Message = { content?: string | null; reasoning_content?: string };
  const figures = (usage: any): Reply["usage"] => [
    ...[usage?.prompt_tokens, usage?.completion_tokens, usage?.total_tokens],
    ...[usage?.prompt_tokens_details?.cached_tokens],
    ...[usage?.completion_tokens_details?.reasoning_tokens],
  ];
  const bodyOf = ({ model, temperature, thinking }: Asked) => ({
    model,
    messages,
    ...(temperature !== undefined && { temperature }),
    ...(thinking && { thinking: { type: "enabled" } }),
  });

  const adapter: Adapter = {
    async ask(lab, asked) {
      const { key: apiKey = KEY, retries: maxRetries = 0, requestId } = asked;
      const { completions } = clientOf(lab, { apiKey, maxRetries }).chat;
      const options = requestId === undefined ? {} : { headers: { "X-Request-Id": requestId } };
      if (!asked.stream) {
        const { model, choices, usage } = await completions.create(bodyOf(asked), options);
        const message = choices[0]!.message as Message;
        assert.equal("reasoning_content" in message, asked.thinking === true);
        const { content: text, reasoning_content: thoughts } = message;
        const finish = choices[0]!.finish_reason;
        return { model, text, thoughts, finish, usage: figures(usage), pieces: 0 };
      }
      const stream_options = { include_usage: true };
      const body = { ...bodyOf(asked), stream: true as const, stream_options };
      const chunks = await collect(await completions.create(body, options));
      const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta as Message));
      const finishes = chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? []);
      assert.deepEqual(chunks.at(-1)?.choices, []);
      const helped = completions.stream({ ...bodyOf(asked), stream_options }, options);
      const text = deltas.map(({ content }) => content ?? "").join("");
      const [last] = (await helped.finalChatCompletion()).choices;
      assert.deepEqual([last?.message.role, last?.message.content], ["assistant", text]);
      assert.equal(last?.finish_reason, finishes.join());
      assert.deepEqual(figures(await helped.totalUsage()), figures(chunks.at(-1)?.usage));
      return {
        model: chunks[0]?.model,
        text,
        thoughts: deltas.map((delta) => delta.reasoning_content ?? "").join("") || undefined,
        finish: finishes.join(),
        usage: figures(chunks.at(-1)?.usage),
        pieces: chunks.length,
      };
    },
    async loop(lab, model, stream) {
      const called: string[] = [];
      const runnable = {
        ...tool,
        function: {
          ...tool.function,
          parse: JSON.parse,
          function: ({ city }: { city: string }) => {
            called.push("get_time");
            return clock(city);
          },
        },
      };
      const body = { ...toolsOf(model), tools: [runnable] };
      const { completions } = clientOf(lab).chat;
      const runner = stream
        ? completions.runTools({ ...body, stream: true })
        : completions.runTools(body);
      const answer = await runner.finalContent();
      const roles = runner.messages.map(({ role }) => role);
      assert.deepEqual(roles, ["user", "assistant", "tool", "assistant"]);
      return [...called, answer ?? ""];
    },
    async parallel(lab, model) {
      const { completions } = clientOf(lab).chat;
      const body = toolsOf(model);
      const fragments: { id: string; name: string; arguments: string }[] = [];
      for await (const { choices } of await completions.create({ ...body, stream: true })) {
        for (const { index, id, function: called } of choices[0]?.delta.tool_calls ?? []) {
          fragments[index] ??= { id: "", name: "", arguments: "" };
          const call = fragments[index];
          call.id += id ?? "";
          call.name += called?.name ?? "";
          call.arguments += called?.arguments ?? "";
        }
      }
      const whole = (await completions.create(body)).choices[0]!;
      assert.equal(whole.finish_reason, "tool_calls");
      const { message } = (await completions.stream(body).finalChatCompletion()).choices[0]!;
      const answer = await completions.create({
        ...body,
        messages: [...messages, message, ...resultsOf(message)],
      });
      return {
        streamed: fragments,
        whole: callsOf(whole.message).map((call) => ({
          id: call.id,
          args: JSON.parse(call.function.arguments),
        })),
        answer: answer.choices[0]?.message.content,
      };
    },
    async json(lab, model) {
      const { completions } = clientOf(lab).chat;
      const response_format = { type: "json_object" as const };
      const loose = await completions.create({ model, messages, response_format });
      const schema = z.object({ city: z.string(), hours: z.int().min(7), open: z.boolean() });
      const strict = { model, messages, response_format: zodResponseFormat(schema, "opening") };
      const replies = [
        await completions.parse(strict),
        await completions.stream(strict).finalChatCompletion(),
      ];
      return {
        loose: JSON.parse(loose.choices[0]!.message.content!),
        strict: replies.map(({ choices }) => choices[0]?.message.parsed),
      };
    },
    async read(lab, model, told) {
      const stream = await clientOf(lab).chat.completions.create({ model, messages, stream: true });
      for await (const { choices } of stream) {
        assert.equal(choices[0]?.finish_reason, null);
        told(choices[0]?.delta.content ?? "", () => stream.controller.abort());
      }
    },
    assertBroken(error) {
      assert.ok(error instanceof OpenAI.APIError);
      const { code, type, error: body } = error;
      assert.deepEqual([code, type], ["upstream_error", "service_unavailable_error"]);
      assert.match((body as { request_id: string }).request_id, GENERATED_ID);
    },
    refusal(error) {
      const { status, code, param, requestID: id } = error;
      assert.ok(error instanceof OpenAI[CLASSES[status as keyof typeof CLASSES]]);
      assert.equal((error.error as { request_id?: string }).request_id, id);
      return { status, code, param, id };
    },
  };
  talks(adapter);

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

  for (const behind of DIALECTS)
    it(`${behind}: calls that were thought about go back as they came, with their thoughts and results`, async (t) => {
      const lab = await startLab(t);
      const { completions } = clientOf(lab).chat;
      const base = { ...toolsOf(modelName(behind, "parallel")), thinking: { type: "enabled" } };
      const whole = (await completions.create(base)).choices[0]!.message;
      assert.equal((whole as Message).reasoning_content, REASONING);
      const [streamed] = (await completions.stream(base).finalChatCompletion()).choices;
      const sent = callsVia(behind, false).map(({ id, name, arguments: args }) => ({
        id,
        type: "function",
        function: { name, arguments: args },
      }));
      for (const message of [whole, streamed!.message]) {
        const results = resultsOf(message);
        await completions.create({ ...base, messages: [...messages, message, ...results] });
        // This may stand in place of a signature that was lost; here none may be.
        const body = JSON.stringify(lab.provider(behind).asked.at(-1)!.body);
        assert.doesNotMatch(body, /skip_thought_signature_validator/);
        const { messages: heard, thinking } = lab.provider(behind).heard.at(-1)!;
        assert.deepEqual([heard[1]!["tool_calls"], heard.slice(2)], [sent, results]);
        assert.equal(thinking.type, "enabled");
      }
    });

  it("does not buy a generation again that took too long", async (t) => {
    const lab = await startLab(t, { timeouts: { first_token_ms: 50 } });
    const client = clientOf(lab, { maxRetries: 2 });
    await assert.rejects(client.chat.completions.create({ model: "silent", messages }), {
      status: 503,
      code: "upstream_timeout",
    });
    assert.equal(lab.provider("openai").asked.length, 1);
  });
});
