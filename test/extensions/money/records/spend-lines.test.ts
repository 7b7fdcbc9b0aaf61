// The settle line of a request: its content, its parsing, and its times.

import assert from "node:assert/strict";
import { it } from "node:test";
import type { Settlement } from "../../../../src/core/ledger/ledger.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import {
  isoTime,
  parseSpendLine,
  parseUsageLine,
  settleLineOf,
  usageRecord,
  type OpenLine,
  type SettleLine,
} from "../../../../src/extensions/money/records/index.ts";
import { COUNTED, openLine, PRICE, settleLine } from "../../../support/books.ts";
import { NOON, SETTLEMENT } from "../../../support/spend-log.ts";

const OPEN = openLine(1, { time: "2026-01-31T11:59:58.500Z" }) as OpenLine;
const attempt = { model: "m", provider: "lab", outcome: "timeout", duration_ms: 3 };
const counts = { prompt: 20, completion: 7, cacheHit: 8, reasoning: 3 };
const settled = { attempts: [attempt], firstTokenMs: 100, cost: "0.000089000007" };
/** Asserts that a settle line has exactly these members, in order. */
function assertSettle(over: Partial<Settlement>, expected: object, now = NOON): void {
  const text = JSON.stringify(
    settleLineOf(OPEN, {
      ...{ ...SETTLEMENT, ...settled, usage: makeUsage(counts), endedAt: now },
      ...over,
    }),
  );
  const { prices, ...about } = settleLine(1, { time: isoTime(NOON), attempts: [attempt] });
  const notes = "notes" in over && { notes: over.notes };
  const line = { ...about, ...notes, prices, ...expected };
  assert.equal(text, JSON.stringify(line));
  assert.deepEqual(parseSpendLine(text), JSON.parse(text));
}

it("writes settle lines", () => {
  assertSettle({}, {});
  assertSettle({ price: PRICE, notes: ['"n"', "two"] }, { prices: PRICE });
  assertSettle(
    { httpStatus: null, firstTokenMs: null },
    { http_status: null, first_token_ms: null },
  );
  const usage = makeUsage({ ...counts, cacheWrite: 3, cacheWrite1h: 1 });
  assertSettle(
    { usage },
    { usage: { ...COUNTED, cache_write_tokens: 3, cache_write_1h_tokens: 1 } },
  );
  const attempts = [attempt, { ...attempt, status: 500, path: "/v1", detail: "\n", share: {} }];
  assertSettle({ attempts }, { attempts });
});

it("states that a request ended when it began, if the clock was set back", () => {
  assertSettle({}, { time: OPEN.time, duration_ms: 0 }, NOON - 86_400_000);
});

it("reads no line from which no record can be made", () => {
  for (const over of [
    { duration_ms: Number.MAX_SAFE_INTEGER },
    { usage: { ...COUNTED, cache_write_tokens: "3" } },
    { usage: { ...COUNTED, cache_write_1h_tokens: -1 } },
    { currency: null },
  ])
    assert.equal(parseSpendLine(JSON.stringify({ ...settleLine(1), ...over })), undefined);
});

it("reads no record that lacks what bills and searches need", () => {
  const log = { segment: "2026-01-31.0001.jsonl", line: 2, sha256: "" };
  const record = usageRecord(settleLine(1) as SettleLine, "2026-01-31", log);
  assert.equal(parseUsageLine(JSON.stringify(record))?.usage_id, record.usage_id);
  for (const over of [
    { usage_id: 1 },
    { started_at: "2026-01-31" },
    { ended_at: "2026-01-31" },
    { day: "2026-01" },
    { log: { ...log, segment: 1 } },
    { log: { ...log, line: -1 } },
  ])
    assert.equal(parseUsageLine(JSON.stringify({ ...record, ...over })), undefined);
});

it("writes times", () => {
  for (const ms of [NOON, NOON + 1, NOON + 99, NOON + 100, NOON + 999, NOON + 1_000, NOON, 0, 0.7])
    assert.equal(isoTime(ms), new Date(ms).toISOString());
  assert.equal(isoTime(-1), new Date(-1).toISOString());
  assert.throws(() => isoTime(Number.NaN), RangeError);
  assert.equal(isoTime(NOON), "2026-01-31T12:00:00.000Z");
});
