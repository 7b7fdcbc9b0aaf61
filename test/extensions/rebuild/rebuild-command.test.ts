// Usage records that are damaged are never written to, and `books rebuild` makes them anew from the
// spend log: all of it or nothing, whatever dies when.

import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createFileStore } from "../../../src/extensions/books/file-store/file-store.ts";
import {
  configFile,
  entries,
  handMade,
  openLine,
  segmentPath,
  settleLine,
  spendId,
  textOf,
  usageFile,
  usageRecords,
  type Line,
} from "../../support/books.ts";
import { assertOneLine, run } from "../../support/command.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";
import {
  assertEach,
  audit,
  command,
  commandProcess,
  cursorFile,
  events,
  live,
  readCursor,
  serve,
  writeCursor,
} from "../../support/ledger.ts";
import { LONG } from "../../support/long.ts";
import { createRandom } from "../../support/random.ts";
import { waitFor } from "../../support/wait.ts";
import { thisMonth } from "../../support/today.ts";

const KEEP = { spend: { keep_days: 36_500 } };
const pair = (n: number, time = "2026-01-31T12:00:00.000Z") => [
  openLine(n, { time }),
  settleLine(n, { time }),
];
const pairs = (from: number, to: number, time?: string) =>
  Array.from({ length: to - from }, (_, at) => pair(from + at, time)).flat();
const SEGMENT = "2026-01-31.0001.jsonl";
const FEBRUARY = "2026-02-28.0001.jsonl";

/** Ten records of January and five of February, copied. */
async function books(): Promise<string> {
  const dir = folder();
  handMade(dir, SEGMENT, textOf(pairs(0, 10)), "let go");
  handMade(dir, FEBRUARY, textOf(pairs(10, 15, "2026-02-28T12:00:00.000Z")), "let go");
  assert.equal((await command(dir, ["usage", "sync", "--once"], KEEP)).code, 0);
  assert.equal(usageRecords(dir).length, 15);
  return dir;
}
const january = (dir: string) => usageFile(dir, "2026-01");

async function rebuild(dir: string) {
  const end = await command(dir, ["books", "rebuild", "--json"], KEEP);
  assert.equal(end.code, 0, end.stderr);
  const { added, changed, removed, unchanged, left, unreadable } = JSON.parse(end.stdout);
  return { counts: [added, changed, removed, unchanged, left], unreadable, stderr: end.stderr };
}
async function assertRight(dir: string): Promise<void> {
  const { code, found } = await audit(dir, KEEP);
  assert.deepEqual([code, found.differences], [0, []]);
  assertEach(dir);
}

/** Changes the lines of January, and how much of them counts. */
function edit(dir: string, change: (lines: string[]) => string[]): void {
  const lines = readFileSync(january(dir), "utf8").split("\n").slice(0, -1);
  const text = textOf(change(lines));
  writeFileSync(january(dir), text);
  const { segments, months } = readCursor(dir);
  writeCursor(dir, { segments, months: { ...months, "2026-01": Buffer.byteLength(text) } });
}

