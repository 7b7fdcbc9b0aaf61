// What the first process sends to workers. The processes and channels are events here;
// workers.test.ts has real ones.

import assert from "node:assert/strict";
import cluster, { type Worker } from "node:cluster";
import { EventEmitter } from "node:events";
import { describe, it } from "node:test";
import { PassThrough } from "node:stream";
import { systemClock } from "../../../../src/core/clock.ts";
import { createWorkerPool } from "../../../../src/extensions/scale/cluster/worker-pool.ts";

describe("a pool of workers", () => {
  it("sends no configuration to a worker before that of the start, which it begins with", (t) => {
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
    const logs: any = { access: {}, diagnostics: {} };
    const stopRequested = () => true; // its end is no fault then
    const pool = createWorkerPool({ atStart, logs, clock: systemClock, stopRequested });
    pool.start().catch(() => undefined);
    pool.configure("one that comes while it starts" as any);
    worker.emit("message", { born: true });
    pool.configure("a later one" as any);
    assert.deepEqual(sent, [atStart, "one that comes while it starts", "a later one"]);
    child.emit("close", 0, null);
  });
});
