// The bounds of the lookups of receipts: in a minute for each account, and at once in a process.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLimiter } from "../../../../src/core/accounts/limiter.ts";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import {
  createLookups,
  MOST_A_MINUTE,
  MOST_AT_ONCE,
  MOST_WAIT_MS,
  MOST_WAITING,
} from "../../../../src/extensions/money/receipts/lookups.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { within } from "../../../support/wait.ts";

/** Lookups whose searches end when they are told to, in the order in which they began. */
function site() {
  const clock = createFakeClock();
  const lookups = createLookups(createLimiter(clock.monotonic), clock);
  const searches: (() => void)[] = [];
  const begun: number[] = [];
  const look = (id: number, cancel = new Cancel()) =>
    lookups.run(cancel, () => {
      begun.push(id);
      return new Promise<number>((resolve) => searches.push(() => resolve(id)));
    });
  return { clock, lookups, searches, begun, look };
}

const OVERLOADED = { code: "server_overloaded" };

describe("the lookups of a process", () => {
  it("are so many at once; the next begins when one has ended, well or not, in their order", async () => {
    const { lookups, searches, begun, look } = site();
    const all = Array.from({ length: MOST_AT_ONCE + 2 }, (_, id) => look(id));
    await within(Promise.resolve(), "a turn");
    const first = Array.from({ length: MOST_AT_ONCE }, (_, id) => id);
    assert.deepEqual(begun, first);
    searches[1]!();
    await within(all[1]!, "the one that ends");
    searches[0]!();
    await within(all[0]!, "the next one that ends");
    assert.deepEqual(begun, [...first, MOST_AT_ONCE, MOST_AT_ONCE + 1]);
    for (const end of searches) end();
    await within(Promise.all(all), "all of them");
    const failing = lookups.run(new Cancel(), () => Promise.reject(new Error("out of reach")));
    await assert.rejects(failing, /out of reach/);
    const again = Array.from({ length: MOST_AT_ONCE }, (_, id) => look(100 + id));
    await within(Promise.resolve(), "a turn");
    assert.deepEqual(begun.slice(-MOST_AT_ONCE), [100, 101, 102, 103], "no place is lost");
    for (const end of searches) end();
    await within(Promise.all(again), "these too");
  });

  it("wait in a queue with a bound, for a time with a bound; a client that leaves waits no longer", async () => {
    const { clock, searches, begun, look } = site();
    const running = Array.from({ length: MOST_AT_ONCE }, (_, id) => look(id));
    const leaving = new Cancel();
    const gone = look(50, leaving);
    const waiting = Array.from({ length: MOST_WAITING - 1 }, (_, id) => look(100 + id));
    await assert.rejects(look(999), OVERLOADED);
    const reason = new Error("it left");
    leaving.abort(reason);
    await assert.rejects(gone, reason);
    const last = look(500);
    clock.advance(MOST_WAIT_MS);
    for (const late of [...waiting, last]) await assert.rejects(late, OVERLOADED);
    for (const end of searches) end();
    await within(Promise.all(running), "those that ran");
    assert.equal(begun.length, MOST_AT_ONCE);
  });
});

describe("the lookups of an account", () => {
  it("are so many in a minute; another account has its own", async () => {
    const { clock, lookups } = site();
    for (let n = 0; n < MOST_A_MINUTE; n += 1) await lookups.admit("acme");
    await assert.rejects(lookups.admit("acme"), {
      code: "rate_limit_exceeded",
      headers: { "Retry-After": "60" },
    });
    await lookups.admit("beta");
    clock.advance(60_000);
    await lookups.admit("acme");
  });
});
