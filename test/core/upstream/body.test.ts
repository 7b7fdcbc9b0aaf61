// The body of a provider's response: read piece by piece, and as a whole within a bound.

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { setImmediate as turnEnd } from "node:timers/promises";
import { consume as consumeTo, readAll } from "../../../src/core/upstream/body.ts";
import type { TakePiece, UpstreamBody } from "../../../src/core/upstream/transport.ts";
import { within } from "../../support/wait.ts";

const bytesOf = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(text));
const textOf = (pieces: readonly Uint8Array[]): string => Buffer.concat(pieces).toString();

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

describe("consume", () => {
  it("hands over every piece in order, of a stream and of an iterable", async () => {
    for (const body of [Readable.from(bytesOf("a", "b", "c")), iterable("a", "b", "c")]) {
      const pieces: Uint8Array[] = [];
      const done = consume(body, (piece) => {
        pieces.push(piece);
      });
      assert.equal(await within(done, "the end"), "end");
      assert.equal(textOf(pieces), "abc");
    }
  });

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

  it("rejects with what the body throws", async () => {
    const done = consume(failing(), () => undefined);
    await assert.rejects(within(done, "the rejection"), { message: "broken off" });
  });

  it("rejects with what the body throws after a piece that kept the reader busy for long", async () => {
    const done = consume(failing(), () => {
      const until = performance.now() + 20;
      while (performance.now() < until);
    });
    await assert.rejects(within(done, "the rejection"), { message: "broken off" });
  });

  it("gives the pieces of all bodies together a budget in a pass of the event loop", async () => {
    const order: string[] = [];
    const reading = ["a", "b", "c"].map((name) =>
      consume(iterable("1", "2", "3"), () => {
        order.push(name);
        const until = performance.now() + 12;
        while (performance.now() < until);
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
      const busy = consume(iterable("1"), () => {
        const until = performance.now() + 12;
        while (performance.now() < until);
      });
      const taken: string[] = [];
      const take = (bytes: Uint8Array) => {
        taken.push(String(bytes));
      };
      const reading = busy.then(() => consume(body, take));
      await assert.rejects(within(reading, "the rejection"), { message: "broken off" });
      assert.deepEqual(taken, ["a"]);
    }
  });

  it("abandons the body if the reader throws", async () => {
    let abandoned = false;
    async function* body(): AsyncGenerator<Uint8Array> {
      try {
        yield* bytesOf("a", "b");
      } finally {
        abandoned = true;
      }
    }
    const done = consume(body(), () => {
      throw new Error("refused");
    });
    await assert.rejects(within(done, "the rejection"), { message: "refused" });
    assert.ok(abandoned);
  });

  it("rejects with what the reader throws, and hands over nothing more", async () => {
    let taken = 0;
    const done = consume(Readable.from(bytesOf("a", "b")), () => {
      taken += 1;
      throw new Error("refused");
    });
    await assert.rejects(within(done, "the rejection"), { message: "refused" });
    await turnEnd();
    assert.equal(taken, 1);
  });

  it("rejects if there will never be room", async () => {
    const done = consume(Readable.from(bytesOf("a", "b", "c")), () =>
      Promise.reject(new Error("left")),
    );
    await assert.rejects(within(done, "the rejection"), { message: "left" });
  });
});

describe("readAll", () => {
  it("reads a body of exactly the bound", async () => {
    const body = Readable.from(bytesOf("ab", "cd"));
    assert.equal(await within(readAll(body, 4), "the body"), "abcd");
  });

  it("resolves with the piece that exceeds the bound, and throws the rest away", async () => {
    const body = Readable.from(bytesOf("ab", "cde", "f"));
    assert.equal(await within(readAll(body, 4), "the body"), "abcde");
  });

  it("rejects if the body breaks off", async () => {
    await assert.rejects(within(readAll(failing(), 10), "the rejection"), {
      message: "broken off",
    });
  });
});
