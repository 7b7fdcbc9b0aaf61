// Signed reasoning in a gateway with several processes: whichever worker gets a call's result, it
// sends back the thoughts that led to the call.

import assert from "node:assert/strict";
import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import { it } from "node:test";
import { checkConfig, createGateway } from "../../../support/config.ts";
import { demo, user } from "../../../support/gateway.ts";
import { status as answerWith, type Behaviour } from "../../../support/provider.ts";
import { ask, bench, whole } from "../../scale/cluster/bench.ts";
import { message, textBlock, thought, toolUse } from "../anthropic/events.ts";
import { resultOf } from "../dialect-bench.ts";

const CALLED = [thought("Hm.", "c2ln"), toolUse("toolu_1", "f", {})];

const claude: Behaviour = (asked) => {
  const isCalled = asked.body["messages"].length > 1;
  const reply = isCalled ? message([textBlock("Done.")]) : message(CALLED, "tool_use");
  answerWith(200, reply)(asked);
};

it("all workers have the thoughts before a call", async (t) => {
  const settings = {
    providers: { lab: { dialect: "anthropic", thinking: "adaptive" } },
    models: { claude: { provider: "lab", reasoning: true } },
  };
  const { address, provider, gw } = await bench(t, settings, { claude });
  const tools = [{ type: "function", function: { name: "f" } }];
  const request = { model: "claude", thinking: { type: "enabled" }, tools, tool_choice: "auto" };
  const messages: object[] = user("hi");
  const reply = JSON.parse((await whole(ask(address, { ...request, messages }))).text());
  messages.push(reply.choices[0].message, resultOf("toolu_1"));
  for (let at = 0; at < 4; at += 1) await whole(ask(address, { ...request, messages }));
  const later = provider.asked.slice(1).map(({ body }) => body);
  assert.deepEqual(
    later.map(({ thinking: { type }, messages: [, { content }] }) => [type, content]),
    Array(4).fill(["adaptive", CALLED]),
  );
  assert.equal(gw.stderr(), "");
});

it("a worker subscribes to the others once, however often it reloads, and only while it serves", async (t) => {
  const worker = Object.assign(new EventEmitter(), { isConnected: () => false });
  Object.assign(cluster, { worker });
  t.after(() => Object.assign(cluster, { worker: undefined }));
  const config = checkConfig(demo());
  const gateway = createGateway(config);
  const listeners = worker.listenerCount("message");
  for (let reload = 0; reload < 3; reload += 1) gateway.reload(config);
  assert.equal(worker.listenerCount("message"), listeners);
  await gateway.close();
  assert.equal(worker.listenerCount("message"), 0);
});
