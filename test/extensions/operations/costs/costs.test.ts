// The cost of requests on the admin listener: sums, single records, the csv file, and everything
// about a request id. The responses are compared with the records of generated days.

import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { amountOf, pico } from "../../../../scripts/reconcile/money.ts";
import { makeStatement } from "../../../../src/extensions/money/billing/statement.ts";
import { createDays } from "../../../../src/extensions/money/days/days.ts";
import { createFileStore } from "../../../../src/extensions/money/file-store/file-store.ts";
import { adminOf, ask, assertRefused } from "../../../support/admin.ts";
import { openLine, settleLine, usageRecords, type Line } from "../../../support/books.ts";
import { configFor, startGateway } from "../../../support/gateway.ts";
import { suiteScope, type Scope } from "../../../support/scope.ts";
import { until, within } from "../../../support/wait.ts";
import { createScene, type Scene } from "../../../support/written-books.ts";
import { START, writeDays } from "../../money/usage/some-days.ts";

/** A gateway whose books already contain what `write` has written. */
async function withBooks(t: Scope, write: (at: Scene) => Promise<unknown>, over: object = {}) {
  const at = createScene({ now: START, recovers: false });
  await write(at);
  const { dir } = at;
  const config = configFor("http://127.0.0.1:1", ["m"], { data_dir: dir, ...over });
  const gw = await startGateway(t, config);
  return { dir, gw, get: (path: string) => ask(adminOf(gw), path) };
}

const groupOf = (record: Line, names: readonly string[]): string =>
  JSON.stringify(names.map((name) => record[name]));

const SUMMED = [
  ...["prompt_cache_hit_tokens", "prompt_cache_miss_tokens"],
  ...["completion_tokens", "reasoning_tokens"],
];

function assertSums(row: Line, records: readonly Line[]): void {
  const total = (name: string) => records.reduce((all, record) => all + record[name], 0);
  const cost = amountOf(records.reduce((all, record) => all + pico(record["cost"]), 0n));
  const figures = [row["requests"], row["cost"], ...SUMMED.map((name) => row[name])];
  assert.deepEqual(figures, [records.length, cost, ...SUMMED.map(total)]);
}

