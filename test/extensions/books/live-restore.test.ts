// The books of a gateway whose data_dir is emptied, or restored from an older copy, while it
// serves: every reply that a client had whole is billed, once.

import assert from "node:assert/strict";
import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../src/core/clock.ts";
import { createSpendLog } from "../../../src/extensions/books/spend-log/spend-log.ts";
import { recover } from "../../../src/extensions/books/spend-log/recovery.ts";
import {
  configFile,
  openLine,
  segmentPath,
  segments,
  settleLine,
  settles,
  spendLines,
  textOf,
  usageRecords,
} from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { demo, startGateway, user } from "../../support/gateway.ts";
import { assertEach, audit, command, runScript } from "../../support/ledger.ts";
import { LONG } from "../../support/long.ts";
import { launch, quickest } from "../../support/program.ts";
import { todays } from "../../support/todays.ts";
import { waitFor, within } from "../../support/wait.ts";

const CLIENTS = 8;
/** Replies between two steps. */
const SOME = LONG ? 60 : 25;

/**
 * As many requests as the machine can take are not needed each time: each reply takes a moment, but
 * where the tests may take long.
 */
const PACED = LONG ? {} : { providers: { demo: { pace_ms: 25 } } };

/** Eight clients that ask all the time, and the request ids of the replies that they had whole. */
function clients(url: string) {
  const completed: string[] = [];
  let ending = false;
  const client = async () => {
    while (!ending) {
      const answer = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer sk-demo", "content-type": "application/json" },
        body: JSON.stringify({ model: "demo-chat", max_tokens: 1, messages: user("hi") }),
      });
      await answer.text();
      if (answer.status === 200) completed.push(answer.headers.get("x-request-id") ?? "none");
    }
  };
  const all = Promise.all(Array.from({ length: CLIENTS }, client));
  return {
    completed,
    more: (count: number) => {
      const goal = completed.length + count;
      return waitFor(() => completed.length >= goal, `${count} more replies`);
    },
    async end() {
      ending = true;
      await within(all, "the clients' last replies");
    },
  };
}

/** Each reply is billed once, and nothing but replies. */
function assertBilled(dir: string, completed: readonly string[]): void {
  const billed = usageRecords(dir).map(({ gateway_request_id }) => gateway_request_id as string);
  const missing = completed.filter((id) => !billed.includes(id));
  assert.deepEqual(missing.length, 0, `${missing.length} of ${completed.length} are not billed`);
  assert.equal(new Set(billed).size, billed.length, "none is billed twice");
  assert.equal(billed.length, completed.length);
}

/**
 * Copies the backup back. cp fails where the gateway has made one of its files meanwhile; then the
 * operator copies once more.
 */
const COPY_ALL = "cp -a bk/. data/ || cp -a bk/. data/";
const COPY_SPEND = "cp -a bk/spend data/ || cp -a bk/spend data/";

/** What is done and, where it says so, what is done when the first loss has been noticed. */
const STEPS: [what: string, script: string, then?: string][] = [
  ["data_dir is replaced by an older copy", `rm -rf data/* || true; ${COPY_ALL}`],
  ["data_dir is emptied, and later replaced by an older copy", "rm -rf data/*", COPY_ALL],
  ["data/spend is replaced by an older copy", `rm -rf data/spend; ${COPY_SPEND}`],
  ["data/spend is emptied", "rm -rf data/spend/*"],
  ["the segments are deleted", "rm data/spend/*.jsonl"],
  ["spend and usage are emptied", "rm -rf data/spend/* data/usage/*"],
  ["all of data_dir is deleted", "rm -rf data"],
  ["gateway-id is deleted with the segments", "rm -rf data/gateway-id data/spend/*"],
];

/**
 * Waits until the spend log has the lines of these replies. A copy that comes between two looks of
 * the gateway takes what it has just put back, until it looks again.
 */
