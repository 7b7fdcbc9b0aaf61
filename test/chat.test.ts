import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configFor, startGateway, user, readStream } from "./support/gateway.ts";
import { speak, startProvider } from "./support/provider.ts";

describe("smoke", () => {
  it("whole and stream", async (t) => {
    const provider = await startProvider(t, { m: speak("Hello there, friend.", { reasoning: "Think a bit." }) });
    const gw = await startGateway(t, configFor(provider.url, ["m"]));
    const res = await gw.chat({ model: "m", messages: user("hi"), thinking: { type: "enabled" } });
    console.log(res.status, JSON.stringify(await res.json(), null, 1));
    const s = await readStream(await gw.chat({ model: "m", stream: true, messages: user("hi") }));
    console.log(s.text);
    assert.ok(s.done);
  });
});
