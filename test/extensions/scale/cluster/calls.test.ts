// Workers' calls to the primary, their messages about slots at the moment of their deaths, what the
// primary sends them, and their output lines. Channels and processes are event emitters here;
// workers.test.ts has real ones.

import assert from "node:assert/strict";
import cluster, { type Worker } from "node:cluster";
import { EventEmitter, once } from "node:events";
import { describe, it, type TestContext } from "node:test";
import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { createLimiter } from "../../../../src/core/accounts/limiter.ts";
import { answerWorkers, callPrimary } from "../../../../src/extensions/scale/cluster/calls.ts";
import { admitForWorkers } from "../../../../src/extensions/scale/cluster/limiter.ts";
import { MAX_LINE, readLines } from "../../../../src/extensions/scale/cluster/output.ts";
import { runWorker } from "../../../../src/extensions/scale/cluster/worker.ts";
import { createWorkerPool } from "../../../../src/extensions/scale/cluster/worker-pool.ts";
import { within } from "../../../support/wait.ts";

/** A worker as the primary sees it. */
function fork(id: number, send: (message: any) => unknown) {
  const ends = { id, process: new EventEmitter(), isConnected: () => true, send };
  const worker = Object.assign(new EventEmitter(), ends);
  cluster.emit("fork", worker);
  return worker;
}

/** Makes this process a worker with this channel to the primary. */
function actAs(t: TestContext, channel: EventEmitter): void {
  const ownProcess = cluster as { worker: unknown };
  const before = ownProcess.worker;
  ownProcess.worker = channel;
  t.after(() => {
    ownProcess.worker = before;
  });
}

/** A worker's connection to the primary, which answers with this function. */
function callingWorker(t: TestContext, answer: (question: string) => string | Promise<string>) {
  const stop = answerWorkers<string, never, string>("test", {
    answer,
    onNote: () => undefined,
    onExit: () => undefined,
  });
  const inPrimary = fork(1, (message) => inWorker.emit("message", message));
  const inWorker = Object.assign(new EventEmitter(), {
    isConnected: () => true,
    send: (message: object) => cluster.emit("message", inPrimary, message),
  });
  actAs(t, inWorker);
  t.after(stop);
  return callPrimary<string, never, string>("test");
}

it("each question of a turn gets its own answer as soon as it is ready, in any order", async (t) => {
  const pending = new Map<string, (answer: string) => void>();
  const primary = callingWorker(t, (question) =>
    question === "now" ? "at once" : new Promise((resolve) => pending.set(question, resolve)),
  );
  const told: string[] = [];
  for (const question of ["one", "now", "two"])
    primary.ask(question).then((answer) => told.push(`${question}: ${answer}`));
  await turn(); // the worker sends them
  await turn(); // the primary reads them
  await turn();
  assert.deepEqual(told, ["now: at once"]);
  pending.get("two")!("second");
  await turn();
  pending.get("one")!("first");
  await turn();
  assert.deepEqual(told, ["now: at once", "two: second", "one: first"]);
});

it("a late answer that fails is reported like any other bug", async (t) => {
  const usual = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  t.after(() => {
    process.removeAllListeners("unhandledRejection");
    for (const listener of usual) process.on("unhandledRejection", listener);
  });
  const told: unknown[] = [];
  process.on("unhandledRejection", (error) => told.push(error));
  const fail: ((error: Error) => void)[] = [];
  const primary = callingWorker(t, () => new Promise((_, reject) => fail.push(reject)));
  primary.ask("one");
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
    /** `unread`: sends messages that are read after its end. */
    die(unread: () => void): void {
      worker.process.emit("exit");
      unread();
      worker.process.emit("close");
    },
  };
}

