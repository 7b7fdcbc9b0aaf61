// What workers say to the first process of places, at the moments of their deaths. The channels and
// processes are events here; workers.test.ts has real ones.

import assert from "node:assert/strict";
import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import { describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { createLimiter } from "../../../../src/core/accounts/limiter.ts";
import { admitForWorkers } from "../../../../src/extensions/scale/cluster/limiter.ts";

const REQUEST = { account: "acme", limits: [], maxInFlight: 3 };

function startWorker(id: number) {
  const answers: boolean[] = [];
  const worker = Object.assign(new EventEmitter(), {
    id,
    process: new EventEmitter(),
    isConnected: () => true,
    send: ({ values }: any) => answers.push(...values.map(({ admitted }: any) => admitted)),
  });
  cluster.emit("fork", worker);
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
  const bench = (t: { after(end: () => void): void }) => {
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
