// LangChain's ChatOpenAI, unmodified, against the running gateway.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { AIMessage, BaseMessage, UsageMetadata } from "@langchain/core/messages";
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

describe("LangChain", { skip: notInstalled() }, async () => {
  const { ChatOpenAI } = await import("@langchain/openai");
  const { HumanMessage } = await import("@langchain/core/messages");
  const { tool } = await import("@langchain/core/tools");
  const { concat } = await import("@langchain/core/utils/stream");
  const { z } = await import("zod");

  type Options = ConstructorParameters<typeof ChatOpenAI>[0];

  /**
   * No retries unless a test is about them. `headers` are the client's own way to send some with
   * every request.
   */
  const modelOf = (
    lab: Lab,
    model: string,
    options: Options = {},
    headers: Record<string, string> = {},
  ) =>
    new ChatOpenAI({
      model,
      apiKey: KEY,
      maxRetries: 0,
      ...options,
      configuration: { baseURL: lab.baseURL, defaultHeaders: headers },
    });

  async function start(t: TestContext, over: object = {}) {
    const lab = await startLab(t, over);
    return {
      ...lab,
      lab,
      model: (name: string, options: Options = {}) => modelOf(lab, name, options),
    };
  }

  type Chat = Pick<InstanceType<typeof ChatOpenAI>, "invoke" | "stream">;

  /**
   * A stream put together. Not through the option `streaming`: with it invoke loads a tokenizer
   * from the internet.
   */
  const streamed = async (model: Chat, messages: BaseMessage[]) =>
    (await collect(await model.stream(messages))).reduce((all, chunk) => concat(all, chunk));

  const question = new HumanMessage("What time is it in Oslo?");
  const get_time = tool(({ city }: { city: string }) => clock(city), {
    name: "get_time",
    description: "The time in a city",
    schema: z.object({ city: z.string() }),
  });

  /**
   * Asks, calls what the model wants called, and sends the results back. What the model said, turn
   * by turn.
   */
  async function loop(ask: (messages: BaseMessage[]) => Promise<AIMessage>): Promise<string[]> {
    const messages: BaseMessage[] = [question];
    const said: string[] = [];
    for (;;) {
      const reply = await ask(messages);
      const calls = reply.tool_calls ?? [];
      said.push(calls.map(({ name }) => name).join() || reply.text);
      if (calls.length === 0) return said;
      messages.push(
        reply,
        ...(await Promise.all(
          calls.map((call) => get_time.invoke({ ...call, type: "tool_call" })),
        )),
      );
    }
  }

  for (const behind of DIALECTS) {
    describe(`${behind} behind the gateway`, () => {
      const named = (name: string) => modelName(behind, name);

      for (const name of TALKERS) {
        it(`${name}: a streamed reply is the whole reply in pieces`, async (t) => {
          const { model } = await start(t);
          const whole = await model(named(name)).invoke([question]);
          assert.deepEqual(
            [whole.response_metadata["model_name"], whole.response_metadata["finish_reason"]],
            [named(name), "stop"],
          );
          assert.equal(whole.additional_kwargs["reasoning_content"], undefined);
          if (name === "exact") assert.equal(whole.content, TEXT);
          const chunks = await collect(await model(named(name)).stream([question]));
          assert.ok(chunks.length > 5);
          const all = chunks.reduce((before, chunk) => concat(before, chunk));
          assert.deepEqual(
            [all.content, all.response_metadata["finish_reason"]],
            [whole.content, "stop"],
          );
        });
      }

      it("counts tokens the same whole and streamed", async (t) => {
        const { model } = await start(t);
        const replies: AIMessage[] = [
          await model(named("exact")).invoke([question]),
          await streamed(model(named("exact")), [question]),
        ];
        for (const { usage_metadata } of replies) {
          const usage = usage_metadata as UsageMetadata | undefined;
          assert.deepEqual(
            [usage?.input_tokens, usage?.output_tokens, usage?.total_tokens],
            [20, 7, 27],
          );
          assert.deepEqual(
            [usage?.input_token_details?.cache_read, usage?.output_token_details?.reasoning],
            [8, 3],
          );
        }
      });

      it("goes round a tool loop with tool_choice auto, whole and streamed", async (t) => {
        const { model } = await start(t);
        const bound = model(named("demo-chat")).bindTools([get_time], { tool_choice: "auto" });
        const expected = ["get_time", "The tool says: 14:05"];
        assert.deepEqual(await loop((messages) => bound.invoke(messages)), expected);
        assert.deepEqual(await loop((messages) => streamed(bound, messages)), expected);
      });

      it("tools bound without tool_choice are not called, unless the operator has made auto the default", async (t) => {
        const strict = await start(t);
        const [text, ...more] = await loop((messages) =>
          strict.model(named("demo-chat")).bindTools([get_time]).invoke(messages),
        );
        assert.match(text ?? "", /^You said/);
        assert.deepEqual(more, []);
        const lenient = await start(t, { compat: { tool_choice_default: "auto" } });
        assert.deepEqual(
          await loop((messages) =>
            lenient.model(named("demo-chat")).bindTools([get_time]).invoke(messages),
          ),
          ["get_time", "The tool says: 14:05"],
        );
      });

      it("a tool can be demanded", async (t) => {
        const { model } = await start(t);
        for (const tool_choice of ["any", "get_time"]) {
          const reply = await model(named("demo-chat"))
            .bindTools([get_time], { tool_choice })
            .invoke([question]);
          assert.deepEqual(
            reply.tool_calls?.map(({ name, args }) => [name, args]),
            [["get_time", { city: "Oslo" }]],
          );
        }
      });

      it("parallel calls arrive byte for byte in interleaved fragments, and their results go back", async (t) => {
        const { model, provider } = await start(t);
        const bound = model(named("parallel")).bindTools([get_time], { tool_choice: "auto" });
        const reply = await streamed(bound, [question]);
        assert.deepEqual(
          reply.tool_call_chunks?.map(({ id, name, args }) => ({ id, name, arguments: args })),
          callsVia(behind, true),
        );
        const parsed = CALLS.map((call) => ({ id: call.id, args: JSON.parse(call.arguments) }));
        assert.deepEqual(
          reply.tool_calls?.map(({ id, args }) => ({ id, args })),
          parsed,
        );
        assert.deepEqual(
          (await bound.invoke([question])).tool_calls?.map(({ id, args }) => ({ id, args })),
          parsed,
        );
        const results = await Promise.all(reply.tool_calls!.map((call) => get_time.invoke(call)));
        assert.equal((await bound.invoke([question, reply, ...results])).content, AFTER_CALLS);
        const { messages } = provider(behind).heard.at(-1)!;
        assert.deepEqual(
          messages.slice(2).map(({ tool_call_id, content }) => [tool_call_id, content]),
          [
            ["call_Oslo-1", "14:05"],
            ["call_Lima-2", "08:05"],
          ],
        );
      });

      it("JSON mode and structured output", async (t) => {
        const { model } = await start(t);
        const loose = await model(named("demo-chat"))
          .withConfig({ response_format: { type: "json_object" } })
          .invoke([question]);
        assert.equal(JSON.parse(loose.text).question, question.content);
        const schema = z.object({ city: z.string(), hours: z.int().min(7), open: z.boolean() });
        for (const method of ["jsonSchema", "functionCalling"] as const) {
          const structured = model(named("demo-chat")).withStructuredOutput(schema, {
            method,
            strict: true,
          });
          assert.deepEqual(
            await structured.invoke([question]),
            { city: "Oslo", hours: 7, open: true },
            method,
          );
        }
        const any = model(named("demo-chat")).withStructuredOutput(
          z.object({ answer: z.string() }),
          { method: "jsonMode" },
        );
        assert.deepEqual(await any.invoke([question]), { answer: "This is the demo model." });
      });

      it("thinking is asked for with modelKwargs, and its text surfaces whole and streamed", async (t) => {
        const { model, provider } = await start(t);
        const thinker = model(named("exact"), { modelKwargs: { thinking: { type: "enabled" } } });
        for (const reply of [
          await thinker.invoke([question]),
          await streamed(thinker, [question]),
        ]) {
          assert.deepEqual(
            [reply.additional_kwargs["reasoning_content"], reply.content],
            [REASONING, TEXT],
          );
        }
        assert.deepEqual(
          provider(behind).heard.map(({ thinking }) => thinking),
          [{ type: "enabled" }, { type: "enabled" }],
        );
      });

      it("leaving in mid-stream closes the provider's connection", async (t) => {
        const { model, lab } = await start(t);
        const abort = new AbortController();
        let text = "";
        const reading = async () => {
          for await (const chunk of await model(named("endless")).stream([question], {
            signal: abort.signal,
          })) {
            text += chunk.text;
            if (text === BEFORE_BAD_ENDING) abort.abort();
          }
        };
        await assert.rejects(within(reading(), "the aborted stream"), /abort/i);
        await assertLeft(lab, behind);
      });

      for (const name of BAD_ENDINGS) {
        it(`${name}: a stream that breaks off is an exception, never a reply`, async (t) => {
          const { model } = await start(t);
          let text = "";
          const reading = async () => {
            for await (const chunk of await model(named(name)).stream([question]))
              text += chunk.text;
          };
          await assert.rejects(reading(), (error: Record<string, any>) => {
            assert.equal(error["code"], "upstream_error");
            assert.match(error["error"].request_id, GENERATED_ID);
            return true;
          });
          assert.equal(text, BEFORE_BAD_ENDING);
        });
      }
    });
  }

  const failures = [
    { status: 400, code: "invalid_value", options: { temperature: 3 } },
    {
      status: 401,
      code: "invalid_api_key",
      langchain: "MODEL_AUTHENTICATION",
      options: { apiKey: "sk-nobody" },
    },
    { status: 403, code: "model_not_allowed", model: "exact", options: { apiKey: RESTRICTED_KEY } },
    { status: 404, code: "model_not_found", langchain: "MODEL_NOT_FOUND", model: "no-such-model" },
    {
      status: 429,
      code: "rate_limit_exceeded",
      langchain: "MODEL_RATE_LIMIT",
      over: { limits: { rpm: 0 } },
    },
    ...DIALECTS.map(
      (behind) =>
        ({ status: 503, code: "upstream_error", model: modelName(behind, "broken") }) as const,
    ),
  ] as const;
  for (const failure of failures) {
    it(`status ${failure.status}${"model" in failure ? ` of ${failure.model}` : ""}`, async (t) => {
      const lab = await startLab(t, "over" in failure ? failure.over : {});
      const name = "model" in failure ? failure.model : "demo-chat";
      const model = modelOf(lab, name, "options" in failure ? failure.options : {}, {
        "X-Request-Id": `my-${failure.code}`,
      });
      for (const call of [() => model.invoke([question]), () => model.stream([question])]) {
        await assert.rejects(call, (error: Record<string, unknown>) => {
          assert.deepEqual(
            [error["status"], error["code"], error["requestID"]],
            [failure.status, failure.code, `my-${failure.code}`],
          );
          assert.equal(
            error["lc_error_code"],
            "langchain" in failure ? failure.langchain : undefined,
          );
          return true;
        });
      }
    });
  }

  it("comes back after a 429 when the gateway said, under the same id", async (t) => {
    const lab = await startFullLab(t);
    const began = performance.now();
    const model = modelOf(lab, "exact", { maxRetries: 1 }, { "X-Request-Id": "again" });
    assert.equal((await within(model.invoke([question]), "the retry")).content, TEXT);
    assert.ok(performance.now() - began > 990, "Retry-After of 1 second was obeyed");
    assert.deepEqual(await statuses(lab, 3), [200, 429, 200]);
    assert.deepEqual(
      lab.access.slice(1).map((line) => line["request_id"]),
      ["again", "again"],
    );
  });
});