describe("a month file that is shorter than what was written", { concurrency: 2 }, () => {
  it("is not written to: the gateway serves on, says what is wrong, and lags until it is mended", async (t) => {
    const dir = folder();
    await live(t, dir, 20);
    const file = usageFile(dir);
    truncateSync(file, 1_000);
    const cut = readFileSync(file);
    const run = await serve(t, dir);
    await waitFor(() => events(run, "usage_sync_failed").length === 1, "the fault to be told");
    const [event] = events(run, "usage_sync_failed");
    assert.match(
      String(event?.["detail"]),
      /\.jsonl has 1000 bytes, although \d+ bytes of records/,
    );
    const answer = await run.gw.chat(
      { model: "demo-chat", messages: [{ role: "user", content: "hi" }] },
      { authorization: "Bearer sk-demo" },
    );
    assert.equal(answer.status, 200);
    const { fault, lag_seconds } = await run.usage();
    assert.match(fault ?? "", /books rebuild/);
    assert.equal(lag_seconds, null, "nobody knows how much waits");
    const costs = await fetch(
      `${run.gw.gateway.adminAddress()}/costs?month=${file.slice(-13, -6)}`,
    );
    assert.equal(costs.status, 500, "no sums of half a month");
    await command(dir, ["books", "rebuild"]);
    await waitFor(() => events(run, "usage_sync_recovered").length === 1, "the sync to go on");
    await run.stop();
    assert.ok(!readFileSync(file).includes(0), "no NUL bytes");
    assert.ok(readFileSync(file).length > cut.length);
    assert.equal(usageRecords(dir).length, 21);
    assertEach(dir);
    assert.deepEqual((await audit(dir)).found.differences, []);
  });

  for (const [what, damage] of [
    ["shorter", (dir: string) => truncateSync(january(dir), 500)],
    ["not there", (dir: string) => rmSync(january(dir))],
    ["without its cursor", (dir: string) => rmSync(cursorFile(dir))],
  ] as const) {
    it(`${what}: statement and sync refuse, audit says what is wrong, nothing is changed; a rebuild mends it`, async () => {
      const dir = await books();
      damage(dir);
      appendFileSync(segmentPath(dir, FEBRUARY), textOf(pair(15, "2026-02-28T12:00:00.000Z")));
      const files = () =>
        readdirSync(join(dir, "usage")).map((name) => [
          name,
          readFileSync(join(dir, "usage", name), "utf8"),
        ]);
      const before = files();
      for (const args of [
        ["billing", "statement", "--account", "acme", "--month", "2026-01"],
        ["usage", "sync", "--once"],
      ]) {
        const end = await command(dir, args, KEEP);
        assertOneLine(end, /was it restored from a backup\? 'books rebuild' mends it/);
        assert.equal(end.code, 1);
      }
      const { code, found } = await audit(dir, KEEP);
      assert.deepEqual([code, found.ok], [1, false]);
      assert.ok(
        found.differences.some((each: string) => /although/.test(each)),
        JSON.stringify(found.differences),
      );
      assert.deepEqual(files(), before, "nothing was written");
      const { stderr } = await rebuild(dir);
      assert.match(stderr, /^chat-gateway: was wrong: .*although/);
      await assertRight(dir);
      assert.equal(usageRecords(dir).length, 16);
    });
  }

  it("is not extended by the store either, whoever asks it to", async () => {
    const dir = await books();
    const [record] = usageRecords(dir);
    truncateSync(january(dir), 500);
    const store = createFileStore(join(dir, "usage"));
    await assert.rejects(
      store.commit({
        records: [{ ...record, usage_id: spendId(99) } as never],
        corrections: new Set(),
        put: [],
        drop: [],
      }),
      /has 500 bytes/,
    );
    assert.equal(readFileSync(january(dir)).length, 500);
  });
});

