// The body of a provider's response, read piece by piece, and pieces that are kept.

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { setImmediate as turnEnd } from "node:timers/promises";
import { addPiece } from "../../../src/core/pieces.ts";
import { consume as consumeTo } from "../../../src/core/upstream/body.ts";
import type { TakePiece, UpstreamBody } from "../../../src/core/upstream/transport.ts";
import { within } from "../../support/wait.ts";

describe("addPiece", () => {
  it("keeps few pieces of many small ones, in their order", () => {
    const pieces: Uint8Array[] = [];
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 7) % 251));
    for (const byte of bytes) addPiece(pieces, Buffer.from([byte]));
    assert.ok(pieces.length < 30, `${pieces.length}`);
    assert.deepEqual(Buffer.concat(pieces), bytes);
  });

  it("keeps large pieces as they are", () => {
    const pieces: Uint8Array[] = [];
    const large = Buffer.alloc(64 * 1024, 1);
    for (const piece of [large, Buffer.from("a"), large]) addPiece(pieces, piece);
    assert.equal(pieces[0], large);
    assert.equal(pieces[2], large);
    assert.deepEqual(pieces[1], Buffer.from("a"));
  });
});

const bytesOf = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(text));

/** Resolves with "end" at the end of the body. */
const consume = (body: UpstreamBody, take: TakePiece): Promise<string> =>
  consumeTo(body, take, () => "end");

async function* iterable(...texts: string[]): AsyncGenerator<Uint8Array> {
  yield* bytesOf(...texts);
}

async function* failing(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("a");
  throw new Error("broken off");
}

/** Keeps the event loop busy. */
function busy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

const rejects = (promise: Promise<unknown>, message: string) =>
  assert.rejects(within(promise, "the rejection"), { message });

describe("consume", () => {
  it("hands over nothing while there is no room", async () => {
    let makeRoom = (): void => undefined;
    let taken = 0;
    const done = consume(Readable.from(bytesOf("a", "b")), () => {
      taken += 1;
      return taken === 1 ? new Promise<void>((resolve) => (makeRoom = resolve)) : undefined;
    });
    for (let turns = 0; turns < 5; turns += 1) await turnEnd();
    assert.equal(taken, 1);
    makeRoom();
    await within(done, "the end");
    assert.equal(taken, 2);
  });

  it("gives the pieces of all bodies together a budget in a pass of the event loop", async () => {
    const order: string[] = [];
    const reading = ["a", "b", "c"].map((name) =>
      consume(iterable("1", "2", "3"), () => {
        order.push(name);
        busy(12);
      }),
    );
    let passes = 0;
    let most = 0;
    let before = 0;
    const look = (): void => {
      passes += 1;
      most = Math.max(most, order.length - before);
      before = order.length;
      if (order.length < 9) setImmediate(look);
    };
    setImmediate(look);
    await within(Promise.all(reading), "the end of all");
    // The first piece of each may come before the budget is seen to be spent.
    assert.ok(passes >= 6, `${order.length} pieces in ${passes} passes`);
    assert.deepEqual(order.slice(-3), ["a", "b", "c"], "each has its turn");
  });

  it("hands a piece that waits for its turn over before the failure after it", async () => {
    /** Passes a piece, and fails before its reader has had a turn. */
    const passed = {
      each: (take: (bytes: Uint8Array) => unknown) => {
        take(Buffer.from("a"));
        return Promise.reject(new Error("broken off"));
      },
    };
    for (const body of [passed, failing()]) {
      const before = consume(iterable("1"), () => busy(12));
      const taken: string[] = [];
      const take = (bytes: Uint8Array) => {
        taken.push(String(bytes));
      };
      await rejects(
        before.then(() => consume(body, take)),
        "broken off",
      );
      assert.deepEqual(taken, ["a"]);
    }
  });

  it("rejects with what the reader throws, abandons the body, and hands over nothing more", async () => {
    let abandoned = false;
    async function* body(): AsyncGenerator<Uint8Array> {
      try {
        yield* bytesOf("a", "b");
      } finally {
        abandoned = true;
      }
    }
    let taken = 0;
    const refuse = () => {
      taken += 1;
      throw new Error("refused");
    };
    await rejects(consume(body(), refuse), "refused");
    assert.ok(abandoned);
    await rejects(consume(Readable.from(bytesOf("a", "b")), refuse), "refused");
    await turnEnd();
    assert.equal(taken, 2);
  });
});
