// Usage records in a real PostgreSQL: random statements return what they return in the model of its
// tables, on which the simulation relies; and the records equal those of the file store exactly.
// Skipped if PostgreSQL or the package `pg` (npm ci in test/clients) is not installed;
// REQUIRE_POSTGRES=1 forbids that.

import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { it } from "node:test";
import { createTables } from "../../../../scripts/simulate/postgres.ts";
import { readSpent } from "../../../../src/extensions/money/budgets/read-books.ts";
import * as sql from "../../../../src/extensions/money/postgres/queries.ts";
import { MIGRATE, RECORD, WHOLE_RECORD } from "../../../../src/extensions/money/postgres/tables.ts";
import * as records from "../../../../src/extensions/money/records/index.ts";
import { gatewayInstanceId } from "../../../../src/extensions/scale/data-files/index.ts";
import { settleLine } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { LONG } from "../../../support/long.ts";
import { noPostgres, startPostgres } from "../../../support/postgres.ts";
import { createRandom } from "../../../support/random.ts";
import { createScene, sumTexts, type Scene } from "../../../support/written-books.ts";
import { FILTERS, START, writeDays } from "../usage/some-days.ts";
import { linesOf, own, recordsOf, scene } from "./scene.ts";

const STATEMENTS = LONG ? 1_000 : 150;
const DAYS = ["2026-01-30", "2026-01-31", "2026-02-01"];

/** Statements of two gateways. Some records exist already, and some cursors have advanced. */
function createStatements({ random, pick, between }: ReturnType<typeof createRandom>) {
  const maybe = <T>(...list: readonly T[]) => (random() < 0.3 ? pick(list) : undefined);

  function recordOf(start: string, day: string) {
    const id = between(0, 300).toString(16).padStart(24, "0");
    const settle = settleLine(between(1, 9), {
      ...{ spend_id: start + id, time: `${day}T12:00:0${between(0, 9)}.500Z` },
      ...{ account: pick(["acme", "beta"]), model_served: pick(["m", "n"]) },
      ...{ provider: pick(["lab", null]), cost: pick(["0", "0.1", "12.000000000001"]) },
    }) as records.SettleLine;
    const place = { segment: `${day}.000${between(1, 2)}.jsonl`, line: between(1, 99), sha256: id };
    return records.usageRecord(settle, day, place);
  }

  return () => {
    const source = pick(["a", "b"]).repeat(32);
    const start = sql.usageIdStart(source);
    const filter = {
      ...{ month: maybe("2026-01", "2026-02"), account: maybe("acme"), model: maybe("m") },
      ...{ day: maybe(...DAYS), from: maybe(...DAYS), to: maybe(...DAYS) },
      ...{ provider: maybe("", "lab"), ownOnly: random() < 0.3 },
    };
    const where = sql.conditionOf(filter, () => source);
    const by = records.DIMENSIONS.filter(() => random() < 0.4);
    const cursors = [1, 1].map(() => `{"a": {"lines": ${between(1, 2)}}}`);
    const moved = [source, "here", ...cursors];
    const added = Array.from({ length: between(1, 3) }, () => recordOf(start, pick(DAYS)));
    return pick<readonly [text: string, ...values: readonly unknown[]]>([
      [sql.ADD, ...moved, sql.rowsOf(added)],
      [sql.SET_CURSOR, ...moved],
      [sql.CURSOR, source, "here"],
      [sql.COUNT_DAY, pick(DAYS), start],
      [sql.SET_SUMS, pick(DAYS), start],
      [sql.DAYS, pick([start, ""])],
      [sql.FIND, `request ${between(1, 9)}`, pick(["acme", null]), pick(["1", "100"])],
      [sql.sumsBy(by, where.text), ...where.values],
      [sql.openCursor(pick([RECORD, WHOLE_RECORD]), where.text), ...where.values],
    ]);
  };
}

/**
 * The result of a statement as text, or its error's code. Sums are sorted and their zeros removed.
 */
