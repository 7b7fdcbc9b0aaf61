// Usage records in PostgreSQL, a real one: the real process against a server of the tests' own that
// is killed, stopped and not there. Skipped where PostgreSQL or the package `pg` (npm ci in
// test/clients) is not installed; REQUIRE_POSTGRES=1 forbids that.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import {
  ACCOUNTS,
  checkAudit,
  checkEntries,
  checkRecords,
  checkStatements,
  checkWitnesses,
  crashConfig,
  createCrowd,
  notable,
  pico,
  readSpend,
  readUsageFiles,
  startCrashProvider,
  USAGE_COLUMNS,
  USAGE_QUERY,
  type Crowd,
  type CrashProvider,
} from "../../support/crash.ts";
import { noPostgres, PG_FOLDER, startPostgres, type Postgres } from "../../support/postgres.ts";
import { folder } from "../../support/folder.ts";
import { launch, quickest, runToEnd, type Ended, type Running } from "../../support/program.ts";
import { writeSpend } from "../../support/spend.ts";
import { until, within } from "../../support/wait.ts";
import { createRandom } from "../../support/random.ts";

const program = quickest(folder(), PG_FOLDER);
const DRAIN_MS = 4_000;
/** What is granted to a start or an end on a busy machine. */
const SLACK_MS = 4_000;

let db: Postgres;

interface Place {
  readonly dataDir: string;
  readonly config: string;
}

interface Site {
  readonly url: string;
  readonly provider: CrashProvider;
  /**
   * A data_dir and a configuration that keeps its usage records in the database, unless it says
   * where else.
   */
  place(name: string, store?: string): Place;
  /** Starts a gateway; it is gone when the test ends, and never said the password. */
  serve(place: Place): Running;
  /** Runs a command to its end; never is the password said. */
  run(args: readonly string[], place: Place): Promise<Ended>;
  /** Clients of one gateway, which go on until they are stopped. */
  crowd(address: string): Crowd;
  /** The table usage_records. */
  records(): Promise<Record<string, any>[]>;
}

async function site(t: TestContext, name: string): Promise<Site> {
  await db.start(); // the test before may have left it dead
  const url = await db.database(name);
  const folder = mkdtempSync(join(tmpdir(), "usage-"));
  const random = createRandom(name.length);
  const provider = await startCrashProvider(random);
  /** What is still there when the test ends, failed or not; the folder goes last. */
  const ending: (() => Promise<void>)[] = [];
  t.after(async () => {
    await Promise.all(ending.map((end) => end())).finally(() => {
      provider.close();
      rmSync(folder, { recursive: true });
    });
  });
  const silent = ({ stdout, stderr }: { stdout: string; stderr: string }) =>
    assert.doesNotMatch(stdout + stderr, /CANARY/);
  return {
    url,
    provider,
    place(name, store = url) {
      const dataDir = join(folder, name);
      mkdirSync(dataDir, { recursive: true });
      const config = join(folder, `${name}${store === "file" ? "-file" : ""}.json`);
      writeFileSync(
        config,
        JSON.stringify(crashConfig({ dataDir, provider: provider.url, store })),
      );
      return { dataDir, config };
    },
    serve({ config }) {
      const running = launch(program, ["serve", "--config", config]);
      ending.push(async () => {
        running.child.kill("SIGKILL");
        silent(await running.ended);
      });
      return running;
    },
    async run(args, { config }) {
      const end = await runToEnd(program, [...args, "--config", config]);
      silent(end);
      return end;
    },
    crowd(address) {
      const crowd = createCrowd(8, random);
      ending.push(crowd.stop);
      crowd.turnTo(address);
      return crowd;
    },
    records: () => db.query(url, USAGE_QUERY),
  };
}

/** Ends a gateway in good order: its last sync has copied everything. */
async function stop(running: Running): Promise<void> {
  running.child.kill("SIGTERM");
  const { code, stderr } = await within(
    running.ended,
    "the end after SIGTERM",
    DRAIN_MS + 5_000 + SLACK_MS,
  );
  assert.equal(code, 0, notable(stderr));
}

const times = (running: Running, event: string): number =>
  running.stderr().split(`"event":"${event}"`).length - 1;
