// LangChain's ChatOpenAI, unmodified, against the running gateway.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AIMessage, BaseMessage, UsageMetadata } from "@langchain/core/messages";
import {
  clock,
  collect,
  DIALECTS,
  GENERATED_ID,
  KEY,
  modelName,
  notInstalled,
  startLab,
} from "./lab.ts";
import type { Lab } from "./lab.ts";
import { QUESTION, talks, type Adapter, type Asked } from "./talk.ts";

const ERROR_CODES: Readonly<Record<number, string>> = {
  401: "MODEL_AUTHENTICATION",
  404: "MODEL_NOT_FOUND",
  429: "MODEL_RATE_LIMIT",
};

describe("LangChain", { skip: notInstalled() }, async () => {
  const { ChatOpenAI } = await import("@langchain/openai");
  const { HumanMessage } = await import("@langchain/core/messages");
  const { tool } = await import("@langchain/core/tools");
  const { concat } = await import("@langchain/core/utils/stream");
  const { z } = await import("zod");

  /** No retries unless a test is about them. */
  const modelOf = (lab: Lab, { model, key = KEY, retries = 0, ...asked }: Asked) =>
    new ChatOpenAI({
      model,
      apiKey: key,
      maxRetries: retries,
      ...(asked.temperature !== undefined && { temperature: asked.temperature }),
      ...(asked.thinking && { modelKwargs: { thinking: { type: "enabled" } } }),
      configuration: {
        baseURL: lab.baseURL,
        ...(asked.requestId && { defaultHeaders: { "X-Request-Id": asked.requestId } }),
      },
    });
  type Chat = Pick<InstanceType<typeof ChatOpenAI>, "invoke" | "stream">;

  /**
   * A stream put together. Not through the option `streaming`: with it invoke loads a tokenizer
   * from the internet.
   */
  const streamed = async (model: Chat, messages: BaseMessage[]) =>
    (await collect(await model.stream(messages))).reduce((all, chunk) => concat(all, chunk));

  const question = new HumanMessage(QUESTION);
  const get_time = tool(({ city }: { city: string }) => clock(city), {
    name: "get_time",
    description: "The time in a city",
    schema: z.object({ city: z.string() }),
  });

  /** Asks, calls what the model wants called, and sends the results back. What it said each time. */
  async function loop(ask: (messages: BaseMessage[]) => Promise<AIMessage>): Promise<string[]> {
    const messages: BaseMessage[] = [question];
    const said: string[] = [];
    for (;;) {
      const reply = await ask(messages);
      const calls = reply.tool_calls ?? [];
      said.push(calls.map(({ name }) => name).join() || reply.text);
      if (calls.length === 0) return said;
      const results = calls.map((call) => get_time.invoke({ ...call, type: "tool_call" }));
      messages.push(reply, ...(await Promise.all(results)));
    }
  }

  const adapter: Adapter = {
    async ask(lab, asked) {
      const model = modelOf(lab, asked);
      const chunks = asked.stream ? await collect(await model.stream([question])) : [];
      const reply: AIMessage = asked.stream
        ? chunks.reduce((all, chunk) => concat(all, chunk))
        : await model.invoke([question]);
      const usage = reply.usage_metadata as UsageMetadata | undefined;
      const { input_tokens, output_tokens, total_tokens } = usage ?? {};
      return {
        model: reply.response_metadata["model_name"],
        text: reply.text,
        thoughts: reply.additional_kwargs["reasoning_content"] as string | undefined,
        finish: reply.response_metadata["finish_reason"],
        usage: [
          ...[input_tokens, output_tokens, total_tokens],
          ...[usage?.input_token_details?.cache_read, usage?.output_token_details?.reasoning],
        ],
        pieces: chunks.length,
      };
    },
    loop(lab, model, stream) {
      const bound = modelOf(lab, { model }).bindTools([get_time], { tool_choice: "auto" });
      return loop((messages) => (stream ? streamed(bound, messages) : bound.invoke(messages)));
    },
    async parallel(lab, model) {
      const bound = modelOf(lab, { model }).bindTools([get_time], { tool_choice: "auto" });
      const reply = await streamed(bound, [question]);
      const whole = await bound.invoke([question]);
      const results = await Promise.all(reply.tool_calls!.map((call) => get_time.invoke(call)));
      const argsOf = ({ id, args }: { id?: string; args: object }) => ({ id, args });
      assert.deepEqual(reply.tool_calls?.map(argsOf), whole.tool_calls?.map(argsOf));
      return {
        streamed: reply.tool_call_chunks!.map(({ id, name, args }) => ({
          id,
          name,
          arguments: args,
        })),
        whole: whole.tool_calls!.map(argsOf),
        answer: (await bound.invoke([question, reply, ...results])).content,
      };
    },
    async json(lab, name) {
      const model = modelOf(lab, { model: name });
      const response_format = { type: "json_object" as const };
      const loose = await model.withConfig({ response_format }).invoke([question]);
      const schema = z.object({ city: z.string(), hours: z.int().min(7), open: z.boolean() });
      const asked = (["jsonSchema", "functionCalling"] as const).map((method) =>
        model.withStructuredOutput(schema, { method, strict: true }).invoke([question]),
      );
      const answer = z.object({ answer: z.string() });
      const any = model.withStructuredOutput(answer, { method: "jsonMode" });
      assert.deepEqual(await any.invoke([question]), { answer: "This is the demo model." });
      return { loose: JSON.parse(loose.text), strict: await Promise.all(asked) };
    },
    async read(lab, model, told) {
      const abort = new AbortController();
      const { signal } = abort;
      for await (const chunk of await modelOf(lab, { model }).stream([question], { signal }))
        told(chunk.text, () => abort.abort());
    },
    assertBroken(error) {
      assert.equal(error.code, "upstream_error");
      assert.match(error.error.request_id, GENERATED_ID);
    },
    refusal({ status, code, param, requestID: id, lc_error_code }) {
      assert.equal(lc_error_code, ERROR_CODES[status]);
      return { status, code, param, id };
    },
  };
  talks(adapter);

  for (const behind of DIALECTS) {
    const model = modelName(behind, "demo-chat");
    it(`${behind}: tools bound without tool_choice are called only if the operator has said so`, async (t) => {
      const bound = async (over: object) =>
        modelOf(await startLab(t, over), { model }).bindTools([get_time]);
      const strict = await bound({});
      const [text, ...more] = await loop((messages) => strict.invoke(messages));
      assert.match(text ?? "", /^You said/);
      assert.deepEqual(more, []);
      const lenient = await bound({ compat: { tool_choice_default: "auto" } });
      const said = await loop((messages) => lenient.invoke(messages));
      assert.deepEqual(said, ["get_time", "The tool says: 14:05"]);
    });

    it(`${behind}: a tool can be demanded`, async (t) => {
      const lab = await startLab(t);
      for (const tool_choice of ["any", "get_time"]) {
        const bound = modelOf(lab, { model }).bindTools([get_time], { tool_choice });
        const { tool_calls } = await bound.invoke([question]);
        assert.deepEqual(
          tool_calls?.map(({ name, args }) => [name, args]),
          [["get_time", { city: "Oslo" }]],
        );
      }
    });
  }
});
