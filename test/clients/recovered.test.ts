// The official clients, unmodified, read streams that broke and were gone on with: they see one
// reply, whole, and nothing else.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { configFor, startGateway } from "../support/gateway.ts";
import { startProvider, type Asked, type Behaviour } from "../support/provider.ts";
import {
  beginningIn,
  broken,
  FIGURES,
  goesOn,
  inTurn,
  sayText,
  SHOWN,
  texts,
  WHOLE,
} from "../support/recovered.ts";
import { waitFor } from "../support/wait.ts";
import { collect, KEY, notInstalled, noPython } from "./lab.ts";
import { runPython } from "./python-script.ts";

const SCRIPT = fileURLToPath(new URL("python_recovered.py", import.meta.url));

const breaksOff = (): Behaviour => broken(texts(SHOWN));

/**
 * The models and aliases that clients ask for, by what becomes of the first stream, which breaks
 * off; and the word of the access log for it. A held reply has none: nobody saw it break.
 */
const WAYS: readonly [way: string, outcome: string | undefined][] = [
  ["continued", "continued"],
  ["next", "continued"],
  ["repeated", "continued"],
  ["held", undefined],
];

const behaviours = (): Record<string, Behaviour> => ({
  continued: inTurn(breaksOff(), goesOn),
  first: breaksOff(),
  second: goesOn,
  repeated: inTurn(breaksOff(), sayText(WHOLE)),
});

const RECOVERY = {
  models: {
    continued: { prefill: "plain", recovery: "continue" },
    first: { prefill: "none" },
    second: { prefill: "plain" },
    repeated: { prefill: "prefix", recovery: "continue" },
  },
  aliases: {
    next: { models: ["first", "second"], recovery: "continue" },
    held: { models: ["first", "second"], recovery: "hold" },
  },
  apis: ["messages", "responses"],
  retry: { backoff_ms: 1 },
};

async function start(t: TestContext) {
  const scripted = behaviours();
  const provider = await startProvider(t, scripted);
  const gateway = await startGateway(t, configFor(provider.url, Object.keys(scripted), RECOVERY));
  return { provider, gateway, baseURL: `${gateway.url}/v1` };
}

type Started = Awaited<ReturnType<typeof start>>;

/** The provider was asked twice, and the access log tells of a reply that was recovered. */
async function assertRecovered(
  { provider, gateway }: Started,
  way: string,
  outcome: string | undefined,
): Promise<void> {
  assert.equal(provider.asked.length, 2, `${way}: two attempts`);
  const beginnings = provider.asked.map((asked: Asked) => beginningIn(asked)?.["content"]);
  assert.deepEqual(beginnings, [undefined, outcome === "continued" ? SHOWN : undefined]);
  await waitFor(() => gateway.access.length > 0, "the access log's line");
  const [line] = gateway.access;
  const { status, recovery, error_code } = line as Record<string, unknown>;
  assert.deepEqual([status, recovery, error_code], [200, outcome, undefined]);
}

const messages = [{ role: "user" as const, content: "Go on." }];

