// What was spent before a process began to count, and what requests of a dead worker cost, from
// books in files.

import type { Extension } from "../../../../src/core/extension/installer.ts";
import { install } from "../../../../src/core/extension/install.ts";
import assert from "node:assert/strict";
import { DAY_MS } from "../../../../src/config/fields.ts";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createAccountant } from "../../../../src/extensions/money/budgets/accountant.ts";
import {
  sharedBudgetsSlot,
  type Accountant,
  type Budget,
} from "../../../../src/extensions/money/budgets/index.ts";
import { createSpendCounters } from "../../../../src/extensions/money/budgets/spend-counters.ts";
import {
  readOutcomes,
  readSpent,
  readBooks,
} from "../../../../src/extensions/money/budgets/read-books.ts";
import { dayOf } from "../../../../src/extensions/money/records/index.ts";
import { handMade, openLine, settleLine, textOf } from "../../../support/books.ts";
import { checkConfig } from "../../../support/config.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { withLock } from "../../../../src/extensions/scale/data-files/index.ts";
import { folder } from "../../../support/folder.ts";
import { until, waitFor } from "../../../support/wait.ts";
import { configFor } from "../../../support/gateway.ts";

const START = "2026-02-02T12:00:00.000Z";
const TODAY = "2026-02-02";
const HOLD_IDS = ["a", "b", "c"].map((digit) => digit.repeat(24));
const budgetOf = (period: "day" | "month" | "total") => ({
  name: "account acme",
  account: "acme",
  keyId: null,
  amount: 9n,
  period,
});

/** A request of an account with this large budget, or without one. */
const requestOf = (budget?: Budget) => ({
  spender: {
    ...{ account: "acme", key_id: "key_1", windows: [] },
    budgets: budget ? [{ ...budget, amount: 9_999n }] : [],
  },
  holdId: HOLD_IDS[0]!,
  tokens: 1,
  offers: [{ room: 1n, cost: 1n }],
});
const TOTAL = requestOf(budgetOf("total"));

/** The books of a dead process with these lines, and the counters of a new one. */
function bench(lines: readonly object[]) {
  const dir = folder();
  const clock = createFakeClock(Date.parse(START));
  handMade(dir, "2026-02-02.0001.jsonl", textOf(lines as never), "died");
  const configOf = (account: object) =>
    checkConfig(
      configFor("http://127.0.0.1:1", ["m"], { data_dir: dir, accounts: { acme: account } }),
    );
  /** The log's lines about budgets. */
  const told: string[] = [];
  const diagnose = ({ event }: { readonly event?: unknown }): void => {
    if (String(event).startsWith("budgets_")) told.push(String(event));
  };
  const config = configOf({ budget: { amount: "1", period: "total" } });
  /** The budgets with which a store shared by gateways is opened. It leaves all to the process. */
  const opened: string[] = [];
  const sharing: Extension = {
    name: "shared",
    install: (gateway) =>
      gateway.fill(sharedBudgetsSlot, ({ counters }) => ({
        open: async (budgets) => {
          opened.push(...budgets.map(({ name }) => name));
        },
        reserve: async () => undefined,
        settle: () => undefined,
        figures: (budgets) => budgets.map(counters.figures),
        close: async () => undefined,
      })),
  };
  const context = { config, clock, installed: install([sharing]), diagnose };
  return { clock, context, dir, config, without: configOf({}), told, opened };
}

const spentOf = (accountant: Accountant) => accountant.figures()?.map((each) => each.spent);

/** The amounts spent in the day, in the month, and in total. */
const spentByPeriod = ({ figures }: ReturnType<typeof createSpendCounters>): bigint[] =>
  (["day", "month", "total"] as const).map((period) => figures(budgetOf(period)).spent);

const settledAt = (n: number, time: string, over: object = {}): object[] => [
  openLine(n, { time, ...over }),
  settleLine(n, { time, cost: "0.000000000001", ...over }),
];

