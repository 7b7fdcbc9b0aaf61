// The official clients, unmodified, read a stream that broke and was gone on with: they see one
// reply, whole, and nothing else. The ways to go on are tested in test/extensions/routing/recovery.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, startGateway } from "../support/gateway.ts";
import { startProvider } from "../support/provider.ts";
import * as recovered from "../support/recovered.ts";
import { waitFor } from "../support/wait.ts";
import { collect, KEY, notInstalled } from "./lab.ts";

async function start(t: TestContext) {
  const provider = await startProvider(
    t,
    recovered.inTurn(recovered.broken(recovered.texts(recovered.SHOWN)), recovered.goesOn),
  );
  const config = configFor(provider.url, ["m"], {
    models: { m: { prefill: "plain", recovery: "continue" } },
    apis: ["messages", "responses"],
    retry: { backoff_ms: 1 },
  });
  const gateway = await startGateway(t, config);
  return { provider, gateway, baseURL: `${gateway.url}/v1` };
}

type Started = Awaited<ReturnType<typeof start>>;

/** The provider was asked to go on, and the access log tells of a reply that was recovered. */
async function assertRecovered({ provider, gateway }: Started): Promise<void> {
  const beginnings = provider.asked.map((asked) => recovered.beginningIn(asked)?.["content"]);
  assert.deepEqual(beginnings, [undefined, recovered.SHOWN]);
  await waitFor(() => gateway.access.length > 0, "the access log's line");
  const { status, recovery, error_code } = gateway.access[0] as Record<string, unknown>;
  assert.deepEqual([status, recovery, error_code], [200, "continued", undefined]);
}

const model = "m";
const messages = [{ role: "user" as const, content: "Go on." }];

describe("clients of broken streams", { skip: notInstalled() }, async () => {
  const { default: OpenAI } = await import("openai");
  const { default: Anthropic } = await import("@anthropic-ai/sdk");

  const own = { apiKey: KEY, maxRetries: 0 };
  const openai = ({ baseURL }: Started) => new OpenAI({ baseURL, ...own });

  /** The text of a stream as each client reads it, after what else it must say of the end. */
  const CLIENTS: Readonly<Record<string, (started: Started) => Promise<string>>> = {
    async "openai, chat completions: the chunks, with usage once"(started) {
      const stream_options = { include_usage: true };
      const body = { model, messages, stream: true as const, stream_options };
      const chunks = await collect(await openai(started).chat.completions.create(body));
      const finishes = chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? []);
      assert.deepEqual(finishes, ["stop"]);
      assert.equal(new Set(chunks.map(({ id, created }) => `${id} ${created}`)).size, 1);
      const [usage, ...more] = chunks.flatMap((chunk) => chunk.usage ?? []);
      assert.deepEqual(more, []);
      // What the broken attempt delivered is billed beside what the second one counted.
      assert.ok((usage?.total_tokens ?? 0) > recovered.FIGURES.total_tokens);
      return chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    },
    async "openai, responses: the streaming helper"(started) {
      const stream = openai(started).responses.stream({ model, input: "Go on." });
      const deltas: string[] = [];
      stream.on("response.output_text.delta", ({ delta }) => deltas.push(delta));
      const { status, output_text } = await stream.finalResponse();
      assert.deepEqual([status, output_text], ["completed", recovered.WHOLE]);
      return deltas.join("");
    },
    async "@anthropic-ai/sdk: the streaming helper"({ gateway }) {
      const client = new Anthropic({ baseURL: gateway.url, ...own });
      const stream = client.messages.stream({ model, max_tokens: 100, messages });
      const pieces: string[] = [];
      stream.on("text", (text) => pieces.push(text));
      const { stop_reason, content } = await stream.finalMessage();
      const said = content.map((block) => block.type === "text" && block.text);
      assert.deepEqual([stop_reason, said], ["end_turn", [recovered.WHOLE]]);
      return pieces.join("");
    },
  };

  for (const [client, read] of Object.entries(CLIENTS))
    it(client, async (t) => {
      const started = await start(t);
      assert.equal(await read(started), recovered.WHOLE);
      await assertRecovered(started);
    });
});
