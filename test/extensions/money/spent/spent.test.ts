// What was spent before a process began to count, and what the requests of a dead worker came to,
// by books in files.

import { install } from "../../../../src/core/extension/install.ts";
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createPurses } from "../../../../src/extensions/money/spent/purses.ts";
import {
  createOpening,
  readOutcomes,
  readSpent,
  withBooks,
} from "../../../../src/extensions/money/spent/read-books.ts";
import { handMade, openLine, settleLine, textOf } from "../../../support/books.ts";
import { checkConfig } from "../../../support/config.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { folder } from "../../../support/folder.ts";
import { configFor } from "../../../support/gateway.ts";

const START = "2026-02-02T12:00:00.000Z";
const TOKENS = ["a", "b", "c"].map((digit) => digit.repeat(24));
const budgetOf = (period: "day" | "month" | "total") => ({
  name: "account acme",
  account: "acme",
  keyId: null,
  amount: 9n,
  period,
});

/** The books of a process that has died, with these lines. */
function bench(lines: readonly object[]) {
  const dir = folder();
  const clock = createFakeClock(Date.parse(START));
  handMade(dir, "2026-02-02.0001.jsonl", textOf(lines as never), "died");
  const config = checkConfig(configFor("http://127.0.0.1:1", ["m"], { data_dir: dir }));
  const context = { config, clock, installed: install([]), diagnose: () => undefined };
  return { clock, context, dir };
}

/** A request that is settled at this moment. */
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
    it(`is added up by periods, ${before ? "until a moment" : "whole"}`, async () => {
      const { clock, context } = bench(lines);
      const purses = createPurses(clock.now);
      purses.spend({ account: "other", key_id: "key_1", cost: 5n });

      const spent = await withBooks(context, (books) => readSpent(books, true, before));
      for (const each of spent) purses.spend(each);
      const figures = (["day", "month", "total"] as const).map(budgetOf).map(purses.figures);
      assert.deepEqual(
        figures.map((each) => each.spent),
        sums,
      );
    });

  it("is read whole before requests are counted, later up to the start, and again if it fails", async () => {
    const { clock, context, dir } = bench(lines);
    const events: unknown[] = [];
    const diagnose = ({ event }: { readonly event?: unknown }) => events.push(event);
    const purses = createPurses(clock.now);
    const opening = createOpening({ ...context, diagnose }, purses);
    const budgets = [budgetOf("total")];
    writeFileSync(join(dir, "usage"), "no folder");
    assert.equal(await opening.need(budgets), false);
    assert.equal(await opening.need([]), true);
    assert.equal(await opening.need(budgets), false);
    clock.advance(1_000);
    rmSync(join(dir, "usage"));
    assert.equal(await opening.need(budgets), true);
    assert.equal(await opening.need(budgets), true);
    assert.equal(purses.figures(budgetOf("total")).spent, 3n);
    const atStart = createPurses(clock.now);
    assert.equal(await createOpening(context, atStart).need(budgets), true);
    assert.equal(atStart.figures(budgetOf("total")).spent, 4n);
    const told = events.filter((event) => String(event).startsWith("budgets_"));
    assert.deepEqual(told, ["budgets_unknown", "budgets_known"]);
  });
});

describe("what the requests of a dead worker came to", () => {
  it("is what the books say, and nothing where they know nothing", async () => {
    const [settled, interrupted, unknown] = TOKENS;
    const idOf = (token?: string) => ({ spend_id: `sp_01234567${token}` });
    const lines = [
      ...settledAt(1, "2026-02-02T11:59:59.999Z", { cost: "0.00009", ...idOf(settled) }),
      openLine(2, { time: START, ...idOf(interrupted) }),
    ];
    const { context } = bench(lines);
    const outcomes = await withBooks(context, (books) => readOutcomes(books, new Set(TOKENS)));
    assert.equal(outcomes.get(settled!)?.cost, 90_000_000n);
    assert.ok(outcomes.get(settled!)!.tokens > 0);
    assert.equal(outcomes.get(interrupted!), undefined, "whoever serves settles it");
    assert.equal(outcomes.get(unknown!), undefined);
  });
});
