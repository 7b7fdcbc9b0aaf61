// Several processes on one port: they share the limits of an account and the admin listener, each
// writes its own part of the books, and signals reach all of them. These are real processes.

import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { WORKER_MARK } from "../../../../src/command-line/processes.ts";
import { entries, linesOf, segmentPath, segments, type Line } from "../../../support/books.ts";
import { certificate } from "../../../support/certificate.ts";
import { assertFails, ended, lines } from "../../../support/command.ts";
import { folder } from "../../../support/folder.ts";
import { demo, KEY, merge } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { bundled, runToEnd } from "../../../support/program.ts";
import { status as answerWith } from "../../../support/provider.ts";
import { suiteScope } from "../../../support/scope.ts";
import { todays } from "../../../support/long.ts";
import { until, within } from "../../../support/wait.ts";
import * as cluster from "./bench.ts";

/**
 * Resolves when nothing listens there any more. A connection that is accepted at the very end and
 * handed to no worker is not awaited.
 */
const untilRefused = (address: string): Promise<unknown> =>
  until(async () => {
    const socket = connect(Number(new URL(address).port), "127.0.0.1");
    const outcome = once(socket, "connect").then(
      () => false,
      () => true,
    );
    return outcome.finally(() => socket.destroy());
  }, "new connections to be refused");

const WHOM = { "the primary": 1, "the whole group": -1 } as const;