describe("the costs of requests", () => {
  const scope = suiteScope();
  let site: Awaited<ReturnType<typeof withBooks>>;
  before(async () => {
    site = await withBooks(scope, (at) => writeDays(at, 1_200));
  });

  it("sums of a month or a period equal the records exactly, highest cost first", async () => {
    const { dir, get } = site;
    const records: Line[] = usageRecords(dir).map((record) => ({
      ...record,
      day: record["ended_at"].slice(0, 10),
      provider: record["provider"] ?? "",
      key: record["key_id"],
    }));
    const [{ account }, { model }, { day }, { key }] = records.filter(({ day: each }) =>
      each.startsWith("2026-02"),
    ) as [Line, Line, Line, Line];
    const [from, to] = ["2026-01-30", "2026-02-02"];
    const isAsked = (query: Line, { day: each }: Line) =>
      query["month"] ? each.startsWith(query["month"]) : each >= from && each <= to;
    const filters: Line[] = [{}, { account }, { key }, { account, model, day }];
    const groupings = ["provider", "key", "day,account,model"];
    const queries = [{ month: "2026-02" }, { from, to }].flatMap((days) =>
      filters.flatMap((filter) => groupings.map((by) => ({ days, filter, by }))),
    );
    for (const { days, filter, by } of queries) {
      const fit = records
        .filter((record) => isAsked(days, record))
        .filter((record) => Object.keys(filter).every((name) => record[name] === filter[name]));
      const names = [...by.replaceAll("key", "key_id").split(","), "currency"];
      const groups = new Set(fit.map((record) => groupOf(record, names)));
      const query = new URLSearchParams({ ...days, ...filter, by });
      const { rows, count } = (await get(`/costs?${query}`)).body;
      assert.deepEqual([count, rows.length], [groups.size, Math.min(500, count)]);
      for (const row of rows.slice(0, 50)) {
        const ofRow = fit.filter((record) => groupOf(record, names) === groupOf(row, names));
        assertSums(row, ofRow);
      }
      const amounts: number[] = rows.map(({ cost }: Line) => Number(cost));
      assert.ok(amounts.every((cost, at) => at === 0 || cost <= amounts[at - 1]!));
    }
    const [, second] = (await get("/costs?month=2026-02&by=day")).body.rows;
    assert.deepEqual((await get("/costs?month=2026-02&by=day&skip=1")).body.rows[0], second);
    const store = createFileStore(join(dir, "usage"), createDays(join(dir, "days.jsonl")));
    const owed = await makeStatement(store, { account, month: "2026-02", currency: "USD" });
    for (const by of ["account", "currency"]) {
      const query = new URLSearchParams({ month: "2026-02", by, account });
      const { rows } = (await get(`/costs?${query}`)).body;
      const inDollars = rows.find(({ currency }: Line) => currency === "USD");
      assert.equal(inDollars.cost, owed.total.cost);
    }
    assert.deepEqual((await get("/costs?month=2025-02&by=model")).body, { rows: [], count: 0 });
  });

  it("single requests come in pages and as a file, and equal the records", async () => {
    const { dir, get } = site;
    const month = usageRecords(dir)
      .filter((record) => record["day"].startsWith("2026-02"))
      .map(({ details: _, log: __, ...record }) => record);
    const { account, model, day } = month[5]!;
    for (const filter of [{}, { model, account, day }] as Line[]) {
      const query = new URLSearchParams({ month: "2026-02", ...filter });
      const fit = month.filter((record) =>
        Object.entries(filter).every(([name, value]) => record[name] === value),
      );
      const pages: Line[] = [];
      for (let skip = 0; skip <= fit.length; skip += 100) {
        const { records } = (await get(`/usage?${query}&skip=${skip}`)).body;
        assert.ok(records.length <= 100);
        pages.push(...records);
      }
      assert.deepEqual(pages, fit);
      const csv = await get(`/usage.csv?${query}`);
      assert.equal(csv.text.split("\r\n").length, fit.length + 2);
      assert.ok(fit.every(({ usage_id }) => csv.text.includes(usage_id)));
      const name = `attachment; filename="usage-${filter["day"] ?? "2026-02"}.csv"`;
      assert.equal(csv.headers["content-disposition"], name);
    }
    const span = "from=2026-01-30&to=2026-02-02";
    const csv = await get(`/usage.csv?${span}`);
    assert.match(csv.headers["content-disposition"]!, /"usage-2026-01-30-to-2026-02-02\.csv"$/);
    const records = usageRecords(dir).filter(
      ({ ended_at }) => ended_at >= "2026-01-30" && ended_at < "2026-02-03",
    );
    assert.equal(csv.text.split("\r\n").length, records.length + 2);
    const [{ key_id, usage_id }] = records as [Line];
    const [first] = (await get(`/usage?${span}&key=${key_id}`)).body.records;
    assert.equal(first.usage_id, usage_id);
  });

  it("a page does not read earlier days", async (t) => {
    const { dir, get } = await withBooks(t, (at) => writeDays(at, 200));
    const page = "/usage?month=2026-02&skip=50";
    const { records } = (await get(page)).body;
    const early = join(dir, "usage", "2026-02-01.jsonl");
    writeFileSync(early, "x".repeat(statSync(early).size - 1).concat("\n"));
    assert.equal((await get("/usage?month=2026-02")).status, 503);
    assert.deepEqual([records.length, (await get(page)).body.records], [30, records]);
    assert.deepEqual((await get("/usage?month=2026-02&skip=80")).body.records, []);
  });

  it("an old request's attempts are found by its record's day, across midnight and across months", async (t) => {
    const { get } = await withBooks(t, async (at) => {
      // It began before midnight in the previous day's segment, and ended after midnight.
      const about = { time: "2026-01-31T23:59:59.900Z", gateway_request_id: "late" };
      const ended = { time: "2026-02-01T00:00:03.000Z", duration_ms: 3_100 };
      at.write("2026-01-30.0001.jsonl", openLine(1, about), settleLine(1, { ...about, ...ended }));
      const other = { ...about, gateway_request_id: "in time" };
      at.write("2026-01-31.0001.jsonl", openLine(2, other), settleLine(2, other));
    });
    for (const id of ["late", "in time"]) {
      const { records, spend } = (await get(`/trace?request_id=${encodeURIComponent(id)}`)).body;
      assert.deepEqual([records.length, spend.length, spend[0].attempts.length], [1, 1, 1], id);
    }
    const days = (await get("/costs?month=2026-02&by=day")).body.rows.map(({ day }: Line) => day);
    assert.deepEqual(days, ["2026-02-01"], "it is billed when it ended");
  });

  it("what is asked for wrongly is told, with the name of what is wrong", async (t) => {
    const { get } = await withBooks(t, async () => undefined);
    const month = "month=2026-01";
    for (const [path, param, message] of [
      ["/costs?by=day", "month", /is required/],
      ["/costs?month=2026-13&by=model", "month", /expected a month such as 2026-11/],
      ["/costs?month=2026-1&by=model", "month", /a month/],
      ["/costs?month=0000-01", "month", /a month/],
      [`/costs?${month}&by=colour`, "by", /a list of day, account, key, model and provider/],
      [`/costs?${month}&by=`, "by", /a list/],
      ["/costs?from=2026-01-01", "to", /is required with from/],
      ["/costs?from=2026-01-02&to=2026-01-01", "to", /is before from/],
      ["/costs?from=2020-01-01&to=2026-01-01", "to", /at most 800 days/],
      [`/costs?from=2026-01-01&to=2026-01-02&${month}`, "month", /not both/],
      [`/costs?${month}&by=day&day=2026-02-30`, "day", /a day such as/],
      [`/costs?${month}&by=day&skip=-1`, "skip", /a number/],
      [`/costs?${month}&account=%00`, "account", /a name/],
      [`/usage?${month}&what=1`, "what", /not a known field/],
      ["/usage", "month", /is required/],
      ["/usage.csv", "month", /is required/],
      ["/trace", "request_id", /is required/],
      ["/trace?request_id=", "request_id", /not empty/],
    ] as const) {
      const { status: code, body } = await get(path);
      assert.deepEqual([code, body.error.param], [400, param], path);
      assert.match(body.error.message, message, path);
    }
  });

  it("many requests with one id: as many as fit, each with its end", async (t) => {
    const same = { gateway_request_id: "same" };
    // Each one ends after the next one has begun.
    const lines = Array.from({ length: 620 }, (_, n) => [
      openLine(n, same),
      ...(n > 0 ? [settleLine(n - 1, same)] : []),
    ]);
    const { get } = await withBooks(t, async (at) =>
      at.write("2026-01-31.0001.jsonl", ...lines.flat(), settleLine(619, same)),
    );
    const { records, spend } = (await get("/trace?request_id=same")).body;
    assert.deepEqual([records.length, spend.length], [620, 500]);
    assert.ok(spend.every(({ type }: Line) => type === "settle"));
  });

  it("unreadable books are not the caller's error, and the response names the file", async (t) => {
    const usage = { sync_ms: 86_400_000 };
    const { dir, get } = await withBooks(t, (at) => writeDays(at, 100), { usage });
    const isSynced = async () => (await get("/status")).body.usage.lag_seconds !== null;
    await until(isSynced, "the first sync to be over");
    assert.equal((await get("/costs?from=2026-01-29&to=2026-02-02&by=day")).body.rows.length, 10);
    rmSync(join(dir, "usage", "2026-02-01.jsonl"));
    for (const path of ["/costs?month=2026-02", "/usage?month=2026-02"]) {
      const answer = await get(path);
      assertRefused(answer, 503, "server_overloaded");
      assert.match(answer.text, /The books cannot be read: .*2026-02-01\.jsonl/);
    }
  });

  it("a client that leaves during a file is not reported as a fault", async (t) => {
    const { gw, get } = await withBooks(t, (at) => writeDays(at, 6_000));
    const file = "/usage.csv?from=2026-01-29&to=2026-02-02";
    const req = http.get(adminOf(gw) + file, { agent: false });
    const [res] = await within(once(req, "response"), "the file to begin");
    await within(once(res, "data"), "its first bytes");
    res.pause();
    req.destroy();
    assert.equal((await get("/status")).status, 200);
    await within(gw.gateway.close(0), "the gateway to close");
    assert.ok(!gw.diagnostics.some(({ level }) => level === "error"));
  });
});
