// Reloading the configuration of a running gateway: it applies to requests that arrive later,
// completely or not at all, and breakers carry over; and a file that changes back after a manual
// reload.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createReloader, startRecord, type ReloadRecord } from "../../src/reload.ts";
import { loadConfig, secretFilesBeside } from "../../src/config/load.ts";
import type { Config } from "../../src/core/config.ts";
import { checkConfig, loader } from "../support/config.ts";
import { folder } from "../support/folder.ts";
import { watchFile } from "../../src/extensions/scale/data-files/watch.ts";
import {
  assemble,
  configFor,
  demo,
  json,
  KEY,
  readStream,
  startWith,
  startGateway,
  user,
} from "../support/gateway.ts";
import { held, speak, status, type Behaviour } from "../support/provider.ts";
import { waitFor } from "../support/wait.ts";

describe("reload", () => {
  it("a request keeps the configuration that it began with; the next one gets the new one", async (t) => {
    const { behaviour, finish } = held();
    const { provider, ...gateway } = await startWith(t, { old: behaviour, new: speak("New.") });
    const response = await gateway.chat({ model: "old", stream: true, messages: user("hi") });
    const keys = [{ account: "beta", key: "sk-new" }];
    gateway.gateway.reload(checkConfig(configFor(provider.url, ["new"], { keys })));
    const ask = (model: string, key: string) =>
      gateway.chat({ model, messages: user("hi") }, { authorization: `Bearer ${key}` });
    assert.equal((await ask("new", KEY)).status, 401);
    assert.equal((await ask("old", "sk-new")).status, 404);
    assert.equal((await json(await ask("new", "sk-new"))).choices[0].message.content, "New.");
    finish();
    const { chunks, done } = await readStream(response);
    assert.ok(done);
    assert.equal(assemble(chunks).message["content"], "Fine.");
  });

  it("a breaker belongs to a model, provider and key: a new key starts a new breaker", async (t) => {
    const m: Behaviour = (asked) => {
      const { authorization } = asked.headers;
      const error = { message: String(authorization).replace("Bearer ", "you sent ") };
      (authorization === "Bearer sk-good" ? speak("Fine.") : status(401, { error }))(asked);
    };
    const { provider, ...gateway } = await startWith(t, { m });
    const config = (key: string) =>
      checkConfig(configFor(provider.url, ["m"], { providers: { lab: { api_key: key } } }), {});
    const ask = async () => (await gateway.chat({ model: "m", messages: user("hi") })).status;
    assert.equal(await ask(), 503);
    gateway.gateway.reload(config("sk-provider-secret"));
    assert.deepEqual([await ask(), provider.asked.length], [503, 1], "the breaker stays open");
    gateway.gateway.reload(config("sk-good"));
    assert.equal(await ask(), 200);
    gateway.gateway.reload(config("sk-provider-secret"));
    assert.deepEqual(
      [await ask(), provider.asked.length],
      [503, 3],
      "state of a removed provider is dropped",
    );
    // The key in force is redacted from the provider's message.
    gateway.gateway.reload(config("CANARY-plain"));
    assert.equal(await ask(), 503);
    assert.match(JSON.stringify(gateway.diagnostics), /you sent \[redacted\]"/);
    assert.doesNotMatch(JSON.stringify(gateway.diagnostics), /CANARY/);
  });

  it("the demo key is rejected on reload while the gateway listens beyond loopback", async (t) => {
    const keys = [{ account: "a", key: KEY }];
    const gateway = await startGateway(t, demo({ server: { host: "0.0.0.0" }, keys }));
    assert.throws(() => gateway.gateway.reload(checkConfig(demo(), {})), /demo key/);
    const local = gateway.url.replace("0.0.0.0", "127.0.0.1");
    const status = async (key: string) =>
      (await fetch(`${local}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
    assert.deepEqual([await status("sk-demo"), await status(KEY)], [401, 200]);
  });

  it("another currency is rejected, because earlier spending was counted in the first one", async (t) => {
    const gateway = await startGateway(t, demo());
    assert.throws(
      () => gateway.gateway.reload(checkConfig(demo({ currency: "EUR" }), {})),
      /currency: must stay USD while the gateway runs, which counts in it: restart it/,
    );
    gateway.gateway.reload(checkConfig(demo({ currency: "USD" }), {}));
  });

  it("settings read only at start are reported to the operator, removed sections included", async (t) => {
    const data_dir = folder();
    const otlp = (authorization: string) => ({
      telemetry: { otlp: { endpoint: "http://127.0.0.1:9", headers: { authorization } } },
    });
    const password = (text: string) => ({ admin: { port: 0, password: text } });
    const gateway = await startGateway(t, demo({ data_dir, ...password("a"), ...otlp("one") }));
    const redis = { limits: { store: "redis://127.0.0.1:1" } };
    for (const [over, settings] of [
      [{ server: { port: 1, keep_alive_ms: 5 } }, "server.port"],
      [{ data_dir: `${data_dir}/other`, ...redis }, "data_dir, limits.store"],
      [{ server: { keep_alive_ms: 6 } }, undefined],
      [password("CANARY"), "admin"],
      [otlp("two"), "telemetry"],
      [{ telemetry: null }, "telemetry"],
      [otlp("one"), undefined],
    ] as const) {
      const told = gateway.diagnostics.length;
      const next = demo({ data_dir, ...password("a"), ...otlp("one"), ...over });
      gateway.gateway.reload(checkConfig(next, {}));
      const expected = [
        ...(settings ? [["restart_needed", `read at start only: ${settings}`]] : []),
        ["reloaded", undefined],
      ];
      await waitFor(() => gateway.diagnostics.length === told + expected.length, "the log");
      assert.deepEqual(
        gateway.diagnostics.slice(told).map(({ event, detail }) => [event, detail]),
        expected,
      );
    }
  });
});

it("a file that changes back soon after a manual reload is loaded again", async (t) => {
  const file = join(folder(), "gateway.json");
  const write = (rpm: number) => writeFileSync(file, JSON.stringify(demo({ limits: { rpm } })));
  write(1);
  const applied: unknown[] = [];
  const gateway = {
    reload: (next: Config) => applied.push(next.limits.rpm),
    diagnose: (line: object) => assert.fail(JSON.stringify(line)),
  };
  const secretFiles = secretFilesBeside(file);
  const options = { file, env: {}, loader, secretFiles };
  await loadConfig(options);
  const watchers: { close(): void }[] = [];
  t.after(() => {
    for (const watcher of watchers) watcher.close();
  });
  const record: ReloadRecord = startRecord(file);
  const again = createReloader({ gateway, record }, options, (path, seen, changed) => {
    const watcher = watchFile(path, changed, { knownState: seen });
    watchers.push(watcher);
    return watcher;
  });
  write(2);
  await again();
  write(1);
  await waitFor(() => applied.length === 2, "the change back");
  assert.deepEqual(applied, [2, 1]);
});
