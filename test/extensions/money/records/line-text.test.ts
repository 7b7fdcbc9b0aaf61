// The lines of the spend log are what JSON.stringify() makes of the records, and times what
// toISOString() makes of them.

import assert from "node:assert/strict";
import { it } from "node:test";
import {
  isoTime,
  openText,
  settleText,
  type OpenRecord,
  type SettleRecord,
} from "../../../../src/extensions/money/records/index.ts";
import { openLine, PRICE, settleLine } from "../../../support/books.ts";

const HOSTILE = [
  'a "quoted" \\ text',
  "line\nend\u0000\u2028",
  "Çelik 李 😀",
  "\ud800 alone",
  "",
  "\u007f",
];
const attempt = { model: "m", provider: "lab", outcome: "timeout", duration_ms: 3 };

const assertOpen = (over: object) => {
  const record = openLine(1, over) as OpenRecord;
  assert.equal(openText(record), JSON.stringify(record));
};
const assertSettle = (over: object) => {
  const record = settleLine(1, over) as SettleRecord;
  assert.equal(settleText(record), JSON.stringify(record));
};

it("writes open lines", () => {
  assertOpen({});
  assertOpen({ stream: true, hold: "0.5" });
  assertOpen({ hold: undefined });
  for (const text of HOSTILE)
    assertOpen({ gateway_request_id: text, account: text, key_id: text, model_requested: text });
});

it("writes settle lines", () => {
  assertSettle({});
  // Prices are the same object in many records.
  for (const prices of [PRICE, PRICE, { ...PRICE, input_cache_hit: undefined }, null])
    assertSettle({ prices });
  assertSettle({ http_status: null, first_token_ms: null, error_code: "timeout", cost: "0" });
  const { usage } = settleLine(1);
  assertSettle({ usage: { ...usage, cache_write_tokens: 3, cache_write_1h_tokens: 0 } });
  assertSettle({ usage: { ...usage, cache_write_tokens: undefined } });
  assertSettle({ attempts: [] });
  assertSettle({ attempts: [attempt, { ...attempt, status: 500, path: "/v1", detail: "\n" }] });
  assertSettle({ attempts: [attempt, { ...attempt, share: { cost: "1" } }] });
  for (const text of HOSTILE) {
    assertSettle({ model_served: text, provider: text, error_code: text, finish_reason: text });
    assertSettle({ attempts: [{ ...attempt, model: text, provider: text, outcome: text }] });
  }
});

it("writes notes before the prices, as settleRecord() has them", () => {
  const { prices, ...rest } = settleLine(1);
  const record = { ...rest, notes: ['"n"', "two"], prices } as unknown as SettleRecord;
  assert.equal(settleText(record), JSON.stringify(record));
});

it("writes times", () => {
  const noon = Date.parse("2026-01-31T12:00:00.000Z");
  for (const ms of [noon, noon + 1, noon + 99, noon + 100, noon + 999, noon + 1_000, noon, 0, 0.7])
    assert.equal(isoTime(ms), new Date(ms).toISOString());
  assert.equal(isoTime(-1), new Date(-1).toISOString());
  assert.throws(() => isoTime(Number.NaN), RangeError);
  assert.equal(isoTime(noon), "2026-01-31T12:00:00.000Z");
});