const logged = (dir: string, replies: readonly string[]): Promise<unknown> =>
  waitFor(() => {
    const lines = segments(dir).flatMap((name) =>
      readFileSync(segmentPath(dir, name), "utf8").split("\n"),
    );
    // A line may be there by half, so none is parsed.
    const there = new Set(
      lines.map((line) => /^\{"type":"settle".*?"gateway_request_id":"([^"]+)"/.exec(line)?.[1]),
    );
    return replies.every((id) => there.has(id));
  }, "the lines of all replies so far");

async function proof(dir: string, completed: readonly string[]): Promise<void> {
  await command(dir, ["usage", "sync", "--once"]);
  assertBilled(dir, completed);
  assertEach(dir);
  const { code, found } = await audit(dir);
  assert.deepEqual([code, found.differences, found.proved.requests], [0, [], completed.length]);
}

describe("under a gateway that serves", { concurrency: 2 }, () => {
  for (const [what, script, then] of todays(STEPS, 4)) {
    it(`${what}: every reply is billed once, and the operator is told`, async (t) => {
      const at = folder();
      const dir = join(at, "data");
      const gw = await startGateway(
        t,
        demo({ data_dir: dir, usage: { sync_ms: 3_000 }, ...PACED }),
      );
      const load = clients(gw.url);
      await load.more(SOME);
      await runScript("cp -a data bk", at);
      const id = readFileSync(join(dir, "gateway-id"), "utf8");
      await load.more(SOME);
      await runScript(script, at);
      const restored = () =>
        gw.diagnostics.filter(({ event }) => event === "spend_segment_restored");
      await waitFor(() => restored().length > 0, "the event");
      if (then !== undefined) {
        await runScript(then, at);
        await waitFor(() => restored().length > 1, "the second event");
      }
      await load.more(SOME);
      await logged(dir, [...load.completed]);
      await load.end();
      await gw.gateway.close(0);
      // A sync may have met a copy that was half there.
      if (`${script} ${then}`.includes("cp "))
        assert.equal((await command(dir, ["books", "rebuild"])).code, 0);
      await proof(dir, load.completed);
      const [told = {}] = restored();
      assert.equal(told["level"], "error");
      assert.match(String(told["segment"]), /^\d{4}-\d\d-\d\d\.\d{4}\.jsonl$/);
      assert.ok(Number(told["bytes"]) > 0 && Number(told["lines"]) > 0, JSON.stringify(told));
      assert.match(String(told["detail"]), /cannot be put back/);
      assert.equal(readFileSync(join(dir, "gateway-id"), "utf8"), id);
      assert.deepEqual(
        readdirSync(join(dir, "spend")).filter((name) => !/\.jsonl$/.test(name)),
        [],
        "nothing is left over",
      );
    });
  }

  for (const script of todays(["rm -rf data/spend/*", `rm -rf data/* || true; ${COPY_ALL}`], 2)) {
    it(`of two workers, ${script}: every reply is billed once`, async (t) => {
      const at = folder();
      const dir = join(at, "data");
      const over = {
        data_dir: dir,
        usage: { sync_ms: 3_000 },
        server: { workers: 2 },
        ...PACED,
      };
      const program = launch(quickest(folder()), ["serve", "--config", configFile(demo(over))]);
      t.after(() => program.child.kill("SIGKILL"));
      const url = await within(program.address, "the gateway to listen");
      const load = clients(url);
      await load.more(SOME);
      await runScript("cp -a data bk", at);
      await load.more(SOME);
      await runScript(script, at);
      await waitFor(
        () => program.stderr().split('"spend_segment_restored"').length > 2,
        "the event of both workers",
      );
      await load.more(SOME);
      await logged(dir, [...load.completed]);
      await load.end();
      program.child.kill("SIGTERM");
      assert.equal((await within(program.ended, "the end")).code, 0);
      const rebuilt = await command(dir, ["books", "rebuild"]);
      assert.equal(rebuilt.code, 0, rebuilt.stderr);
      await proof(dir, load.completed);
    });
  }
});

