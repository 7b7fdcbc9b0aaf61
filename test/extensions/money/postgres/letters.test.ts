// Usage records in PostgreSQL are those of the file store, to the letter. Skipped where PostgreSQL
// or the package `pg` (npm ci in test/clients) is not installed; REQUIRE_POSTGRES=1 forbids that.

import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { it } from "node:test";
import { gatewayInstanceId } from "../../../../src/extensions/scale/data-files/index.ts";
import { readSpent } from "../../../../src/extensions/money/budgets/read-books.ts";
import { DIMENSIONS, type UsageFilter } from "../../../../src/extensions/money/records/index.ts";
import { folder } from "../../../support/folder.ts";
import { noPostgres, startPostgres } from "../../../support/postgres.ts";
import { createScene, sumTexts, type Scene } from "../../../support/written-books.ts";
import { FILTERS, START, writeDays } from "../usage/some-days.ts";
import { linesOf, own, recordsOf, scene } from "./scene.ts";

/** Two stores of the same records answer the same. */
async function haveSameAnswers(files: Scene, table: Scene, filter: UsageFilter): Promise<void> {
  for (const by of [DIMENSIONS, ["account"], ["day"], []] as const) {
    const expected = sumTexts(await files.books.store.sums(filter, by));
    const found = sumTexts(await table.books.store.sums(filter, by));
    assert.deepEqual(found, expected, JSON.stringify({ filter, by }));
  }
  const textsOf = async (at: Scene) =>
    (await recordsOf(at, filter)).map((record) => JSON.stringify(record)).sort();
  assert.deepEqual(await textsOf(table), await textsOf(files), JSON.stringify(filter));
}

it("lines, sums, records, requests and days in PostgreSQL are those of the file store", {
  skip: noPostgres(),
}, async (t) => {
  const db = await startPostgres();
  t.after(() => db.close());
  const url = await db.database("letters");
  const files = createScene({ now: START, recovers: false });
  gatewayInstanceId(files.dir);
  const dir = folder();
  cpSync(files.dir, dir, { recursive: true });
  const table = scene(t, url, { dir, now: START });
  // Somebody else's records in the same database.
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
  for (const [filter] of FILTERS) await haveSameAnswers(files, table, { ...filter, ownOnly: true });
  const prefix = `sp_${gatewayInstanceId(dir).slice(0, 8)}`;
  for (const { gateway_request_id: requestId, account } of await recordsOf(files, {})) {
    const query = { requestId, account, limit: 50 };
    const mine = (await theirs.find(query)).filter(({ usage_id }) => usage_id.startsWith(prefix));
    assert.equal(JSON.stringify(mine), JSON.stringify(await ours.find(query)));
  }
  // From the path of a request, which may have any characters.
  assert.deepEqual(await theirs.find({ requestId: "request\0", limit: 50 }), []);
  const spent = async ({ books }: Scene) =>
    sumTexts(await readSpent(books, true, "2026-02-02T12:00:00.000Z"));
  assert.deepEqual(await spent(table), await spent(files));
  const [sum] = await theirs.sums({}, []);
  assert.equal(sum?.requests, 400, "both gateways' records without ownOnly");
});
