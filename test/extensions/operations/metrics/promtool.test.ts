// The metrics as Prometheus's own checker sees them: `promtool check metrics` has nothing to say
// about them.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { Writable } from "node:stream";
import { describe, it } from "node:test";
import { reloadStatus, startRecord } from "../../../../src/reload.ts";
import { allExtensions } from "../../../support/config.ts";
import { demo, startGateway, user } from "../../../support/gateway.ts";
import { chunk, event, startProvider, status as answerWith } from "../../../support/provider.ts";

const isThere = spawnSync("promtool", ["--version"]).status === 0;

describe("promtool check metrics", { skip: !isThere && "there is no promtool here" }, () => {
  it("is silent about all families, after traffic of every kind", async (t) => {
    // A reader that is behind for good: whatever the diagnostics say is dropped, and counted.
    const behind = new Writable({ write: () => undefined });
    behind.write("x".repeat(9e6));
    const provider = await startProvider(t, answerWith(500));
    const cutting = await startProvider(t, async ({ res }) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      await new Promise((sent) => res.write(event(chunk({ content: "On" })), sent));
      res.destroy();
    });
    const broken = {
      providers: {
        lab: { dialect: "openai", base_url: provider.url },
        cutting: { dialect: "openai", base_url: cutting.url },
      },
      models: {
        broken: { provider: "lab" },
        cut: { provider: "cutting", prefill: "plain", recovery: "continue" },
      },
      accounts: { demo: { budget: { amount: "1", period: "day" } } },
      telemetry: { otlp: { endpoint: provider.url } },
    };
    const reloads = reloadStatus(startRecord(undefined));
    const extensions = [...allExtensions, reloads];
    const gateway = await startGateway(t, demo(broken), { diagnostics: behind, extensions });
    gateway.gateway.diagnose({ event: "test" });
    const ask = async (body: object) =>
      (await gateway.chat(body, { authorization: "Bearer sk-demo" })).text();
    for (const stream of [true, false])
      await ask({ model: "auto/reasoning", stream, messages: user("hi") });
    await ask({ model: "nowhere", messages: user("hi") });
    await ask({ model: "broken", messages: user("hi") });
    await ask({ model: "cut", stream: true, messages: user("hi") });
    await (await fetch(`${gateway.url}/nowhere`)).text();
    const metrics = await (await fetch(`${gateway.gateway.adminAddress()}/metrics`)).text();
    for (const [, name] of metrics.matchAll(/^# TYPE (\S+) /gm))
      assert.match(metrics, new RegExp(`^${name}`, "m"));
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], {
      input: metrics,
      encoding: "utf8",
    });
    assert.deepEqual([`${stdout}${stderr}`, status], ["", 0]);
  });
});
