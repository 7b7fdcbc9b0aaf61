// The gates of several workers, in the primary: a dead worker's slots are released, and requests
// that no longer wait are not admitted.

import assert from "node:assert/strict";
import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import { gatesFor, serveGates } from "../../../../src/extensions/routing/gates/index.ts";
import type { Host } from "../../../../src/extensions/scale/installation/index.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";

/** A worker with this id, as the primary sees it. */
function startWorker(id: number) {
  const answers: unknown[] = [];
  const childProcess = new EventEmitter();
  let isAlive = true;
  const worker = {
    id,
    process: childProcess,
    isConnected: () => isAlive,
    send: ({ values }: { readonly values: readonly unknown[] }) => answers.push(...values),
  };
  cluster.emit("fork", worker);
  const send = (message: object) =>
    cluster.emit("message", worker, {
      calls: "test",
      first: 0,
      questions: [],
      notes: [],
      ...message,
    });
  const entry = { name: "m", bounds: { max_in_flight: 1 }, account: "a", waitMs: 5_000 };
  return {
    answers,
    /** Each number requests admission to a gate with room for one. */
    ask: (...numbers: number[]) =>
      send({ questions: numbers.map((number) => ({ ...entry, number })) }),
    tell: (note: object) => send({ notes: [note] }),
    die() {
      isAlive = false;
      childProcess.emit("close");
    },
  };
}

function serve(t: TestContext) {
  const clock = createFakeClock();
  const { close } = serveGates("test", { clock } as unknown as Host);
  t.after(() => close?.());
  return clock;
}

it("a worker takes back no request that was admitted before its client left", async (t) => {
  const sent: { readonly notes: readonly object[] }[] = [];
  const send = (message: (typeof sent)[number]) => sent.push(message);
  const worker = Object.assign(new EventEmitter(), { isConnected: () => true, send });
  const { isWorker, worker: before } = cluster;
  Object.assign(cluster, { isWorker: true, worker });
  t.after(() => Object.assign(cluster, { isWorker, worker: before }));
  const gates = gatesFor({ clock: createFakeClock(), on: () => undefined }, "test");
  const cancel = new Cancel();
  const entering = gates.of("m", {}).enter({ account: "a", waitMs: 5_000, cancel });
  await turn();
  worker.emit("message", { answers: "test", numbers: [0], values: [true] });
  assert.equal(typeof (await entering), "object");
  cancel.abort();
  assert.deepEqual(
    sent.flatMap(({ notes }) => notes),
    [],
  );
});

describe("the gates of several workers", () => {
  it("have room again when a worker dies, and admit none of its waiting requests", async (t) => {
    serve(t);
    const [first, second, third] = [startWorker(1), startWorker(2), startWorker(12)];
    first.ask(1);
    await turn();
    second.ask(1);
    third.ask(1);
    await turn();
    assert.deepEqual([first.answers, second.answers, third.answers], [[true], [], []]);
    second.die();
    first.die();
    await turn();
    assert.deepEqual([second.answers, third.answers.at(-1)], [[], true]);
    third.tell({ number: 1, tokens: 0, overloaded: false });
    third.tell({ number: 1 });
    third.ask(2);
    third.ask(3);
    await turn();
    assert.deepEqual(third.answers, [true, true], "one slot, released once");
  });

  it("admit no request whose client has left, or that is cancelled", async (t) => {
    const clock = serve(t);
    const worker = startWorker(4);
    worker.ask(1);
    await turn();
    worker.ask(2);
    await turn();
    worker.tell({ number: 2 });
    await turn();
    assert.deepEqual([worker.answers, clock.pending()], [[true, Infinity], 0]);
    worker.tell({ number: 1 });
    worker.ask(3);
    await turn();
    assert.equal(worker.answers[2], true);
  });

  it("admit one at once even if its worker asked in the same turn for another, which waits", async (t) => {
    serve(t);
    const worker = startWorker(5);
    worker.ask(1, 2, 3);
    await turn(); // the requests have been read
    for (const number of [1, 2, 3]) {
      await turn();
      assert.deepEqual(worker.answers, Array(number).fill(true));
      worker.tell({ number, tokens: 0, ending: "reply" });
    }
  });
});
