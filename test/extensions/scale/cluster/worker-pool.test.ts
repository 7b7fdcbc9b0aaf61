// What the first process sends to workers. The processes and channels are events here;
// workers.test.ts has real ones.

import assert from "node:assert/strict";
import cluster, { type Worker } from "node:cluster";
import { EventEmitter } from "node:events";
import { describe, it, type TestContext } from "node:test";
import { PassThrough } from "node:stream";
import { createWorkerPool } from "../../../../src/extensions/scale/cluster/worker-pool.ts";

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
  const clock: any = { after: () => undefined };
  const pool = createWorkerPool({ atStart, logs, clock, stopped: new AbortController().signal });
  pool.start().catch(() => undefined);
  return { pool, worker, child, sent };
}

describe("a pool of workers", () => {
  it("sends no configuration to a worker before that of the start, which it begins with", (t) => {
    const { pool, worker, sent } = startPool(t);
    pool.configure("one that comes while it starts" as any);
    worker.emit("message", { born: true });
    pool.configure("a later one" as any);
    assert.deepEqual(sent, ["that of the start", "one that comes while it starts", "a later one"]);
  });

  it("tells why a worker could not begin", (t) => {
    const told: any[] = [];
    const { worker, child } = startPool(t, (event) => told.push(event));
    worker.emit("message", { failed: "the port is taken" });
    child.emit("close", 1, null);
    const [{ event, detail }] = told;
    assert.equal(event, "worker_died");
    assert.equal(detail, "it ended with 1: the port is taken, and is replaced");
  });
});
