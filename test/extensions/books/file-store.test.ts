// The usage store in files: what counts, what it adds up to, and months that are written anew.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type {
  Mark,
  UsageFilter,
  UsageRecord,
} from "../../../src/extensions/usage-records/index.ts";
import { formatCursor, parseCursor } from "../../../src/extensions/books/file-store/cursor.ts";
import { createFileStore } from "../../../src/extensions/books/file-store/file-store.ts";
import type { SettleRecord } from "../../../src/extensions/books/spend-log/records.ts";
import { usageRecord } from "../../../src/extensions/books/usage/usage-record.ts";
import { settleLine, spendId, type Line } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";

const record = (n: number, over: Line = {}): UsageRecord =>
  usageRecord(settleLine(n, over) as SettleRecord);
const february = { time: "2026-02-28T12:00:00.000Z" };
const mark = (position: number): Mark => ({
  segment: "2026-01-31.0001.jsonl",
  identity: spendId(1),
  position,
  tail: `tail ${position}`,
  recovered: false,
});

async function storeOf(records: readonly UsageRecord[]) {
  const dir = join(folder(), "usage");
  const store = createFileStore(dir);
  await store.commit({ records, corrections: new Set(), put: [], drop: [] });
  return { dir, store };
}

async function idsOf(store: ReturnType<typeof createFileStore>, filter: UsageFilter = {}) {
  const ids: string[] = [];
  for await (const batch of store.records(filter)) ids.push(...batch.map((each) => each.usage_id));
  return ids;
}

describe("cursor.json", () => {
  it("is read as it was written", () => {
    const cursor = {
      marks: [mark(1), mark(2), { ...mark(3), segment: "2025-01-01.0001.jsonl", identity: null }],
      months: new Map([["2026-01", 10]]),
      rewritten: new Map([["2026-01", 2]]),
      replacing: ["2026-01"],
    };
    const read = parseCursor(JSON.parse(formatCursor(cursor)));
    assert.deepEqual(read.marks[2], { ...cursor.marks[2], tail: "" });
    assert.deepEqual(
      { ...read, marks: read.marks.slice(0, 2) },
      {
        ...cursor,
        marks: cursor.marks.slice(0, 2),
      },
    );
  });

  it("counts as empty where something is missing or malformed", () => {
    const empty = { marks: [], months: new Map(), rewritten: new Map(), replacing: [] };
    assert.deepEqual(parseCursor({}), empty);
    assert.deepEqual(parseCursor({ segments: 1, months: null, replacing: "x" }), empty);
  });
});

