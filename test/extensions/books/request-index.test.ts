// The index of the usage records in files by request ids: every record is found by its id, whatever
// part of a month is indexed, merged, written anew, restored from a backup or torn.

import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createFileStore } from "../../../src/extensions/books/file-store/file-store.ts";
import {
  entriesOf,
  jsonTextIn,
  sortedBytes,
  ENTRY_BYTES,
} from "../../../src/extensions/books/request-index/entries.ts";
import {
  IndexNotReady,
  type UsageRecord,
  type UsageStore,
} from "../../../src/extensions/usage-records/index.ts";
import { usageRecord } from "../../../src/extensions/books/index.ts";
import type { SettleRecord } from "../../../src/extensions/books/index.ts";
import { settleLine, spendId } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { createRandom } from "../../support/random.ts";

const ACCOUNTS = ["acme", 'with "quotes" and \\', "Zürich"];
const TRICKY = ['"account":"acme"', "\\", 'ends with \\"', "a b/c?d"];

function recordOf(n: number, month = "2026-01"): UsageRecord {
  return usageRecord(
    settleLine(n, {
      time: `${month}-15T12:00:00.000Z`,
      gateway_request_id: n % 50 === 0 ? TRICKY[(n / 50) % TRICKY.length] : `request ${n}`,
      account: ACCOUNTS[n % ACCOUNTS.length],
    }) as SettleRecord,
  );
}

const add = (store: UsageStore, records: readonly UsageRecord[]): Promise<void> =>
  store.commit({ records, corrections: new Set(), put: [], drop: [] });

const runs = (dir: string): string[] =>
  existsSync(join(dir, "index")) ? readdirSync(join(dir, "index")).sort() : [];

/** Every record is found by its id and account, and by its id alone; no other one is. */
async function assertFound(
  store: UsageStore,
  records: readonly UsageRecord[],
  some = records,
): Promise<void> {
  for (const record of some) {
    const { gateway_request_id: requestId, account, usage_id } = record;
    const same = records.filter((other) => other.gateway_request_id === requestId);
    const found = await store.find({ requestId, account, limit: 10_000 });
    const own = same.filter((other) => other.account === account);
    assert.deepEqual(ids(found), ids(own), usage_id);
    assert.deepEqual(ids(await store.find({ requestId, limit: 10_000 })), ids(same), usage_id);
  }
  assert.deepEqual(await store.find({ requestId: "request", limit: 10 }), []);
  assert.deepEqual(await store.find({ requestId: "request 1", account: "nobody", limit: 10 }), []);
}
const ids = (records: readonly UsageRecord[]) => records.map(({ usage_id }) => usage_id).sort();

const seed = (Date.now() ^ process.pid) | 0;
const sample = (records: readonly UsageRecord[]) => {
  const { between } = createRandom(seed);
  return Array.from({ length: 40 }, () => records[between(0, records.length - 1)]!);
};
const found = async (store: UsageStore, records: readonly UsageRecord[]) => {
  for (const { gateway_request_id: requestId, account, usage_id } of sample(records)) {
    const all = await store.find({ requestId, account, limit: 10_000 });
    assert.ok(
      all.some((record) => record.usage_id === usage_id),
      `seed ${seed}: ${usage_id}`,
    );
  }
};

