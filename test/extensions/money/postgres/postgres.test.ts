// Usage records in a real PostgreSQL, which is killed, stopped and missing. Skipped if PostgreSQL
// or the package `pg` (npm ci in test/clients) is not installed; REQUIRE_POSTGRES=1 forbids that.

import assert from "node:assert/strict";
import { cpSync, existsSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import {
  CopiedElsewhere,
  type UsageRecord,
} from "../../../../src/extensions/money/records/index.ts";
import { DAYS, FIND, SET_SUMS } from "../../../../src/extensions/money/postgres/queries.ts";
import { receiptsOf } from "../../../../src/extensions/money/receipts/index.ts";
import { syncUsage } from "../../../../src/extensions/money/usage/index.ts";
import { folder } from "../../../support/folder.ts";
import { noPostgres, PG_FOLDER, startPostgres, type Postgres } from "../../../support/postgres.ts";
import { DAY_MS, type Scene } from "../../../support/written-books.ts";
import { until, within } from "../../../support/wait.ts";
import { idsOf, linesOf, lot, NOON, own, recordsOf, scene } from "./scene.ts";

const A = "2026-01-31.0001.jsonl";
const DAY = "2026-01-31";

let db: Postgres;

/** Books in their own database, with the records of this many requests. */
async function filled(t: TestContext, name: string, requests = 1) {
  const url = await db.database(name);
  const at = scene(t, url);
  for (let n = 1; n <= requests; n += 1) at.write(A, ...own(at, n));
  await at.pass();
  return { at, url };
}

/** Records in the form that replaceDay() takes. */
async function* inBatches(...batches: readonly (readonly UsageRecord[])[]) {
  for (const batch of batches) yield batch;
}

function copyOf(t: TestContext, url: string, at: Scene): Scene {
  const dir = folder();
  cpSync(at.dir, dir, { recursive: true });
  return scene(t, url, { dir });
}

describe("usage records in PostgreSQL", { skip: noPostgres() }, () => {
  before(async () => {
    db = await startPostgres();
  });
  after(() => db?.close());

  it("are summed without being read, because a query must take less than a minute", async (t) => {
    const url = await db.database("sums");
    const at = scene(t, url);
    for (const [n, time] of ["2026-01-30T12:00:00.000Z", NOON, NOON].entries())
      at.write(A, ...own(at, n, time));
    await at.pass();
    const { Client } = createRequire(join(PG_FOLDER, "package.json"))("pg");
    const prototype: Record<string, (asked: any) => unknown> = Client.prototype;
    const query = t.mock.method(prototype, "query");
    const sums = await at.books.store.sums({ ownOnly: true }, ["account"]);
    const counts = sums.map(({ account, requests }) => [account, requests]);
    assert.deepEqual(counts, [["acme", 3]]);
    const adding = query.mock.calls
      .map(({ arguments: [asked] }) => String(asked.text ?? asked))
      .filter((text) => text.includes("GROUP BY"));
    assert.equal(adding.length, 1);
    assert.ok(adding.every((text) => !text.includes("usage_records")));
    const other = scene(t, url);
    other.write(A, ...own(other, 1, "2026-01-29T12:00:00.000Z"));
    await other.pass();
    const [all] = await at.books.store.sums({}, []);
    assert.equal(all?.requests, 4, "days of other gateways count too");
    const ofEarlierVersion = "UPDATE usage_sums SET requests = 9; CREATE TABLE usage_days ()";
    for (const change of ["DROP TABLE usage_sums", ofEarlierVersion]) {
      await db.query(url, change);
      assert.deepEqual(await scene(t, url).books.store.sums({}, []), [all], `anew: ${change}`);
    }
    assert.deepEqual(await db.query(url, "SELECT to_regclass('usage_days') AS days"), [
      { days: null },
    ]);
  });

  it("are read up to a lookup's limit, and one per day for the list of days, however many exist", async (t) => {
    const url = await db.database("lookups");
    const at = scene(t, url);
    const same = { gateway_request_id: "same" };
    for (let n = 1; n <= 400; n += 1) at.write(A, ...own(at, n, NOON, same));
    await at.pass();
    for (const plan of ["seqscan", "bitmapscan"]) // chosen only because records are few
      await db.query(url, `ALTER DATABASE lookups SET enable_${plan} = off`);
    const mostRead = async (query: string, values: readonly unknown[]) => {
      const rows = await db.query(url, `EXPLAIN (ANALYZE, FORMAT JSON) ${query}`, values);
      const read = JSON.stringify(rows).matchAll(/"Actual Rows":(\d+)/g);
      return Math.max(...[...read].map(([, n]) => Number(n)));
    };
    assert.equal(await mostRead(FIND, ["same", "acme", 10]), 10);
    assert.equal(await mostRead(DAYS, [""]), 2, "one record of the day, and none after it");
    const plan = await db.query(url, `EXPLAIN (FORMAT JSON) ${SET_SUMS}`, [DAY, ""]);
    assert.doesNotMatch(JSON.stringify(plan), /SubPlan/, "compares each sum with all of the day");
  });

  it("have the seal of their own gateway's day, and of no other's", async (t) => {
    const url = await db.database("vouched");
    const [at, other] = [scene(t, url), scene(t, url)];
    for (const each of [at, other]) {
      each.write(A, ...own(each, 1));
      await each.pass();
      await each.passUntil("2026-02-01T00:01:00.000Z");
    }
    const records = await at.books.store.find({ requestId: "request 1", limit: 10 });
    const seals = receiptsOf(at.books, records).map(({ spend_id, seal }) => [spend_id, seal]);
    assert.deepEqual(Object.fromEntries(seals), {
      [String(own(at, 1)[0]!["spend_id"])]: { day: DAY, number: 1 },
      [String(own(other, 1)[0]!["spend_id"])]: null,
    });
  });

  it("are written together with the cursor, or neither is", async (t) => {
    const { at } = await filled(t, "together");
    const before = await at.books.store.cursor();
    const [text] = await linesOf(at, DAY);
    const record = JSON.parse(text!) as UsageRecord;
    const fresh = { ...record, usage_id: `${record.usage_id.slice(0, -1)}9` };
    // The second record exists already.
    const added = at.books.store.add([fresh, record], {});
    await assert.rejects(added, /already: if .* gateway-id .* restore that file; if .* rebuild'$/);
    assert.deepEqual(await at.books.store.cursor(), before);
    assert.equal((await at.records()).length, 1);
    const late = at.other().books.store;
    await late.cursor();
    await at.books.store.setCursor({});
    assert.deepEqual(await at.other().books.store.cursor(), {});
    await assert.rejects(late.setCursor({}), /usage_cursors has moved on/);
  });

  it("a missing database or a rejected password is an error without the password", async (t) => {
    const url = await db.database("refused");
    await assert.rejects(scene(t, db.wrongPassword(url)).pass(), (error: Error) => {
      assert.match(error.message, /password authentication failed/);
      assert.doesNotMatch(error.message, /CANARY/);
      return true;
    });
    const at = scene(t, url);
    at.write(A, ...own(at, 1));
    await db.kill();
    await assert.rejects(at.pass(), /ECONNREFUSED/);
    await db.start();
    assert.equal((await at.pass()).copied, 1);
  });

  it("a database that hangs fails a connection within its timeout", async (t) => {
    const { url } = await filled(t, "hanging");
    const stranger = scene(t, url);
    await db.pause();
    t.after(db.resume);
    await within(assert.rejects(stranger.pass(), /timeout/), "the connection to fail", 15_000);
    db.resume();
    assert.equal((await stranger.pass()).copied, 0);
  });

  it("a connection that breaks while reading fails only that read", async (t) => {
    const url = await db.database("broken");
    const at = scene(t, url);
    for (let n = 0; n < 4_800; n += 400) at.write(A, ...lot(at, n));
    await at.pass();
    const reading = at.books.store.records({})[Symbol.asyncIterator]();
    await reading.next();
    const others = "datname = current_database() AND pid <> pg_backend_pid()";
    await db.query(url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`);
    await assert.rejects(async () => {
      for (let batch = await reading.next(); !batch.done; batch = await reading.next());
    });
    assert.equal((await at.records()).length, 4_800);
    const batches: (readonly [first: number, lines: number])[] = [];
    for await (const { lines } of at.books.store.linesOf(DAY))
      batches.push([lines[0]!.number, lines.length]);
    const expected = [1, 2_001, 4_001].map((first) => [first, Math.min(2_000, 4_801 - first)]);
    assert.deepEqual(batches, expected, "lines of a day are counted from one batch to the next");
  });

  it("slow readers do not block adding and finding records", async (t) => {
    const at = scene(t, await db.database("slow_readers"));
    at.write(A, ...lot(at, 0));
    await at.pass();
    const readers = Array.from({ length: 4 }, () => at.books.store.records({}));
    const iterators = readers.map((records) => records[Symbol.asyncIterator]());
    for (const iterator of iterators) await iterator.next();
    at.write(A, ...own(at, 9_000));
    assert.equal((await at.pass()).copied, 1);
    for (const iterator of iterators) await iterator.return?.();
  });

  it("several gateways start on an empty database at once, each with its own records", async (t) => {
    const url = await db.database("several");
    const all = Array.from({ length: 4 }, () => scene(t, url));
    for (const [index, at] of all.entries()) at.write(A, ...own(at, index));
    await Promise.all(all.map((at) => at.pass()));
    for (const [index, at] of all.entries()) {
      assert.deepEqual(idsOf(await recordsOf(at, { ownOnly: true })), [index]);
      assert.equal((await linesOf(at, DAY)).length, 1);
      await at.books.store.replaceDay(DAY, inBatches());
    }
    assert.deepEqual(await all[0]!.records(), []);
  });

  it("replace a day in one transaction, also if records were moved to another day", async (t) => {
    const { at, url } = await filled(t, "replaced", 3);
    const before = await linesOf(at, DAY);
    const records = before.map((text) => JSON.parse(text) as UsageRecord);
    const moved = "UPDATE usage_records SET day = '2026-01-30', cost = 9 WHERE log_line = 2";
    await db.query(url, moved);
    await db.query(url, "DELETE FROM usage_records WHERE log_line = 4");
    async function* unreadable() {
      yield records.slice(0, 1);
      throw new Error("unreadable");
    }
    await assert.rejects(at.books.store.replaceDay(DAY, unreadable()), /unreadable/);
    assert.equal((await linesOf(at, DAY)).length, 1, "unchanged");
    await at.books.store.replaceDay(DAY, inBatches(records.slice(0, 2), records.slice(2)));
    assert.deepEqual(await linesOf(at, DAY), before);
    assert.deepEqual(await at.books.store.days(), [DAY]);
  });

  it("a missing table is not recreated; without its cursors everything is copied again", async (t) => {
    const { at, url } = await filled(t, "dropped", 2);
    await db.query(url, "DROP TABLE usage_records");
    const later = scene(t, url, { dir: at.dir });
    await assert.rejects(later.pass(), /usage_records is gone.*books rebuild/);
    at.write(A, ...own(at, 3));
    await assert.rejects(at.pass(), /"usage_records" does not exist/);
    await assert.rejects(at.pass(), /usage_records is gone.*books rebuild/);
    await db.query(url, "DROP TABLE usage_cursors");
    assert.equal((await later.pass()).copied, 3);
    assert.equal((await later.books.store.sums({}, []))[0]?.requests, 3);
  });

  it("a day does not close while records are missing, and closes when they are back", async (t) => {
    const { at, url } = await filled(t, "holes", 2);
    at.write(A, ...own(at, 3));
    await at.pass();
    const whole = (await linesOf(at, DAY)).map((text) => JSON.parse(text) as UsageRecord);
    await db.query(url, "DELETE FROM usage_records WHERE usage_id = $1", [whole[1]!.usage_id]);
    const passing = at.passUntil("2026-02-01T00:01:00.000Z");
    await assert.rejects(passing, /has 2 records of 2026-01-31, and 3 were written/);
    assert.deepEqual(at.closed(), []);
    await at.books.store.replaceDay(DAY, inBatches(whole));
    await at.pass();
    assert.equal(at.closed()[0]?.["records"], 3);
  });

  it("columns that the operator added get their defaults; a column must not be missing", async (t) => {
    const { at, url } = await filled(t, "columns");
    const [kept] = (await linesOf(at, DAY)).map((text) => JSON.parse(text) as UsageRecord);
    const added =
      "team text NOT NULL DEFAULT 'x', doubled bigint GENERATED ALWAYS AS (log_line * 2)";
    await db.query(url, `ALTER TABLE usage_records ADD ${added.replace(", ", ", ADD ")} STORED`);
    at.write(A, ...own(at, 2));
    assert.equal((await at.pass()).copied, 1);
    await at.books.store.replaceDay(DAY, inBatches([kept!]));
    const found = await db.query(
      url,
      "SELECT team, doubled = log_line * 2 AS ok FROM usage_records",
    );
    assert.deepEqual(found, [{ team: "x", ok: true }]);
    await db.query(url, "ALTER TABLE usage_records DROP COLUMN log_sha256");
    at.write(A, ...own(at, 3));
    await assert.rejects(at.pass(), /log_sha256.* does not exist/);
  });

  it("existing tables need no right to create any", async (t) => {
    const { at, url } = await filled(t, "granted");
    await db.query(url, "CREATE ROLE clerk LOGIN PASSWORD 'clerk'");
    await db.query(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    const granted = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public";
    await db.query(url, `${granted} TO clerk`);
    const clerks = Object.assign(new URL(url), { username: "clerk", password: "clerk" }).href;
    const other = scene(t, clerks, { dir: at.dir });
    other.write(A, ...own(other, 2));
    assert.equal((await other.pass()).copied, 1);
    await db.query(url, "CREATE TABLE usage_days ()");
    const updated = scene(t, clerks, { dir: at.dir });
    await assert.rejects(updated.pass(), /must be owner of table usage_days/);
    await db.query(url, "DROP TABLE usage_days, usage_sums");
    await assert.rejects(updated.pass(), /permission denied for schema public/);
    await db.query(url, "GRANT CREATE ON SCHEMA public TO clerk");
    await updated.pass();
    assert.equal((await updated.books.store.sums({}, []))[0]?.requests, 2);
  });

  it("a start does not wait for writers of records", async (t) => {
    const { url } = await filled(t, "writing");
    // Like a transaction that inserts records, it holds the lock until it is ended below.
    const lock = "LOCK TABLE usage_records IN ROW EXCLUSIVE MODE; SELECT pg_sleep(60)";
    const writing = db.query(url, `BEGIN; ${lock}`).catch(() => undefined);
    const held =
      "SELECT pid FROM pg_locks WHERE mode = 'RowExclusiveLock' AND granted " +
      "AND relation = 'usage_records'::regclass";
    await until(async () => (await db.query(url, held)).length === 1, "the lock to be held");
    assert.equal((await within(scene(t, url).pass(), "the start")).copied, 0);
    await db.query(url, `SELECT pg_terminate_backend(pid) FROM (${held}) AS writers`);
    await writing;
  });

  it("sums that are made anew include records that are just being written, in any isolation", async (t) => {
    const { url } = await filled(t, "isolated");
    const level = "SET default_transaction_isolation = 'repeatable read'";
    await db.query(url, `ALTER DATABASE isolated ${level}; DROP TABLE usage_sums`);
    const { Client } = createRequire(join(PG_FOLDER, "package.json"))("pg");
    const writer = new Client({ connectionString: url });
    t.after(() => writer.end());
    await writer.connect();
    await writer.query("BEGIN; UPDATE usage_records SET model = 'late'");
    const sums = scene(t, url).books.store.sums({}, ["model"]);
    const waiting = "SELECT FROM pg_locks WHERE NOT granted";
    await until(async () => (await db.query(url, waiting)).length === 1, "the wait for it");
    await writer.query("COMMIT");
    assert.deepEqual(
      (await sums).map(({ model }) => model),
      ["late"],
    );
  });

  it("a copied data_dir is reported in both places, and nothing is copied by a wrong cursor", async (t) => {
    const { at, url } = await filled(t, "cloned");
    const cursor = await at.books.store.cursor();
    const copy = copyOf(t, url, at);
    assert.deepEqual((await copy.pass()).faults, [], "it looks like a moved data_dir");
    const [fault] = (await at.pass()).faults;
    assert.equal(fault?.event, "gateway_cloned");
    assert.match(fault!.detail, new RegExp(`it calls itself ${copy.dir}`));
    assert.equal((await copy.pass()).faults[0]?.event, "gateway_cloned");
    copy.write("2026-01-31.0002.jsonl", ...own(copy, 2));
    await copy.pass();
    at.write(A, ...own(at, 3));
    await assert.rejects(syncUsage(at.books), /a copy of this data_dir has written into the same/);
    await assert.rejects(at.books.store.cursor(), CopiedElsewhere); // a rebuild continues
    await at.books.store.setCursor(cursor);
    assert.equal((await at.pass()).copied, 1);
  });

  it("an empty database in place of another does not lose what only the log has", async (t) => {
    const url = await db.database("emptied");
    const at = scene(t, url, { keepDays: 1 });
    at.write(A, ...own(at, 1));
    await at.passUntil("2026-02-01T12:00:00.000Z");
    assert.equal(at.closed().length, 1);
    for (const table of ["records", "cursors", "sources", "sums"])
      await db.query(url, `DROP TABLE usage_${table}`);
    at.clock.advance(9 * DAY_MS);
    await assert.rejects(at.pass(), /does not exist/);
    await assert.rejects(at.pass(), /are lost, .* run 'books rebuild'/);
    assert.ok(existsSync(at.segment(A)));
  });

  it("a moved data_dir continues where it was", async (t) => {
    const { at, url } = await filled(t, "moved");
    const moved = copyOf(t, url, at);
    renameSync(at.dir, `${at.dir}.gone`);
    t.after(() => rmSync(`${at.dir}.gone`, { recursive: true }));
    moved.write(A, ...own(moved, 2));
    for (let pass = 0; pass < 2; pass += 1) assert.deepEqual((await moved.pass()).faults, []);
    assert.deepEqual(idsOf(await moved.records()), [1, 2]);
  });
});
