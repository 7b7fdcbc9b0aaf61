// Questions of a worker to the first process, and their answers. Both are in this process, and the
// channel between them is two calls; workers.test.ts has real ones.

import assert from "node:assert/strict";
import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import { it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { answerWorkers, callFirstProcess } from "../../../../src/extensions/scale/cluster/calls.ts";

/** A worker's way to the first process, which answers by this function. */
function callingWorker(t: TestContext, answer: (question: string) => string | Promise<string>) {
  const stop = answerWorkers<string, never, string>("test", {
    answer,
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
  return callFirstProcess<string, never, string>("test");
}

it("each question of a turn has its own answer as soon as that is there, in whatever order", async (t) => {
  const pending = new Map<string, (answer: string) => void>();
  const first = callingWorker(t, (question) =>
    question === "now" ? "at once" : new Promise((resolve) => pending.set(question, resolve)),
  );
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

it("a late answer that fails is as loud as any other bug", async (t) => {
  const usual = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  t.after(() => {
    process.removeAllListeners("unhandledRejection");
    for (const listener of usual) process.on("unhandledRejection", listener);
  });
  const told: unknown[] = [];
  process.on("unhandledRejection", (error) => told.push(error));
  const fail: ((error: Error) => void)[] = [];
  const first = callingWorker(t, () => new Promise((_, reject) => fail.push(reject)));
  first.ask("one");
  for (let turns = 0; turns < 4; turns += 1) await turn();
  const bug = new Error("a bug");
  fail[0]!(bug);
  await turn();
  await turn();
  assert.deepEqual(told, [bug]);
});