describe("records", () => {
  const all = [
    record(1),
    record(2, { account: "beta", model_served: "n" }),
    record(3, { gateway_request_id: 'with "quotes"' }),
    record(4, february),
  ];

  it("come in the order of the months, and only those that match", async () => {
    const { store } = await storeOf([all[3]!, ...all.slice(0, 3)]);
    assert.deepEqual(await idsOf(store), [1, 2, 3, 4].map(spendId));
    assert.deepEqual(await idsOf(store, { account: "beta" }), [spendId(2)]);
    assert.deepEqual(await idsOf(store, { model: "n", month: "2026-01" }), [spendId(2)]);
    assert.deepEqual(await idsOf(store, { requestId: 'with "quotes"' }), [spendId(3)]);
    assert.deepEqual(await idsOf(store, { day: "2026-02-28" }), [spendId(4)]);
    assert.deepEqual(await idsOf(store, { month: "2026-03" }), []);
  });

  it("can be skipped, over the ends of months", async () => {
    const { store } = await storeOf(all);
    for (let skip = 0; skip <= 5; skip += 1)
      assert.deepEqual(await idsOf(store, { skip }), [1, 2, 3, 4].slice(skip).map(spendId));
  });

  it("stop when nobody waits for them", async () => {
    const { store } = await storeOf(all);
    const cancel = { aborted: true, reason: new Error("gone") };
    await assert.rejects(idsOf(store, { cancel }), { message: "gone" });
  });

  it("fail at a line that is none, or report it and go on", async () => {
    const { dir, store } = await storeOf(all.slice(0, 1));
    const file = join(dir, "2026-01.jsonl");
    const text = readFileSync(file, "utf8");
    const spoilt = `x${text.slice(1)}`;
    truncateSync(file, 0);
    appendFileSync(file, spoilt);
    await assert.rejects(idsOf(store), /holds a line that is no usage record: x/);
    const lines: string[] = [];
    const onUnreadable = (line: string): void => {
      lines.push(line);
    };
    assert.deepEqual(await idsOf(store, { onUnreadable }), []);
    assert.match(lines.join(), /^2026-01\.jsonl: "x/);
  });

  it("are found by their ids, in the month in which they ended", async () => {
    const { store } = await storeOf(all);
    assert.deepEqual([...(await store.holds([all[0]!, all[3]!]))].sort(), [1, 4].map(spendId));
    assert.deepEqual([...(await store.holds([{ ...all[0]!, ...february }]))], [spendId(1)]);
  });
});

describe("what does not count", () => {
  it("is not read, and is cut off by the next commit", async () => {
    const { dir, store } = await storeOf([record(1)]);
    appendFileSync(join(dir, "2026-01.jsonl"), "left by a sync that died\n");
    assert.deepEqual(await idsOf(store), [spendId(1)]);
    await store.commit({ records: [record(2)], corrections: new Set(), put: [], drop: [] });
    assert.deepEqual(await idsOf(store), [1, 2].map(spendId));
    assert.ok(!readFileSync(join(dir, "2026-01.jsonl"), "utf8").includes("died"));
  });

  it("less than what counts is a fault that blocks, and nothing is read or written", async () => {
    const { dir, store } = await storeOf([record(1)]);
    truncateSync(join(dir, "2026-01.jsonl"), 10);
    const faults = await store.inspect();
    assert.deepEqual(
      faults.map(({ event, blocks }) => [event, blocks]),
      [["usage_records_damaged", true]],
    );
    const change = { records: [record(2)], corrections: new Set<string>(), put: [], drop: [] };
    await assert.rejects(store.commit(change), /has 10 bytes, although \d+ bytes/);
    await assert.rejects(idsOf(store), /has 10 bytes/);
    await assert.rejects(store.sums({ month: "2026-01" }, ["model"]), /has 10 bytes/);
  });
});

describe("marks", () => {
  it("are added and removed with the records", async () => {
    const { store } = await storeOf([]);
    const none = { records: [], corrections: new Set<string>() };
    await store.commit({ ...none, put: [mark(1), mark(2)], drop: [] });
    await store.commit({ ...none, put: [mark(3)], drop: [mark(1)] });
    assert.deepEqual(await store.marks(), [mark(2), mark(3)]);
  });
});

describe("sums", () => {
  it("add up what has come since they were last asked for", async () => {
    const { store } = await storeOf([record(1), record(2, { account: "beta" })]);
    const requests = async () => {
      const sums = await store.sums({ month: "2026-01" }, ["account"]);
      return Object.fromEntries(sums.map((sum) => [sum.account, sum.requests]));
    };
    assert.deepEqual(await requests(), { acme: 1, beta: 1 });
    await store.commit({ records: [record(3)], corrections: new Set(), put: [], drop: [] });
    assert.deepEqual(await requests(), { acme: 2, beta: 1 });
  });

  it("begin anew when a month was written anew", async () => {
    const { store } = await storeOf([record(1, { status: "interrupted", cost: "0" })]);
    const cost = async () => (await store.sums({ month: "2026-01" }, ["model"]))[0]?.cost;
    assert.equal(await cost(), 0n);
    const corrected = record(1, { cost: "0.5" });
    const corrections = new Set([spendId(1)]);
    await store.commit({ records: [corrected], corrections, put: [], drop: [] });
    assert.equal(await cost(), 500_000_000_000n);
    assert.deepEqual(await idsOf(store), [spendId(1)]);
  });

  it("are grouped by each combination of the dimensions", async () => {
    const { store } = await storeOf([record(1), record(2, { currency: "EUR" }), record(3)]);
    const sums = await store.sums({ month: "2026-01", day: "2026-01-31" }, ["day", "currency"]);
    assert.deepEqual(sums.map(({ day, currency, requests }) => [day, currency, requests]).sort(), [
      ["2026-01-31", "EUR", 1],
      ["2026-01-31", "USD", 2],
    ]);
    assert.deepEqual(await store.sums({ month: "2026-01", account: "nobody" }, ["model"]), []);
  });
});

describe("rebuild", () => {
  const readSettled = (records: readonly UsageRecord[]) =>
    async function* () {
      if (records.length > 0) yield records;
    };

  it("adds, changes and removes until the months are what the spend log says", async () => {
    const { dir, store } = await storeOf([record(1, { cost: "9" }), record(2), record(2)]);
    const wanted = [record(1), record(2), record(3), record(4, february)];
    const counts = await store.rebuild(readSettled(wanted), [mark(1)]);
    assert.deepEqual(counts, { added: 2, changed: 1, removed: 1, unchanged: 1, left: 0 });
    assert.deepEqual((await idsOf(store)).sort(), [1, 2, 3, 4].map(spendId));
    assert.deepEqual(await store.marks(), [mark(1)]);
    const again = await createFileStore(dir).rebuild(readSettled(wanted), [mark(1)]);
    assert.deepEqual(again, { added: 0, changed: 0, removed: 0, unchanged: 4, left: 0 });
  });

  it("leaves records that the spend log does not reach, and those that know more than it", async () => {
    const older = record(1, { time: "2026-01-01T00:00:00.000Z" });
    const { store } = await storeOf([older, record(2)]);
    const interrupted = record(2, { status: "interrupted", cost: "0" });
    const counts = await store.rebuild(readSettled([interrupted]), []);
    assert.deepEqual(counts, { added: 0, changed: 0, removed: 0, unchanged: 0, left: 2 });
  });

  it("moves a record whose month was altered", async () => {
    const { store } = await storeOf([record(1, february)]);
    const counts = await store.rebuild(readSettled([record(1)]), []);
    assert.equal(counts.changed + counts.added, 1);
    assert.deepEqual(await idsOf(store, { month: "2026-01" }), [spendId(1)]);
  });
});
