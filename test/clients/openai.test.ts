// The official openai client for JavaScript, unmodified, against the running gateway.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import {
  AFTER_CALLS,
  assertLeft,
  BAD_ENDINGS,
  CALLS,
  callsVia,
  clock,
  collect,
  DIALECTS,
  GENERATED_ID,
  GENERATIONS,
  hasLogprobs,
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

  async function start(t: TestContext, over: object = {}) {
    const lab = await startLab(t, over);
    return { ...lab, lab, client: clientOf(lab) };
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
      const helped = await completions.stream(body).finalChatCompletion();
      const message = helped.choices[0]!.message;
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

  for (const behind of DIALECTS) {
    describe(`${behind} behind the gateway`, () => {
      const named = (name: string) => modelName(behind, name);

      it("without tool_choice no tool is called, unless the operator has said so", async (t) => {
        for (const [compat, finish] of [
          [{}, "stop"],
          [{ tool_choice_default: "auto" }, "tool_calls"],
        ] as const) {
          const { client } = await start(t, { compat });
          const { choices } = await client.chat.completions.create({
            model: named("demo-chat"),
            messages,
            tools: [tool],
          });
          assert.equal(choices[0]?.finish_reason, finish);
        }
      });

      it("counts tokens the same whole and streamed", async (t) => {
        const { client } = await start(t);
        const model = named("exact");
        const whole = await client.chat.completions.create({ model, messages });
        assert.equal(whole.object, "chat.completion");
        // Anthropic states what it wrote to its cache.
        const prompt_tokens_details = {
          cached_tokens: 8,
          ...(behind === "anthropic" && { cache_write_tokens: 2 }),
        };
        const counted = {
          prompt_tokens: 20,
          completion_tokens: 7,
          total_tokens: 27,
          prompt_tokens_details,
          completion_tokens_details: { reasoning_tokens: 3 },
        };
        const usage = { ...counted, prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 12 };
        assert.deepEqual(whole.usage, usage);
        const streamed = { model, messages, stream_options: { include_usage: true } };
        const chunks = await collect(
          await client.chat.completions.create({ ...streamed, stream: true }),
        );
        assert.deepEqual(
          chunks.filter((chunk) => chunk.usage).map((chunk) => chunk.usage),
          [usage],
        );
        assert.deepEqual(await client.chat.completions.stream(streamed).totalUsage(), counted);
      });

      it("parallel calls arrive byte for byte, whole and put together, and go back as they came", async (t) => {
        const { client, provider } = await start(t);
        const body = toolsOf(named("parallel"));
        const expected = (streamed: boolean) =>
          callsVia(behind, streamed).map(({ id, name, arguments: args }) => ({
            id,
            type: "function",
            function: { name, arguments: args },
          }));
        const whole = await client.chat.completions.create(body);
        assert.deepEqual(whole.choices[0]?.message.tool_calls, expected(false));
        const helped = await client.chat.completions.stream(body).finalChatCompletion();
        const { message } = helped.choices[0]!;
        assert.deepEqual(
          callsOf(message).map(({ id, type, function: { name, arguments: args } }) => ({
            id,
            type,
            function: { name, arguments: args },
          })),
          expected(true),
        );
        const results = resultsOf(message);
        await client.chat.completions.create({
          ...body,
          messages: [...messages, message, ...results],
        });
        const { messages: heard } = provider(behind).heard.at(-1)!;
        assert.deepEqual(heard[1]!["tool_calls"], expected(false));
        assert.deepEqual(heard.slice(2), results);
      });

      it("a stream that breaks off is an exception of the streaming helper too", async (t) => {
        const { client } = await start(t);
        for (const name of BAD_ENDINGS)
          await assert.rejects(
            client.chat.completions.stream({ model: named(name), messages }).finalChatCompletion(),
            OpenAI.OpenAIError,
            name,
          );
      });

      it("log probabilities", async (t) => {
        const { client } = await start(t);
        const asked = client.chat.completions.create({
          model: named("demo-chat"),
          messages,
          logprobs: true,
          top_logprobs: 2,
        });
        if (!hasLogprobs(behind)) {
          return assert.rejects(asked, (error) => {
            assert.ok(error instanceof OpenAI.BadRequestError);
            assert.deepEqual([error.code, error.param], ["unsupported_value", "logprobs"]);
            return true;
          });
        }
        const { choices } = await asked;
        const tokens = choices[0]!.logprobs!.content!;
        assert.equal(tokens.map(({ token }) => token).join(""), choices[0]!.message.content);
        assert.ok(tokens.every(({ top_logprobs }) => top_logprobs.length === 2));
      });

      it("leaving before the first token closes the provider's connection", async (t) => {
        const { client, provider, lab } = await start(t);
        const abort = new AbortController();
        const pending = assert.rejects(
          client.chat.completions.create(
            { model: named("silent"), messages },
            { signal: abort.signal },
          ),
          OpenAI.APIUserAbortError,
        );
        await provider(behind).nth(0);
        abort.abort();
        await pending;
        await assertLeft(lab, behind, "silent");
      });
    });
  }

  for (const behind of GENERATIONS) {
    it(`${behind}: calls that were thought about go back with their thoughts, and so do the results`, async (t) => {
      const { client, provider } = await start(t);
      const base = { ...toolsOf(modelName(behind, "parallel")), thinking: { type: "enabled" } };
      const whole = (await client.chat.completions.create(base)).choices[0]!.message;
      const streamed = (await client.chat.completions.stream(base).finalChatCompletion())
        .choices[0]!.message;
      assert.equal((whole as { reasoning_content?: string }).reasoning_content, REASONING);
      for (const message of [whole, streamed]) {
        assert.deepEqual(
          callsOf(message).map((call) => JSON.parse(call.function.arguments)),
          CALLS.map((call) => JSON.parse(call.arguments)),
        );
        const results = resultsOf(message);
        const answer = await client.chat.completions.create({
          ...base,
          messages: [...messages, message, ...results],
        });
        assert.equal(answer.choices[0]?.message.content, AFTER_CALLS);
        // This may stand in place of a signature that was lost; here none may be.
        if (behind.startsWith("gemini"))
          assert.doesNotMatch(
            JSON.stringify(provider(behind).asked.at(-1)!.body),
            /skip_thought_signature_validator/,
          );
        const { messages: heard, thinking } = provider(behind).heard.at(-1)!;
        assert.deepEqual(
          [thinking.type, heard.slice(2).map(({ content }) => content)],
          ["enabled", ["14:05", "08:05"]],
        );
      }
    });
  }

  // The models called exact think, the others do not; the first of these is the gateway's own.
  for (const [behind, name] of [
    ...GENERATIONS.map((behind) => [behind, "exact"] as const),
    ...GENERATIONS.slice(1).map((behind) => [behind, "demo-chat"] as const),
  ]) {
    it(`${modelName(behind, name)} goes on with a tool loop that began elsewhere`, async (t) => {
      const { client, provider } = await start(t);
      const calls = CALLS.map((call, at) => ({
        id: `functions.get_time:${at}`,
        type: "function" as const,
        function: { name: call.name, arguments: call.arguments },
      }));
      const results = calls.map(({ id }, at) => ({
        role: "tool" as const,
        tool_call_id: id,
        content: ["14:05", "08:05"][at]!,
      }));
      const loop = [
        ...messages,
        { role: "assistant" as const, content: "I look.", tool_calls: calls },
        ...results.toReversed(),
      ];
      for (const thinking of [{ type: "disabled" }, { type: "enabled" }]) {
        const body = {
          model: modelName(behind, name),
          messages: loop,
          tools: [tool],
          tool_choice: "auto" as const,
          thinking,
        };
        assert.equal(
          (await client.chat.completions.create(body)).choices[0]?.finish_reason,
          "stop",
        );
        const heard = provider(behind)
          .heard.at(-1)!
          .messages.filter(({ role }) => role === "tool");
        assert.deepEqual(heard.map(({ content }) => content).sort(), ["08:05", "14:05"]);
      }
    });
  }

  it("an alias is served, and the reply names the model that served it", async (t) => {
    const { client } = await start(t);
    const { model, choices } = await client.chat.completions.create({
      model: "auto/reasoning",
      messages,
    });
    assert.equal(model, "demo-reasoner");
    assert.notEqual(choices[0]?.message.content, "");
  });

  it("lists models and aliases", async (t) => {
    const { client } = await start(t);
    const ids = (await collect(client.models.list())).map(({ id }) => id);
    for (const id of ["demo-chat", "demo-reasoner", "exact", "auto/chat", "auto/reasoning"])
      assert.ok(ids.includes(id), id);
  });

  it("knows the request's id: the one it sent, else a generated one", async (t) => {
    const { client } = await start(t);
    const sent = await client.chat.completions.create(
      { model: "demo-chat", messages },
      { headers: { "X-Request-Id": "order 66/a" } },
    );
    assert.equal(sent._request_id, "order 66/a");
    const generated = await client.chat.completions.create({ model: "demo-chat", messages });
    assert.match(generated._request_id ?? "", GENERATED_ID);
    const { data, request_id } = await client.chat.completions
      .create({ model: "demo-chat", messages, stream: true })
      .withResponse();
    assert.match(request_id ?? "", GENERATED_ID);
    assert.ok((await collect(data)).length > 0);
    await assert.rejects(
      client.chat.completions.create({ model: "no-such-model", messages }),
      (error) => {
        assert.ok(error instanceof OpenAI.NotFoundError);
        assert.match(error.requestID ?? "", GENERATED_ID);
        assert.equal((error.error as { request_id?: string }).request_id, error.requestID);
        return true;
      },
    );
  });

  it("does not buy a generation again that took too long", async (t) => {
    const lab = await startLab(t, { timeouts: { first_token_ms: 50 } });
    const client = clientOf(lab, { maxRetries: 2 });
    await assert.rejects(client.chat.completions.create({ model: "silent", messages }), (error) => {
      assert.ok(error instanceof OpenAI.InternalServerError);
      assert.deepEqual([error.status, error.code], [503, "upstream_timeout"]);
      return true;
    });
    assert.equal(lab.provider("openai").asked.length, 1);
  });
});
