// What the first process sends to workers, what they make of it, and the lines of their output. The
// processes and channels are events here; workers.test.ts has real ones.

import assert from "node:assert/strict";
import cluster, { type Worker } from "node:cluster";
import { EventEmitter, once } from "node:events";
import { describe, it, type TestContext } from "node:test";
import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { runWorker } from "../../../../src/extensions/scale/cluster/worker.ts";
import { MAX_LINE, readLines } from "../../../../src/extensions/scale/cluster/output.ts";
import { createWorkerPool } from "../../../../src/extensions/scale/cluster/worker-pool.ts";
import { within } from "../../../support/wait.ts";

/** A pool with one worker, which is told nothing and says nothing but through `worker`. */
function startPool(t: TestContext, diagnose = (_event: object): void => undefined) {
  const sent: unknown[] = [];
  const child = Object.assign(new EventEmitter(), {
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    send: () => true,
  });
  const worker = Object.assign(new EventEmitter(), {
    process: child,
    isConnected: () => true,
    send: ({ configuration }: any) => sent.push(configuration),
  });
  t.mock.method(cluster, "fork", () => worker as unknown as Worker);
  t.mock.method(cluster, "setupPrimary", () => undefined);
  const atStart: any = "that of the start";
  const logs: any = { access: {}, diagnostics: {}, diagnose };
  const timers: (() => void)[] = [];
  const clock: any = { after: (_ms: number, call: () => void) => timers.push(call) };
  const pool = createWorkerPool({ atStart, logs, clock, stopped: new AbortController().signal });
  pool.start().catch(() => undefined);
  return { pool, worker, child, sent, timers };
}

describe("a pool of workers", () => {
  it("sends no configuration to a worker before that of the start, which it begins with", (t) => {
    const { pool, worker, sent } = startPool(t);
    pool.configure("one that comes while it starts" as any);
    worker.emit("message", { born: true });
    pool.configure("a later one" as any);
    assert.deepEqual(sent, ["that of the start", "one that comes while it starts", "a later one"]);
  });

  it("tells why a worker could not begin, and tries again: also without descriptors or memory for a process", (t) => {
    const told: any[] = [];
    const { worker, child, timers } = startPool(t, (event) => told.push(event));
    worker.emit("message", { failed: "the port is taken" });
    child.emit("close", 1, null);
    Object.assign(child.removeAllListeners("close"), { stdout: undefined, stderr: undefined });
    timers.shift()!();
    child.emit("close", -24, null);
    t.mock.method(cluster, "fork", () => assert.fail("spawn ENOMEM"));
    timers.shift()!();
    const ends = ["it ended with 1: the port is taken", "it ended with -24", "spawn ENOMEM"];
    assert.deepEqual(
      told.map(({ event, detail }) => `${event}: ${detail}`),
      ends.map((end) => `worker_died: ${end}, and is replaced`),
    );
    assert.equal(timers.length, 1);
  });
});

it("a worker puts one configuration in force after the other, however long each takes", async (t) => {
  const inWorker = Object.assign(new EventEmitter(), { isConnected: () => true, send: () => true });
  const ownProcess = cluster as { worker: unknown };
  const before = ownProcess.worker;
  ownProcess.worker = inWorker;
  t.after(() => {
    ownProcess.worker = before;
  });
  const inForce: unknown[] = [];
  const waiting = { resolve: () => undefined as void };
  const program: any = {
    create: async () => ({ listen: async () => "an address" }),
    async reload(_: unknown, config: string) {
      const isSlow = config === "slow";
      if (isSlow) await new Promise<void>((resolve) => Object.assign(waiting, { resolve }));
      inForce.push(config);
    },
  };
  runWorker(program);
  for (const config of ["first", "slow", "last"])
    inWorker.emit("message", { configuration: { config, extensions: [] } });
  await turn();
  waiting.resolve();
  await turn();
  assert.deepEqual(inForce, ["slow", "last"]);
});

async function linesOf(...pieces: readonly (string | Buffer)[]): Promise<string[]> {
  const output = new PassThrough();
  const found: string[] = [];
  readLines(output, (line) => found.push(line));
  for (const piece of pieces) output.write(piece);
  output.end();
  await within(once(output, "end"), "the end of the output");
  return found;
}

describe("the output of a worker", () => {
  it("is cut at line ends only: what JSON may hold ends no line", async () => {
    const record = JSON.stringify({ detail: "one\u2028two\u2029three\rfour\u0085five" });
    assert.deepEqual(await linesOf(`${record}\n${record}\n`), [record, record]);
  });

  it("is the same however its bytes come", async () => {
    const bytes = Buffer.from("é\u2028\n\nlast");
    const single = Array.from(bytes, (byte) => Buffer.from([byte]));
    assert.deepEqual(await linesOf(...single), ["é\u2028", "last"]);
  });

  it("keeps no more of a line without an end than its bound", async () => {
    const most = "x".repeat(MAX_LINE);
    assert.deepEqual(await linesOf(most, "\n"), [most]);
    assert.deepEqual(await linesOf(`${most}x`, "rest\n"), [`${most}x`, "rest"]);
  });
});
