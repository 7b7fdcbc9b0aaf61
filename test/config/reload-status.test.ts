// What /status, the metrics, `status` and `top` show of the last reload, with one process and with
// several: the file in force, and why a changed file was rejected, until a file is accepted.

import { install } from "../../src/core/extension/install.ts";
import { hooks } from "../../src/core/extension/places.ts";
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { reloadStatus, startRecord } from "../../src/reload.ts";
import { certificate } from "../support/certificate.ts";
import { run } from "../support/command.ts";
import { folder, replace } from "../support/folder.ts";
import { configFor, json, merge } from "../support/gateway.ts";
import { freePort } from "../support/port.ts";
import { runHere } from "../support/run-here.ts";
import { until } from "../support/wait.ts";

const LAST = "chat_gateway_config_last_reload_successful";
const LOADED = "chat_gateway_config_last_reload_success_timestamp_seconds";
const KEYS = "chat_gateway_keys_readable";

async function site(t: TestContext, over: object) {
  const dir = folder();
  const at = (name: string) => join(dir, name);
  const file = at("gateway.json");
  const port = await freePort();
  const own = { data_dir: at("data"), admin: { port }, ...over };
  const config = configFor("http://127.0.0.1:1", ["m"], own);
  const write = (changed: object = {}) => replace(file, JSON.stringify(merge(config, changed)));
  write();
  const gw = run(t, ["--config", file]);
  await gw.address();
  const admin = `http://127.0.0.1:${port}`;
  const readStatus = async () => await json(await fetch(`${admin}/status`));
  return {
    gw,
    file,
    at,
    write,
    readStatus,
    /** Resolves with the status once `config_fault` is set, or once it is not. */
    async whenFaulty(isFaulty: boolean) {
      const look = async () => {
        const status = await readStatus();
        return (status.config_fault !== null) === isFaulty && status;
      };
      return await until(look, `config_fault ${isFaulty ? "in" : "gone from"} the status`);
    },
    async metrics(...names: string[]) {
      const text = await (await fetch(`${admin}/metrics`)).text();
      return names.map((name) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]));
    },
    command: async (...args: string[]) => await runHere([...args, "--config", file]),
  };
}

describe("the last reload", { concurrency: 3 }, () => {
  it("of several processes: the file, its load time, and why another one was rejected", async (t) => {
    const at = await site(t, { server: { workers: 2 } });
    const before = await at.readStatus();
    assert.deepEqual([before.config_file, before.config_fault], [at.file, null]);
    const loaded = Date.parse(before.config_loaded_at) / 1000;
    assert.deepEqual(await at.metrics(LAST, LOADED, KEYS), [1, loaded, 1]);
    assert.ok((await at.command("status")).stdout.includes(`configuration ${at.file} of 20`));

    at.write({ server: { drain_ms: -1 }, limits: { rpm: "many" } });
    const { config_fault: fault, ...faulty } = await at.whenFaulty(true);
    assert.deepEqual(
      [fault.path, fault.count, faulty.config_loaded_at],
      ["server.drain_ms", 2, before.config_loaded_at],
    );
    assert.ok(Date.parse(fault.time) >= Date.parse(before.config_loaded_at), fault.time);
    assert.deepEqual(await at.metrics(LAST, LOADED), [0, loaded]);
    const line =
      `reload failed at ${fault.time}, and the previous configuration stays in force: ` +
      `server.drain_ms: ${fault.message} (2 faults in all)`;
    const { code, stdout } = await at.command("status");
    assert.equal(code, 0, "the models serve");
    assert.equal(stdout.split("\n")[1], line);
    assert.ok((await at.command("top", "--once")).stdout.split("\n").includes(line));

    at.write({ limits: { rpm: 7 } });
    await at.whenFaulty(false);
    const isLoaded = async () => (await at.readStatus()).config_loaded_at > before.config_loaded_at;
    await until(isLoaded, "the time of the new configuration");
    assert.deepEqual(await at.metrics(LAST), [1]);
    assert.ok(!(await at.command("status")).stdout.includes("reload failed"));
  });

  it("an invalid certificate is shown in the same way", async (t) => {
    const tls = certificate();
    const at = await site(t, { server: { tls } });
    writeFileSync(tls.cert_file, "no certificate");
    at.gw.child.kill("SIGHUP");
    const { config_fault: certified } = await at.whenFaulty(true);
    assert.match(certified.path, /^server\.tls/);
  });

  it("an unreadable keys.json is shown until it is readable, with several processes too", async (t) => {
    const at = await site(t, { server: { workers: 2 } });
    const keys = join(at.at("data"), "keys.json");
    const faultOf = async () => (await at.readStatus()).keys.fault;
    assert.equal(await faultOf(), null);
    replace(keys, "{");
    const fault = await until(
      async () => (await faultOf()) ?? false,
      "the fault of keys.json in the status",
    );
    assert.match(fault, /keys\.json is not JSON: the fault is at line 1, column 2$/);
    assert.deepEqual(await at.metrics(KEYS, LAST), [0, 1]);
    const line = `keys.json cannot be read, and the previous keys stay in force: ${fault}`;
    assert.ok((await at.command("status")).stdout.split("\n").includes(line));
    replace(keys, "[]");
    await until(async () => (await faultOf()) === null, "the fault to be gone");
    assert.deepEqual(await at.metrics(KEYS), [1]);
  });

  it("is shown for a worker that rejects what the primary accepted, but not for a worker's start", async () => {
    const fault = { time: "2026-11-22T12:00:00.000Z", path: "server.tls", message: "x", count: 1 };
    const record = startRecord("gateway.json");
    const { listeners } = install([reloadStatus(record)]);
    const [status] = listeners(hooks.status);
    const fine = startRecord("gateway.json");
    const shown = (reports: readonly unknown[]) => status?.call(reports, {} as never);
    const inForce = {
      config_file: "gateway.json",
      config_loaded_at: record.loadedAt,
      config_fault: null,
      restart_needed: [],
    };
    const replaced = { ...fine, loadedAt: "2099-01-01T00:00:00.000Z" };
    assert.deepEqual(shown([fine, replaced]), inForce);
    assert.deepEqual(shown([fine, { ...fine, fault }]), { ...inForce, config_fault: fault });
    const restart = ["admin.password"];
    assert.deepEqual(shown([{ ...fine, restart }]), { ...inForce, restart_needed: restart });
  });
});
