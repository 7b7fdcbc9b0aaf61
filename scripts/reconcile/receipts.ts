// Receipts against the spend log: each says what its request came to, every request with the id is
// there, and no other account sees them.

import { countsOf, type Entry } from "./books.ts";
import { closedDays } from "./days.ts";
import type { Findings } from "./findings.ts";
import type { House, Line } from "./house.ts";
import { pico } from "./money.ts";

/** Millionths of a price; null stays. */
const millionths = (price: unknown): string | null =>
  price === undefined || price === null ? null : String(Math.round(Number(price) * 1e6));

const pricesOf = (prices: Line | null): unknown =>
  prices && [
    millionths(prices["input_cache_hit"]),
    millionths(prices["input_cache_miss"]),
    millionths(prices["input_cache_write"]),
    millionths(prices["input_cache_write_1h"]),
    millionths(prices["output"]),
  ];

/** The attempts of a receipt: with what each was charged, if several were. */
const shownAttempts = (receipt: Line): unknown =>
  receipt["attempts"].map(({ model, outcome, duration_ms, usage, prices, cost }: Line) => [
    model,
    outcome,
    duration_ms,
    usage && [countsOf(usage, usage.cache_write_1h_tokens ?? 0), pico(cost)],
    prices && pricesOf(prices),
  ]);

const settledAttempts = (settle: Line): unknown =>
  settle["attempts"].map(({ model, outcome, duration_ms, share }: Line) => [
    model,
    outcome === "completed" ? "ok" : outcome,
    duration_ms,
    share && [countsOf(share, share.cache_write_1h_tokens ?? 0), pico(share.cost)],
    share?.prices && pricesOf(share.prices),
  ]);

const receiptOf = (receipt: Line): unknown => [
  receipt["spend_id"],
  receipt["request_id"],
  receipt["model_requested"],
  receipt["model"],
  receipt["status"],
  receipt["error_code"],
  receipt["finish_reason"],
  receipt["started_at"],
  receipt["ended_at"],
  shownAttempts(receipt),
  countsOf(receipt["usage"], receipt["usage"].cache_write_1h_tokens ?? 0),
  receipt["usage"].total_tokens,
  receipt["usage_source"],
  pricesOf(receipt["prices"]),
  pico(receipt["cost"]),
  receipt["currency"],
];

const expectedOf = ({ open, settle }: Entry): unknown => [
  settle["spend_id"],
  settle["gateway_request_id"],
  settle["model_requested"],
  settle["provider"] === null ? null : settle["model_served"],
  settle["status"],
  settle["error_code"],
  settle["finish_reason"],
  open["time"],
  settle["time"],
  settledAttempts(settle),
  countsOf(settle["usage"], settle["usage"].cache_write_1h_tokens ?? 0),
  settle["usage"].total_tokens,
  settle["usage_source"],
  pricesOf(settle["prices"]),
  pico(settle["cost"]),
  settle["currency"],
];

/** The line of days.jsonl that proves a receipt. */
function sealOf({ estates }: House, { gateway, day }: Entry): unknown {
  const line = closedDays(estates[gateway]!.days).find((each) => each["day"] === day);
  return line ? { day, number: line["number"] } : null;
}

export function judgeReceipts(house: House, entries: readonly Entry[], findings: Findings): void {
  const byId = new Map<string, Entry[]>();
  for (const entry of entries) {
    const name = JSON.stringify([entry.open["account"], entry.open["gateway_request_id"]]);
    byId.set(name, [...(byId.get(name) ?? []), entry]);
  }
  for (const { account, id, isLate, status, body } of house.receipts) {
    const own = byId.get(JSON.stringify([account, id])) ?? [];
    const what = `receipts of ${account} for ${id}`;
    if (own.length === 0) {
      findings.equal([status, body["error"]?.code], [404, "unknown_url"], what);
      continue;
    }
    const sort = (list: any[]) => list.sort(([a], [b]) => (a < b ? -1 : 1));
    const receipts: Line[] = body["data"] ?? [];
    findings.equal(status, 200, what);
    findings.equal(sort(receipts.map(receiptOf)), sort(own.map(expectedOf)), what);
    for (const { spend_id, seal } of receipts) {
      const entry = own.find(({ open }) => open["spend_id"] === spend_id);
      // When the first receipts were asked for, the last day was open.
      if (entry && (isLate || seal !== null))
        findings.equal(seal, sealOf(house, entry), `${what}, the seal`);
    }
  }
}
