// Usage records in PostgreSQL, a real one, which is killed, stopped and not there. Skipped where
// PostgreSQL or the package `pg` (npm ci in test/clients) is not installed; REQUIRE_POSTGRES=1
// forbids that.

import assert from "node:assert/strict";
import { existsSync, cpSync, renameSync, rmSync } from "node:fs";
import { after, before, describe, it, type TestContext } from "node:test";
import { gatewayInstanceId } from "../../../../src/extensions/scale/data-files/index.ts";
import * as postgres from "../../../../src/extensions/money/postgres/index.ts";
import { CopiedElsewhere } from "../../../../src/extensions/money/records/index.ts";
import type {
  Dimension,
  UsageFilter,
  UsageRecord,
  UsageStore,
} from "../../../../src/extensions/money/records/index.ts";
import { syncUsage } from "../../../../src/extensions/money/usage/index.ts";
import type { Line } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { noPostgres, PG_FOLDER, startPostgres, type Postgres } from "../../../support/postgres.ts";
import {
  createScene,
  DAY_MS,
  request,
  sumTexts,
  type Scene,
  type SceneOptions,
} from "../../../support/projection.ts";
import { createRandom } from "../../../support/random.ts";
import { until, within } from "../../../support/wait.ts";

const NOON = "2026-01-31T12:00:00.000Z";
const A = "2026-01-31.0001.jsonl";

let db: Postgres;

/** Books with records in a database. The store is closed when the test ends. */
function scene(t: TestContext, store: string, options: SceneOptions = {}): Scene {
  // The package is looked for from the working directory.
  const cwd = process.cwd();
  process.chdir(PG_FOLDER);
  try {
    const at = createScene({ ...options, store, extensions: [{ name: "postgres", ...postgres }] });
    t.after(() => at.books.store.close());
    return {
      ...at,
      other: (over) =>
        scene(t, store, {
          ...options,
          dir: at.dir,
          now: new Date(at.clock.now()).toISOString(),
          ...over,
        }),
    };
  } finally {
    process.chdir(cwd);
  }
}

/** The lines of a request as the gateway of a data_dir writes them. */
function own(at: Scene, n: number, time = NOON, over: Line = {}): Line[] {
  const spend_id = `sp_${gatewayInstanceId(at.dir).slice(0, 8)}${n.toString(16).padStart(24, "0")}`;
  return request(n, time, time, over).map((line) => ({ ...line, spend_id }));
}

async function linesOf({ books }: Scene, day: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const batch of books.store.linesOf(day)) texts.push(...batch.map(({ text }) => text));
  return texts;
}

const ids = (records: readonly UsageRecord[]): number[] =>
  records.map(({ usage_id }) => Number.parseInt(usage_id.slice(-8), 16));

/** Requests of three days by two segments, with all that a line may have. */
async function variety(at: Scene): Promise<void> {
  const { between, pick } = createRandom(7);
  const prices = { input_cache_miss: 1e-7, zeta: 2, alpha: 1.5, input_cache_hit: 0.1 };
  for (let day = 0, n = 0; day < 3; day += 1) {
    for (let count = 0; count < 150; count += 1) {
      const at12 = Date.parse(NOON) + day * DAY_MS + between(0, DAY_MS / 3);
      const over: Line = {
        account: pick(["acme", 'say "hi"', "ö\\n", "acme"]),
        key_id: pick(["key 1", "key 2"]),
        model_served: pick(["m", "n", null]),
        provider: pick(["lab", null]),
        cost: pick(["0", "0.10", "0.1", "1.000000000001", "12345678901234567890", "3.50"]),
        currency: pick(["USD", "EUR"]),
        gateway_request_id: `"quoted" ${between(1, 100)} %_\\ é`,
        error_code: pick([null, "x"]),
        finish_reason: pick([null, "stop"]),
        prices: pick([null, prices]),
        ...(between(0, 1) === 1 && { notes: ["b", "a"] }),
        attempts: [
          { model: "m", provider: "lab", outcome: "failed", duration_ms: 0.5 },
          {
            model: "n",
            provider: "lab",
            outcome: "completed",
            duration_ms: 1,
            share: {
              total_tokens: 3,
              prompt_tokens: 2,
              cost: "0.0500",
              prices,
              aaa: { z: 1, b: 1e21 },
            },
          },
        ],
      };
      n += 1;
      at.write(
        `2026-01-31.000${between(1, 2)}.jsonl`,
        ...own(at, n, new Date(at12).toISOString(), over),
      );
      if (count % 40 === 0) await at.pass();
    }
    await at.pass();
    if (day < 2) await at.passUntil(new Date(Date.parse(NOON) + (day + 1) * DAY_MS).toISOString());
  }
}

