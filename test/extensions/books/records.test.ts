// Lines of the spend log, and the usage records that are made of them.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Settlement } from "../../../src/core/ledger/ledger.ts";
import { NO_USAGE } from "../../../src/core/ledger/meter.ts";
import { USAGE_COLUMNS } from "../../../src/extensions/usage-records/index.ts";
import {
  parseSpendLine,
  settleRecord,
  type OpenRecord,
  type SettleRecord,
} from "../../../src/extensions/books/spend-log/records.ts";
import {
  bucketOf,
  fingerprint,
  parseUsageLine,
  recordText,
  usageIdIn,
  usageRecord,
} from "../../../src/extensions/books/usage/usage-record.ts";
import { COUNTED, openLine, settleLine, spendId } from "../../support/books.ts";

const settlement: Settlement = {
  status: "failed",
  httpStatus: 502,
  errorCode: "upstream_error",
  finishReason: null,
  attempts: [],
  firstTokenMs: null,
  modelServed: null,
  provider: null,
  usage: NO_USAGE.usage,
  usageSource: "none",
  cost: "0",
  currency: "USD",
};
const open = openLine(1) as OpenRecord;
const startedAt = Date.parse(open.time);

describe("settleRecord", () => {
  it("has the fields of every settle line, in their order", () => {
    const record = settleRecord(open, startedAt + 1_500, settlement);
    assert.deepEqual(Object.keys(record), Object.keys(settleLine(1)));
    assert.deepEqual([record.duration_ms, record.spend_id], [1_500, open.spend_id]);
  });

  it("never ends before it began, even if the wall clock was set back", () => {
    const record = settleRecord(open, startedAt - 60_000, settlement);
    assert.deepEqual([record.time, record.duration_ms], [open.time, 0]);
  });
});

describe("parseSpendLine", () => {
  it("reads both kinds of lines", () => {
    for (const line of [openLine(1), settleLine(1)])
      assert.deepEqual(parseSpendLine(JSON.stringify(line)), line);
  });

  const unreadable: Record<string, object | string | null> = {
    "no JSON": "once upon a time",
    null: null,
    "another type": openLine(1, { type: "note" }),
    "no account": openLine(1, { account: undefined }),
    "a time that is none": openLine(1, { time: "soon" }),
    "a cost that is a number": settleLine(1, { cost: 0.5 }),
    "a cost with too many decimals": settleLine(1, { cost: "0.1234567890123" }),
    "a negative duration": settleLine(1, { duration_ms: -1 }),
    "cache writes that are no count": settleLine(1, {
      usage: { ...COUNTED, cache_write_tokens: -1 },
    }),
    "a count that is no integer": settleLine(1, { usage: { prompt_tokens: 1.5 } }),
  };
  for (const [name, line] of Object.entries(unreadable)) {
    it(`returns undefined for ${name}`, () => {
      const text = typeof line === "string" ? line : JSON.stringify(line);
      assert.equal(parseSpendLine(text), undefined);
    });
  }
});

describe("usageRecord", () => {
  const settle = settleLine(1) as SettleRecord;

  it("has the columns in their order, and the beginning from the duration", () => {
    const record = usageRecord(settle);
    assert.deepEqual(Object.keys(record), [...USAGE_COLUMNS, "details"]);
    assert.deepEqual([record.started_at, record.ended_at], [open.time, settle.time]);
  });

  it("names the model that served or, if none did, the one that the client named", () => {
    const line = { ...settle, model_requested: "auto" };
    assert.equal(usageRecord({ ...line, model_served: "m" }).model, "m");
    assert.equal(usageRecord({ ...line, model_served: null }).model, "auto");
  });

  it("can be read back from its line, and its id without parsing", () => {
    const record = usageRecord(settle);
    const line = JSON.stringify(record);
    assert.deepEqual(parseUsageLine(line), record);
    assert.equal(usageIdIn(line), spendId(1));
  });

  it("states what was written to a cache, also of lines that do not count it", () => {
    const written = { ...settle, usage: { ...settle.usage, cache_write_tokens: 5 } };
    assert.equal(usageRecord(written).cache_write_tokens, 5);
    const record = usageRecord(settle);
    assert.equal(record.cache_write_tokens, 0);
    const { cache_write_tokens: _, details: __, ...earlier } = record;
    assert.deepEqual(parseUsageLine(JSON.stringify(earlier)), {
      ...earlier,
      cache_write_tokens: 0,
    });
    assert.equal(
      recordText(record),
      JSON.stringify(Object.values(earlier)),
      "the text of earlier versions, of which there are sums",
    );
    assert.equal(parseUsageLine(JSON.stringify({ ...record, cache_write_tokens: "5" })), undefined);
  });

  it("is not read from a line in which something billed is missing", () => {
    for (const column of ["usage_id", "cost", "currency", "ended_at", "prompt_tokens"]) {
      const { [column]: _, ...rest } = { ...usageRecord(settle) } as Record<string, unknown>;
      assert.equal(parseUsageLine(JSON.stringify(rest)), undefined, column);
    }
  });

  it("has another text and another fingerprint if any column is another", () => {
    const record = usageRecord(settle);
    for (const column of USAGE_COLUMNS) {
      const changed = { ...record, [column]: "changed" };
      assert.notEqual(recordText(changed), recordText(record), column);
      assert.notEqual(fingerprint(changed), fingerprint(record), column);
    }
  });

  it("is in the bucket of the last four digits of its id", () => {
    const record = usageRecord(settle);
    assert.equal(bucketOf({ ...record, usage_id: "sp_0000ffff" }), 0xffff);
    assert.equal(bucketOf({ ...record, usage_id: "no digits" }), 0);
  });
});
