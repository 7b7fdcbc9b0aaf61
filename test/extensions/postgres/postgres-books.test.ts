// Usage records in PostgreSQL when a data_dir is not what it was: emptied, restored, copied; marks
// of earlier versions; a rebuild. Skipped where PostgreSQL or the package `pg` (npm ci in
// test/clients) is not installed; REQUIRE_POSTGRES=1 forbids that.

import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import {
  configFile,
  handMade,
  openLine,
  segmentPath,
  settleLine,
  spendId,
  textOf,
} from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";
import { copyDir, runScript } from "../../support/ledger.ts";
import { noPostgres, PG_FOLDER, startPostgres, type Postgres } from "../../support/postgres.ts";
import { blocksOf } from "../../support/readme.ts";
import { launch, quickest, runToEnd, type Running } from "../../support/program.ts";
import { until, within } from "../../support/wait.ts";

const program = quickest(folder(), PG_FOLDER);
let db: Postgres;

/** A database, and gateways and commands on data_dirs that keep their records in it. */
async function site(t: TestContext, name: string) {
  const url = await db.database(name);
  const base = mkdtempSync(join(tmpdir(), "books-"));
  const running: Running[] = [];
  t.after(async () => {
    for (const { child } of running) child.kill("SIGKILL");
    await Promise.all(running.map(({ ended }) => ended));
    rmSync(base, { recursive: true, force: true });
  });
  const config = (dir: string) =>
    configFile(demo({ data_dir: dir, usage: { store: url, sync_ms: 50 } }));
  const run = (dir: string, ...args: string[]) =>
    runToEnd(program, [...args, "--config", config(dir)]);
  async function serve(dir: string) {
    const gateway = launch(program, ["serve", "--config", config(dir)]);
    running.push(gateway);
    const address = await gateway.address;
    const usage = async () =>
      ((await (await fetch(`${gateway.admin()}/status`)).json()) as any).usage;
    return {
      gateway,
      usage,
      async ask(times: number) {
        for (let asked = 0; asked < times; asked += 1) {
          const answer = await fetch(`${address}/v1/chat/completions`, {
            method: "POST",
            headers: { authorization: "Bearer sk-demo", "content-type": "application/json" },
            body: JSON.stringify({
              model: "demo-chat",
              max_tokens: 1,
              messages: [{ role: "user", content: "hi" }],
            }),
          });
          assert.equal(answer.status, 200, await answer.text());
        }
      },
      async stop() {
        gateway.child.kill("SIGTERM");
        assert.equal((await within(gateway.ended, "the end")).code, 0);
      },
    };
  }
  return {
    url,
    base,
    run,
    serve,
    dir: (name: string) => join(base, name),
    async live(dir: string, times: number) {
      const life = await serve(dir);
      await life.ask(times);
      await life.stop();
      return life.gateway.stderr();
    },
    db: (text: string) => db.query(url, text),
    count: async () =>
      Number((await db.query(url, "SELECT count(*) AS n FROM usage_records"))[0].n),
    async audit(dir: string) {
      const end = await run(dir, "audit", "--json");
      return { code: end.code, found: JSON.parse(end.stdout) };
    },
  };
}

const DAY = "2026-10-31";
const NAME = `${DAY}.0001.jsonl`;
const time = `${DAY}T12:00:00.000Z`;
const pairs = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => [
    openLine(from + at, { time }),
    settleLine(from + at, { time }),
  ]).flat();

