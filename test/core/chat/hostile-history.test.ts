// Requests made to do harm, through the native formats: what a client sends must not be taken for a
// fault of the provider, and must not block the process.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, user } from "../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../support/memory.ts";
import { status } from "../../support/provider.ts";

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
/** A model of this vendor. */
function serving(t: TestContext, vendor: string, reply: object) {
  const { url, asked } = memoryProvider(t, status(200, reply));
  const { chat } = createMemoryGateway(
    configFor(url, [], {
      providers: { p: { vendor, base_url: url } },
      models: { m: { provider: "p", supports: ["tools", "images"] } },
      breaker: { failures: 2 },
    }),
  );
  const ask = async (messages: readonly object[]) => {
    const response = await chat({ model: "m", messages: [...user("hi"), ...messages] });
    assert.equal(response.status, 200);
  };
  return { asked, ask };
}

for (const [vendor, reply] of [
  ["anthropic", ANTHROPIC],
  ["gemini", GEMINI],
] as const) {
  describe(`${vendor}: a client's history`, () => {
    it("arguments and results that are nested too deeply to be objects go out as texts", async (t) => {
      const { ask, asked } = serving(t, vendor, reply);
      for (const messages of [[called("a", DEEP)], [called("a"), result("a", DEEP)]])
        for (let time = 0; time < 3; time += 1) await ask(messages);
      assert.equal(asked.length, 6, "the breaker stays shut");
      assert.ok(JSON.stringify(asked[0]!.body).includes(JSON.stringify(DEEP)), "nothing is lost");
    });

    it("95,000 parts in a message, and 70,000 results of one call", async (t) => {
      const { ask, asked } = serving(t, vendor, reply);
      const parts = Array.from({ length: 95_000 }, () => ({ type: "text", text: "x" }));
      const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
      await ask([{ role: "user", content: [...parts, image] }]);
      await ask([called("a"), ...Array.from({ length: 70_000 }, (_, at) => result("a", `${at}`))]);
      assert.ok(JSON.stringify(asked[1]!.body).includes("69999"), "the last of them too");
    });
  });
}
