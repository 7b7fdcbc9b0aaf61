// Requests and provider traffic made to do harm, through the native formats: what a client sends
// must not be taken for a fault of the provider, must not block the process, and must not show one
// account what another's model thought.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, readStream, user } from "../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../support/memory.ts";
import { rawStream, status } from "../../support/provider.ts";

type Json = Record<string, any>;

const ANTHROPIC = {
  type: "message",
  content: [{ type: "text", text: "Hi." }],
  stop_reason: "end_turn",
  usage: {},
};
const GEMINI = { candidates: [{ content: { parts: [{ text: "Hi." }] }, finishReason: "STOP" }] };
const called = (id: string, args = "{}") => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id, type: "function", function: { name: "f", arguments: args } }],
});
const result = (tool_call_id: string, content: string) => ({ role: "tool", tool_call_id, content });
const DEEP = `{"a":${"[".repeat(6_000)}${"]".repeat(6_000)}}`;

for (const [vendor, reply] of [
  ["anthropic", ANTHROPIC],
  ["gemini", GEMINI],
] as const) {
  const serving = (t: TestContext) => {
    const provider = memoryProvider(t, status(200, reply));
    const gw = createMemoryGateway(
      configFor(provider.url, [], {
        providers: { p: { vendor, base_url: provider.url } },
        models: { m: { provider: "p", supports: ["tools", "images"] } },
        limits: { rpm: null },
      }),
    );
    return { ...provider, gw };
  };

  describe(`${vendor}: a client's history`, () => {
    it("arguments and results that are nested too deeply to be objects go out as texts", async (t) => {
      const { gw, asked } = serving(t);
      for (const messages of [[called("a", DEEP)], [called("a"), result("a", DEEP)]]) {
        for (let time = 0; time < 6; time += 1)
          assert.equal(
            (await gw.chat({ model: "m", messages: [...user("hi"), ...messages] })).status,
            200,
          );
      }
      assert.equal(asked.length, 12, "the breaker stays shut");
      assert.ok(JSON.stringify(asked[0]!.body).includes(JSON.stringify(DEEP)), "nothing is lost");
    });

    it("95,000 parts in a message, and 70,000 results of one call", async (t) => {
      const { gw, asked } = serving(t);
      const parts = Array.from({ length: 95_000 }, () => ({ type: "text", text: "x" }));
      const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
      assert.equal(
        (
          await gw.chat({
            model: "m",
            messages: [...user("hi"), { role: "user", content: [...parts, image] }],
          })
        ).status,
        200,
      );
      assert.equal(
        (
          await gw.chat({
            model: "m",
            messages: [
              ...user("hi"),
              called("a"),
              ...Array.from({ length: 70_000 }, (_, at) => result("a", String(at))),
            ],
          })
        ).status,
        200,
      );
      assert.ok(JSON.stringify(asked[1]!.body).includes("69999"), "the last of them too");
    });
  });
}

describe("thoughts", () => {
  it("are an account's own: another that knows the tool call's id does not get at them", async (t) => {
    const thought = { type: "thinking", thinking: "SECRET", signature: "c2ln" };
    const provider = memoryProvider(
      t,
      status(200, {
        ...ANTHROPIC,
        content: [thought, { type: "tool_use", id: "f_0", name: "f", input: {} }],
        stop_reason: "tool_use",
      }),
    );
    const keys = ["ada", "bob"].map((account) => ({ account, key: `sk-${account}` }));
    const gw = createMemoryGateway(
      configFor(provider.url, [], {
        providers: { p: { vendor: "anthropic", base_url: provider.url } },
        models: { m: { provider: "p", reasoning: true } },
        keys,
      }),
    );
    const ask = async (account: string, messages: readonly Json[]) => {
      const response = await gw.chat(
        { model: "m", thinking: { type: "enabled" }, messages },
        { authorization: `Bearer sk-${account}` },
      );
      assert.equal(response.status, 200);
    };
    const loop = [...user("hi"), called("f_0"), result("f_0", "1")];
    await ask("ada", user("hi"));
    await ask("bob", loop);
    await ask("ada", loop);
    const [, bobs, adas] = provider.asked.map(({ body }) =>
      JSON.stringify(body).includes("SECRET"),
    );
    assert.deepEqual([bobs, adas], [false, true]);
  });

  it("of a model that cannot stop thinking come back also where nobody asked for them", async (t) => {
    const thought = { type: "thinking", thinking: "Hm.", signature: "c2ln" };
    const provider = memoryProvider(
      t,
      status(200, {
        ...ANTHROPIC,
        content: [thought, { type: "tool_use", id: "a", name: "f", input: {} }],
        stop_reason: "tool_use",
      }),
    );
    const gw = createMemoryGateway(
      configFor(provider.url, [], {
        providers: { p: { vendor: "anthropic", base_url: provider.url } },
        models: { m: { provider: "p", reasoning: true, thinking_off: false } },
      }),
    );
    await json(await gw.chat({ model: "m", messages: user("hi") }));
    const tools = [{ type: "function", function: { name: "f" } }];
    await json(
      await gw.chat({
        model: "m",
        messages: [...user("hi"), called("a"), result("a", "1")],
        tools,
        tool_choice: "required",
        temperature: 0.5,
      }),
    );
    const { messages, temperature, tool_choice, thinking } = provider.asked[1]!.body;
    assert.deepEqual(
      [messages[1].content[0], temperature, tool_choice, thinking],
      [thought, undefined, { type: "auto" }, undefined],
    );
  });
});

describe("a Gemini stream", () => {
  const event = (text: string, finishReason?: string) =>
    `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text }] }, finishReason }] })}\n\n`;
  it("that says in every event that it is the end goes on all the same, and an unspecified reason is none", async (t) => {
    const provider = memoryProvider(
      t,
      rawStream(
        [
          event("1", "FINISH_REASON_UNSPECIFIED"),
          event("2", "STOP"),
          event("3", "STOP"),
          event("4", "MAX_TOKENS"),
        ].join(""),
      ),
    );
    const gw = createMemoryGateway(
      configFor(provider.url, [], {
        providers: { p: { vendor: "gemini", base_url: provider.url } },
        models: { m: { provider: "p" } },
      }),
    );
    const { chunks, done } = await readStream(
      await gw.chat({ model: "m", stream: true, messages: user("hi") }),
    );
    assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "1234");
    assert.deepEqual([chunks.at(-1)!.choices[0]!.finish_reason, done], ["length", true]);
  });
});