describe("the index of request ids", { concurrency: 4 }, () => {
  it("finds each of a few records, of which nothing is indexed", async () => {
    const dir = folder();
    const store = createFileStore(dir);
    const records = Array.from({ length: 120 }, (_, n) => recordOf(n));
    await add(store, records);
    assert.deepEqual(await store.maintain(), []);
    assert.deepEqual(runs(dir), []);
    await assertFound(store, records);
  });

  it("finds each of many, in parts that grow, and in one file when the month is over", async () => {
    const dir = folder();
    const store = createFileStore(dir);
    const records: UsageRecord[] = [];
    for (let part = 0; part < 12; part += 1) {
      const more = Array.from({ length: 700 }, (_, n) => recordOf(part * 700 + n));
      records.push(...more);
      await add(store, more);
      await store.maintain();
      await found(store, records);
      assert.ok(runs(dir).length <= 5, runs(dir).join());
    }
    await assertFound(store, records, records.slice(-60));
    const next = Array.from({ length: 700 }, (_, n) => recordOf(100_000 + n, "2026-02"));
    await add(store, next);
    for (let pass = 0; pass < 2; pass += 1) await store.maintain();
    // Nothing of it is left to be read line by line.
    const { size } = statSync(join(dir, "2026-01.jsonl"));
    const over = runs(dir).filter((name) => name.startsWith("2026-01"));
    assert.deepEqual(over, [`2026-01.0.0-${size}.ids`]);
    await found(store, [...records, ...next]);
    // Another process, which has not seen anything of it.
    await found(createFileStore(dir), [...records, ...next]);
  });

  it("is made anew if it is gone, torn, or of another file", async () => {
    const dir = folder();
    const records = Array.from({ length: 2_000 }, (_, n) => recordOf(n));
    const store = createFileStore(dir);
    await add(store, records);
    await store.maintain();
    const index = (name = runs(dir)[0]!) => join(dir, "index", name);
    const damages: Record<string, () => void> = {
      gone: () => rmSync(join(dir, "index"), { recursive: true }),
      torn: () => truncateSync(index(), 100),
      "of another file": () => {
        const bytes = readFileSync(index());
        bytes[10]! ^= 1;
        writeFileSync(index(), bytes);
      },
      "left half-written": () => writeFileSync(`${index()}.new`, "half"),
    };
    for (const [what, damage] of Object.entries(damages)) {
      damage();
      const restarted = createFileStore(dir);
      await found(restarted, records);
      assert.deepEqual(await restarted.maintain(), [], what);
      assert.ok(runs(dir).length > 0, what);
      await found(createFileStore(dir), records);
    }
  });

  it("follows a month that is written anew", async () => {
    const dir = folder();
    const store = createFileStore(dir);
    const records = Array.from({ length: 2_000 }, (_, n) => recordOf(n));
    await add(store, records);
    await store.maintain();
    const before = runs(dir);
    const changed = records.map((record, n) => (n % 7 === 0 ? { ...record, cost: "1" } : record));
    const counts = await store.rebuild(async function* () {
      yield changed;
    }, []);
    assert.equal(counts.changed, Math.ceil(2_000 / 7));
    await found(store, changed);
    await store.maintain();
    assert.ok(runs(dir).every((name) => !before.includes(name)));
    const [first] = await store.find({ requestId: "request 7", limit: 10 });
    assert.equal(first!.cost, "1");
  });

  it("says that it is not ready rather than read millions of lines", async () => {
    const dir = folder();
    const store = createFileStore(dir);
    const line = `${JSON.stringify(recordOf(1))}\n`;
    const count = Math.ceil((17 * 1024 * 1024) / line.length);
    await add(store, [recordOf(1)]);
    appendFileSync(join(dir, "2026-01.jsonl"), line.repeat(count - 1));
    const cursor = join(dir, "cursor.json");
    const json = JSON.parse(readFileSync(cursor, "utf8"));
    json.months["2026-01"] = Buffer.byteLength(line) * count;
    writeFileSync(cursor, JSON.stringify(json));
    await assert.rejects(store.find({ requestId: "request 1", limit: 1 }), IndexNotReady);
    while (runs(dir).length === 0 || !(await isReady(store))) await store.maintain();
    const latest = await store.find({ requestId: "request 1", limit: 500 });
    assert.equal(latest.length, 500, "of an id that was used for everything, the latest");
  });

  it("a folder that cannot be written is a fault of which the operator hears", async () => {
    const dir = folder();
    const store = createFileStore(dir);
    await add(
      store,
      Array.from({ length: 2_000 }, (_, n) => recordOf(n)),
    );
    writeFileSync(join(dir, "index"), "in the way");
    const [fault] = await store.maintain();
    assert.deepEqual([fault?.event, fault?.blocks], ["usage_index_not_written", false]);
  });
});

const isReady = (store: UsageStore): Promise<boolean> =>
  store.find({ requestId: "request 1", limit: 1 }).then(
    () => true,
    () => false,
  );

describe("entries", () => {
  it("are sorted, one for each line that is a record", () => {
    const text = `${[1, 2, 3].map((n) => JSON.stringify(recordOf(n))).join("\n")}\nno record\n`;
    const entries = sortedBytes(entriesOf(Buffer.from(text), 1_000));
    assert.equal(entries.length, 3 * ENTRY_BYTES);
    const parts = [0, 1, 2].map((at) => entries.subarray(at * ENTRY_BYTES, (at + 1) * ENTRY_BYTES));
    assert.deepEqual([...parts].sort(Buffer.compare), parts);
  });

  it("take the text of a member out of a line, quotes and all", () => {
    for (const text of [...TRICKY, ...ACCOUNTS, ""]) {
      const line = JSON.stringify({ usage_id: spendId(1), gateway_request_id: text, account: "x" });
      assert.equal(jsonTextIn(line, '"gateway_request_id":'), JSON.stringify(text));
      assert.equal(jsonTextIn(line, '"account":'), '"x"');
    }
    assert.equal(jsonTextIn('{"account":5}', '"account":'), undefined);
    assert.equal(jsonTextIn('{"account":"torn', '"account":'), undefined);
  });
});