describe("clients of broken streams", { skip: notInstalled() }, async () => {
  const { default: OpenAI } = await import("openai");
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const { streamText } = await import("ai");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { ChatOpenAI } = await import("@langchain/openai");

  for (const [way, outcome] of WAYS) {
    describe(way, () => {
      it("openai, chat completions: the chunks, with usage once", async (t) => {
        const started = await start(t);
        const client = new OpenAI({ baseURL: started.baseURL, apiKey: KEY, maxRetries: 0 });
        const stream = await client.chat.completions.create({
          model: way,
          messages,
          stream: true,
          stream_options: { include_usage: true },
        });
        const chunks = await collect(stream);
        const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
        assert.equal(text, WHOLE);
        const finishes = chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? []);
        assert.deepEqual(finishes, ["stop"]);
        assert.equal(new Set(chunks.map(({ id, created }) => `${id} ${created}`)).size, 1);
        const [usage, ...more] = chunks.flatMap((chunk) => chunk.usage ?? []);
        assert.deepEqual(more, []);
        // What the broken attempt delivered is billed beside what the second one counted.
        if (way === "held") assert.equal(usage?.total_tokens, FIGURES.total_tokens);
        else assert.ok((usage?.total_tokens ?? 0) > FIGURES.total_tokens);
        await assertRecovered(started, way, outcome);
      });

      it("openai, chat completions: the streaming helper", async (t) => {
        const started = await start(t);
        const client = new OpenAI({ baseURL: started.baseURL, apiKey: KEY, maxRetries: 0 });
        const final = await client.chat.completions
          .stream({ model: way, messages })
          .finalChatCompletion();
        const [choice] = final.choices;
        assert.deepEqual([choice?.message.content, choice?.finish_reason], [WHOLE, "stop"]);
        await assertRecovered(started, way, outcome);
      });

      it("openai, responses: the streaming helper", async (t) => {
        const started = await start(t);
        const client = new OpenAI({ baseURL: started.baseURL, apiKey: KEY, maxRetries: 0 });
        const stream = client.responses.stream({ model: way, input: "Go on." });
        const deltas: string[] = [];
        stream.on("response.output_text.delta", ({ delta }) => deltas.push(delta));
        const final = await stream.finalResponse();
        assert.deepEqual(
          [final.status, final.output_text, deltas.join("")],
          ["completed", WHOLE, WHOLE],
        );
        await assertRecovered(started, way, outcome);
      });

      it("@anthropic-ai/sdk: the streaming helper", async (t) => {
        const started = await start(t);
        const client = new Anthropic({
          baseURL: started.gateway.url,
          apiKey: KEY,
          maxRetries: 0,
        });
        const stream = client.messages.stream({ model: way, max_tokens: 100, messages });
        const pieces: string[] = [];
        stream.on("text", (text) => pieces.push(text));
        const final = await stream.finalMessage();
        assert.equal(final.stop_reason, "end_turn");
        assert.deepEqual(
          final.content.map((block) => block.type === "text" && block.text),
          [WHOLE],
        );
        assert.equal(pieces.join(""), WHOLE);
        await assertRecovered(started, way, outcome);
      });

      it("AI SDK: streamText", async (t) => {
        const started = await start(t);
        const models = createOpenAICompatible({
          name: "chat-gateway",
          baseURL: started.baseURL,
          apiKey: KEY,
          includeUsage: true,
        });
        const errors: unknown[] = [];
        const reply = streamText({
          model: models(way),
          prompt: "Go on.",
          maxRetries: 0,
          onError: ({ error }) => {
            errors.push(error);
          },
        });
        assert.equal(await reply.text, WHOLE);
        assert.equal(await reply.finishReason, "stop");
        assert.deepEqual(errors, []);
        await assertRecovered(started, way, outcome);
      });

      it("LangChain: stream", async (t) => {
        const started = await start(t);
        const model = new ChatOpenAI({
          model: way,
          apiKey: KEY,
          maxRetries: 0,
          configuration: { baseURL: started.baseURL },
        });
        const chunks = await collect(await model.stream("Go on."));
        assert.equal(chunks.map(({ content }) => content).join(""), WHOLE);
        await assertRecovered(started, way, outcome);
      });
    });
  }
});

describe("openai for Python and broken streams", { skip: noPython() }, () => {
  for (const [way, outcome] of WAYS)
    it(way, async (t) => {
      const started = await start(t);
      const facts = { baseURL: started.baseURL, KEY, MODEL: way, WHOLE };
      const { code, output } = await runPython("the Python client", [
        SCRIPT,
        JSON.stringify(facts),
      ]);
      assert.equal(code, 0, output);
      await assertRecovered(started, way, outcome);
    });
});
