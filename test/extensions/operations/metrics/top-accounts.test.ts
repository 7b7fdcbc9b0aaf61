// Which accounts GET /metrics names, and that no counter ever goes backwards, whoever is named.

import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import {
  createTopAccounts,
  MAX_KNOWN,
  MAX_NAMED,
  type Figures,
  type TopAccounts,
} from "../../../../src/extensions/operations/metrics/top-accounts.ts";
import { createRandom } from "../../../support/random.ts";

const HOUR = 3_600_000;
const CODE = "rate_limit_exceeded";

describe("the accounts that are named", () => {
  let now: number;
  let top: TopAccounts;
  let counted: Map<string, readonly number[]>;

  beforeEach(() => {
    now = 0;
    top = createTopAccounts(() => now);
    counted = new Map();
  });

  /** So many more errors of an account, seen by the next look. */
  function refuse(account: string, errors: number, code = CODE): void {
    const key = `${account}\0${code}`;
    counted.set(key, [0, (counted.get(key)?.[1] ?? 0) + errors]);
  }
  function look(): Record<string, number> {
    top.take(new Map([["one", counted]]));
    return shown(top.shown());
  }
  function shown(figures: Figures): Record<string, number> {
    return Object.fromEntries([...figures].map(([key, [count]]) => [key, count!]));
  }
  function fill(errors: number): void {
    for (let at = 0; at < MAX_NAMED; at += 1) refuse(`account-${at}`, errors);
    look();
  }

  it("are all that are refused, with their codes, as long as there are few", () => {
    refuse("acme", 3);
    refuse("acme", 1, "model_not_found");
    refuse("", 2, "invalid_api_key");
    assert.deepEqual(look(), {
      [`acme\0${CODE}`]: 3,
      "acme\0model_not_found": 1,
      "\0invalid_api_key": 2,
    });
  });

  it("leave what comes after 50 of them to `other`, which is exact", () => {
    fill(10);
    refuse("late", 20);
    refuse("later", 5);
    const figures = look();
    assert.equal(figures[`other\0${CODE}`], 25);
    assert.equal(Object.keys(figures).length, MAX_NAMED + 1);
  });

  it("give a place to one with more than twice as many errors as the last of them", () => {
    fill(10);
    refuse("account-3", 100);
    refuse("heavy", 21);
    const figures = look();
    assert.equal(figures[`heavy\0${CODE}`], 21);
    assert.equal(figures[`other\0${CODE}`], undefined, "nothing was counted as other by then");
    assert.equal(Object.keys(figures).length, MAX_NAMED);
    assert.equal(figures[`account-3\0${CODE}`], 110);
  });

  it("count what an account was refused before it was named as `other` for ever", () => {
    fill(10);
    refuse("heavy", 20);
    assert.equal(look()[`other\0${CODE}`], 20);
    refuse("heavy", 7);
    const figures = look();
    assert.deepEqual([figures[`heavy\0${CODE}`], figures[`other\0${CODE}`]], [7, 20]);
  });

  it("let an account that lost its place go on from its own figure when it returns", () => {
    refuse("first", 5);
    look();
    for (let at = 1; at < MAX_NAMED; at += 1) refuse(`account-${at}`, 100);
    refuse("heavy", 100);
    assert.equal(look()[`first\0${CODE}`], undefined);
    refuse("first", 1);
    assert.equal(look()[`other\0${CODE}`], 1);
    refuse("first", 1_000);
    assert.equal(look()[`first\0${CODE}`], 1_005);
  });

  it("are those of the last hours: old errors fade", () => {
    fill(1_000_000);
    now += 24 * HOUR;
    refuse("new", 200);
    assert.equal(look()[`new\0${CODE}`], 200);
  });

  it("keep requests without a valid key apart, beyond the 50", () => {
    fill(10);
    refuse("", 1, "missing_api_key");
    assert.equal(look()["\0missing_api_key"], 1);
  });

  it("do not mistake an account that is called other", () => {
    refuse("other", 4);
    assert.deepEqual(look(), { [`other\0${CODE}`]: 4 });
  });

  it("stay as they are when a process ends, and count on with the one that replaces it", () => {
    refuse("acme", 100);
    look();
    counted = new Map();
    refuse("acme", 2);
    top.take(new Map([["two", counted]]));
    assert.deepEqual(shown(top.shown()), { [`acme\0${CODE}`]: 102 });
  });

  it("count nothing twice of a process that stood still for a look", () => {
    refuse("acme", 100);
    look();
    top.take(new Map());
    refuse("acme", 1);
    assert.deepEqual(look(), { [`acme\0${CODE}`]: 101 });
  });

  it("stay bounded, and what is not told apart is counted as `other`", () => {
    for (let at = 0; at < MAX_KNOWN + 500; at += 1) refuse(`account-${at}`, 1);
    const figures = look();
    assert.equal(Object.keys(figures).length, MAX_NAMED + 1);
    assert.equal(figures[`other\0${CODE}`], MAX_KNOWN + 500 - MAX_NAMED);
  });

  it("never let a series fall or an error go missing, in a thousand looks of random traffic", () => {
    const { random: next } = createRandom(7);
    const highest = new Map<string, number>();
    let refused = 0;
    const hidden = new Map<string, number>();
    for (let step = 0; step < 1_000; step += 1) {
      now += next() * HOUR;
      const errors = Math.floor(next() ** 4 * 1_000);
      refuse(`account-${Math.floor(next() * 120)}`, errors);
      refused += errors;
      const figures = look();
      for (const [key, count] of Object.entries(figures)) {
        assert.ok(count >= (highest.get(key) ?? 0), `${key} fell to ${count} at step ${step}`);
        highest.set(key, count);
      }
      for (const [key, count] of highest) if (!(key in figures)) hidden.set(key, count);
      assert.ok(Object.keys(figures).length <= MAX_NAMED + 1);
    }
    assert.ok(hidden.size > 0, "some account lost its place");
    const all = [...highest.values()].reduce((sum, count) => sum + count, 0);
    assert.equal(all, refused);
  });
});