const QUESTIONS: readonly UsageFilter[] = [
  {},
  { month: "2026-01" },
  { month: "2026-02", ownOnly: true },
  { day: "2026-02-01" },
  { from: "2026-02-01" },
  { from: "2026-01-31", to: "2026-02-01" },
  { account: "acme" },
  { account: 'say "hi"', model: "m" },
  { key_id: "key 1" },
  { provider: "lab" },
  { provider: "" },
  { account: "none" },
];

/** The records that match a filter, as texts in their order. */
async function textsOf(store: UsageStore, filter: UsageFilter): Promise<readonly string[]> {
  const texts: string[] = [];
  for await (const batch of store.records(filter))
    texts.push(...batch.map((record) => JSON.stringify(record)));
  return texts.sort();
}

const GROUPINGS: readonly (readonly Dimension[])[] = [
  ["day", "account", "key_id", "model", "provider", "currency"],
  ["account"],
  ["day"],
  [],
];

/** Two stores of the same records answer the same. */
async function haveSameAnswers(
  both: readonly [UsageStore, UsageStore],
  filter: UsageFilter,
): Promise<void> {
  for (const by of GROUPINGS) {
    const [ours, theirs] = await Promise.all(both.map((store) => store.sums(filter, by)));
    assert.deepEqual(sumTexts(theirs!), sumTexts(ours!), JSON.stringify({ filter, by }));
  }
  const [ours, theirs] = await Promise.all(both.map((store) => textsOf(store, filter)));
  assert.deepEqual(theirs, ours, JSON.stringify(filter));
}

