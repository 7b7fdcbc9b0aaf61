// Questions of a worker to the first process, and their answers. Both are in this process, and the
// channel between them is two calls; workers.test.ts has real ones.

import assert from "node:assert/strict";
import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import { it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { answerWorkers, callFirstProcess } from "../../../../src/extensions/scale/cluster/calls.ts";

it("each question of a turn has its own answer as soon as that is there, in whatever order", async (t) => {
  const pending = new Map<string, (answer: string) => void>();
  const stop = answerWorkers<string, never, string>("test", {
    answer: (question) =>
      question === "now" ? "at once" : new Promise((resolve) => pending.set(question, resolve)),
    onNote: () => undefined,
    onExit: () => undefined,
  });
  const inWorker = Object.assign(new EventEmitter(), {
    isConnected: () => true,
    send: (message: object) => cluster.emit("message", inFirst, message),
  });
  const inFirst = Object.assign(new EventEmitter(), {
    id: 1,
    process: new EventEmitter(),
    isConnected: () => true,
    send: (message: object) => inWorker.emit("message", message),
  });
  const ownProcess = cluster as { worker: unknown };
  const before = ownProcess.worker;
  ownProcess.worker = inWorker;
  t.after(() => {
    stop();
    ownProcess.worker = before;
  });
  cluster.emit("fork", inFirst);
  const first = callFirstProcess<string, never, string>("test");
  const told: string[] = [];
  for (const question of ["one", "now", "two"])
    first.ask(question).then((answer) => told.push(`${question}: ${answer}`));
  await turn(); // the worker sends them
  await turn(); // the first process reads them
  await turn();
  assert.deepEqual(told, ["now: at once"]);
  pending.get("two")!("second");
  await turn();
  pending.get("one")!("first");
  await turn();
  assert.deepEqual(told, ["now: at once", "two: second", "one: first"]);
});