describe("what was spent before", () => {
  const lines = [
    ...settledAt(1, "2025-12-31T23:59:59.999Z"),
    ...settledAt(2, "2026-02-01T00:00:00.000Z"),
    ...settledAt(3, "2026-02-02T11:59:59.999Z"),
    ...settledAt(4, "2026-02-02T12:00:00.000Z", { key_id: "key_other" }),
    ...settledAt(5, "2026-02-02T12:00:00.000Z", { currency: "EUR" }),
  ];
  for (const [before, sums] of [
    [undefined, [2n, 3n, 4n]],
    [START, [1n, 2n, 3n]],
  ] as const)
    it(`is summed by period, ${before ? "until a moment" : "completely"}`, async () => {
      const { clock, context } = bench(lines);
      const counters = createSpendCounters(clock.now);
      counters.spend({ account: "other", key_id: "key_1", cost: 5n, day: TODAY });

      const spent = await readBooks(context, (books) => readSpent(books, true, before));
      for (const each of spent) counters.spend(each);
      assert.deepEqual(spentByPeriod(counters), sums);
    });

  it("in earlier months is one amount, however many days there are; a clock that is ahead changes nothing", async () => {
    const times = ["2025-12-31", "2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"];
    const { clock, context } = bench(
      times.flatMap((day, n) => settledAt(n + 1, `${day}T00:00:00.000Z`)),
    );
    for (const years of [0, 4]) {
      clock.advance(years * 365 * DAY_MS);
      const spent = await readBooks(context, (books) => readSpent(books, true));
      const amounts = spent.map(({ day, cost }) => `${day} ${cost}`);
      assert.deepEqual(amounts, [" 3", "2026-02-01 1", "2026-02-02 1"]);
    }
  });

  it("is kept when the clock is set back, and dropped when the period is over", () => {
    let now = Date.parse(START);
    const counters = createSpendCounters(() => now);
    const spend = (cost: bigint) =>
      counters.spend({ account: "acme", key_id: "key_1", cost, day: dayOf(now) });
    const figures = () => counters.figures(budgetOf("day"));
    spend(5n);
    const { ends } = figures();
    now -= DAY_MS;
    spend(1n);
    assert.equal(figures().spent, 6n);
    assert.equal(figures().ends, ends, "clients were given this time");
    now += 2 * DAY_MS;
    assert.equal(figures().spent, 0n);
  });

  it("counts in the periods of its day, in whatever order days are counted", () => {
    const counters = createSpendCounters(() => Date.parse(START));
    for (const day of ["2026-02-02", "2026-02-01", "2026-01-31"])
      counters.spend({ account: "acme", key_id: "key_1", cost: 1n, day });
    assert.deepEqual(spentByPeriod(counters), [1n, 2n, 3n]);
  });

  it("is read completely before requests count, later up to the start, and again after an error", async () => {
    const { clock, context, dir, config, told, opened } = bench(lines);
    const later = createAccountant(context);
    writeFileSync(join(dir, "usage"), "no folder");
    await later.open(config);
    assert.deepEqual([spentOf(later), opened], [[], []]);
    assert.equal((await later.reserve(TOTAL)).refusal?.by, "unavailable");
    assert.ok((await later.reserve(requestOf())).offer, "it has no budget");
    rmSync(join(dir, "usage"));
    clock.advance(999);
    const early = await later.reserve(TOTAL);
    assert.equal(early.refusal?.by, "unavailable", "the books are not read at once again");
    clock.advance(1);
    assert.ok((await later.reserve(TOTAL)).offer);
    assert.deepEqual([spentOf(later), opened], [[3n], ["account acme"]]);
    assert.deepEqual(told, ["budgets_unknown", "budgets_known"]);
    const first = createAccountant(context);
    await first.open(config);
    assert.deepEqual(spentOf(first), [4n]);
  });

  it("is awaited for a limited time: if the books hang, requests with a budget are rejected", async () => {
    const { clock, context, dir, config, told } = bench(lines);
    const accountant = createAccountant(context);
    /** Lets the books hang for this long. */
    const inVain = async <T>(work: Promise<T>): Promise<T> => {
      await waitFor(() => clock.pending() > 0, "somebody to wait for the books");
      clock.advance(5_000);
      return await work;
    };
    await withLock({ dir: join(dir, "spend"), name: "books", clock }, async () => {
      await inVain(accountant.open(config));
      assert.deepEqual(accountant.figures(), []);
      assert.equal((await inVain(accountant.reserve(TOTAL))).refusal?.by, "unavailable");
      // It is already counted when the books are read.
      accountant.settle(undefined, {
        ...{ account: "acme", key_id: "key_1", day: TODAY },
        ...{ cost: 100n, tokens: 1 },
      });
    });
    const reserving = accountant.reserve(TOTAL);
    await until(async () => {
      clock.advance(1); // the reader retries the lock from time to time
      return accountant.figures()?.length === 1;
    }, "the books to be read");
    assert.ok((await reserving).offer);
    assert.deepEqual(spentOf(accountant), [103n]);
    assert.deepEqual(told, ["budgets_unknown", "budgets_known"]);
  });

  it("is not shown for a budget that a reload has removed, whatever older requests ask", async () => {
    const { context, config, without } = bench(lines);
    const accountant = createAccountant(context);
    await accountant.open(config);
    assert.equal(accountant.figures()?.length, 1);
    await accountant.open(without);
    await accountant.reserve(TOTAL);
    assert.deepEqual(accountant.figures(), []);
  });
});

it("the cost of a dead worker's requests comes from the books, and is zero if they do not know it", async () => {
  const [settled, interrupted, unknown] = HOLD_IDS;
  const idOf = (holdId?: string) => ({ spend_id: `sp_01234567${holdId}` });
  const lines = [
    ...settledAt(1, "2026-02-02T11:59:59.999Z", { cost: "0.00009", ...idOf(settled) }),
    openLine(2, { time: START, ...idOf(interrupted) }),
  ];
  const { context } = bench(lines);
  const outcomes = await readBooks(context, (books) => readOutcomes(books, new Set(HOLD_IDS)));
  assert.equal(outcomes.get(settled!)?.cost, 90_000_000n);
  assert.ok(outcomes.get(settled!)!.tokens > 0);
  assert.equal(outcomes.get(interrupted!), undefined, "only a serving gateway settles it");
  assert.equal(outcomes.get(unknown!), undefined);
});