async function printed(text: string, find: () => any): Promise<unknown> {
  const isSum = text.includes("GROUP BY");
  try {
    const found: any[] = await find();
    if (isSum) for (const sum of found) sum.cost = String(records.parseMoney(sum.cost));
    const texts = found.map((value) => JSON.stringify(value));
    return isSum ? texts.sort() : texts;
  } catch (error) {
    return (error as { code?: string }).code ?? error;
  }
}

const about = { skip: noPostgres() };

it("the model of the usage tables returns what a real server returns", about, async (t) => {
  const seed = Number(process.env["SIMULATE_SEED"] ?? Date.now() % 100_000);
  const next = createStatements(createRandom(seed));
  const db = await startPostgres();
  t.after(db.close);
  const url = await db.database("model");
  await db.query(url, MIGRATE);
  const { ordered, run } = createTables();
  for (let number = 1; number <= STATEMENTS; number += 1) {
    const [text, ...values] = next();
    const query = text.replace(/^DECLARE .* FOR /, "");
    const ask = async () => (await db.query(url, query, values)).map(({ value }) => value);
    const expected = await printed(text, ask);
    const model = query === text ? run : ordered;
    const actual = await printed(text, () => model(text, values as string[]));
    assert.deepEqual(actual, expected, `seed ${seed}, statement ${number}: ${text} ${values}`);
  }
});

/** Asserts that two stores of the same records answer the same. */
async function haveSameAnswers(files: Scene, table: Scene, filter: records.UsageFilter) {
  for (const by of [records.DIMENSIONS, ["account"], ["day"], []] as const) {
    const expected = sumTexts(await files.books.store.sums(filter, by));
    const found = sumTexts(await table.books.store.sums(filter, by));
    assert.deepEqual(found, expected, JSON.stringify({ filter, by }));
  }
  const textsOf = async (at: Scene) =>
    (await recordsOf(at, filter)).map((record) => JSON.stringify(record)).sort();
  assert.deepEqual(await textsOf(table), await textsOf(files), JSON.stringify(filter));
}

it(
  "statement lines, sums, records, requests and days in PostgreSQL equal those of the file store",
  about,
  async (t) => {
    const db = await startPostgres();
    t.after(() => db.close());
    const url = await db.database("letters");
    const files = createScene({ now: START, recovers: false });
    gatewayInstanceId(files.dir);
    const dir = folder();
    cpSync(files.dir, dir, { recursive: true });
    const table = scene(t, url, { dir, now: START });
    // Another gateway's records in the same database.
    const stranger = scene(t, url, { now: START });
    for (const at of [files, table, stranger])
      await writeDays(at, 200, (n, time, over) => own(at, n, time, over));
    const [ours, theirs] = [files.books.store, table.books.store];
    const days = await ours.days();
    assert.equal(days.length, 5);
    assert.deepEqual(await theirs.days(), days);
    for (const day of [...days, "2026-03-01"])
      assert.deepEqual(await linesOf(table, day), await linesOf(files, day));
    assert.deepEqual(table.closed(), files.closed());
    assert.deepEqual(await theirs.cursor(), await ours.cursor());
    for (const [filter] of FILTERS)
      await haveSameAnswers(files, table, { ...filter, ownOnly: true });
    const prefix = `sp_${gatewayInstanceId(dir).slice(0, 8)}`;
    for (const { gateway_request_id: requestId, account } of await recordsOf(files, {})) {
      const query = { requestId, account, limit: 50 };
      const mine = (await theirs.find(query)).filter(({ usage_id }) => usage_id.startsWith(prefix));
      assert.equal(JSON.stringify(mine), JSON.stringify(await ours.find(query)));
    }
    // The id is from a request's path, which may contain any characters.
    assert.deepEqual(await theirs.find({ requestId: "request\0", limit: 50 }), []);
    const spent = async ({ books }: Scene) =>
      sumTexts(await readSpent(books, true, "2026-02-02T12:00:00.000Z"));
    assert.deepEqual(await spent(table), await spent(files));
    const [sum] = await theirs.sums({}, []);
    assert.equal(sum?.requests, 400, "both gateways' records without ownOnly");
  },
);