const status = async (running: Running): Promise<any> =>
  (await fetch(`${running.admin()}/status`)).json();

/** All that there is to know, against all that was seen. */
async function assertBooks(
  { records, provider }: Site,
  places: readonly Place[],
  crowds: readonly Crowd[],
): Promise<void> {
  const books = readSpend(places.map(({ dataDir }) => dataDir));
  const told = crowds.flatMap((crowd) => crowd.told);
  const violations = [
    ...books.violations,
    ...checkEntries(books),
    ...checkWitnesses(books, told, provider.seen),
    ...checkRecords(books, await records()),
  ];
  const audits = places.map(({ config, dataDir }) => checkAudit(program, config, dataDir));
  violations.push(
    ...(await Promise.all([...audits, checkStatements(program, places[0]!.config, books)])).flat(),
  );
  assert.deepEqual(violations.slice(0, 10), [], `${violations.length} violations`);
  assert.ok(told.filter(({ verdict }) => verdict === "whole").length > 50);
}

/** Sorted, and without an order of members: PostgreSQL has one of its own. */
const byText = (objects: readonly Record<string, unknown>[]): unknown[] =>
  objects
    .map((object) => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

describe("usage records in PostgreSQL", { skip: noPostgres() }, () => {
  before(async () => {
    db = await startPostgres();
  });
  after(() => db?.close());

  it("the first sync makes the tables, and whoever comes next finds them", async (t) => {
    const at = await site(t, "tables");
    const place = at.place("data");
    writeSpend(place.dataDir, { requests: 10 });
    const first = await at.run(["usage", "sync", "--once"], place);
    assert.deepEqual(first, {
      code: 0,
      signal: null,
      stdout: "10 usage records copied\n",
      stderr: "",
    });
    const columns = await db.query(
      at.url,
      "SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'usage_records' ORDER BY ordinal_position",
    );
    assert.deepEqual(
      columns.map(({ name }) => name),
      [...USAGE_COLUMNS, "details"],
    );
    const key = await db.query(
      at.url,
      `SELECT column_name AS name FROM information_schema.table_constraints
      JOIN information_schema.key_column_usage USING (constraint_name, table_name) WHERE table_name = 'usage_records' AND constraint_type = 'PRIMARY KEY'`,
    );
    assert.deepEqual(key, [{ name: "usage_id" }]);
    const second = await at.run(["usage", "sync", "--once", "--json"], place);
    assert.deepEqual([second.code, second.stdout, second.stderr], [0, '{"copied":0}\n', ""]);
    assert.equal((await at.records()).length, 10);
  });

  it("has the receipts that the file store has, and finds them by the index", async (t) => {
    const at = await site(t, "receipts");
    const place = at.place("data");
    writeSpend(place.dataDir, { requests: 2_000 });
    const entries = readSpend([place.dataDir]).entries;
    const ids = entries
      .map(({ settle }) => settle["gateway_request_id"] as string)
      .filter((id) => !id.startsWith("-"))
      .slice(0, 6);
    const traces: unknown[] = [];
    for (const store of [at.url, "file"]) {
      const { config } = at.place("data", store);
      const told = [];
      for (const id of ids) {
        const { code, stdout, stderr } = await at.run(["billing", "trace", id, "--json"], {
          ...place,
          config,
        });
        assert.equal(code, 0, stderr);
        const { receipts, records } = JSON.parse(stdout);
        assert.deepEqual(
          receipts.map(({ spend_id }: Record<string, unknown>) => spend_id).sort(),
          entries
            .filter(({ settle }) => settle["gateway_request_id"] === id)
            .map(({ settle }) => settle["spend_id"])
            .sort(),
        );
        told.push(byText(receipts), byText(records));
      }
      traces.push(told);
    }
    assert.deepEqual(traces[0], traces[1]);
  });

  it("a table of an earlier version gets the columns that it lacks, and its records count", async (t) => {
    const at = await site(t, "older");
    const place = at.place("data");
    writeSpend(place.dataDir, { requests: 30 });
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await at.run(args, place);
      assert.equal(code, 0, stdout + stderr);
      return stdout;
    };
    await run("usage", "sync", "--once");
    // As an earlier version left it, which has not counted what was written to a cache.
    await db.query(at.url, "ALTER TABLE usage_records DROP COLUMN cache_write_tokens");
    await run("usage", "sync", "--once");
    const written = async () =>
      (await at.records()).reduce((all, record) => all + record["cache_write_tokens"], 0);
    assert.equal(await written(), 0);
    // The same gateway writes on beside a newer one.
    await db.query(at.url, "UPDATE usage_records SET cache_write_tokens = NULL");
    const [record] = await at.records();
    const month = record!["ended_at"].slice(0, 7);
    const args = ["--account", record!["account"], "--month", month, "--format", "json"];
    const { total } = JSON.parse(await run("billing", "statement", ...args));
    assert.equal(total.cache_write_tokens, 0);
    const rebuilt = JSON.parse(await run("books", "rebuild", "--json"));
    const stated = readSpend([place.dataDir]).entries.filter(
      ({ settle }) => settle["usage"].cache_write_tokens > 0,
    );
    assert.ok(stated.length > 0);
    assert.deepEqual([rebuilt.changed, rebuilt.unchanged], [stated.length, 30 - stated.length]);
    assert.ok((await written()) > 0);
  });

  it("the records are those that the file store would hold, to the letter", async (t) => {
    const at = await site(t, "letters");
    const place = at.place("data");
    writeSpend(place.dataDir, { requests: 5_000 });
    for (const store of [at.url, "file"])
      assert.equal((await at.run(["usage", "sync", "--once"], at.place("data", store))).code, 0);
    const byId = (records: Record<string, any>[]) =>
      records
        .sort((a, b) => (a["usage_id"] < b["usage_id"] ? -1 : 1))
        .map((record) => USAGE_COLUMNS.map((column) => record[column]));
    const files = byId(readUsageFiles([place.dataDir]));
    assert.equal(files.length, 5_000);
    assert.deepEqual(byId(await at.records()), files);
    const months = [
      ...new Set(
        readUsageFiles([place.dataDir]).map(({ ended_at }) => String(ended_at).slice(0, 7)),
      ),
    ];
    for (const format of ["json", "table", "csv"]) {
      const [theirs, ours] = await Promise.all(
        [at.url, "file"].map((store) =>
          at.run(
            [
              "billing",
              "statement",
              "--account",
              ACCOUNTS[2]!,
              "--month",
              months[0]!,
              "--format",
              format,
            ],
            at.place("data", store),
          ),
        ),
      );
      const lines = (end: Ended) => end.stdout.split("\n").sort();
      assert.deepEqual([theirs!.code, lines(theirs!)], [0, lines(ours!)], format);
    }
  });

  it("the console's sums, lists, files and stories are those of the file store", async (t) => {
    const at = await site(t, "console");
    writeSpend(at.place("data").dataDir, { requests: 2_000 });
    const places = [at.url, "file"].map((store) => at.place("data", store));
    for (const place of places)
      assert.equal((await at.run(["usage", "sync", "--once"], place)).code, 0);
    const records = readUsageFiles([places[0]!.dataDir]);
    const { account, model, key_id, provider, ended_at, gateway_request_id } = records.find(
      (record) => record["gateway_request_id"].startsWith('"quoted"'),
    )!;
    const [month, day] = [ended_at.slice(0, 7), ended_at.slice(0, 10)];
    const answers = await Promise.all(
      places.map(async (place) => {
        const gateway = at.serve(place);
        await gateway.address;
        const get = async (path: string, query: Record<string, string>) =>
          (await fetch(`${gateway.admin()}${path}?${new URLSearchParams(query)}`)).text();
        const rows: string[] = [];
        for (const filter of [{}, { account }, { model }, { day }, { account, model, day }]) {
          for (const by of ["model", "account", "day", "day,model", "model,day,account"]) {
            const answer = JSON.parse(await get("/costs", { month, by, ...filter }));
            rows.push(
              String(answer.count),
              ...answer.rows
                .map((row: object) => JSON.stringify(Object.entries(row).sort()))
                .sort(),
            );
          }
          const pages: object[] = [];
          for (let skip = 0, more = 1; more > 0; skip += 100) {
            const page = JSON.parse(
              await get("/usage", { month, skip: String(skip), ...filter }),
            ).records;
            pages.push(...page);
            more = page.length;
          }
          rows.push(
            ...pages.map((record) => JSON.stringify(Object.entries(record).sort())).sort(),
            ...(await get("/usage.csv", { month, ...filter })).split("\r\n").sort(),
          );
        }
        const span = { from: `${month}-01`, to: day };
        for (const filter of [
          {},
          { key: key_id },
          { provider: provider ?? "" },
          { provider: "" },
        ]) {
          const query = { ...span, ...filter };
          const answer = JSON.parse(await get("/costs", { ...query, by: "provider,account,day" }));
          rows.push(
            ...answer.rows.map((row: object) => JSON.stringify(Object.entries(row).sort())).sort(),
            ...(await get("/usage.csv", query)).split("\r\n").sort(),
          );
        }
        const story = JSON.parse(await get("/trace", { request_id: gateway_request_id }));
        assert.deepEqual([story.records.length, story.spend.length], [1, 1]);
        rows.push(
          JSON.stringify(story.spend),
          JSON.stringify(Object.entries(story.records[0]).sort()),
        );
        await stop(gateway);
        return rows;
      }),
    );
    assert.ok(answers[1]!.length > 2_000);
    assert.deepEqual(answers[0], answers[1]);
  });

  it("records and cursor move together: a sync that is killed leaves exactly the rest to the next", async (t) => {
    const at = await site(t, "together");
    const place = at.place("data");
    const requests = 40_000;
    writeSpend(place.dataDir, { requests });
    const { between } = createRandom(Date.now());
    const counted = async () =>
      Number(
        (
          await db.query(at.url, "SELECT count(*) AS n FROM usage_records").catch(() => [{ n: 0 }])
        )[0].n,
      );
    const others =
      "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = current_database()";
    let [halfWay, copied] = [0, 0];
    for (let kill = 0; kill < 8 && copied < requests; kill += 1) {
      const moment = copied + (kill === 0 ? 0 : between(0, 5_000));
      const running = launch(program, ["usage", "sync", "--once", "--config", place.config]);
      await until(
        async () => (await counted()) > moment || running.child.exitCode !== null,
        `more than ${moment} records`,
      );
      running.child.kill("SIGKILL");
      await running.ended;
      await until(
        async () => (await db.query(at.url, others)).length === 0,
        "what the dead process had begun to end",
      );
      copied = await counted();
      if (copied > 0 && copied < requests) halfWay += 1;
    }
    assert.ok(halfWay > 0, "at least one was killed half-way");
    // If records had come without the cursor they would be copied again, and counted; if the cursor
    // without records, be missing.
    const { stdout } = await at.run(["usage", "sync", "--once"], place);
    assert.equal(stdout, `${requests - copied} usage records copied\n`);
    assert.deepEqual(checkRecords(readSpend([place.dataDir]), await at.records()).slice(0, 10), []);
    t.diagnostic(`${halfWay} killed half-way`);
  });

  it("two gateways with two data_dirs into one database: each audit is right, a statement is the sum of both", async (t) => {
    const at = await site(t, "two");
    const places = [at.place("one"), at.place("other")];
    const gateways = places.map(at.serve); // both find no tables
    const crowds = await Promise.all(gateways.map(async ({ address }) => at.crowd(await address)));
    await Promise.all(crowds.map((crowd) => crowd.more(150)));
    await Promise.all([...crowds.map((crowd) => crowd.stop()), ...gateways.map(stop)]);
    assert.deepEqual(
      gateways.map((gateway) => notable(gateway.stderr())),
      ["", ""],
    );
    await assertBooks(at, places, crowds);
  });

  it("no database at the start: the gateway serves, says so once, and the records come when the database does", async (t) => {
    const at = await site(t, "later");
    const place = at.place("data");
    await db.kill();
    const gateway = at.serve(place);
    const url = await gateway.address;
    const crowd = at.crowd(url);
    await crowd.more(100);
    const { spend, usage } = await status(gateway);
    assert.equal(spend.fault, null);
    assert.deepEqual([usage.store, typeof usage.fault], ["postgres", "string"]);
    assert.match(usage.fault, /ECONNREFUSED/);
    assert.deepEqual(
      [(await fetch(`${url}/healthz`)).status, (await fetch(`${url}/readyz`)).status],
      [200, 200],
    );
    assert.match(
      await (await fetch(`${gateway.admin()}/metrics`)).text(),
      /usage_sync_lag_seconds (\+Inf|[\d.]+)\n/,
    );
    const command = await at.run(["usage", "sync", "--once"], place);
    assert.deepEqual([command.code, command.stdout], [1, ""]);
    assert.match(command.stderr, /^chat-gateway: [^\n]*ECONNREFUSED[^\n]*\n$/);
    assert.deepEqual(
      [times(gateway, "usage_sync_failed"), times(gateway, "usage_sync_recovered")],
      [1, 0],
    );
    await db.start();
    await until(async () => times(gateway, "usage_sync_recovered") > 0, "the sync to recover");
    assert.equal((await status(gateway)).usage.fault, null);
    assert.deepEqual(
      [times(gateway, "usage_sync_failed"), times(gateway, "usage_sync_recovered")],
      [1, 1],
    );
    await crowd.more(50);
    await Promise.all([crowd.stop(), stop(gateway)]);
    await assertBooks(at, [place], [crowd]);
  });

  it("killed and started again under load, five times: nothing lost, nothing doubled", async (t) => {
    const at = await site(t, "killed");
    const place = at.place("data");
    const gateway = at.serve(place);
    const crowd = at.crowd(await gateway.address);
    const { between } = createRandom(Date.now());
    for (let kill = 0; kill < 5; kill += 1) {
      await crowd.more(between(20, 120));
      await db.kill();
      await crowd.more(between(1, 60));
      await db.start();
      assert.equal(
        gateway.child.exitCode,
        null,
        `the gateway lives on: ${notable(gateway.stderr())}`,
      );
    }
    await until(async () => (await status(gateway)).usage.fault === null, "the sync to recover");
    await Promise.all([crowd.stop(), stop(gateway)]);
    await assertBooks(at, [place], [crowd]);
  });

  it("a database that hangs: the gateway serves on, and SIGTERM ends it within its bound", async (t) => {
    const at = await site(t, "hanging");
    const place = at.place("data");
    const gateway = at.serve(place);
    const url = await gateway.address;
    const crowd = at.crowd(url);
    await crowd.more(100);
    await db.pause();
    t.after(db.resume);
    await crowd.more(200);
    const healthz = await within(fetch(`${url}/healthz`), "healthz");
    assert.equal(healthz.status, 200);
    const [command] = await Promise.all([
      within(
        at.run(["usage", "sync", "--once"], at.place("other")),
        "a command that finds the database hanging",
        10_000 + SLACK_MS,
      ),
      crowd.more(100),
    ]);
    assert.equal(command.code, 1);
    assert.match(command.stderr, /^chat-gateway: [^\n]*timeout[^\n]*\n$/);
    await Promise.all([crowd.stop(), stop(gateway)]);
    db.resume();
    assert.equal((await at.run(["usage", "sync", "--once"], place)).code, 0);
    await assertBooks(at, [place], [crowd]);
  });

  it("a database that hangs: a key can be made and revoked all the same", async (t) => {
    const at = await site(t, "revoking");
    const place = at.place("data");
    const gateway = at.serve(place);
    const crowd = at.crowd(await gateway.address);
    await crowd.more(50);
    await db.pause();
    t.after(db.resume);
    await crowd.more(50); // the sync is at it, and hangs
    const created = await within(
      at.run(["keys", "create", "--account", "acme", "--json"], place),
      "a key to be made",
      5_000 + SLACK_MS,
    );
    assert.equal(created.code, 0, created.stderr);
    const { key, key_id } = JSON.parse(created.stdout);
    const revoked = await within(
      at.run(["keys", "revoke", key_id], place),
      "a key to be revoked",
      5_000 + SLACK_MS,
    );
    assert.equal(revoked.code, 0, revoked.stderr);
    await until(
      async () =>
        (
          await fetch(`${await gateway.address}/v1/models`, {
            headers: { authorization: `Bearer ${key}` },
          })
        ).status === 401,
      "the gateway to know that it is revoked",
    );
    db.resume();
    await Promise.all([crowd.stop(), stop(gateway)]);
  });

  it("statement, trace and audit while the gateway runs", async (t) => {
    const at = await site(t, "reading");
    const place = at.place("data");
    const gateway = at.serve(place);
    const crowd = at.crowd(await gateway.address);
    await crowd.more(150);
    const month = new Date().toISOString().slice(0, 7);
    const statement = (format: string) =>
      at.run(
        ["billing", "statement", "--account", "acme", "--month", month, "--format", format],
        place,
      );
    const table = await statement("table");
    assert.deepEqual([table.code, table.stderr], [0, ""]);
    assert.match(table.stdout, new RegExp(`^acme, ${month}, in USD\n[^]*\n +total +\\d+ `));
    const { lines, total } = JSON.parse((await statement("json")).stdout);
    assert.equal(
      lines.reduce((sum: bigint, { cost }: { cost: string }) => sum + pico(cost), 0n),
      pico(total.cost),
    );
    const [header, ...rows] = (await statement("csv")).stdout.trimEnd().split("\r\n");
    assert.equal(header, USAGE_COLUMNS.join(","));
    assert.ok(
      rows.length >= total.requests &&
        rows.every((row) => /^sp_[0-9a-f]{32},[^,]+,acme,/.test(row)),
      "every line has its request id",
    );
    const { id, account } = crowd.told.find(
      ({ verdict, id }) => verdict === "whole" && id?.startsWith("own-"),
    )!;
    const traced = await at.run(["billing", "trace", id!, "--json"], place);
    assert.deepEqual(
      JSON.parse(traced.stdout).records.map((record: Record<string, unknown>) => [
        record["gateway_request_id"],
        record["account"],
        record["status"],
      ]),
      [[id, account, "completed"]],
    );
    const audit = await at.run(["audit", "--json"], place);
    assert.deepEqual([audit.code, JSON.parse(audit.stdout).differences], [0, []], audit.stdout);
    await Promise.all([crowd.stop(), stop(gateway)]);
    assert.equal(notable(gateway.stderr()), "");
    await assertBooks(at, [place], [crowd]);
  });

  it("without the package pg: an error that says what to install", async (t) => {
    const at = await site(t, "missing");
    const { config } = at.place("data");
    const elsewhere = mkdtempSync(join(tmpdir(), "elsewhere-"));
    t.after(() => rmSync(elsewhere, { recursive: true }));
    for (const args of [["serve"], ["usage", "sync", "--once"], ["audit"]]) {
      const { code, stdout, stderr } = await runToEnd(
        quickest(elsewhere),
        [...args, "--config", config],
        10_000,
      );
      assert.deepEqual([code, stdout], [1, ""], args.join(" "));
      assert.match(stderr, /^chat-gateway: usage\.store: [^\n]*npm install pg[^\n]*\n$/);
      assert.doesNotMatch(stderr, /CANARY/);
    }
  });

  it("a wrong password shows nowhere", async (t) => {
    const at = await site(t, "wrong");
    const place = at.place("data", db.wrongPassword(at.url));
    writeSpend(place.dataDir, { requests: 3 });
    const gateway = at.serve(place);
    await gateway.address;
    await until(async () => times(gateway, "usage_sync_failed") === 1, "the sync to fail");
    const said =
      JSON.stringify(await status(gateway)) +
      (await (await fetch(`${gateway.admin()}/metrics`)).text());
    assert.match(said, /password authentication failed/);
    assert.doesNotMatch(said, /CANARY/);
    for (const args of [
      ["usage", "sync", "--once"],
      ["audit"],
      ["billing", "trace", "x"],
      ["billing", "statement", "--account", "acme", "--month", "2026-01"],
    ]) {
      const { code, stderr } = await at.run(args, place);
      assert.equal(code, 1, args.join(" "));
      assert.match(stderr, /^chat-gateway: [^\n]*password authentication failed[^\n]*\n$/);
    }
    await stop(gateway);
  });
});
