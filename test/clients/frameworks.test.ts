// The Vercel AI SDK, LangChain and OpenAI's agents, unmodified, each with its own provider for an
// API of the gateway: what they make of texts, thoughts, tools and schemas, with models of each
// format behind the gateway; and a stream that breaks off is never taken for a reply.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LanguageModel } from "ai";
import type { AIMessage, BaseMessage, UsageMetadata } from "@langchain/core/messages";
import * as facts from "./lab.ts";

interface Said {
  readonly text: string;
  readonly thoughts?: string | undefined;
  /** Of the reply. */
  readonly tokens: number | undefined;
}

interface Framework {
  say(lab: facts.Lab, model: string, streamed: boolean): Promise<Said>;
  /** Offers get_time, calls it as often as it is wanted: the cities, and the answer. */
  call(
    lab: facts.Lab,
    model: string,
    streamed: boolean,
  ): Promise<{ cities: string[]; text: string }>;
  /** Demands an object that has a city. */
  shape(lab: facts.Lab, model: string): Promise<object>;
  /** The format of the providers whose tokens it counts wrong in streams. Absent: there is none. */
  readonly miscounts?: string;
  /** It does not show what a model thought. Absent: it does. */
  readonly hidesThoughts?: true;
}

const skip = facts.notInstalled();

async function aiSdk(
  modelOf: (lab: facts.Lab, name: string) => LanguageModel,
  providerOptions: Record<string, any>,
): Promise<Framework> {
  const { generateText, isStepCount, Output, streamText, tool } = await import("ai");
  const { z } = await import("zod");
  const schema = z.object({ city: z.string() });
  /** No retries: an error shows. */
  const base = { prompt: facts.QUESTION, maxRetries: 0, maxOutputTokens: 2_000, providerOptions };
  return {
    async say(lab, name, streamed) {
      const run = streamed ? streamText : generateText;
      let failure: unknown;
      const onError = ({ error }: { error: unknown }) => {
        failure = error;
      };
      const reply = await run({ ...base, model: modelOf(lab, name), onError });
      const [text, thoughts, usage] = [reply.text, reply.reasoningText, reply.usage];
      const said = { text: await text, thoughts: await thoughts };
      if (failure !== undefined) throw failure;
      return { ...said, tokens: (await usage).outputTokens };
    },
    async call(lab, name, streamed) {
      const cities: string[] = [];
      const get_time = tool({
        description: facts.TOOL.description,
        inputSchema: schema,
        execute: async ({ city }) => {
          cities.push(city);
          return facts.clock(city);
        },
      });
      const run = streamed ? streamText : generateText;
      const stopWhen = isStepCount(3);
      const model = modelOf(lab, name);
      const reply = await run({ ...base, model, tools: { get_time }, stopWhen });
      return { text: await reply.text, cities };
    },
    async shape(lab, name) {
      const output = Output.object({ schema });
      return (await generateText({ ...base, model: modelOf(lab, name), output })).output;
    },
  };
}

/** What is used of LangChain's models. */
interface Chat {
  invoke(messages: BaseMessage[]): Promise<AIMessage>;
  stream(messages: BaseMessage[]): Promise<AsyncIterable<AIMessage>>;
  bindTools(tools: any[], options?: object): Chat;
  withStructuredOutput(schema: any, options?: object): any;
}

async function langChain(modelOf: (lab: facts.Lab, name: string) => Chat): Promise<Framework> {
  const { HumanMessage } = await import("@langchain/core/messages");
  const { tool } = await import("@langchain/core/tools");
  const { concat } = await import("@langchain/core/utils/stream");
  const { z } = await import("zod");
  const schema = z.object({ city: z.string() });
  const question = new HumanMessage(facts.QUESTION);
  const get_time = tool(({ city }: { city: string }) => facts.clock(city), {
    ...facts.TOOL,
    schema,
  });
  /** Not through the option `streaming`: with it invoke loads a tokenizer from the internet. */
  const ask = async (model: Chat, messages: BaseMessage[], streamed: boolean) =>
    streamed
      ? (await facts.collect(await model.stream(messages))).reduce((all, piece) =>
          concat(all as never, piece as never),
        )
      : await model.invoke(messages);
  return {
    async say(lab, name, streamed) {
      const reply = await ask(modelOf(lab, name), [question], streamed);
      const usage = reply.usage_metadata as UsageMetadata | undefined;
      const thoughts = reply.additional_kwargs["reasoning_content"] as string | undefined;
      return { text: reply.text, thoughts, tokens: usage?.output_tokens };
    },
    async call(lab, name, streamed) {
      const bound = modelOf(lab, name).bindTools([get_time], { tool_choice: "auto" });
      const reply = await ask(bound, [question], streamed);
      const calls = reply.tool_calls ?? [];
      const results = await Promise.all(calls.map((call) => get_time.invoke(call)));
      const { text } = await ask(bound, [question, reply, ...results], streamed);
      return { text, cities: calls.map(({ args }) => args["city"]) };
    },
    shape: (lab, name) => modelOf(lab, name).withStructuredOutput(schema).invoke([question]),
  };
}