describe("several workers", { concurrency: 2 }, () => {
  const ends = [
    ["SIGTERM", "the primary"],
    ["SIGINT", "the whole group"],
  ] as const;
  for (const [signal, whom] of todays(ends, 2))
    it(`serve one port; ${signal} to ${whom}: streams are completed, exit 0, and the books are correct`, async (t) => {
      const { gw, address, workers, provider, dir, file } = await cluster.bench(t);
      const pids = workers();
      assert.equal(pids.length, 2);
      let asked = 0;
      await until(async () => {
        assert.deepEqual(await cluster.everywhere(address, {}), [200]);
        asked += 60;
        return segments(dir).every((name) => linesOf(segmentPath(dir, name)).length > 0);
      }, "each worker to serve some");
      assert.equal(segments(dir).length, 2);
      const streams: cluster.Reply[] = [];
      for (let at = 0; at < 3; at += 1) streams.push(await cluster.openStream(address));
      process.kill(WHOM[whom] * gw.child.pid!, signal);
      await untilRefused(address);
      for (const stream of streams) assert.doesNotMatch(stream.text(), /\[DONE\]/);
      provider.asked.filter(({ body }) => body["model"] === "held").forEach(cluster.finish);
      for (const stream of streams)
        assert.match((await cluster.whole(stream)).text(), /ne\..*\[DONE\]\n\n$/s);
      await cluster.assertEnds(gw);
      assert.equal(gw.stderr(), "", "no worker was replaced");
      for (const pid of pids) assert.throws(() => process.kill(pid, 0), /ESRCH/);
      const [first, ...log] = lines(gw.stdout());
      assert.match(
        first!,
        /^chat-gateway listens on http:\/\/127\.0\.0\.1:\d+ \(gateway\.json; console and admin on http:\/\/127\.0\.0\.1:\d+\)$/,
      );
      const logged = log.map((line) => JSON.parse(line).status);
      assert.deepEqual(logged, Array(asked + 3).fill(200));
      const statuses = entries(dir).map(({ settle }) => settle["status"]);
      assert.deepEqual(statuses, Array(asked + 3).fill("completed"));
      await cluster.audit(t, file);
    });

  for (const whom of todays(["the primary", "the whole group"] as const, 2))
    it(`a second signal to ${whom} ends all of them at once`, async (t) => {
      const { gw, address } = await cluster.bench(t);
      const stream = await cluster.openStream(address);
      process.kill(WHOM[whom] * gw.child.pid!, "SIGTERM");
      await untilRefused(address);
      assert.equal(gw.child.exitCode, null, "it is draining");
      process.kill(WHOM[whom] * gw.child.pid!, "SIGTERM");
      const { code } = await within(gw.ended, "the end of all who hold its output");
      assert.equal(code, 1);
      assert.equal(await stream.over, "cut");
    });

  it("a suspended worker is left out of the status, returns, and is killed at the end", async (t) => {
    const site = await cluster.bench(t, { server: { drain_ms: 0 } });
    const [still] = site.workers();
    process.kill(still!, "SIGSTOP");
    await cluster.complete(site, 1);
    process.kill(still!, "SIGCONT");
    await cluster.complete(site);
    assert.equal(site.gw.stderr(), "");
    process.kill(still!, "SIGSTOP");
    site.gw.child.kill("SIGTERM");
    const [code] = await within(once(site.gw.child, "exit"), "the gateway to stop");
    assert.equal(code, 0);
  });

  const foreign: readonly [whose: string, env: object, error: RegExp][] = [
    ["another program", {}, /worker of another program's node:cluster.*server\.workers/],
    [
      "another version",
      { [WORKER_MARK]: "0.0.1" },
      /replaced version 0\.0\.1 .*: stop the gateway/,
    ],
  ];
  for (const [whose, env, error] of foreign)
    it(`refuse to be workers of ${whose}, which sends them other messages or none`, async () => {
      const { args, cwd } = bundled(folder());
      const first = `const cluster = require("node:cluster");
        cluster.setupPrimary({ exec: ${JSON.stringify(args[0])}, args: ["serve"], execArgv: [] });
        cluster.fork(${JSON.stringify(env)}).on("exit", (code) => { process.exitCode = code; });`;
      assertFails(await runToEnd({ args: ["-e", first], cwd }, []), 2, error);
    });

  for (const section of todays(["server", "admin"], 2))
    it(`with the port of ${section} in use: one line, exit 1`, async (t) => {
      const port = Number(new URL(await listening(t, createServer())).port);
      const file = join(folder(), "some.json");
      const config = demo({ server: { workers: 2 }, data_dir: folder() });
      writeFileSync(file, JSON.stringify(merge(config, { [section]: { port } })));
      const end = await ended(t, ["--config", file]);
      assertFails(end, 1, new RegExp(`EADDRINUSE.*${port}`));
    });
});

describe("several workers share", () => {
  const scope = suiteScope();
  const down = ["down 1", "down 2", "down 3"];
  let at: cluster.Bench;
  before(async () => {
    const names = [...down, "busy"];
    const over = {
      server: { workers: 3 },
      models: Object.fromEntries(names.map((name) => [name, { provider: "lab" }])),
      aliases: { any: { models: ["m", ...down] } },
      breaker: { failures: 1 },
      accounts: { window: { rpm: 20 } },
      keys: [
        { account: "acme", key: KEY },
        { account: "window", key: "window" },
      ],
    };
    at = await cluster.bench(scope, over, {
      ...Object.fromEntries(down.map((name) => [name, answerWith(500)])),
      busy: answerWith(429, { error: {} }, { "retry-after": "50" }),
    });
    await cluster.complete(at, 3);
  });

  it("an account's window: of 60 requests at once exactly 20 are admitted; status and metrics are sums", async () => {
    const { address, provider, readStatus, readMetric } = at;
    const replies = await Promise.all(
      Array.from({ length: 60 }, () => cluster.whole(cluster.ask(address, {}, "window"))),
    );
    const admitted = replies.filter((reply) => reply.status === 200);
    const refused = replies.filter((reply) => reply.status === 429);
    assert.deepEqual([admitted.length, refused.length, provider.asked.length], [20, 40, 20]);
    const left = admitted.map(({ headers }) => Number(headers["x-ratelimit-remaining-requests"]));
    assert.deepEqual(
      left.sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, index) => index),
      "each admission, by whatever worker, counts one down",
    );
    await until(async () => (await readStatus())["in_flight"] === 0, "the ends of all");
    const { workers, limits } = await readStatus();
    const used = limits.accounts.find(({ account }: Line) => account === "window");
    assert.deepEqual([workers, used], [3, { account: "window", rpm: 20, used: 20 }]);
    const path = 'path="/v1/chat/completions"';
    for (const [sample, value] of [
      [`chat_gateway_requests_total{${path},status="200",model="m"}`, 20],
      [`chat_gateway_requests_total{${path},status="429",model=""}`, 40],
      ['chat_gateway_refusals_total{account="window",code="rate_limit_exceeded"}', 40],
      ['chat_gateway_attempts_total{provider="lab",model="m",outcome="completed"}', 20],
      ["chat_gateway_workers", 3],
    ] as const)
      assert.equal(await readMetric(sample), value, sample);
  });

  it("breakers: one is shown as open if it is open in any process", async () => {
    const { address, readStatus, readMetric } = at;
    // One request for each worker in turn: no two models fail in the same worker.
    for (const model of down)
      assert.equal(await cluster.status(cluster.ask(address, { model })), 503);
    const { models, aliases } = await readStatus();
    const stateOf = (model: string) => [
      models.find((each: Line) => each["model"] === model).breaker.state,
      aliases[0].candidates.find((each: Line) => each["model"] === model).breaker,
    ];
    assert.deepEqual(stateOf("m"), ["closed", "closed"]);
    for (const model of down) {
      assert.deepEqual(stateOf(model), ["open", "open"]);
      assert.equal(await readMetric(`chat_gateway_breaker_state{model="${model}"}`), 2);
    }
  });

  it("the pause that a provider requests", async () => {
    const { address, provider, readStatus } = at;
    const body = { model: "busy" };
    assert.equal(await cluster.status(cluster.ask(address, body)), 503);
    // A worker knows of the pause before its second report is requested.
    for (let look = 0; look < 2; look += 1) await readStatus();
    for (let round = 0; round < 6; round += 1) {
      const reply = await cluster.whole(cluster.ask(address, body));
      assert.equal(JSON.parse(reply.text()).error.code, "model_overloaded");
      assert.ok(Number(reply.headers["retry-after"]) > 10);
    }
    assert.equal(provider.asked.filter((asked) => asked.body["model"] === "busy").length, 1);
  });

  it("a provider's limits, even if a reload adds them", async () => {
    const { address, provider, readStatus, write } = at;
    const api_keys = [{ key: "sk-1", rpm: 12 }, { key: "sk-2" }];
    write({
      providers: { pool: { dialect: "openai", base_url: provider.url, api_keys } },
      models: {
        pooled: { provider: "pool", upstream_model: "m", limits: { rpm: 20, max_in_flight: 4 } },
        new: { provider: "lab", upstream_model: "m" },
      },
      retry: { max_wait_ms: 0 },
    });
    const areKnown = async () =>
      String(await cluster.everywhere(address, { model: "new" })) === "200";
    await until(areKnown, "all workers to have the limits");
    const codes: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      const four = Array.from({ length: 4 }, () =>
        cluster.status(cluster.ask(address, { model: "pooled" })),
      );
      codes.push(...(await Promise.all(four)));
    }
    const served = codes.filter((code) => code === 200);
    assert.deepEqual([served.length, codes.length], [20, 40]);
    assert.deepEqual((await readStatus())["provider_limits"], { "model pooled": 4 });
    const keys = provider.asked.map(({ headers }) => headers.authorization ?? "");
    assert.equal(keys.filter((key) => /sk-[12]$/.test(key)).length, 20);
    const first = keys.filter((key) => key.endsWith("sk-1")).length;
    assert.ok(first <= 12, `${first} with the first key`);
  });

  it("a configuration: the primary rejects what no worker can use", async () => {
    const { readStatus, told, write } = at;
    const accountsBefore = (await readStatus())["limits"].accounts;
    const [{ cert_file }, { key_file }] = [certificate(), certificate()];
    const far = { dialect: "openai", base_url: "https://far.example", cert_file, key_file };
    write({ providers: { far }, models: { far: { provider: "far" } }, limits: { rpm: 1 } });
    await until(async () => told("reload_failed").length > 0, "the reload to fail");
    const { config_fault, limits } = await readStatus();
    assert.match(config_fault.message, /key values mismatch/);
    assert.deepEqual(limits.accounts, accountsBefore);
    assert.equal(told("reload_failed").length, 1);
  });
});
