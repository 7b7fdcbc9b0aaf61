// The listener for Prometheus and probes: its responses, who gets them, and where it may listen.

import assert from "node:assert/strict";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { demo, json, startGateway, user } from "../../../support/gateway.ts";
import { folder } from "../../../support/folder.ts";
import { until } from "../../../support/wait.ts";
import { faultsOf } from "../faults-of.ts";

/** A request with a host name that the admin listener would reject. */
const HOST = { host: "gateway.example" };

async function start(t: TestContext, over: object = {}) {
  const admin = { port: 0, password: "letmein", metrics: { port: 0 } };
  const gateway = await startGateway(t, demo({ admin, ...over }));
  const texts = gateway.gateway.announcements();
  const [, address = ""] = /^metrics on (\S+)$/m.exec(texts.join("\n")) ?? [];
  return { gateway, address };
}

const get = (url: string) => fetch(url, { headers: HOST });

async function assertNotReady(listener: string, expected: string): Promise<void> {
  const response = await get(`${listener}/readyz`);
  const { code } = (await json(response)).error;
  assert.deepEqual([response.status, code], [503, expected]);
}

describe("the listener for metrics", () => {
  it("serves only /metrics and the probes, without a password, and only GET", async (t) => {
    const { gateway, address } = await start(t);
    await (await gateway.chat({}, { authorization: "Bearer sk-nobody" })).text();
    const text = await (await get(`${address}/metrics`)).text();
    assert.match(text, /^chat_gateway_workers 1$/m);
    assert.match(text, /^chat_gateway_refusals_total\{account="",code="invalid_api_key"\} 1$/m);
    const refused = await fetch(`${gateway.gateway.adminAddress()}/metrics`);
    assert.equal(refused.status, 401, "the admin listener demands one");
    for (const [path, status] of [
      ["/healthz", "ok"],
      ["/health", "ok"],
      ["/readyz", "ready"],
    ] as const) {
      const response = await get(address + path);
      assert.deepEqual([response.status, await response.json()], [200, { status }]);
      assert.equal(response.headers.get("cache-control"), "no-store");
    }
    const others = ["/status", "/costs", "/trace", "/events", "/openapi.json", "/v1/models"];
    for (const path of ["/", ...others])
      assert.equal((await get(address + path)).status, 404, path);
    const posted = await fetch(`${address}/metrics`, { method: "POST", headers: HOST });
    assert.equal(posted.status, 405);
  });

  it("is not ready while requests cannot be written to the books", async (t) => {
    const data_dir = folder();
    const { gateway, address } = await start(t, { data_dir });
    const spend = join(data_dir, "spend");
    for (const name of readdirSync(spend)) rmSync(join(spend, name));
    // The log checks its files once a second. A request before that would wait.
    const isReady = async () => (await get(`${address}/readyz`)).status === 200;
    await until(async () => !(await isReady()), "the loss to be noticed");
    for (const listener of [address, gateway.url])
      await assertNotReady(listener, "server_overloaded");
  });

  it("is not ready while no model is available", async (t) => {
    const broken = {
      providers: { lab: { dialect: "openai", base_url: "http://127.0.0.1:1" } },
      models: { "demo-chat": { provider: "lab" }, "demo-reasoner": { provider: "lab" } },
      breaker: { failures: 1 },
    };
    const { gateway, address } = await start(t, broken);
    const key = { authorization: "Bearer sk-demo" };
    for (const model of ["demo-chat", "demo-reasoner"])
      await (await gateway.chat({ model, messages: user("hi") }, key)).text();
    await assertNotReady(address, "model_unavailable");
    assert.equal((await get(`${address}/healthz`)).status, 200);
  });

  it("may listen beyond loopback without a password, and fails the start if its port is in use", async (t) => {
    const { address } = await start(t, { admin: { metrics: { host: "0.0.0.0", port: 0 } } });
    const port = Number(new URL(address).port);
    assert.equal((await get(`http://127.0.0.1:${port}/healthz`)).status, 200);
    const admin = { metrics: { port } };
    await assert.rejects(startGateway(t, demo({ admin })), { code: "EADDRINUSE" });
  });

  it("does not exist without its setting", async (t) => {
    const { gateway } = await startGateway(t, demo());
    assert.ok(!gateway.announcements().some((text) => text.startsWith("metrics")));
  });
});

describe("the port of the listener for metrics", () => {
  const on9464 = (host: string) => ({ server: { host, port: 9464 }, admin: { metrics: {} } });
  for (const [situation, sections, taken] of [
    ["the admin listener's", { admin: { port: 9000, metrics: { port: 9000 } } }, "admin.port"],
    ["the admin listener's default", { admin: { metrics: { port: 8081 } } }, "admin.port"],
    ["the public one's default", { admin: { metrics: { port: 8080 } } }, "server.port"],
    ["the public one's", on9464("::"), "server.port"],
    ["that of a listener on another host", on9464("127.0.0.2")],
    ["any free one", { admin: { port: 0, metrics: { port: 0 } } }],
  ] as const)
    it(`${taken ? "cannot" : "can"} be ${situation}`, () => {
      const expected = taken ? [`admin.metrics.port: is ${taken} too, on the same host`] : [];
      assert.deepEqual(faultsOf({ providers: {}, models: {}, ...sections }), expected);
    });
});