describe("concurrency slots of workers", () => {
  const bench = (t: TestContext) => {
    t.after(admitForWorkers(createLimiter(() => 0)));
    return [startWorker(1), startWorker(2)] as const;
  };

  for (const [name, unread] of [
    ["of a dead worker are released once, and those of the others stay held", () => {}],
    [
      "that it released just before it died count once, and it gets none after its death",
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
      one.ask(1);
      await turn();
      one.die(() => unread(one));
      two.ask(3);
      await turn();
      assert.deepEqual(
        [one.answers, two.answers],
        [
          [true, true, false],
          [true, true, true, false],
        ],
      );
    });

  it("released by a worker are free for another request in the same turn", async (t) => {
    const [one, two] = bench(t);
    one.ask(3);
    await turn();
    two.ask(1);
    one.giveBack(1);
    await turn();
    assert.deepEqual(two.answers, [true]);
  });
});

/** A pool with one worker, controlled only through `worker`. */
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
  const pauses: number[] = [];
  const clock: any = {
    after: (ms: number, call: () => void) => pauses.push(ms) && timers.push(call),
  };
  const pool = createWorkerPool({ atStart, logs, clock, stopped: new AbortController().signal });
  pool.start().catch(() => undefined);
  return { pool, worker, child, sent, timers, pauses };
}

describe("a pool of workers", () => {
  it("sends a worker no configuration before its initial one", (t) => {
    const { pool, worker, sent } = startPool(t);
    pool.configure("one that comes while it starts" as any);
    worker.emit("message", { born: true });
    pool.configure("a later one" as any);
    assert.deepEqual(sent, ["that of the start", "one that comes while it starts", "a later one"]);
  });

  it("waits for each worker as long as that one has failed, however many others fail too", (t) => {
    const { pool, child, pauses } = startPool(t);
    pool.start().catch(() => undefined);
    child.emit("close", 1, null);
    assert.deepEqual(pauses, [1_000, 1_000]);
  });

  it("reports why a worker could not start, and retries: also without descriptors or memory for a process", (t) => {
    const told: any[] = [];
    const { worker, child, timers, pauses } = startPool(t, (event) => told.push(event));
    worker.emit("message", { failed: "the port is taken" });
    child.emit("close", 1, null);
    Object.assign(child.removeAllListeners("close"), { stdout: undefined, stderr: undefined });
    timers.shift()!();
    child.emit("close", -24, null);
    t.mock.method(cluster, "fork", () => assert.fail("spawn ENOMEM"));
    timers.shift()!();
    const ends = ["it ended with 1: the port is taken", "it ended with -24", "spawn ENOMEM"];
    const lines = told.map(({ event, detail }) => `${event}: ${detail}`);
    assert.deepEqual(
      lines,
      ends.map((end) => `worker_died: ${end}, and is replaced`),
    );
    assert.equal(timers.length, 1);
    for (let more = 1; more <= 5; more += 1) timers.shift()!();
    child.removeAllListeners("close");
    t.mock.method(cluster, "fork", () => worker as unknown as Worker);
    timers.shift()!();
    worker.emit("message", { listening: "http://127.0.0.1:1" });
    child.emit("close", null, "SIGKILL");
    const seconds = pauses.map((ms) => ms / 1_000);
    assert.deepEqual(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 0], "0: it had listened");
  });
});

it("a worker applies configurations one after another, however long each takes", async (t) => {
  const inWorker = Object.assign(new EventEmitter(), { isConnected: () => true, send: () => true });
  actAs(t, inWorker);
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
  it("is split only at line feeds: other JSON characters do not end a line", async () => {
    const record = JSON.stringify({ detail: "one\u2028two\u2029three\rfour\u0085five" });
    assert.deepEqual(await linesOf(`${record}\n${record}\n`), [record, record]);
  });

  it("is the same however its bytes are split", async () => {
    const bytes = Buffer.from("é\u2028\n\nlast");
    const single = Array.from(bytes, (byte) => Buffer.from([byte]));
    assert.deepEqual(await linesOf(...single), ["é\u2028", "last"]);
  });

  it("stores an unfinished line only up to its limit", async () => {
    const most = "x".repeat(MAX_LINE);
    assert.deepEqual(await linesOf(most, "\n"), [most]);
    assert.deepEqual(await linesOf(`${most}x`, "rest\n"), [`${most}x`, "rest"]);
  });
});
