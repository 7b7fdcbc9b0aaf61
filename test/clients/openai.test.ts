// The official openai client for JavaScript, unmodified, against the running gateway.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { GatewayDeps } from "../support/config.ts";
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
  GENERATIONS,
  hasLogprobs,
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

describe("openai for JavaScript", { skip: notInstalled() }, async () => {
  const { default: OpenAI } = await import("openai");
  const { zodResponseFormat } = await import("openai/helpers/zod");
  const { z } = await import("zod");

  /** No retries unless a test is about them. */
  const clientOf = (lab: Lab, options: object = {}) =>
    new OpenAI({ baseURL: lab.baseURL, apiKey: KEY, maxRetries: 0, ...options });

  async function start(t: TestContext, over: object = {}, deps: GatewayDeps = {}) {
    const lab = await startLab(t, over, deps);
    return { ...lab, lab, client: clientOf(lab) };
  }

  const messages = [{ role: "user" as const, content: "What time is it in Oslo?" }];
  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
  };
  const tool = {
    type: "function" as const,
    function: { name: "get_time", description: "The time in a city", parameters },
  };

  for (const behind of DIALECTS) {
    describe(`${behind} behind the gateway`, () => {
      const named = (name: string) => modelName(behind, name);

      for (const name of TALKERS) {
        it(`${name}: a streamed reply is the whole reply in pieces`, async (t) => {
          const { client } = await start(t);
          const model = named(name);
          const whole = await client.chat.completions.create({ model, messages });
          assert.equal(whole.object, "chat.completion");
          assert.equal(whole.model, model);
          assert.equal(whole.choices[0]?.finish_reason, "stop");
          assert.equal("reasoning_content" in whole.choices[0].message, false);
          if (name === "exact") assert.equal(whole.choices[0].message.content, TEXT);
          const chunks = await collect(
            await client.chat.completions.create({ model, messages, stream: true }),
          );
          assert.ok(chunks.length > 5);
          assert.equal(
            chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""),
            whole.choices[0].message.content,
          );
          const helped = await client.chat.completions
            .stream({ model, messages })
            .finalChatCompletion();
          assert.deepEqual(
            [
              helped.choices[0]?.message.role,
              helped.choices[0]?.message.content,
              helped.choices[0]?.finish_reason,
            ],
            ["assistant", whole.choices[0].message.content, "stop"],
          );
        });
      }

      it("counts tokens the same whole and streamed", async (t) => {
        const { client } = await start(t);
        const { usage } = await client.chat.completions.create({ model: named("exact"), messages });
        // Anthropic states what it wrote to its cache.
        const prompt_tokens_details = {
          cached_tokens: 8,
          ...(behind === "anthropic" && { cache_write_tokens: 2 }),
        };
        assert.deepEqual(usage, {
          prompt_tokens: 20,
          completion_tokens: 7,
          total_tokens: 27,
          prompt_cache_hit_tokens: 8,
          prompt_cache_miss_tokens: 12,
          prompt_tokens_details,
          completion_tokens_details: { reasoning_tokens: 3 },
        });
        const chunks = await collect(
          await client.chat.completions.create({
            model: named("exact"),
            messages,
            stream: true,
            stream_options: { include_usage: true },
          }),
        );
        assert.deepEqual(
          chunks.filter((chunk) => chunk.usage).map((chunk) => chunk.usage),
          [usage],
        );
        assert.deepEqual(chunks.at(-1)?.choices, []);
        const helped = client.chat.completions.stream({
          model: named("exact"),
          messages,
          stream_options: { include_usage: true },
        });
        assert.deepEqual(await helped.totalUsage(), {
          prompt_tokens: 20,
          completion_tokens: 7,
          total_tokens: 27,
          prompt_tokens_details,
          completion_tokens_details: { reasoning_tokens: 3 },
        });
      });

      for (const stream of [false, true]) {
        it(`${stream ? "streamed" : "whole"}: the tool runner goes round its loop`, async (t) => {
          const { client } = await start(t);
          const asked: string[] = [];
          const runnable = {
            type: "function" as const,
            function: {
              name: "get_time",
              description: "The time in a city",
              parameters,
              parse: JSON.parse,
              function: ({ city }: { city: string }) => {
                asked.push(city);
                return clock(city);
              },
            },
          };
          const base = {
            model: named("demo-chat"),
            messages,
            tools: [runnable],
            tool_choice: "auto" as const,
          };
          const runner = stream
            ? client.chat.completions.runTools({ ...base, stream: true })
            : client.chat.completions.runTools(base);
          assert.equal(await runner.finalContent(), "The tool says: 14:05");
          assert.deepEqual(asked, ["Oslo"]);
          assert.deepEqual(
            runner.messages.map(({ role }) => role),
            ["user", "assistant", "tool", "assistant"],
          );
        });
      }

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

      it("parallel calls arrive byte for byte, whole and in interleaved fragments, and their results go back", async (t) => {
        const { client, provider } = await start(t);
        const base = {
          model: named("parallel"),
          messages,
          tools: [tool],
          tool_choice: "auto" as const,
        };
        const expected = (streamed: boolean) =>
          callsVia(behind, streamed).map(({ id, name, arguments: args }) => ({
            id,
            type: "function",
            function: { name, arguments: args },
          }));
        const whole = await client.chat.completions.create(base);
        assert.deepEqual(whole.choices[0]?.message.tool_calls, expected(false));
        assert.equal(whole.choices[0].finish_reason, "tool_calls");

        const fragments: Record<number, { id: string; name: string; arguments: string }> = {};
        for await (const { choices } of await client.chat.completions.create({
          ...base,
          stream: true,
        })) {
          for (const { index, id, function: called } of choices[0]?.delta.tool_calls ?? []) {
            fragments[index] ??= { id: "", name: "", arguments: "" };
            const call = fragments[index];
            call.id += id ?? "";
            call.name += called?.name ?? "";
            call.arguments += called?.arguments ?? "";
          }
        }
        assert.deepEqual(Object.values(fragments), callsVia(behind, true));

        const helped = await client.chat.completions.stream(base).finalChatCompletion();
        const message = helped.choices[0]!.message;
        const calls = (message.tool_calls ?? []).flatMap((call) =>
          call.type === "function" ? [call] : [],
        );
        assert.deepEqual(
          calls.map(({ id, type, function: { name, arguments: args } }) => ({
            id,
            type,
            function: { name, arguments: args },
          })),
          expected(true),
        );
        const results = CALLS.map((call) => ({
          role: "tool" as const,
          tool_call_id: call.id,
          content: clock(JSON.parse(call.arguments).city),
        }));
        const answer = await client.chat.completions.create({
          ...base,
          messages: [...messages, message, ...results],
        });
        assert.equal(answer.choices[0]?.message.content, AFTER_CALLS);
        const { messages: heard } = provider(behind).heard.at(-1)!;
        assert.deepEqual(heard[1]!["tool_calls"], expected(false));
        assert.deepEqual(heard.slice(2), results);
      });

      it("JSON mode and structured output", async (t) => {
        const { client } = await start(t);
        const loose = await client.chat.completions.create({
          model: named("demo-chat"),
          messages,
          response_format: { type: "json_object" },
        });
        assert.equal(
          JSON.parse(loose.choices[0]!.message.content!).question,
          "What time is it in Oslo?",
        );
        const schema = z.object({ city: z.string(), hours: z.int().min(7), open: z.boolean() });
        const strict = {
          model: named("demo-chat"),
          messages,
          response_format: zodResponseFormat(schema, "opening"),
        };
        const expected = { city: "Oslo", hours: 7, open: true };
        assert.deepEqual(
          (await client.chat.completions.parse(strict)).choices[0]?.message.parsed,
          expected,
        );
        assert.deepEqual(
          (await client.chat.completions.stream(strict).finalChatCompletion()).choices[0]?.message
            .parsed,
          expected,
        );
      });

      it("thinking is asked for with an extra field, and its text surfaces whole and streamed", async (t) => {
        const { client, provider } = await start(t);
        const base = { model: named("exact"), messages, thinking: { type: "enabled" } };
        const { message } = (await client.chat.completions.create(base)).choices[0]!;
        assert.deepEqual(
          [(message as { reasoning_content?: string }).reasoning_content, message.content],
          [REASONING, TEXT],
        );
        let reasoning = "";
        for await (const { choices } of await client.chat.completions.create({
          ...base,
          stream: true,
        })) {
          reasoning +=
            (choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ??
            "";
        }
        assert.equal(reasoning, REASONING);
        assert.deepEqual(
          provider(behind).heard.map(({ thinking }) => thinking),
          [{ type: "enabled" }, { type: "enabled" }],
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

      it("leaving in mid-stream closes the provider's connection", async (t) => {
        const { client, lab } = await start(t);
        const stream = await client.chat.completions.create({
          model: named("endless"),
          messages,
          stream: true,
        });
        let text = "";
        for await (const { choices } of stream) {
          text += choices[0]?.delta.content ?? "";
          if (text === BEFORE_BAD_ENDING) stream.controller.abort();
        }
        assert.equal(text, BEFORE_BAD_ENDING);
        await assertLeft(lab, behind);
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

      for (const name of BAD_ENDINGS) {
        it(`${name}: a stream that breaks off is an exception, never a reply`, async (t) => {
          const { client } = await start(t);
          const model = named(name);
          let text = "";
          const reading = async () => {
            for await (const { choices } of await client.chat.completions.create({
              model,
              messages,
              stream: true,
            })) {
              assert.equal(choices[0]?.finish_reason, null);
              text += choices[0]?.delta.content ?? "";
            }
          };
          await assert.rejects(reading(), (error) => {
            assert.ok(error instanceof OpenAI.APIError);
            assert.deepEqual(
              [error.code, error.type],
              ["upstream_error", "service_unavailable_error"],
            );
            assert.match((error.error as { request_id: string }).request_id, GENERATED_ID);
            return true;
          });
          assert.equal(text, BEFORE_BAD_ENDING);
          await assert.rejects(
            client.chat.completions.stream({ model, messages }).finalChatCompletion(),
            OpenAI.OpenAIError,
          );
        });
      }
    });
  }

  for (const behind of GENERATIONS) {
    it(`${behind}: calls that were thought about go back with their thoughts, and so do the results`, async (t) => {
      const { client, provider } = await start(t);
      const base = {
        model: modelName(behind, "parallel"),
        messages,
        tools: [tool],
        tool_choice: "auto" as const,
        thinking: { type: "enabled" },
      };
      const whole = (await client.chat.completions.create(base)).choices[0]!.message;
      const streamed = (await client.chat.completions.stream(base).finalChatCompletion())
        .choices[0]!.message;
      assert.equal((whole as { reasoning_content?: string }).reasoning_content, REASONING);
      for (const message of [whole, streamed]) {
        const calls = (message.tool_calls ?? []).flatMap((call) =>
          call.type === "function" ? [call] : [],
        );
        assert.deepEqual(
          calls.map((call) => JSON.parse(call.function.arguments)),
          CALLS.map((call) => JSON.parse(call.arguments)),
        );
        const results = calls.map((call) => ({
          role: "tool" as const,
          tool_call_id: call.id,
          content: clock(JSON.parse(call.function.arguments).city),
        }));
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

  const failures = [
    {
      class: "BadRequestError",
      status: 400,
      code: "invalid_value",
      param: "temperature",
      body: { temperature: 3 },
    },
    {
      class: "AuthenticationError",
      status: 401,
      code: "invalid_api_key",
      param: null,
      key: "sk-nobody",
    },
    {
      class: "PermissionDeniedError",
      status: 403,
      code: "model_not_allowed",
      param: "model",
      key: RESTRICTED_KEY,
      body: { model: "exact" },
    },
    {
      class: "NotFoundError",
      status: 404,
      code: "model_not_found",
      param: "model",
      body: { model: "no-such-model" },
    },
    {
      class: "RateLimitError",
      status: 429,
      code: "rate_limit_exceeded",
      param: null,
      over: { limits: { rpm: 0 } },
    },
    ...DIALECTS.map(
      (behind) =>
        ({
          class: "InternalServerError",
          status: 503,
          code: "upstream_error",
          param: "model",
          body: { model: modelName(behind, "broken") },
        }) as const,
    ),
  ] as const;
  for (const failure of failures) {
    for (const stream of [false, true]) {
      it(`${failure.class}${"body" in failure && "model" in failure.body ? ` of ${failure.body.model}` : ""}${stream ? ", of a stream that never began" : ""}`, async (t) => {
        const lab = await startLab(t, "over" in failure ? failure.over : {});
        const client = clientOf(lab, "key" in failure ? { apiKey: failure.key } : {});
        const body = {
          model: "demo-chat",
          messages,
          ...("body" in failure ? failure.body : {}),
          stream,
        };
        const headers = { "X-Request-Id": `my-${failure.code}` };
        await assert.rejects(client.chat.completions.create(body, { headers }), (error) => {
          assert.ok(error instanceof OpenAI[failure.class]);
          assert.deepEqual(
            [error.status, error.code, error.param],
            [failure.status, failure.code, failure.param],
          );
          assert.equal(error.requestID, `my-${failure.code}`);
          assert.equal((error.error as { request_id?: string }).request_id, `my-${failure.code}`);
          assert.doesNotMatch(JSON.stringify(error) + error.message, /own words/);
          return true;
        });
      });
    }
  }

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

  it("comes back after a 429 when the gateway said, under the same id", async (t) => {
    const lab = await startFullLab(t);
    const began = performance.now();
    const client = clientOf(lab, { maxRetries: 1 });
    const reply = await within(
      client.chat.completions
        .create({ model: "exact", messages }, { headers: { "X-Request-Id": "again" } })
        .asResponse(),
      "the retry",
    );
    assert.equal(reply.status, 200);
    await reply.text();
    assert.ok(performance.now() - began > 990, "Retry-After of 1 second was obeyed");
    assert.deepEqual(await statuses(lab, 3), [200, 429, 200]);
    assert.deepEqual(
      lab.access.slice(1).map((line) => line["request_id"]),
      ["again", "again"],
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