describe("usage records in PostgreSQL", { skip: noPostgres() }, () => {
  before(async () => {
    db = await startPostgres();
  });
  after(() => db?.close());

  it("are those of the file store, to the letter: lines, sums, records, requests, days", async (t) => {
    const base = createScene({ recovers: false });
    gatewayInstanceId(base.dir);
    const dir = folder();
    cpSync(base.dir, dir, { recursive: true });
    const files = createScene({ dir: base.dir, recovers: false });
    const table = scene(t, await db.database("letters"), { dir, recovers: false });
    // Somebody else's records in the same database.
    const stranger = scene(t, await db.database("letters"), { recovers: false });
    for (const each of [files, table, stranger]) await variety(each);
    const both = [files.books.store, table.books.store] as const;
    const [days, others] = await Promise.all(both.map((store) => store.days()));
    assert.deepEqual(others, days);
    assert.equal(days!.length, 3);
    for (const day of days!) assert.deepEqual(await linesOf(table, day), await linesOf(files, day));
    assert.deepEqual(await linesOf(table, "2026-03-01"), []);
    const withoutTime = (scene: Scene) => scene.closed().map((line) => ({ ...line, previous: "" }));
    assert.deepEqual(withoutTime(table), withoutTime(files));
    assert.deepEqual(await both[1].cursor(), await both[0].cursor());
    for (const asked of QUESTIONS) await haveSameAnswers(both, { ...asked, ownOnly: true });
    for (let n = 1; n <= 200; n += 1) {
      const account = n % 2 === 0 ? "acme" : 'say "hi"';
      const query = { requestId: `"quoted" ${n >> 1} %_\\ é`, account, limit: 50 };
      const [ours, theirs] = await Promise.all(both.map((store) => store.find(query)));
      const own = theirs!.filter(({ usage_id }) =>
        usage_id.startsWith(ours![0]?.usage_id.slice(0, 11) ?? "-"),
      );
      assert.equal(JSON.stringify(own), JSON.stringify(ours));
    }
    const [sum] = await table.books.store.sums({}, []);
    assert.equal(sum?.requests, 900, "both gateways' records without ownOnly");
  });

  it("come back in the order of the log by bytes, day by day, and as many are passed over as are asked", async (t) => {
    const at = scene(t, await db.database("ordered"), { recovers: false });
    const names = ["2026-01-31.0002.jsonl", "2026-01-31.0010.jsonl", "2026-01-31.10000.jsonl"];
    for (const name of [names[2]!, names[0]!, names[1]!])
      at.write(name, ...own(at, names.indexOf(name) * 2), ...own(at, names.indexOf(name) * 2 + 1));
    await at.pass();
    assert.deepEqual(ids(await at.records()), [0, 1, 2, 3, 4, 5]);
    const rest: UsageRecord[] = [];
    for await (const batch of at.books.store.records({}, 4)) rest.push(...batch);
    assert.deepEqual(ids(rest), [4, 5]);
  });

  it("find the latest of a request id", async (t) => {
    const at = scene(t, await db.database("latest"), { recovers: false });
    for (let n = 0; n < 10; n += 1)
      at.write(
        A,
        ...own(at, n, `2026-01-31T12:00:0${n}.000Z`, {
          gateway_request_id: "same",
          account: `${n % 2}`,
        }),
      );
    await at.pass();
    const find = async (limit: number, account?: string) =>
      ids(await at.books.store.find({ requestId: "same", account, limit }));
    assert.deepEqual(await find(3), [7, 8, 9]);
    assert.deepEqual(await find(3, "0"), [4, 6, 8]);
    assert.deepEqual(await find(30, "none"), []);
  });

  it("move with the cursor: either both or neither is there", async (t) => {
    const url = await db.database("together");
    const at = scene(t, url, { recovers: false });
    at.write(A, ...own(at, 1));
    await at.pass();
    const before = await at.books.store.cursor();
    const [record] = (await linesOf(at, "2026-01-31")).map(
      (text) => JSON.parse(text) as UsageRecord,
    );
    const fresh = { ...record!, usage_id: `${record!.usage_id.slice(0, -1)}9` };
    // The second record is there already.
    const added = at.books.store.add([fresh, record!], {});
    await assert.rejects(added, /already, under another gateway-id: restore the file gateway-id/);
    assert.deepEqual(await at.books.store.cursor(), before);
    assert.equal((await at.records()).length, 1);
    await at.books.store.setCursor({});
    assert.deepEqual(await at.other().books.store.cursor(), {});
  });

  it("a database that is killed again and again under a sync: nothing lost, nothing doubled", async (t) => {
    const url = await db.database("killed");
    const at = scene(t, url, { recovers: false });
    for (let n = 0; n < 12_000; n += 400) at.write(A, ...lot(at, n));
    const count = async () =>
      (
        await db.query(url, "SELECT count(*)::int AS n FROM usage_records").catch(() => [{ n: 0 }])
      )[0].n as number;
    let failed = 0;
    for (let kill = 0; kill < 4; kill += 1) {
      const before = await count();
      let isOver = false;
      const pass = at
        .pass()
        .catch(() => (failed += 1))
        .finally(() => (isOver = true));
      await until(async () => isOver || (await count()) > before, "records to come");
      await db.kill();
      await within(pass, "the pass to end");
      await db.start();
    }
    assert.ok(failed > 0, "at least one pass was cut off");
    await at.pass();
    assert.deepEqual(
      ids(await at.records()),
      Array.from({ length: 12_000 }, (_, n) => n),
    );
  });

  it("a database that is not there, or refuses the password: an error that does not say it", async (t) => {
    const url = await db.database("refused");
    const wrong = scene(t, db.wrongPassword(url), { recovers: false });
    await assert.rejects(wrong.pass(), (error: Error) => {
      assert.match(error.message, /password authentication failed/);
      assert.doesNotMatch(error.message, /CANARY/);
      return true;
    });
    const at = scene(t, url, { recovers: false });
    at.write(A, ...own(at, 1));
    await db.kill();
    await assert.rejects(at.pass(), /ECONNREFUSED/);
    await db.start();
    assert.equal((await at.pass()).copied, 1);
  });

  it("a database that hangs: a connection fails within its time", async (t) => {
    const url = await db.database("hanging");
    const at = scene(t, url, { recovers: false });
    at.write(A, ...own(at, 1));
    await at.pass();
    const stranger = scene(t, url, { recovers: false });
    await db.pause();
    t.after(db.resume);
    await within(assert.rejects(stranger.pass(), /timeout/), "the connection to fail", 15_000);
    db.resume();
    assert.equal((await stranger.pass()).copied, 0);
  });

  it("a connection that breaks in the middle of reading fails the reading only", async (t) => {
    const url = await db.database("broken");
    const at = scene(t, url, { recovers: false });
    at.write(A, ...lot(at, 0), ...lot(at, 400));
    for (let n = 800; n < 4_800; n += 400) at.write(A, ...lot(at, n));
    await at.pass();
    const reading = at.books.store.records({})[Symbol.asyncIterator]();
    await reading.next();
    await db.query(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    await assert.rejects(async () => {
      for (let batch = await reading.next(); !batch.done; batch = await reading.next());
    });
    assert.equal((await at.records()).length, 4_800);
  });

  it("readers that stand still keep no one from adding records and finding them", async (t) => {
    const url = await db.database("slow_readers");
    const at = scene(t, url, { recovers: false });
    at.write(A, ...lot(at, 0));
    await at.pass();
    const readers = Array.from({ length: 4 }, () => at.books.store.records({}));
    const iterators = readers.map((records) => records[Symbol.asyncIterator]());
    for (const iterator of iterators) await iterator.next();
    at.write(A, ...own(at, 9_000));
    assert.equal((await at.pass()).copied, 1);
    for (const iterator of iterators) await iterator.return?.();
  });

  it("several gateways begin on an empty database at the same time, each with its own records", async (t) => {
    const url = await db.database("several");
    const all = Array.from({ length: 4 }, () => scene(t, url, { recovers: false }));
    for (const [index, at] of all.entries()) at.write(A, ...own(at, index));
    await Promise.all(all.map((at) => at.pass()));
    for (const [index, at] of all.entries()) {
      const mine: UsageRecord[] = [];
      for await (const batch of at.books.store.records({ ownOnly: true })) mine.push(...batch);
      assert.deepEqual(ids(mine), [index]);
      assert.equal((await linesOf(at, "2026-01-31")).length, 1);
      await at.books.store.replaceDay("2026-01-31", (async function* () {})());
    }
    assert.deepEqual(await all[0]!.records(), []);
  });

  it("replace a day in one transaction, also where records were moved to another day", async (t) => {
    const url = await db.database("replaced");
    const [at, other] = [scene(t, url, { recovers: false }), scene(t, url, { recovers: false })];
    for (const each of [at, other]) {
      each.write(A, ...[1, 2, 3].flatMap((n) => own(each, n)));
      await each.pass();
    }
    const before = await linesOf(at, "2026-01-31");
    const records = before.map((text) => JSON.parse(text) as UsageRecord);
    const mine = `usage_id LIKE 'sp_${gatewayInstanceId(at.dir).slice(0, 8)}%'`;
    await db.query(
      url,
      `UPDATE usage_records SET day = '2026-01-30', cost = 9 WHERE ${mine} AND log_line = 2`,
    );
    await db.query(url, `DELETE FROM usage_records WHERE ${mine} AND log_line = 4`);
    async function* unreadable() {
      yield records.slice(0, 1);
      throw new Error("unreadable");
    }
    const failing = at.books.store.replaceDay("2026-01-31", unreadable());
    await assert.rejects(failing, /unreadable/);
    assert.equal((await linesOf(at, "2026-01-31")).length, 1, "as it was");
    async function* inTwo() {
      yield records.slice(0, 2);
      yield records.slice(2);
    }
    await at.books.store.replaceDay("2026-01-31", inTwo());
    assert.deepEqual(await linesOf(at, "2026-01-31"), before);
    assert.deepEqual(await at.books.store.days(), ["2026-01-31"]);
    assert.equal((await linesOf(other, "2026-01-31")).length, 3);
  });

  it("a table of an earlier version is refused, and stays as it is", async (t) => {
    const url = await db.database("earlier");
    await db.query(url, "CREATE TABLE usage_records (usage_id text PRIMARY KEY, account text)");
    const at = scene(t, url, { recovers: false });
    await assert.rejects(at.pass(), /usage_records is of an earlier version.*usage\.store/);
    const columns = "SELECT 1 FROM information_schema.columns WHERE table_name = 'usage_records'";
    assert.equal((await db.query(url, columns)).length, 2);
  });

  it("a table that is gone is not made anew; without its cursors everything is copied again", async (t) => {
    const url = await db.database("dropped");
    const at = scene(t, url, { recovers: false });
    at.write(A, ...own(at, 1), ...own(at, 2));
    assert.equal((await at.pass()).copied, 2);
    await db.query(url, "DROP TABLE usage_records");
    const later = scene(t, url, { recovers: false, dir: at.dir });
    await assert.rejects(later.pass(), /usage_records is gone.*books rebuild/);
    await db.query(url, "DROP TABLE usage_cursors");
    assert.equal((await later.pass()).copied, 2);
  });

  it("a day does not close over records that are gone, and does when they are back", async (t) => {
    const url = await db.database("holes");
    const at = scene(t, url, { recovers: false });
    at.write(A, ...own(at, 1), ...own(at, 2));
    await at.pass();
    at.write(A, ...own(at, 3));
    await at.pass();
    const records = (await at.records()).map((record) => record.usage_id);
    const whole: UsageRecord[] = [];
    for await (const lines of at.books.store.linesOf("2026-01-31"))
      whole.push(...lines.map(({ record }) => record!));
    await db.query(url, "DELETE FROM usage_records WHERE usage_id = $1", [records[1]]);
    const midnight = "2026-02-01T00:01:00.000Z";
    await assert.rejects(at.passUntil(midnight), /has 2 records of 2026-01-31, and 3 were written/);
    assert.deepEqual(at.closed(), []);
    async function* all() {
      yield whole;
    }
    await at.books.store.replaceDay("2026-01-31", all());
    await at.pass();
    assert.deepEqual(
      at.closed().map(({ day, records }) => [day, records]),
      [["2026-01-31", 3]],
    );
  });

  it("tables that are there need no right to create any", async (t) => {
    const url = await db.database("granted");
    const at = scene(t, url, { recovers: false });
    at.write(A, ...own(at, 1));
    await at.pass();
    await db.query(url, "CREATE ROLE clerk LOGIN PASSWORD 'clerk'");
    await db.query(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    await db.query(
      url,
      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk",
    );
    const clerks = Object.assign(new URL(url), { username: "clerk", password: "clerk" }).href;
    const other = scene(t, clerks, { recovers: false, dir: at.dir });
    other.write(A, ...own(at, 2));
    assert.equal((await other.pass()).copied, 1);
  });

  it("a start waits for nobody who writes records", async (t) => {
    const url = await db.database("writing");
    const at = scene(t, url, { recovers: false });
    at.write(A, ...own(at, 1));
    await at.pass();
    // As a transaction that inserts records holds it, until it is ended below.
    const lock = "LOCK TABLE usage_records IN ROW EXCLUSIVE MODE; SELECT pg_sleep(60)";
    const writing = db.query(url, `BEGIN; ${lock}`).catch(() => undefined);
    const held =
      "SELECT pid FROM pg_locks WHERE mode = 'RowExclusiveLock' AND granted " +
      "AND relation = 'usage_records'::regclass";
    await until(async () => (await db.query(url, held)).length === 1, "the lock to be held");
    const stranger = scene(t, url, { recovers: false });
    assert.equal((await within(stranger.pass(), "the start")).copied, 0);
    await db.query(url, `SELECT pg_terminate_backend(pid) FROM (${held}) AS writers`);
    await writing;
  });

  it("without the package pg: an error that says what to install", () => {
    const cwd = process.cwd();
    process.chdir(folder());
    try {
      const opened = () =>
        createScene({ store: "postgres://x/y", extensions: [{ name: "postgres", ...postgres }] });
      assert.throws(opened, /npm install --save-optional pg/);
    } finally {
      process.chdir(cwd);
    }
  });

  it("a data_dir that was copied: both places are told, and nothing is copied by a wrong cursor", async (t) => {
    const url = await db.database("cloned");
    const at = scene(t, url, { recovers: false, dir: folder() });
    at.write(A, ...own(at, 1));
    await at.pass();
    const cursor = await at.books.store.cursor();
    const copy = copyOf(t, url, at);
    assert.deepEqual((await copy.pass()).faults, [], "it was moved, as far as can be known");
    const [fault] = (await at.pass()).faults;
    assert.equal(fault?.event, "gateway_cloned");
    assert.match(fault!.detail, new RegExp(`it calls itself ${copy.dir}`));
    assert.equal((await copy.pass()).faults[0]?.event, "gateway_cloned");
    copy.write("2026-01-31.0002.jsonl", ...own(copy, 2));
    await copy.pass();
    at.write(A, ...own(at, 3));
    await assert.rejects(syncUsage(at.books), /a copy of this data_dir has written into the same/);
    await assert.rejects(at.books.store.cursor(), CopiedElsewhere); // a rebuild goes on
    await at.books.store.setCursor(cursor);
    assert.equal((await at.pass()).copied, 1);
  });

  it("a statement that comes late moves nothing back", async (t) => {
    const url = await db.database("late");
    const at = scene(t, url, { recovers: false, dir: folder() });
    at.write(A, ...own(at, 1));
    await at.pass();
    const late = at.other().books.store;
    const before = await late.cursor();
    at.write(A, ...own(at, 2));
    await at.pass();
    await assert.rejects(late.add([], before), /usage_cursors has moved on/);
    await assert.rejects(late.setCursor({}), /usage_cursors has moved on/);
    assert.equal((await at.pass()).copied, 0);
    assert.deepEqual(ids(await at.records()), [1, 2]);
  });

  it("an empty database in the place of another does not cost the log what only it has", async (t) => {
    const url = await db.database("emptied");
    const at = scene(t, url, { recovers: false, dir: folder(), keepDays: 1 });
    at.write(A, ...own(at, 1));
    await at.passUntil("2026-02-01T12:00:00.000Z");
    assert.equal(at.closed().length, 1);
    for (const table of ["records", "cursors", "sources", "days"])
      await db.query(url, `DROP TABLE usage_${table}`);
    at.clock.advance(9 * DAY_MS);
    await assert.rejects(at.pass(), /does not exist/);
    await assert.rejects(at.pass(), /are lost, .* run 'books rebuild'/);
    assert.ok(existsSync(at.segment(A)));
  });

  it("a data_dir that was moved goes on where it was", async (t) => {
    const url = await db.database("moved");
    const at = scene(t, url, { recovers: false, dir: folder() });
    at.write(A, ...own(at, 1));
    await at.pass();
    const moved = copyOf(t, url, at);
    renameSync(at.dir, `${at.dir}.gone`);
    t.after(() => rmSync(`${at.dir}.gone`, { recursive: true }));
    moved.write(A, ...own(moved, 2));
    for (let pass = 0; pass < 2; pass += 1) assert.deepEqual((await moved.pass()).faults, []);
    assert.deepEqual(ids(await moved.records()), [1, 2]);
  });
});

/** 400 requests, numbered from `n`. */
const lot = (at: Scene, n: number): Line[] =>
  Array.from({ length: 400 }, (_, index) => own(at, n + index)).flat();

/** Books in a copy of a data_dir. */
function copyOf(t: TestContext, url: string, at: Scene): Scene {
  const dir = folder();
  cpSync(at.dir, dir, { recursive: true });
  return scene(t, url, { recovers: false, dir });
}
