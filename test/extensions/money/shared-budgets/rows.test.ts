// When a gateway writes its rows in the budgets of a shared store, by a store that only takes notes.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SpendLimit } from "../../../../src/extensions/money/budgets/index.ts";
import type { Task } from "../../../../src/extensions/money/shared-budgets/ask-script.ts";
import { createRows } from "../../../../src/extensions/money/shared-budgets/rows.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { turn } from "../../../support/routing.ts";

const BEAT_MS = 2_000;
const LEASE_MS = 15_000;
const OFFER = { room: 1n, cost: 1n };
const NO_BUDGETS = { shortOf: undefined, resetMs: 0, figures: [], tokens: undefined };
const TASK = { id: "1", tokens: 0, held: 0n, spent: 0n, offers: [OFFER] };

const limitOf = (account: string): SpendLimit => ({
  name: `account ${account}`,
  budget: { amount: 1n, period: "total" },
  tokensPerMinute: null,
});

function bench(holding: ReadonlySet<string> = new Set()) {
  const clock = createFakeClock();
  const asked: { account: string; task: Task["name"]; at: number }[] = [];
  const events: object[] = [];
  let known = true;
  const rows = createRows({
    ask: async (account, _limits, { name }) => {
      asked.push({ account, task: name, at: clock.monotonic() });
      return { ...NO_BUDGETS, granted: OFFER, isKnown: known };
    },
    holds: ({ name }) => holding.has(name),
    clock,
    diagnose: (event) => events.push(event),
    heard: () => undefined,
  });
  const publish = (account: string) => rows.publish({ account, limit: limitOf(account) });
  const reserve = (account: string) =>
    rows.reserve(
      { account, key_id: "key_1", limits: [limitOf(account)] },
      { ...TASK, name: "reserve" },
    );
  async function beats(count: number): Promise<void> {
    for (let beat = 0; beat < count; beat += 1) {
      clock.advance(BEAT_MS);
      await turn();
    }
  }
  const forget = (isForgotten: boolean): void => {
    known = !isForgotten;
  };
  return { rows, asked, events, publish, reserve, beats, forget };
}

const names = Array.from({ length: 1_000 }, (_, number) => `a${number}`);

describe("the rows of a gateway in a shared store", () => {
  it("are written in turn, and those that hold something before the store takes them for dead", async () => {
    const { rows, asked, publish, beats } = bench(new Set(["account a777"]));
    for (const name of names) await publish(name);
    asked.length = 0;
    rows.start();
    await beats(10);
    const times = asked.filter(({ account }) => account === "a777").map(({ at }) => at);
    for (const [index, at] of times.entries())
      assert.ok(at - (times[index - 1] ?? 0) <= BEAT_MS, `written at ${times.join()}`);
    assert.ok(BEAT_MS < LEASE_MS);
    assert.equal(new Set(asked.map(({ account }) => account)).size, names.length);
    rows.stop();
  });

  it("are all written at once when the store has lost one", async () => {
    const { rows, asked, events, publish, reserve, forget } = bench();
    for (const name of names) await publish(name);
    asked.length = 0;
    forget(true);
    await reserve("a5");
    forget(false);
    await turn();
    const written = asked.filter(({ task }) => task === "publish").map(({ account }) => account);
    assert.deepEqual(new Set(written), new Set(names));
    assert.equal(events.length, 1);
    rows.stop();
  });
});
