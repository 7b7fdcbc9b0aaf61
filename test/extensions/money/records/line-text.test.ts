// The lines of the spend log are what JSON.stringify() makes of the records, and times what
// toISOString() makes of them.

import assert from "node:assert/strict";
import { it } from "node:test";
import type { Settlement } from "../../../../src/core/ledger/ledger.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import {
  isoTime,
  openText,
  parseSpendLine,
  settleText,
  type OpenRecord,
} from "../../../../src/extensions/money/records/index.ts";
import { openLine, PRICE } from "../../../support/books.ts";

const HOSTILE = [
  'a "quoted" \\ text',
  "line\nend\u0000\u2028",
  "Çelik 李 😀",
  "\ud800 alone",
  "",
  "\u007f",
];
const NOON = Date.parse("2026-01-31T12:00:00.000Z");
const OPEN = openLine(1, { time: "2026-01-31T11:59:58.500Z" }) as OpenRecord;
const attempt = { model: "m", provider: "lab", outcome: "timeout", duration_ms: 3 };
const counts = { prompt: 20, completion: 7, cacheHit: 8, reasoning: 3 };
const SETTLEMENT: Settlement = {
  status: "completed",
  httpStatus: 200,
  errorCode: null,
  finishReason: "stop",
  attempts: [attempt],
  firstTokenMs: 100,
  modelServed: "m",
  provider: "lab",
  usage: makeUsage(counts),
  usageSource: "provider",
  cost: "0.000089000007",
  currency: "USD",
};

const assertOpen = (over: object) => {
  const record = openLine(1, over) as OpenRecord;
  assert.equal(openText(record), JSON.stringify(record));
};

/** Asserts that a settle line is JSON as JSON.stringify() writes it, and says this too. */
function assertSettle(over: Partial<Settlement>, expected: object, open = OPEN, now = NOON): void {
  const text = settleText(open, now, { ...SETTLEMENT, ...over });
  const { type: _, hold: __, stream: ___, ...about } = open;
  assert.equal(
    text,
    JSON.stringify({
      type: "settle",
      ...about,
      time: "2026-01-31T12:00:00.000Z",
      model_served: "m",
      provider: "lab",
      status: "completed",
      http_status: 200,
      error_code: null,
      finish_reason: "stop",
      attempts: [attempt],
      usage: USAGE,
      usage_source: "provider",
      cost: "0.000089000007",
      currency: "USD",
      first_token_ms: 100,
      duration_ms: 1_500,
      ...("notes" in over && { notes: over.notes }),
      prices: null,
      ...expected,
    }),
  );
  assert.deepEqual(parseSpendLine(text), JSON.parse(text));
}

const USAGE = {
  prompt_tokens: 20,
  completion_tokens: 7,
  total_tokens: 27,
  prompt_cache_hit_tokens: 8,
  prompt_cache_miss_tokens: 12,
  reasoning_tokens: 3,
};

it("writes open lines", () => {
  assertOpen({});
  assertOpen({ stream: true, hold: "0.5" });
  assertOpen({ hold: undefined });
  for (const text of HOSTILE)
    assertOpen({ gateway_request_id: text, account: text, key_id: text, model_requested: text });
});

it("writes settle lines", () => {
  assertSettle({}, {});
  // Prices are the same object in many records.
  for (const price of [PRICE, PRICE, { ...PRICE, input_cache_hit: undefined }])
    assertSettle({ price }, { prices: price });
  assertSettle(
    { httpStatus: null, firstTokenMs: null, cost: "0" },
    {
      http_status: null,
      first_token_ms: null,
      cost: "0",
    },
  );
  const usage = makeUsage({ ...counts, cacheWrite: 3, cacheWrite1h: 1 });
  assertSettle({ usage }, { usage: { ...USAGE, cache_write_tokens: 3, cache_write_1h_tokens: 1 } });
  for (const attempts of [
    [],
    [attempt, { ...attempt, status: 500, path: "/v1", detail: "\n" }],
    [attempt, { ...attempt, share: { cost: "1" } }],
  ])
    assertSettle({ attempts }, { attempts });
  assertSettle({ notes: ['"n"', "two"], price: PRICE }, { prices: PRICE });
  for (const text of HOSTILE) {
    const names = { gateway_request_id: text, account: text, key_id: text, model_requested: text };
    const attempts = [{ ...attempt, model: text, provider: text, outcome: text }];
    assertSettle(
      { modelServed: text, provider: text, errorCode: text, finishReason: text, attempts },
      { model_served: text, provider: text, error_code: text, finish_reason: text, attempts },
      { ...OPEN, ...names },
    );
  }
});

it("writes that a request ended when it began, if the clock was set back", () => {
  assertSettle({}, { time: OPEN.time, duration_ms: 0 }, OPEN, NOON - 86_400_000);
});

it("writes times", () => {
  const noon = Date.parse("2026-01-31T12:00:00.000Z");
  for (const ms of [noon, noon + 1, noon + 99, noon + 100, noon + 999, noon + 1_000, noon, 0, 0.7])
    assert.equal(isoTime(ms), new Date(ms).toISOString());
  assert.equal(isoTime(-1), new Date(-1).toISOString());
  assert.throws(() => isoTime(Number.NaN), RangeError);
  assert.equal(isoTime(noon), "2026-01-31T12:00:00.000Z");
});