describe("a segment that is put back", { concurrency: 2 }, () => {
  const about = {
    time: "2026-10-31T12:00:00.000Z",
    gateway_request_id: "r",
    account: "demo",
    key_id: "k",
    model_requested: "m",
    stream: false,
  };

  /** A spend log in a folder of its own, and what it tells. */
  async function log(t: TestContext) {
    const dir = folder();
    const told: Record<string, unknown>[] = [];
    const spend = createSpendLog({
      dir: join(dir, "spend"),
      segmentBytes: 1024 ** 2,
      clock: systemClock,
      diagnose: (event) => {
        told.push(event);
      },
    });
    await spend.start();
    t.after(() => spend.close());
    const request = async (n: number) => {
      const entry = spend.open(about);
      await entry.opened;
      const { spend_id } = entry.record;
      const settle = () => entry.settle(settleLine(n, { ...about, spend_id }) as never);
      return { spend_id, settle };
    };
    const ask = async (n: number) => (await request(n)).settle();
    return { dir, spend, told, request, ask, path: () => segmentPath(dir) };
  }
  const ids = (dir: string) => settles(dir).map(({ spend_id }) => spend_id as string);
  const outcomes = (told: readonly Record<string, unknown>[]) =>
    told.map(({ event, lines }) => [event, lines]);

  it("keeps another segment that took its name, and goes on in the next", async (t) => {
    const { dir, spend, told, ask, path } = await log(t);
    await ask(1);
    await ask(2);
    const [name = ""] = segments(dir);
    const other = textOf([openLine(7), settleLine(7)]);
    const at = path();
    rmSync(at);
    writeFileSync(at, other);
    await spend.restore();
    await ask(3);
    assert.equal(readFileSync(at, "utf8"), other);
    assert.equal(segments(dir).length, 2);
    assert.equal(new Set(ids(dir)).size, 4);
    assert.deepEqual(outcomes(told), [["spend_segment_restored", 4]]);
    assert.deepEqual([told[0]!["segment"], told[0]!["now"]], [name, segments(dir)[1]]);
  });

  it("has all lines again when what was put back is overwritten in its place by an older copy", async (t) => {
    const { dir, spend, told, ask, path } = await log(t);
    await ask(1);
    const older = readFileSync(path());
    await ask(2);
    rmSync(path());
    await spend.restore();
    await ask(3);
    writeFileSync(path(), older);
    await ask(4);
    await spend.restore();
    await ask(5);
    const found = ids(dir);
    assert.deepEqual([found.length, new Set(found).size, spendLines(dir).length], [5, 5, 10]);
    assert.equal(outcomes(told).length, 2);
  });

  it("corrects what another process has settled in an older copy", async (t) => {
    const { dir, spend, request, ask, path } = await log(t);
    await ask(1);
    const open = await request(2);
    const copy = join(folder(), "copy");
    cpSync(path(), copy);
    await open.settle();
    await ask(3);
    const at = path();
    for (const name of readdirSync(join(dir, "spend"))) rmSync(join(dir, "spend", name));
    cpSync(copy, at);
    writeFileSync(at.replace(/jsonl$/, "open"), "1");
    await recover({
      spendDir: join(dir, "spend"),
      currency: "USD",
      clock: systemClock,
      diagnose: () => undefined,
    });
    assert.equal(settles(dir).at(-1)!["status"], "interrupted");
    await spend.restore();
    const own = settles(dir).filter(({ spend_id }) => spend_id === open.spend_id);
    assert.deepEqual(
      own.map(({ status }) => status),
      ["interrupted", "completed"],
    );
    assert.equal(new Set(ids(dir)).size, 3);
  });

  it("tells what was overwritten in its place, of which there is no other copy", async (t) => {
    const { spend, told, ask, path } = await log(t);
    await ask(1);
    const { length } = readFileSync(path());
    writeFileSync(path(), "");
    await spend.restore();
    assert.deepEqual(
      told.map(({ event, level, bytes }) => [event, level, bytes]),
      [["spend_segment_overwritten", "error", length]],
    );
    appendFileSync(path(), "");
    await spend.restore();
    assert.equal(told.length, 1, "told once");
  });

  it("is there before the log is closed", async (t) => {
    const { dir, spend, ask, path } = await log(t);
    await ask(1);
    rmSync(path());
    await ask(2);
    await spend.close();
    assert.equal(new Set(ids(dir)).size, 2);
  });
});
