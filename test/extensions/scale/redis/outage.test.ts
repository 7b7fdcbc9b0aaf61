// Gateways that share their limits through a real Redis that is killed, suspended, corrupted and
// missing. Skipped like window.test.ts.

import assert from "node:assert/strict";
import dns from "node:dns";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { pipeline } from "node:stream";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { setImmediate, setTimeout as pause } from "node:timers/promises";
import type { Config } from "../../../../src/core/config.ts";
import { openStoredScript } from "../../../../src/extensions/scale/redis/index.ts";
import { quickest, runToEnd } from "../../../support/program.ts";
import { completion, silent, startProvider, status } from "../../../support/provider.ts";
import { listening, noIpv6 } from "../../../support/listening.ts";
import { noRedis, REDIS_FOLDER, startRedis, type Redis } from "../../../support/redis.ts";
import { until, within } from "../../../support/wait.ts";
import * as bench from "./bench.ts";

let redis: Redis;
const acme = (rpm: number) => ({ acme: { rpm } });
const admitted = async (account = "acme") =>
  (await bench.timesOf(redis, bench.windowKey(account))).length;
const serveHere = (t: TestContext, options: Omit<bench.Options, "store">) =>
  bench.serve(t, { store: redis.url, ...options });

async function kill(t: TestContext): Promise<void> {
  await redis.kill();
  t.after(async () => {
    await redis.kill();
    return redis.start();
  });
}

async function stand(t: TestContext): Promise<void> {
  redis.pause();
  t.after(redis.resume);
}

