// Calls of workers to the first process, and what they say to it of places at the moments of their
// deaths. The channels and processes are events here; workers.test.ts has real ones.

import assert from "node:assert/strict";
import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { createLimiter } from "../../../../src/core/accounts/limiter.ts";
import { answerWorkers, callFirstProcess } from "../../../../src/extensions/scale/cluster/calls.ts";
import { admitForWorkers } from "../../../../src/extensions/scale/cluster/limiter.ts";

/** A worker as the first process has it. */
function fork(id: number, send: (message: any) => unknown) {
  const ends = { id, process: new EventEmitter(), isConnected: () => true, send };
  const worker = Object.assign(new EventEmitter(), ends);
  cluster.emit("fork", worker);
  return worker;
}

/** A worker's way to the first process, which answers by this function. */
function callingWorker(t: TestContext, answer: (question: string) => string | Promise<string>) {
  const stop = answerWorkers<string, never, string>("test", {
    answer,
    onNote: () => undefined,
    onExit: () => undefined,
  });
  const inFirst = fork(1, (message) => inWorker.emit("message", message));
  const inWorker = Object.assign(new EventEmitter(), {
    isConnected: () => true,
    send: (message: object) => cluster.emit("message", inFirst, message),
  });
  const ownProcess = cluster as { worker: unknown };
  const before = ownProcess.worker;
  ownProcess.worker = inWorker;
  t.after(() => {
    stop();
    ownProcess.worker = before;
  });
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

const REQUEST = { account: "acme", limits: [], maxInFlight: 3 };

function startWorker(id: number) {
  const answers: boolean[] = [];
  const worker = fork(id, ({ values }) => {
    answers.push(...values.map(({ admitted }: { readonly admitted: boolean }) => admitted));
  });
  const say = (questions: number, notes: number) =>
    cluster.emit("message", worker, {
      calls: "limiter",
      first: 0,
      questions: Array(questions).fill(REQUEST),
      notes: Array(notes).fill(REQUEST),
    });
  return {
    answers,
    ask: (places: number) => say(places, 0),
    giveBack: (places: number) => say(0, places),
    /** `unread`: what it has said that is read after its end. */
    die(unread: () => void): void {
      worker.process.emit("exit");
      unread();
      worker.process.emit("close");
    },
  };
}

describe("places in flight of workers", () => {
  const bench = (t: TestContext) => {
    t.after(admitForWorkers(createLimiter(() => 0)));
    return [startWorker(1), startWorker(2)] as const;
  };

  for (const [name, unread] of [
    ["of one that has died are free again, once, and those of the others are held", () => {}],
    [
      "that were given back just before it died count once, and it gets none after its death",
      (one: ReturnType<typeof startWorker>) => {
        one.giveBack(2);
        one.ask(2);
      },
    ],
  ] as const)
    it(name, async (t) => {
      const [one, two] = bench(t);
      one.ask(2);
      two.ask(1);
      await turn();
      one.die(() => unread(one));
      two.ask(3);
      await turn();
      assert.deepEqual(
        [one.answers, two.answers],
        [
          [true, true],
          [true, true, true, false],
        ],
      );
    });

  it("that one gives back are free for what another asks in the same turn", async (t) => {
    const [one, two] = bench(t);
    one.ask(3);
    await turn();
    two.ask(1);
    one.giveBack(1);
    await turn();
    assert.deepEqual(two.answers, [true]);
  });
});