describe("PostgreSQL, and a data_dir that is not what it was", { skip: noPostgres() }, () => {
  before(async () => {
    db = await startPostgres();
  });
  after(() => db?.close());

  it("bills all of 60 and 40 requests when data/spend is emptied between two runs", async (t) => {
    const at = await site(t, "emptied");
    const dir = at.dir("data");
    await at.live(dir, 60);
    rmSync(join(dir, "spend"), { recursive: true });
    await at.live(dir, 40);
    assert.equal(await at.count(), 100);
    const { code, found } = await at.audit(dir);
    assert.deepEqual([code, found.proved.requests, found.differences.length], [1, 40, 60]);
  });

  it("proves the records of deleted segments by their sums, its own only, and finds an altered one", async (t) => {
    const at = await site(t, "retired");
    const [dir, other] = [at.dir("data"), at.dir("other")];
    await at.live(other, 2);
    await at.live(dir, 1);
    const mark = readFileSync(join(dir, "gateway-id"), "utf8").slice(0, 8);
    const old = "2023-01-31";
    const lines = [1, 2, 3].flatMap((n) => {
      const over = { spend_id: spendId(n).replace("sp_00000000", `sp_${mark}`) };
      return [
        openLine(n, { ...over, time: `${old}T12:00:00.000Z` }),
        settleLine(n, { ...over, time: `${old}T12:00:01.500Z` }),
      ];
    });
    handMade(dir, `${old}.0001.jsonl`, textOf(lines), "let go");
    utimesSync(segmentPath(dir, `${old}.0001.jsonl`), 1_600_000_000, 1_600_000_000);
    for (let pass = 0; pass < 2; pass += 1) await at.run(dir, "usage", "sync", "--once");
    assert.deepEqual(
      readdirSync(join(dir, "spend")).filter((name) => name.startsWith(old)),
      [],
    );
    const time = `${old}T12:00:01.500Z`;
    const right = await at.audit(dir);
    assert.deepEqual(
      [right.code, right.found.proved.requests, right.found.retired],
      [0, 1, { records: 3, from: time, to: time }],
    );
    assert.equal((await at.run(dir, "books", "rebuild")).code, 0);
    assert.equal((await at.audit(dir)).code, 0);
    await at.db(`UPDATE usage_records SET cost = 9 WHERE usage_id = '${lines[0]!["spend_id"]}'`);
    const wrong = await at.audit(dir);
    assert.deepEqual([wrong.code, wrong.found.not_proved.records], [1, 3]);
    assert.match(
      wrong.found.differences.join(),
      /^2023-01: .* are 3 for 9\.\d+ USD, .* are 3 for 0/,
    );
    assert.equal((await at.audit(other)).code, 0);
  });

  it("bills all when the data_dir is older than the database, and a rebuild ends the fault", async (t) => {
    const at = await site(t, "older");
    const [dir, backup] = [at.dir("data"), at.dir("backup")];
    const first = await at.serve(dir);
    await first.ask(30);
    await until(async () => (await at.count()) === 30, "30 records");
    copyDir(dir, backup);
    await first.ask(30);
    await first.stop();
    rmSync(dir, { recursive: true });
    copyDir(backup, dir);
    const second = await at.serve(dir);
    await second.ask(40);
    await until(async () => (await at.count()) === 100, "100 records");
    assert.match((await second.usage()).fault, /bytes of it were copied into the usage records/);
    await second.stop();
    const events = second.gateway.stderr().match(/"event":"[^"]*"/g);
    assert.deepEqual(events, ['"event":"spend_segment_changed"']);
    const { found } = await at.audit(dir);
    assert.deepEqual([found.proved.requests, found.differences.length], [70, 31]);
    const { stdout } = await at.run(dir, "books", "rebuild", "--json");
    assert.deepEqual(JSON.parse(stdout), {
      added: 0,
      changed: 0,
      removed: 0,
      unchanged: 70,
      left: 30,
      unreadable: 0,
    });
    assert.equal((await at.audit(dir)).found.differences.length, 30);
    assert.doesNotMatch(await at.live(dir, 1), /spend_segment_changed/);
    assert.equal(await at.count(), 101);
  });

  it("bills all of a data_dir that is copied and used in both places, tells both, and nothing any more when it was mended", async (t) => {
    const at = await site(t, "cloned");
    const [dir, clone] = [at.dir("data"), at.dir("clone")];
    await at.live(dir, 60);
    copyDir(dir, clone);
    const both = await Promise.all([at.serve(dir), at.serve(clone)]);
    await Promise.all([both[0]!.ask(40), both[1]!.ask(25)]);
    await until(async () => (await at.count()) === 125, "125 records");
    for (const each of both) {
      const { fault } = await until(async () => {
        const usage = await each.usage();
        return usage.fault && usage;
      }, "the fault");
      assert.match(fault, /another copy of this data_dir \(it calls itself .*(data|clone)\)/);
      assert.match(each.gateway.stderr(), /"event":"gateway_cloned","level":"error"/);
    }
    await Promise.all(both.map((each) => each.stop()));
    assert.equal((await at.audit(dir)).code, 1);
    const block = blocksOf("bash", "backup").find((text) => text.includes("gateway-id"))!;
    await runScript(block.replace(/\bcopy\//g, "clone/"), at.base);
    await db.query(at.url, "UPDATE usage_sources SET seen_at = now() - interval '2 hours'");
    assert.deepEqual((await at.audit(dir)).found.differences, []);
    const again = await Promise.all([at.live(dir, 5), at.live(clone, 5)]);
    for (const stderr of again) assert.doesNotMatch(stderr, /gateway_cloned|error/);
    assert.equal(await at.count(), 135);
    for (const each of [dir, clone])
      assert.deepEqual((await at.audit(each)).found.differences, [], each);
  });

  it("copies all of a segment that two copies of a data_dir have gone on with, each its own way", async (t) => {
    const at = await site(t, "forked");
    const [dir, clone] = [at.dir("data"), at.dir("clone")];
    handMade(dir, NAME, textOf(pairs(0, 10)), "let go");
    await at.run(dir, "usage", "sync", "--once");
    copyDir(dir, clone);
    appendFileSync(segmentPath(dir), textOf(pairs(10, 13)));
    appendFileSync(segmentPath(clone), textOf(pairs(20, 24)));
    for (let round = 0; round < 2; round += 1)
      for (const each of [clone, dir]) await at.run(each, "usage", "sync", "--once");
    assert.equal(await at.count(), 17);
    appendFileSync(segmentPath(dir), textOf(pairs(13, 14)));
    appendFileSync(segmentPath(clone), textOf(pairs(24, 25)));
    for (const each of [clone, dir])
      assert.equal(
        (await at.run(each, "usage", "sync", "--once")).stdout,
        "1 usage records copied\n",
      );
  });

  it("is not taken for a copy when it was moved, or restored elsewhere", async (t) => {
    const at = await site(t, "moved");
    const [dir, other] = [at.dir("data"), at.dir("other")];
    await at.live(dir, 3);
    copyDir(dir, other);
    assert.doesNotMatch(await at.live(other, 3), /gateway_cloned/);
    assert.doesNotMatch(await at.live(other, 3), /gateway_cloned/);
    assert.equal(await at.count(), 9);
    assert.equal((await at.audit(other)).code, 0);
  });

  it("takes over the cursor of a version that knew names only, where it can be that of the segment", async (t) => {
    const at = await site(t, "names");
    const dir = at.dir("data");
    handMade(dir, NAME, textOf(pairs(0, 10)), "let go");
    handMade(dir, `${DAY}.0002.jsonl`, textOf(pairs(10, 20)), "let go");
    await at.run(dir, "usage", "sync", "--once");
    // The tables as they were; the second segment was replaced by another since.
    await db.query(
      at.url,
      `INSERT INTO usage_cursor SELECT source, segment, position FROM usage_marks;
       DROP TABLE usage_marks; DROP TABLE usage_sources`,
    );
    handMade(dir, `${DAY}.0002.jsonl`, textOf(pairs(50, 62)), "let go");
    const end = await at.run(dir, "usage", "sync", "--once");
    assert.equal(end.stdout, "12 usage records copied\n");
    assert.match(end.stderr, /0002\.jsonl is not what it was/);
    assert.equal(await at.count(), 32);
    assert.deepEqual(await db.query(at.url, "SELECT * FROM usage_cursor"), []);
  });

  it("replaces a record that says interrupted by the one that its own process settled, and never the other way round", async (t) => {
    const at = await site(t, "interrupted");
    const dir = at.dir("data");
    const interrupted = (n: number) => settleLine(n, { time, status: "interrupted", cost: "0" });
    const done = (n: number) => settleLine(n, { time });
    const open = (n: number) => openLine(n, { time });
    handMade(dir, NAME, textOf([open(1), open(2), interrupted(1), done(2)]), "let go");
    await at.run(dir, "usage", "sync", "--once");
    appendFileSync(segmentPath(dir), textOf([done(1), interrupted(2)]));
    await at.run(dir, "usage", "sync", "--once");
    const records = await db.query(
      at.url,
      "SELECT usage_id, status, cost::text FROM usage_records ORDER BY usage_id",
    );
    const { cost } = done(1);
    assert.deepEqual(
      records.map(({ usage_id, status, cost }) => [usage_id, status, cost]),
      [
        [spendId(1), "completed", cost],
        [spendId(2), "completed", cost],
      ],
    );
  });

  it("rebuilds what is missing or altered in one transaction, this data_dir's own records only", async (t) => {
    const at = await site(t, "rebuilt");
    const [dir, other] = [at.dir("data"), at.dir("other")];
    await Promise.all([at.live(dir, 20), at.live(other, 7)]);
    const mine = `usage_id LIKE 'sp_${readFileSync(join(dir, "gateway-id"), "utf8").slice(0, 8)}%'`;
    await db.query(
      at.url,
      `DELETE FROM usage_records WHERE usage_id IN (SELECT usage_id FROM usage_records WHERE ${mine} ORDER BY usage_id LIMIT 3);
       UPDATE usage_records SET cost = cost + 1 WHERE usage_id IN (SELECT usage_id FROM usage_records WHERE ${mine} ORDER BY usage_id LIMIT 2);
       UPDATE usage_records SET account = 'other' WHERE NOT ${mine}`,
    );
    const { code, stdout } = await at.run(dir, "books", "rebuild", "--json");
    assert.equal(code, 0);
    const { added, changed, removed, unchanged, left } = JSON.parse(stdout);
    assert.deepEqual([added, changed, removed, unchanged, left], [3, 2, 0, 15, 0]);
    assert.equal((await at.audit(dir)).code, 0);
    assert.equal((await at.audit(other)).code, 1, "the other's records are as they were");
    rmSync(join(dir, "spend", readdirSync(join(dir, "spend"))[0]!));
    const again = await at.run(dir, "books", "rebuild", "--json");
    assert.equal(JSON.parse(again.stdout).left, 20);
    assert.equal(await at.count(), 27);
  });

  it("a rebuild that is killed has changed nothing; the next one does it all", async (t) => {
    const at = await site(t, "killed");
    const dir = at.dir("data");
    handMade(dir, NAME, textOf(pairs(0, 20_000)), "let go");
    await at.run(dir, "usage", "sync", "--once");
    await db.query(at.url, "DELETE FROM usage_records WHERE usage_id LIKE '%7'");
    const before = await at.count();
    for (let kill = 0; kill < 4; kill += 1) {
      const config = configFile(demo({ data_dir: dir, usage: { store: at.url } }));
      const rebuilding = launch(program, ["books", "rebuild", "--config", config]);
      await until(
        async () =>
          rebuilding.child.exitCode !== null ||
          (
            await db.query(
              at.url,
              "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO settled%'",
            )
          ).length > 0,
        "it to be at work",
      );
      rebuilding.child.kill("SIGKILL");
      await rebuilding.ended;
    }
    await until(
      async () =>
        (
          await db.query(
            at.url,
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
          )
        ).length === 0,
      "the dead ones' transactions to end",
    );
    const left = await at.count();
    assert.ok(left === before || left === 20_000, `${left} records`);
    assert.equal((await at.run(dir, "books", "rebuild")).code, 0);
    assert.equal(await at.count(), 20_000);
  });
});