describe("frameworks", { skip }, async () => {
  const { createAnthropic } = await import("@ai-sdk/anthropic");
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { ChatAnthropic } = await import("@langchain/anthropic");
  const { ChatOpenAI } = await import("@langchain/openai");
  const chatOpenai = ({ baseURL }: facts.Lab, model: string) =>
    new ChatOpenAI({
      ...{ model, apiKey: facts.KEY, maxRetries: 0, configuration: { baseURL } },
      modelKwargs: { thinking: { type: "enabled" } },
    }) as unknown as Chat;
  const own = { apiKey: facts.KEY, maxTokens: 2_000, maxRetries: 0, streamUsage: true };
  const thinking = { type: "adaptive", display: "summarized" };
  // Nothing is stored here, so the SDK must send the items themselves.
  const openai = { store: false, forceReasoning: true, reasoningSummary: "auto" };

  const compatible = { name: "chat-gateway", apiKey: facts.KEY, includeUsage: true };

  const FRAMEWORKS: Readonly<Record<string, Framework>> = {
    "AI SDK, OpenAI-compatible": await aiSdk(
      ({ baseURL }, name) =>
        createOpenAICompatible({ ...compatible, baseURL, supportsStructuredOutputs: true })(name),
      { chatGateway: { thinking: { type: "enabled" } } },
    ),
    "AI SDK, anthropic()": await aiSdk(
      ({ baseURL }, name) => createAnthropic({ baseURL, apiKey: facts.KEY })(name),
      { anthropic: { thinking } },
    ),
    "AI SDK, openai()": await aiSdk(
      ({ baseURL }, name) => createOpenAI({ baseURL, apiKey: facts.KEY })(name),
      { openai },
    ),
    "LangChain, ChatOpenAI": await langChain(chatOpenai),
    "LangChain, ChatAnthropic": {
      ...(await langChain(
        ({ url }, model) =>
          new ChatAnthropic({ anthropicApiUrl: url, model, ...own }) as unknown as Chat,
      )),
      // It adds the count with which Anthropic's own streams begin to the one at their end.
      miscounts: "anthropic",
      hidesThoughts: true,
    },
  };

  for (const [name, framework] of Object.entries(FRAMEWORKS))
    for (const behind of facts.DIALECTS) {
      it(`${name}, ${behind}: text, thoughts and tokens, whole and streamed`, async (t) => {
        const lab = await facts.startLab(t);
        const model = facts.modelName(behind, "exact");
        for (const streamed of [false, true]) {
          const { text, thoughts, tokens } = await framework.say(lab, model, streamed);
          assert.equal(text, facts.TEXT);
          if (!framework.hidesThoughts) assert.equal(thoughts, facts.REASONING);
          if (!streamed || framework.miscounts !== behind) assert.equal(tokens, 7);
        }
      });

      it(`${name}, ${behind}: calls tools, whole and streamed, and an object of a schema`, async (t) => {
        const lab = await facts.startLab(t);
        for (const streamed of [false, true]) {
          const { text, cities } = await framework.call(
            lab,
            facts.modelName(behind, "parallel"),
            streamed,
          );
          assert.equal(text, facts.AFTER_CALLS);
          const expected = facts.CALLS.map(({ arguments: args }) => JSON.parse(args).city);
          assert.deepEqual(cities, expected);
        }
        const shaped = await framework.shape(lab, facts.modelName(behind, "shaped"));
        assert.deepEqual(shaped, { city: facts.OPENING.city });
      });

      it(`${name}, ${behind}: a stream that breaks off is an error`, async (t) => {
        const lab = await facts.startLab(t);
        for (const ending of facts.BAD_ENDINGS)
          await assert.rejects(framework.say(lab, facts.modelName(behind, ending), true), ending);
      });
    }
});

describe("OpenAI agents, default setup", { skip }, async () => {
  const { default: OpenAI } = await import("openai");
  const agents = await import("@openai/agents");
  const { z } = await import("zod");
  agents.setTracingDisabled(true);

  // One test: the SDK keeps the client that it was first given.
  it("calls its tools and answers, whole and streamed", async (t) => {
    const lab = await facts.startLab(t);
    agents.setDefaultOpenAIClient(new OpenAI({ baseURL: lab.baseURL, apiKey: facts.KEY }));
    const asked: string[] = [];
    const get_time = agents.tool({
      ...facts.TOOL,
      parameters: z.object({ city: z.string() }),
      async execute({ city }) {
        asked.push(city);
        return facts.clock(city);
      },
    });
    for (const behind of facts.DIALECTS) {
      const model = facts.modelName(behind, "parallel");
      const instructions = "Say the time.";
      const agent = new agents.Agent({ name: "Clock", instructions, model, tools: [get_time] });
      assert.equal((await agents.run(agent, facts.QUESTION)).finalOutput, facts.AFTER_CALLS);
      const streamed = await agents.run(agent, facts.QUESTION, { stream: true });
      await streamed.completed;
      assert.equal(streamed.finalOutput, facts.AFTER_CALLS);
      assert.deepEqual(asked.splice(0), ["Oslo", "Lima", "Oslo", "Lima"]);
    }
  });
});