describe("gateways that share limits in Redis", { skip: noRedis() }, () => {
  before(async () => {
    redis = await startRedis();
  });
  after(() => redis?.close());

  it("two with two workers each: of 2,000 parallel requests exactly 600 are admitted", async (t) => {
    await redis.command("FLUSHALL");
    const options = { workers: 2, accounts: acme(600) };
    const gateways = await Promise.all([serveHere(t, options), serveHere(t, options)]);
    const told = await bench.flood(2_000, gateways);
    const [served, overloaded] = [bench.ofStatus(told, 200).length, bench.ofStatus(told, 503)];
    assert.equal(served + bench.ofStatus(told, 429).length + overloaded.length, 2_000);
    for (const each of bench.ofStatus(told, 429)) bench.assertLimited(each, 600);
    for (const each of overloaded) bench.assertOverloaded(each);
    // Requests that Redis admitted too late, after the gateway had rejected them, still count.
    assert.equal(await admitted(), 600);
    assert.ok(served <= 600 && served >= 600 - overloaded.length, `${served} were served`);
    await until(async () => {
      const all = await Promise.all(gateways.map((gateway) => gateway.status()));
      for (const { workers, limits } of all)
        assert.deepEqual([workers, limits.store], [2, "redis"]);
      const used: number[] = all.map(({ limits }) => limits.accounts[0].used);
      return used.every((each) => each > 0) && used[0]! + used[1]! === served;
    }, "the gateways to have counted what they admitted");
  });

  for (const [how, reason, fail, mend] of [
    ["killed", undefined, kill, () => redis.start()],
    ["standing still", bench.SLOW, stand, () => redis.resume()],
  ] as const)
    it(`${how} under load: with on_error local each gateway continues from its own counts, with refuse it answers 503, until Redis is back`, async (t) => {
      await redis.command("FLUSHALL");
      const gateways = await Promise.all(
        (["local", "local", "refuse"] as const).map((onError) =>
          serveHere(t, { onError, accounts: acme(200) }),
        ),
      );
      const ask = (requests: number) =>
        Promise.all(gateways.map((gateway) => bench.flood(requests, [gateway])));
      const before = await ask(10);
      const meanwhile = ask(90);
      await fail(t);
      await Promise.all(gateways.map((gateway) => gateway.down(reason)));
      const told = [before, await meanwhile];
      const said = gateways.map((gateway) => gateway.outages().length);
      const last = await ask(200);
      for (const at of [0, 1]) {
        const all = [...told, last].flatMap((each) => each[at]!);
        assert.deepEqual(bench.countAll(all), { 200: 200, 429: 100 });
      }
      last[2]!.forEach(bench.assertOverloaded);
      const saidSince = gateways.map((gateway) => gateway.outages().length);
      assert.deepEqual(saidSince, said, "it is reported once");
      await mend();
      await Promise.all(gateways.map((gateway) => gateway.up()));
      // All share a window that no gateway's own window tightens.
      await until(async () => {
        await ask(30);
        return (await admitted()) === 200;
      }, "the shared window to be full");
      gateways.forEach(bench.assertTurns);
    });

  it("missing at the start: the gateway limits by itself, and notices Redis when it appears", async (t) => {
    await kill(t);
    const gateway = await serveHere(t, { onError: "local", accounts: acme(20) });
    await gateway.down(/ECONNREFUSED/);
    assert.deepEqual(bench.countAll(await bench.flood(50, [gateway])), { 200: 20, 429: 30 });
    assert.equal(gateway.outages().length, 1, "it is reported once");
    await redis.start();
    await gateway.up(); // without any request
    await bench.flood(1, [gateway]);
    assert.equal(await admitted(), 1);
    bench.assertTurns(gateway);
  });

  it("with a password: the right one works, a wrong one is a fault, and neither is ever shown", async (t) => {
    const locked = await startRedis({ password: "CANARY-of-redis" });
    t.after(locked.close);
    const wrong = locked.url.replace("CANARY-of-redis", "CANARY-but-wrong");
    const none = locked.url.replace(":CANARY-of-redis@", "");
    const gateways = await Promise.all(
      [locked.url, wrong, none].map(async (store) => {
        const gateway = await bench.serve(t, { store, onError: "local", accounts: acme(5) });
        const told = await bench.flood(10, [gateway]);
        const counts = bench.countAll(told);
        // A Redis that answers late, on a busy machine, may have admitted some besides the gateway.
        const isLate = store === locked.url && gateway.outages().length > 0;
        const admitted = isLate ? Math.max(5, counts[200] ?? 0) : 5;
        assert.deepEqual(counts, { 200: admitted, 429: 10 - admitted });
        assert.doesNotMatch(JSON.stringify([await gateway.status(), told]), /CANARY/);
        return gateway;
      }),
    );
    const [right, ...others] = gateways;
    await right!.up();
    // On a busy machine it may answer late, which is another fault.
    const faults = gateways.map((gateway) => gateway.outages()[0]?.detail ?? "");
    assert.doesNotMatch(faults[0]!, /WRONGPASS|NOAUTH/);
    for (const [at, fault] of [/WRONGPASS/, /NOAUTH/].entries()) {
      assert.match(faults[at + 1]!, fault);
      await others[at]!.down();
    }
    const admissions = (await bench.timesOf(locked, bench.windowKey("acme"))).length;
    assert.ok(admissions === 5 || (faults[0] && admissions > 0), `${admissions} were admitted`);
  });

  it("that does not know HELLO, as before Redis 6", async (t) => {
    const old = await startRedis({ without: "HELLO" });
    t.after(old.close);
    const gateway = await bench.serve(t, { store: old.url, onError: "local", accounts: acme(5) });
    await until(async () => (await gateway.fault()) === null, "Redis to be reached");
  });

  it("at an IPv6 address", { skip: noIpv6() }, async (t) => {
    const { port } = new URL(redis.url);
    const way = createServer((socket) => {
      pipeline(socket, connect(Number(port)), socket, () => undefined);
    });
    const store = (await listening(t, way, "::1")).replace("http", "redis");
    const gateway = await bench.serve(t, { store, onError: "local", accounts: acme(5) });
    await until(async () => (await gateway.fault()) === null, "Redis to be reached");
  });

  it("with a corrupt key of one account: the others are served, and it is reported", async (t) => {
    await redis.command("FLUSHALL");
    const gateway = await serveHere(t, { accounts: { spoilt: { rpm: 3 }, whole: { rpm: 3 } } });
    await redis.command("SET", bench.windowKey("spoilt"), "x");
    for (const [account, answers] of [
      ["spoilt", { 503: 4 }],
      ["whole", { 200: 3, 429: 1 }],
    ] as const)
      assert.deepEqual(bench.countAll(await bench.flood(4, [gateway], account)), answers);
    assert.equal(await gateway.fault(), null);
    assert.equal(gateway.running.stderr().split('"limits_key_unusable"').length, 2, "once");
  });

  it("replaced by another kind of server: each gateway limits by itself, says so, and releases its slots", async (t) => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (data) => {
        const commands = String(data).match(/\*\d+\r\n\$/g) ?? [];
        socket.write("+OK\r\n".repeat(commands.length));
      });
    });
    const store = (await listening(t, server)).replace("http", "redis");
    const accounts = { acme: { rpm: 3, max_in_flight: 1, tokens_per_minute: 1e6 } };
    const gateway = await bench.serve(t, { store, onError: "local", accounts });
    const told: bench.Told[] = [];
    for (let requests = 0; requests < 4; requests += 1)
      told.push(await bench.post(gateway.url, bench.keyOf("acme")));
    assert.deepEqual(bench.countAll(told), { 200: 3, 429: 1 });
    bench.assertLimited(told.at(-1)!, 3);
    await gateway.down(/not iterable|undefined/);
    assert.match(gateway.running.stderr(), /"budgets_store_failed"/);
  });

  it("demoted to a replica: the gateway reconnects, because the address may lead elsewhere", async (t) => {
    await redis.command("FLUSHALL");
    const gateway = await serveHere(t, { onError: "local", accounts: acme(100) });
    assert.deepEqual(bench.countAll(await bench.flood(2, [gateway])), { 200: 2 });
    const connections = async (): Promise<(string | undefined)[]> => {
      const list = String(await redis.command("CLIENT", "LIST"));
      return [...list.matchAll(/^id=(\d+).*cmd=eval/gm)].map(([, id]) => id);
    };
    const [before] = await connections();
    t.after(() => redis.command("REPLICAOF", "NO", "ONE"));
    await redis.command("REPLICAOF", "127.0.0.1", 1);
    await bench.flood(1, [gateway]);
    await gateway.down(/^READONLY/); // on a busy machine the first answer may be late
    await redis.command("REPLICAOF", "NO", "ONE");
    const isBack = async () => {
      await bench.flood(1, [gateway]);
      return (await gateway.fault()) === null;
    };
    await until(isBack, "Redis to be asked again");
    assert.ok(!(await connections()).includes(before));
  });

  for (const [version, words] of [
    ["7", "READONLY You can't write against a read only replica. script: f, on @user_script:1."],
    ["6", "ERR Error running script: @user_script:1: -READONLY You can't write against a replica."],
  ])
    it(`demoted to a replica, version ${version}: reconnects at once`, async (t) => {
      t.mock.method(process, "cwd", () => REDIS_FOLDER);
      const now = performance.now();
      t.mock.method(performance, "now", () => now); // no failure lasts two seconds
      const server = createServer((socket) => {
        socket.on("error", () => undefined);
        socket.on("data", (data) => {
          const commands = String(data).match(/\*\d+\r\n\$/g) ?? [];
          socket.write(`-${words}\r\n`.repeat(commands.length));
        });
      });
      const store = (await listening(t, server)).replace("http", "redis");
      const path = "extensions/scale/redis/script.lua";
      const config = { limits: { store } } as unknown as Config;
      const script = openStoredScript(config, "limits", path, () => undefined)!;
      await script.start();
      const again = once(server, "connection");
      await script.run(["0"], () => undefined);
      await within(again, "a second connection").finally(script.close);
    });

  it("that rejects writes: a fault in each report until it accepts them, and logged once", async (t) => {
    await redis.command("FLUSHALL");
    const gateway = await serveHere(t, {
      onError: "local",
      accounts: { ...acme(100), full: { rpm: 1 } },
    });
    await gateway.up();
    await bench.flood(1, [gateway], "full");
    t.after(() => redis.command("CONFIG", "SET", "maxmemory", 0));
    await redis.command("CONFIG", "SET", "maxmemory", 1);
    await gateway.down(/^OOM/);
    for (let reports = 0; reports < 3; reports += 1) {
      await pause(300); // by then a request or a report asks again
      await bench.flood(1, [gateway], "full"); // is rejected: it alone would need no write
      await gateway.status();
      await gateway.down();
    }
    await redis.command("CONFIG", "SET", "maxmemory", 0);
    await gateway.up();
    bench.assertTurns(gateway);
  });

  it("asked by a report when the gateway ends: no fault is reported", async (t) => {
    const gateway = await serveHere(t, { onError: "local", accounts: acme(100) });
    let polls = true;
    const poll = async (): Promise<void> => {
      while (polls) await gateway.status().catch(() => (polls = false));
    };
    const polling = Promise.all([poll(), poll(), poll(), poll()]);
    await gateway.up();
    gateway.running.child.kill("SIGTERM");
    await gateway.running.ended.finally(() => (polls = false));
    await polling;
    // On a busy machine an earlier answer may have been late, and the store recovered from that.
    const isTold = ({ event, detail = "" }: { event: string; detail?: string }) =>
      event === "limits_store_failed" && !bench.SLOW.test(detail);
    assert.deepEqual(gateway.outages().filter(isTold), []);
  });

  it("whose name servers are silent: all its connections wait for one lookup", async (t) => {
    t.mock.method(process, "cwd", () => REDIS_FOLDER);
    const lookup = t.mock.method(dns, "lookup", () => undefined);
    const config = { limits: { store: "redis://limits.test:6379" } } as unknown as Config;
    for (const subject of ["limits", "budgets"] as const) {
      const path = "extensions/scale/redis/script.lua";
      const script = openStoredScript(config, subject, path, () => undefined)!;
      t.after(() => script.close());
      assert.ok(script.start() instanceof Promise);
    }
    await until(async () => lookup.mock.callCount() > 0, "a lookup");
    await setImmediate();
    assert.equal(lookup.mock.callCount(), 1);
  });

  for (const [title, old, told] of [
    ["without the package redis", "", /npm install --save-optional redis/],
    [
      "with version 4 of the package redis",
      "exports.createCluster = exports.createClient = () => ({})",
      /version 5 or later/,
    ],
  ] as const)
    it(`${title}: an error that says what to install`, async (t) => {
      const { file } = bench.place({ store: "redis://:CANARY@127.0.0.1:1", accounts: acme(5) });
      const elsewhere = mkdtempSync(join(tmpdir(), "elsewhere-"));
      t.after(() => rmSync(elsewhere, { recursive: true }));
      if (old) {
        mkdirSync(join(elsewhere, "node_modules"));
        writeFileSync(join(elsewhere, "node_modules/redis.js"), old);
      }
      for (const command of ["serve", "check"]) {
        const args = [command, "--config", file];
        const { code, stdout, stderr } = await runToEnd(quickest(elsewhere), args);
        assert.deepEqual([code, stdout], [1, ""], command);
        assert.match(stderr, /^chat-gateway: limits\.store: [^\n]*\n$/);
        assert.match(stderr, told);
        assert.doesNotMatch(stderr, /CANARY/);
      }
    });

  it("without a free slot in an account: the request costs nothing in Redis", async (t) => {
    await redis.command("FLUSHALL");
    const provider = await startProvider(t, { m: silent });
    const accounts = { acme: { rpm: 100, max_in_flight: 2 } };
    const gateway = await serveHere(t, { accounts, provider: provider.url, onError: "local" });
    const asked = [1, 2].map(() => bench.post(gateway.url, bench.keyOf("acme")));
    await provider.nth(1);
    for (const { headers, error } of await bench.flood(10, [gateway]))
      assert.deepEqual([error?.code, headers["retry-after"]], ["concurrency_limit_exceeded", "1"]);
    assert.deepEqual([await admitted(), provider.asked.length], [2, 2]);
    provider.asked.forEach(status(200, completion({ content: "Fine." })));
    assert.deepEqual(bench.countAll(await Promise.all(asked)), { 200: 2 });
  });
});
