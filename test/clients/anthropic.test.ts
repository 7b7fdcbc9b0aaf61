// Anthropic's official client for JavaScript, unmodified, against the gateway's Messages API, with
// models of each format behind it.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import * as facts from "./lab.ts";

describe("@anthropic-ai/sdk", { skip: facts.notInstalled() }, async () => {
  const { default: Client } = await import("@anthropic-ai/sdk");

  /** No retries unless a test is about them. */
  const clientOf = (lab: facts.Lab, options: object = {}): Anthropic =>
    new Client({ baseURL: lab.url, apiKey: facts.KEY, maxRetries: 0, ...options });

  async function start(t: TestContext) {
    const lab = await facts.startLab(t);
    return { lab, client: clientOf(lab) };
  }

  const messages = [{ role: "user" as const, content: facts.QUESTION }];
  const base = { max_tokens: 2_000, messages };
  const thinking = { type: "adaptive", display: "summarized" } as const;
  const tool = { ...facts.TOOL, input_schema: facts.PARAMETERS };
  const textOf = (message: Anthropic.Message): string =>
    message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const thoughtsOf = (message: Anthropic.Message): string =>
    message.content.map((block) => (block.type === "thinking" ? block.thinking : "")).join("");

  for (const behind of facts.DIALECTS) {
    describe(`${behind} behind the gateway`, () => {
      const named = (name: string): string => facts.modelName(behind, name);

      it("a streamed reply is the whole reply in pieces, with thoughts if they are asked for", async (t) => {
        const { client } = await start(t);
        const plain = { ...base, model: named("exact") };
        const silent = await client.messages.create(plain);
        assert.deepEqual([thoughtsOf(silent), textOf(silent)], ["", facts.TEXT]);
        const request = { ...plain, thinking };
        const whole = await client.messages.create(request);
        const stream = client.messages.stream(request);
        const pieces: string[] = [];
        stream.on("text", (text) => pieces.push(text));
        const streamed = await stream.finalMessage();
        assert.ok(pieces.length > 5);
        assert.equal(pieces.join(""), facts.TEXT);
        for (const message of [whole, streamed]) {
          const { stop_reason, model, usage } = message;
          assert.deepEqual([stop_reason, model], ["end_turn", named("exact")]);
          assert.deepEqual([usage.output_tokens, usage.cache_read_input_tokens], [7, 8]);
          assert.deepEqual([thoughtsOf(message), textOf(message)], [facts.REASONING, facts.TEXT]);
          const [first] = message.content;
          assert.ok(first?.type === "thinking" && first.signature !== "");
        }
      });

      it("the tool runner calls tools, sends thoughts and results back, and goes on without a thread", async (t) => {
        const { lab, client } = await start(t);
        for (const stream of [false, true]) {
          const thoughts: Anthropic.Beta.BetaThinkingConfigParam = thinking;
          const cities: string[] = [];
          const run = ({ city }: { city: string }) => {
            cities.push(city);
            return facts.clock(city);
          };
          const parse = (value: unknown) => value as { city: string };
          const request = { ...base, model: named("parallel"), thinking: thoughts, stream };
          const runner = client.beta.messages.toolRunner({
            ...request,
            tools: [{ ...tool, run, parse }],
          });
          const last = await runner.runUntilDone();
          const text = last.content.map((block) => (block.type === "text" ? block.text : ""));
          assert.deepEqual([text.join(""), cities], [facts.AFTER_CALLS, ["Oslo", "Lima"]]);
        }
        // The first request of each run is refused, and sent again without a thread.
        assert.deepEqual(await facts.statuses(lab, 6), [400, 200, 200, 400, 200, 200]);
      });

      it("a reply that breaks off throws, with what had come before it", async (t) => {
        const { client } = await start(t);
        for (const name of facts.BAD_ENDINGS) {
          const stream = client.messages.stream({ ...base, model: named(name) });
          let text = "";
          stream.on("text", (piece) => (text += piece));
          await assert.rejects(stream.finalMessage(), Client.APIError, name);
          assert.equal(text, facts.BEFORE_BAD_ENDING);
        }
      });
    });
  }

  it("errors are of the client's classes, with the request's id", async (t) => {
    const { lab } = await start(t);
    for (const [expected, over, options] of [
      [Client.BadRequestError, { max_tokens: 0 }, {}],
      [Client.NotFoundError, { model: "none" }, {}],
      [Client.AuthenticationError, {}, { apiKey: "sk-wrong" }],
      [Client.PermissionDeniedError, {}, { apiKey: facts.RESTRICTED_KEY }],
      [Client.InternalServerError, { model: "broken" }, {}],
    ] as const) {
      const request = { ...base, model: "exact", ...over };
      await assert.rejects(clientOf(lab, options).messages.create(request), (error) => {
        assert.ok(error instanceof expected);
        assert.match(JSON.stringify(error.error), /"request_id":"req_/);
        return true;
      });
    }
  });

  it("counts tokens, and lists models, with the key as a token", async (t) => {
    const client = clientOf(await facts.startLab(t), { apiKey: null, authToken: facts.KEY });
    const { input_tokens } = await client.messages.countTokens({ model: "exact", messages });
    assert.equal(input_tokens, 6);
    const all = await facts.collect(client.models.list({ limit: 3 }));
    assert.ok(all.length > 20);
    assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
    const [first] = all;
    assert.deepEqual(await client.models.retrieve(first!.id), first);
  });
});
