// Dead workers are replaced, with the configuration in force, and leave nothing behind. These are
// real processes, which are really killed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { describe, it } from "node:test";
import { entries, PRICE, settles } from "../../../support/books.ts";
import { certificate } from "../../../support/certificate.ts";
import { ended } from "../../../support/command.ts";
import { until, waitFor, within } from "../../../support/wait.ts";
import * as cluster from "./bench.ts";

describe("a worker that dies", { concurrency: 2 }, () => {
  it("is replaced and reported once; its slots and holds are released, its requests settled; other requests continue and counts stay", async (t) => {
    const acme = { max_in_flight: 16, budget: { amount: "1000", period: "total" } };
    const models = { m: { price: PRICE }, held: { price: PRICE } };
    const site = await cluster.bench(t, { accounts: { acme }, models });
    const { gw, address, workers, provider, dir, file, told, readStatus, readMetric } = site;
    assert.deepEqual(await cluster.everywhere(address, {}), [200]);
    const counted = () =>
      readMetric('chat_gateway_requests_total{path="/v1/chat/completions",status="200",model="m"}');
    await until(async () => (await counted()) === 60, "all requests to be counted");
    const streams = await Promise.all(
      Array.from({ length: 16 }, () => cluster.openStream(address)),
    );
    const cut: cluster.Reply[] = [];
    for (const reply of streams) reply.over.then((how) => how === "cut" && cut.push(reply));
    await cluster.assertNoPlace(cluster.ask(address));
    const before = workers();
    process.kill(before[1]!, "SIGKILL");
    await waitFor(() => told("worker_died").length > 0, "the line that tells");
    await cluster.complete(site);
    await until(
      async () => cut.length > 0 && cut.length + (await readStatus())["in_flight"] === 16,
      "the requests of the dead one to be gone",
    );
    assert.equal(await counted(), 60);
    assert.equal(workers().filter((pid) => !before.includes(pid)).length, 1);
    const interrupted = () => settles(dir).filter((line) => line["status"] === "interrupted");
    await waitFor(() => interrupted().length === cut.length, "its requests to be settled");
    // Its own slots, and no more.
    const more: cluster.Reply[] = [];
    for (const _ of cut) more.push(await cluster.openStream(address));
    for (let at = 0; at < 3; at += 1) await cluster.assertNoPlace(cluster.ask(address));
    provider.asked
      .filter(({ body, closed }) => body["stream"] && !closed())
      .forEach(cluster.finish);
    for (const reply of [...streams.filter((each) => !cut.includes(each)), ...more])
      assert.ok((await cluster.whole(reply)).text().includes("[DONE]"));
    const isGivenBack = async () => (await readStatus())["budgets"][0].held === "0";
    await until(isGivenBack, "nothing to be held any more");
    gw.child.kill("SIGTERM");
    await cluster.assertEnds(gw);
    const deaths = told("worker_died").map(({ detail }) => detail);
    assert.deepEqual(deaths, ["it ended with SIGKILL, and is replaced"]);
    const statuses = entries(dir).map(({ settle }) => settle["status"]);
    const completed = Array<string>(60 + 16).fill("completed");
    assert.deepEqual(statuses.sort(), [...completed, ...cut.map(() => "interrupted")]);
    await cluster.audit(t, file);
  });

  it("leaves no client waiting: a connection that it was handed and had not accepted is closed", async (t) => {
    const site = await cluster.bench(t);
    await cluster.complete(site);
    const [still] = site.workers();
    process.kill(still!, "SIGSTOP");
    // Of four connections at once, the suspended worker gets one.
    const outcomes: string[] = [];
    const clients = Array.from({ length: 4 }, () =>
      cluster
        .send(`${site.address}/healthz`)
        .then((reply) => String(reply.status))
        .catch((error: NodeJS.ErrnoException) => error.code ?? error.message)
        .then((outcome) => outcomes.push(outcome)),
    );
    await waitFor(() => outcomes.length === 3, "the answers of the other worker");
    process.kill(still!, "SIGKILL");
    await within(Promise.all(clients), "the end of the connection that nobody took");
    assert.deepEqual(outcomes, ["200", "200", "200", "ECONNRESET"]);
    await cluster.complete(site);
    assert.equal(await cluster.status(cluster.ask(site.address)), 200);
  });

  it("or has no descriptor left for a connection: that one is closed, and the next is served", async (t) => {
    const { address, workers } = await cluster.bench(t);
    const allow = (files: number) =>
      workers().map((pid) => execFileSync("prlimit", [`--pid=${pid}`, `--nofile=${files}:`]));
    allow(10);
    for (let at = 0; at < 4; at += 1)
      await assert.rejects(cluster.send(`${address}/healthz`), { code: "ECONNRESET" });
    allow(4_096);
    assert.equal((await cluster.send(`${address}/healthz`)).status, 200);
  });

  it("is replaced even if the first certificate is deleted, once a reload has applied another one", async (t) => {
    const [first, second] = [certificate(), certificate()];
    const { workers, told, write, readStatus } = await cluster.bench(t, { server: { tls: first } });
    write({ server: { tls: second } });
    await waitFor(() => told("reloaded").length === 2, "both workers to have the second one");
    for (const file of Object.values(first)) rmSync(file);
    process.kill(workers()[0]!, "SIGTERM"); // only this worker has it
    await waitFor(() => told("worker_died").length > 0, "the line that tells");
    await until(async () => (await readStatus())["workers"] === 2, "the other one to serve");
    const deaths = told("worker_died").map(({ detail }) => detail);
    assert.deepEqual(deaths, ["it ended with 0, and is replaced"]);
  });

  it("stops a replacement that is only just starting", async (t) => {
    const { gw, workers } = await cluster.bench(t);
    const before = workers();
    process.kill(before[0]!, "SIGKILL");
    const young = () => workers().find((pid) => !before.includes(pid));
    await waitFor(young, "the process that replaces it");
    gw.child.kill("SIGTERM");
    await cluster.assertEnds(gw);
  });

  it("the primary: the workers end too", async (t) => {
    const { gw, address, file } = await cluster.bench(t);
    const stream = await cluster.openStream(address);
    gw.child.kill("SIGKILL");
    const { signal } = await within(gw.ended, "the end of all who hold its output");
    assert.equal(signal, "SIGKILL");
    assert.equal(await stream.over, "cut");
    await assert.rejects(cluster.ask(address), /ECONNREFUSED/);
    assert.equal((await ended(t, ["usage", "sync", "--once", "--config", file])).code, 0);
    await cluster.audit(t, file);
  });
});
