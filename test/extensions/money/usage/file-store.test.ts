// Questions to the file store: sums of open and closed days, single requests, records of a span.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import {
  createSummer,
  DIMENSIONS,
  type Dimension,
  type SumBy,
  type UsageFilter,
  type UsageRecord,
} from "../../../../src/extensions/money/records/index.ts";
import type { Line } from "../../../support/books.ts";
import { createRandom } from "../../../support/random.ts";
import { createScene, DAY_MS, request, sumTexts, type Scene } from "../../../support/projection.ts";

const START = Date.parse("2026-01-29T00:00:00.000Z");
const ACCOUNTS = ["acme", 'say "hi"', "acme\\", "a".repeat(300), "ö"];

/** Five days of requests of two processes; the last day is open. */
async function fiveDays(requests: number): Promise<Scene> {
  const at = createScene({ now: "2026-01-29T00:00:00.000Z", recovers: false });
  const { between, pick } = createRandom(5);
  let n = 0;
  for (let day = 0; day < 5; day += 1) {
    for (let round = 0; round < 4; round += 1) {
      for (let count = 0; count < requests / 20; count += 1) {
        const ended = new Date(START + day * DAY_MS + between(0, DAY_MS - 1)).toISOString();
        const over: Line = {
          account: pick(ACCOUNTS),
          key_id: `key ${between(1, 3)}`,
          model_served: pick(["m", "n", null]),
          provider: pick(["lab", "other", null]),
          currency: pick(["USD", "EUR"]),
          cost: `0.${between(1, 999_999)}`,
          gateway_request_id: `"quoted" ${between(1, requests / 2)}`,
          usage: { ...request(0, ended)[1]["usage"], cache_write_tokens: between(0, 5) },
        };
        const segment = `2026-01-29.000${between(1, 2)}.jsonl`;
        n += 1;
        at.write(segment, ...request(n, ended, ended, over));
      }
      await at.pass();
    }
    if (day < 4) await at.passUntil(new Date(START + (day + 1) * DAY_MS + 60_000).toISOString());
  }
  assert.equal(at.closed().length, 4);
  return at;
}