describe("books rebuild", { concurrency: 2 }, () => {
  it("tells what it added, changed, removed and found right, and leaves what has no spend lines", async () => {
    const dir = await books();
    rmSync(segmentPath(dir, FEBRUARY));
    edit(dir, (lines) => [
      lines[0]!,
      lines[1]!.replace(/"cost":"0\./, '"cost":"7.'),
      lines[2]!.replace('"acme"', '"beta"'),
      lines[3]!,
      lines[3]!,
      "\0\0\0",
      ...lines.slice(5),
    ]);
    const february = readFileSync(usageFile(dir, "2026-02"), "utf8");
    assert.deepEqual((await rebuild(dir)).counts, [1, 2, 2, 7, 5]);
    assert.equal(readFileSync(usageFile(dir, "2026-02"), "utf8"), february);
    assertEach(dir, 5);
    assert.deepEqual((await rebuild(dir)).counts, [0, 0, 0, 10, 5], "and then nothing more");
  });

  it("says so for people", async () => {
    const dir = await books();
    edit(dir, (lines) => lines.slice(1));
    const { code, stdout, stderr } = await command(dir, ["books", "rebuild"], KEEP);
    assert.deepEqual(
      [code, stdout, stderr],
      [
        0,
        "usage records: 1 added, 0 changed, 0 removed, 14 as the spend log has them; 0 have no lines there and were left as they were\n",
        "",
      ],
    );
  });

  it("reads what stands behind NUL bytes, which earlier versions wrote into short files", async () => {
    const dir = await books();
    rmSync(segmentPath(dir, SEGMENT)); // so that the records are nowhere else
    edit(dir, (lines) => [
      ...lines.slice(0, 5),
      `${"\0".repeat(300)}${lines[5]!}`,
      ...lines.slice(6),
    ]);
    assert.deepEqual((await rebuild(dir)).counts, [0, 0, 0, 5, 10]);
    assert.ok(!readFileSync(january(dir)).includes(0));
    assert.equal(usageRecords(dir).length, 15);
  });

  it("moves a record into the month in which its request ended", async () => {
    const dir = await books();
    edit(dir, (lines) =>
      lines.map((line, at) =>
        at === 4 ? line.replace(/"ended_at":"2026-01/, '"ended_at":"2026-03') : line,
      ),
    );
    assert.deepEqual((await rebuild(dir)).counts, [0, 1, 0, 14, 0]);
    await assertRight(dir);
  });

  it("makes all of it when the whole usage folder is gone", async () => {
    const dir = await books();
    rmSync(join(dir, "usage"), { recursive: true });
    assert.deepEqual((await rebuild(dir)).counts, [15, 0, 0, 0, 0]);
    await assertRight(dir);
    const { stdout } = await command(dir, ["usage", "sync", "--once", "--json"], KEEP);
    assert.equal(stdout, '{"copied":0}\n');
  });

  it("keeps the record of a request that the restored spend log only knows as interrupted", async () => {
    const dir = folder();
    const time = "2026-10-31T12:00:00.000Z";
    const name = "2026-10-31.0001.jsonl";
    handMade(dir, name, textOf([openLine(1, { time }), settleLine(1, { time })]), "let go");
    await command(dir, ["usage", "sync", "--once"]);
    handMade(dir, name, textOf([openLine(1, { time })]), "died");
    const end = await command(dir, ["books", "rebuild", "--json"]);
    const { left, changed } = JSON.parse(end.stdout);
    assert.deepEqual([left, changed], [1, 0]);
    assert.deepEqual(
      usageRecords(dir).map(({ status }) => status),
      ["completed"],
    );
    assert.equal((await audit(dir)).code, 1, "what was billed is not what the log says");
  });

  it("tells of lines of the spend log that cannot be read", async () => {
    const dir = await books();
    appendFileSync(segmentPath(dir, SEGMENT), "nonsense\n");
    const { unreadable, stderr } = await rebuild(dir);
    assert.equal(unreadable, 1);
    assert.match(stderr, /warning: 1 lines of the spend log cannot be read/);
  });

  it("without a spend log: says so, exit 1", async () => {
    const end = await command(join(folder(), "data"), ["books", "rebuild"]);
    assertOneLine(end, /there is no spend log in .*data to make usage records from/);
    assert.equal(end.code, 1);
  });

  it("beside a running gateway: nothing is lost or doubled, and its console has the new sums", async (t) => {
    const dir = folder();
    const run = await serve(t, dir);
    await run.ask(20);
    const month = thisMonth();
    const requests = async () => {
      const costs = await fetch(`${run.gw.gateway.adminAddress()}/costs?month=${month}`);
      return ((await costs.json()) as any).rows[0].requests;
    };
    assert.equal(await requests(), 20);
    const { segments, months } = readCursor(dir);
    const lines = readFileSync(usageFile(dir), "utf8").split(/(?<=\n)/);
    const doubled = [...lines, ...lines].join("");
    writeFileSync(usageFile(dir), doubled);
    writeCursor(dir, { segments, months: { ...months, [month]: Buffer.byteLength(doubled) } });
    assert.equal(await requests(), 40);
    const asking = run.ask(60);
    const end = await commandProcess(t, dir, ["books", "rebuild", "--json"]);
    assert.equal(JSON.parse(end.stdout).removed, 20);
    await asking;
    await waitFor(() => usageRecords(dir).length === 80, "the rest");
    assert.equal(await requests(), 80);
    await run.stop();
    assertEach(dir);
  });
});

describe("a rebuild that died", { concurrency: 2 }, () => {
  /** Requests in each of the two months. */
  const HALF = LONG ? 6_000 : 1_500;

  it("at any moment: the months are as they were or as they should be, and the next one mends all", async (t) => {
    const dir = folder();
    handMade(dir, SEGMENT, textOf(pairs(0, HALF)), "let go");
    handMade(dir, FEBRUARY, textOf(pairs(HALF, 2 * HALF, "2026-02-28T12:00:00.000Z")), "let go");
    await command(dir, ["usage", "sync", "--once"], KEEP);
    edit(dir, (lines) => lines.filter((_, at) => at % 3 > 0));
    const damaged = readFileSync(january(dir), "utf8");
    const file = configFile(demo({ data_dir: dir, ...KEEP }));
    const { between } = createRandom(Date.now());
    const isAtWork = () =>
      readdirSync(join(dir, "spend")).some((name) => name.startsWith("books."));
    const written = () => statSync(newFile(dir), { throwIfNoEntry: false })?.size ?? 0;
    const all = 2 * HALF;
    const remaining = all - HALF / 3;
    for (let kill = 0; kill < (LONG ? 8 : 2); kill += 1) {
      const running = run(t, ["books", "rebuild", "--config", file]);
      const moment = kill === 0 ? 0 : between(1, damaged.length);
      await waitFor(
        () => running.child.exitCode !== null || (isAtWork() && written() >= moment),
        `${moment} bytes to be written`,
      );
      running.child.kill("SIGKILL");
      await running.ended;
      const { found } = await audit(dir, KEEP);
      const count = found.recorded;
      assert.ok(count === all || count === remaining, `${count} records`);
      if (count === remaining) assert.equal(readFileSync(january(dir), "utf8"), damaged);
    }
    await rebuild(dir);
    await assertRight(dir);
    assert.equal(usageRecords(dir).length, all);
  });

  const newFile = (dir: string) => `${january(dir)}.new`;
  const right = (dir: string): Line[] =>
    entries(dir).filter(({ settle }) => settle["time"].startsWith("2026-01"));

  it("before its months count: they do not, and are written over by the next", async () => {
    const dir = await books();
    edit(dir, (lines) => lines.slice(1));
    writeFileSync(newFile(dir), "half a li");
    const before = readFileSync(january(dir), "utf8");
    await command(dir, ["usage", "sync", "--once"], KEEP);
    assert.equal(readFileSync(january(dir), "utf8"), before);
    await rebuild(dir);
    assert.ok(!existsSync(newFile(dir)));
    await assertRight(dir);
  });

  it("between the moment they count and their names: they are read, and the next sync gives them their names", async () => {
    const dir = await books();
    const complete = readFileSync(january(dir), "utf8");
    const { segments, months } = readCursor(dir);
    edit(dir, (lines) => lines.slice(3));
    writeFileSync(newFile(dir), complete);
    writeCursor(dir, { segments, months, rewritten: { "2026-01": 1 }, replacing: ["2026-01"] });
    const end = await command(
      dir,
      ["billing", "statement", "--account", "acme", "--month", "2026-01", "--json"],
      KEEP,
    );
    assert.equal(JSON.parse(end.stdout).total.requests, right(dir).length);
    appendFileSync(segmentPath(dir, FEBRUARY), textOf(pair(15, "2026-02-28T12:00:00.000Z")));
    await command(dir, ["usage", "sync", "--once"], KEEP);
    assert.ok(!existsSync(newFile(dir)));
    assert.equal(readCursor(dir).replacing, undefined);
    await assertRight(dir);
  });

  it("after some of the names: the rest is renamed", async () => {
    const dir = await books();
    const { segments, months } = readCursor(dir);
    const both = ["2026-01", "2026-02"];
    writeFileSync(newFile(dir), readFileSync(january(dir))); // February has its name already
    writeCursor(dir, { segments, months, rewritten: {}, replacing: both });
    assert.deepEqual((await rebuild(dir)).counts, [0, 0, 0, 15, 0]);
    assert.ok(!existsSync(newFile(dir)));
    await assertRight(dir);
  });
});
