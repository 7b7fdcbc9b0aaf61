// When a gateway writes its rows in the budgets of a shared store, tested with a store that only
// records calls.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  createSpendCounters,
  type Budget,
} from "../../../../src/extensions/money/budgets/spend-counters.ts";
import { createSharedStore } from "../../../../src/extensions/money/shared-budgets/shared-store.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { turn } from "../../../support/routing.ts";

const BEAT_MS = 2_000;
const LEASE_MS = 15_000;
const OFFER = { room: 1n, cost: 1n };

const budgetOf = (account: string): Budget => ({
  name: `account ${account}`,
  account,
  keyId: null,
  amount: 1_000n,
  period: "total",
});

interface Asked {
  readonly account: string;
  readonly at: number;
  readonly tasks: readonly {
    readonly offers: readonly unknown[];
    readonly budgets: readonly { readonly held: readonly number[]; readonly writes: number }[];
  }[];
}

/** A store that grants every request. */
function bench(onError: "local" | "refuse" = "local") {
  const clock = createFakeClock();
  const spending = createSpendCounters(clock.now);
  const counters = {
    ...spending,
    figures(budget: Budget) {
      state.looks += 1;
      return spending.figures(budget);
    },
  };
  const asked: Asked[] = [];
  const events: Readonly<Record<string, unknown>>[] = [];
  /** `spoilt`: the account whose key is corrupt. `looks`: how often figures were read. */
  const state = { born: 1, fails: false, spoilt: "", looks: 0 };
  const store = createSharedStore({
    script: {
      async run(words, read) {
        const [, account = ""] = /account (\w+)\}/.exec(words[1]!) ?? [];
        const { tasks } = JSON.parse(words.at(-1)!) as Asked;
        asked.push({ account, at: clock.monotonic(), tasks });
        await turn();
        if (state.fails || account === state.spoilt) return undefined;
        const rows = [[state.born, 1, [0, 0], [0, 0]]];
        return read(tasks.map(({ offers }) => [Math.min(offers.length, 1), 0, 0, rows, []]));
      },
      fault: () => null,
      start: async () => undefined,
      close: () => undefined,
    },
    gatewayId: () => "a".repeat(32),
    onError,
    warn: () => undefined,
    diagnose: (event) => events.push(event),
    clock,
    counters,
  });
  const reserve = (account: string, name = budgetOf(account).name) => {
    const budgets = [{ ...budgetOf(account), name }];
    const spender = { account, key_id: "key_1", budgets, windows: [] };
    return store.reserve({ spender, holdId: account, tokens: 0, offers: [OFFER] });
  };
  async function beats(count: number): Promise<void> {
    for (let beat = 0; beat < count; beat += 1) {
      clock.advance(BEAT_MS);
      for (let turns = 0; turns < 4; turns += 1) await turn();
    }
  }
  return { store, asked, events, reserve, beats, state };
}

const names = Array.from({ length: 1_000 }, (_, number) => `a${number}`);

describe("the rows of a gateway in a shared store", () => {
  it("are written in turn, those with holds before they expire, without reading all others", async () => {
    const { store, asked, reserve, beats, state } = bench();
    await store.open(names.map(budgetOf));
    await reserve("a777");
    asked.length = 0;
    await beats(10);
    const times = asked.filter(({ account }) => account === "a777").map(({ at }) => at);
    for (const [index, at] of times.entries())
      assert.ok(at - (times[index - 1] ?? 0) <= BEAT_MS, `written at ${times.join()}`);
    assert.ok(BEAT_MS < LEASE_MS);
    for (const _round of [1, 2]) {
      assert.equal(new Set(asked.map(({ account }) => account)).size, names.length);
      asked.length = 0;
      await beats(10);
    }
    state.looks = 0;
    await beats(1);
    assert.ok(state.looks < names.length, `${state.looks} looks`);
    store.close();
  });

  it("are all written at once when the store has lost one", async () => {
    const { store, asked, events, reserve, state } = bench();
    await store.open(names.map(budgetOf));
    asked.length = 0;
    state.born += 1;
    await reserve("a5");
    for (let turns = 0; turns < 20; turns += 1) await turn();
    const written = asked.filter(({ tasks }) => tasks.some(({ offers }) => offers.length === 0));
    assert.deepEqual(new Set(written.map(({ account }) => account)), new Set(names));
    const told = events.map(({ event }) => event);
    assert.deepEqual(told, ["budgets_store_forgot"]);
    store.close();
  });

  it("are awaited if other gateways may have lost theirs, until the store would take them for dead", async () => {
    const { store, asked, reserve, beats, state } = bench("refuse");
    assert.ok((await reserve("a1"))?.offer);
    state.born += 1;
    assert.equal((await reserve("a1"))?.refusal?.by, "unavailable");
    asked.length = 0;
    await beats(LEASE_MS / BEAT_MS - 1);
    assert.equal((await reserve("a1"))?.refusal?.by, "unavailable");
    // It does not hold what was not granted. By its row's count the store recognizes an old row.
    const { held, writes } = asked.at(-1)!.tasks[0]!.budgets[0]!;
    assert.deepEqual([held, writes], [[0, 1], 1]);
    await beats(1);
    assert.ok((await reserve("a1"))?.offer);
    asked.length = 0;
    await store.close();
    assert.equal(asked.length, 1, "what it has spent by its end is written");
  });

  it("are kept when a key moves to another account that has other rows", async () => {
    const { store, events, reserve, state } = bench();
    await reserve("a1", "a key");
    state.born += 1;
    await reserve("a2", "a key");
    assert.deepEqual(events, []);
    store.close();
  });

  it("include everything granted before, and waiting requests are sent together", async () => {
    const { store, asked, reserve } = bench();
    await Promise.all(Array.from({ length: 250 }, () => reserve("a1")));
    const together = asked.map(({ tasks }) => tasks.length);
    assert.deepEqual(together, [1, 100, 100, 49]);
    let granted = 0;
    for (const { tasks } of asked) {
      assert.equal(tasks[0]!.budgets[0]!.held[1], granted);
      granted += tasks.length;
    }
    store.close();
  });

  it("are written even if one of them cannot be, and during a shutdown", async () => {
    const { store, asked, state } = bench();
    state.spoilt = "a0";
    const opened = store.open(names.map(budgetOf));
    for (let turns = 0; turns < 3; turns += 1) await turn();
    asked.length = 0;
    await Promise.all([opened, store.close()]);
    assert.equal(new Set(asked.map(({ account }) => account)).size, names.length);
  });
});