describe("the file store", () => {
  let at: Scene;
  let records: readonly UsageRecord[];
  before(async () => {
    at = await fiveDays(2_000);
    records = await at.records();
    assert.equal(records.length, 2_000);
    const days = [...new Set(records.map(({ day }) => day))];
    assert.deepEqual(await at.books.store.days(), days);
  });

  const FILTERS: readonly (readonly [UsageFilter, (record: UsageRecord) => boolean])[] = [
    [{}, () => true],
    [{ month: "2026-01" }, ({ day }) => day < "2026-02"],
    [{ day: "2026-01-31" }, ({ day }) => day === "2026-01-31"],
    [
      { from: "2026-01-30", to: "2026-01-31" },
      ({ day }) => day >= "2026-01-30" && day <= "2026-01-31",
    ],
    [{ from: "2026-02-02" }, ({ day }) => day >= "2026-02-02"],
    [{ month: "2027-01" }, () => false],
    ...ACCOUNTS.map(
      (name) => [{ account: name }, ({ account }: UsageRecord) => account === name] as const,
    ),
    [{ account: "acm" }, () => false],
    [{ model: "n" }, ({ model }) => model === "n"],
    [{ key_id: "key 2" }, ({ key_id }) => key_id === "key 2"],
    [{ provider: "lab" }, ({ provider }) => provider === "lab"],
    [{ provider: "" }, ({ provider }) => provider === null],
  ];

  it("yields the records that match, and passes over so many of them", async () => {
    for (const [filter, matches] of FILTERS)
      for (const skip of [0, 1, 300]) {
        const found: UsageRecord[] = [];
        for await (const batch of at.books.store.records(filter, skip)) found.push(...batch);
        const expected = records.filter(matches).slice(skip);
        assert.deepEqual(found, expected, JSON.stringify({ ...filter, skip }));
      }
  });

  it("has the sums of open and closed days that the records come to", async () => {
    const bys: readonly (readonly Dimension[])[] = [
      DIMENSIONS,
      ["account"],
      ["day", "currency"],
      ["provider"],
      [],
    ];
    const others = [at, at.other()];
    for (const [filter, matches] of FILTERS)
      for (const by of bys) {
        const summer = createSummer(by);
        for (const record of records.filter(matches)) summer.addRecord(record);
        for (const { books } of others)
          assert.deepEqual(
            sumTexts(await books.store.sums(filter, by)),
            sumTexts(summer.sums() as readonly SumBy<Dimension>[]),
            JSON.stringify({ filter, by }),
          );
      }
  });

  it("has them without the files that were made when the days closed", async () => {
    const other = at.other();
    const expected = sumTexts(await other.books.store.sums({}, ["day", "account"]));
    rmSync(join(at.dir, "usage", "2026-01-30.sums"));
    assert.deepEqual(sumTexts(await other.books.store.sums({}, ["day", "account"])), expected);
  });

  it("finds all records of a request id, in the order in which they ended", async () => {
    const ids = new Set(records.map(({ gateway_request_id }) => gateway_request_id));
    const byEnd = (one: UsageRecord, other: UsageRecord) =>
      one.ended_at + one.usage_id < other.ended_at + other.usage_id ? -1 : 1;
    for (const requestId of [...ids].slice(0, 300)) {
      const expected = records
        .filter(({ gateway_request_id }) => gateway_request_id === requestId)
        .sort(byEnd);
      const found = await at.books.store.find({ requestId, limit: 100 });
      assert.deepEqual(
        found.map(({ details: _details, log: _log, ...columns }) => columns),
        expected,
      );
      assert.ok(found.every(({ details, log }) => details && log));
      const [first] = expected;
      const own = await at.books.store.find({ requestId, account: first!.account, limit: 100 });
      assert.deepEqual(
        own.map(({ usage_id }) => usage_id),
        expected
          .filter(({ account }) => account === first!.account)
          .map(({ usage_id }) => usage_id),
      );
    }
    assert.deepEqual(await at.books.store.find({ requestId: "none", limit: 5 }), []);
  });

  it("yields batches without records too, so that readers can stop", async () => {
    const reading = at.books.store.records({ account: "none" })[Symbol.asyncIterator]();
    assert.deepEqual(await reading.next(), { done: false, value: [] });
    await reading.return?.();
  });

  it("puts records in the place of a day's: others if it is open, the same if it is closed", async () => {
    const other = await fiveDays(100);
    const { store } = other.books;
    const all: Record<string, UsageRecord[]> = {};
    for (const day of await store.days()) {
      const lines: UsageRecord[] = [];
      for await (const batch of store.linesOf(day))
        lines.push(...batch.map(({ record }) => record!));
      all[day] = lines;
    }
    const replace = (day: string, records: readonly UsageRecord[]) =>
      store.replaceDay(day, inTwo(records));
    async function* inTwo(records: readonly UsageRecord[]) {
      yield records.slice(0, 3);
      yield records.slice(3);
    }
    const [closedDay, openDay] = ["2026-01-30", "2026-02-02"] as const;
    const file = other.dayFile(closedDay);
    rmSync(join(other.dir, "usage", `${closedDay}.jsonl`));
    await replace(closedDay, all[closedDay]!);
    assert.equal(other.dayFile(closedDay), file);
    await assert.rejects(replace(closedDay, all[closedDay]!.slice(1)), /was closed with \d+ bytes/);
    assert.equal(other.dayFile(closedDay), file);
    const [first, ...rest] = all[openDay]!;
    await replace(openDay, rest);
    assert.equal((await store.sums({ day: openDay }, []))[0]?.requests, rest.length);
    const found = await store.find({ requestId: first!.gateway_request_id, limit: 100 });
    assert.ok(!found.some(({ usage_id }) => usage_id === first!.usage_id));
    for (const { usage_id, gateway_request_id: requestId } of rest) {
      const again = await store.find({ requestId, limit: 100 });
      assert.equal(again.filter((record) => record.usage_id === usage_id).length, 1);
    }
    await other.pass();
  });
});
