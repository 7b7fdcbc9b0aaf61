// Receipts against the spend log: each says what its request came to, every request with the id is
// there, and no other account sees them.

import { countsOf, type Entry } from "./books.ts";
import { closedDays } from "./days.ts";
import type { Findings } from "./findings.ts";
import type { House, Line } from "./house.ts";
import { pico } from "./money.ts";

const PRICES = [
  "input_cache_hit",
  "input_cache_miss",
  "input_cache_write",
  "input_cache_write_1h",
  "output",
];
/** Prices in millionths. */
const pricesOf = (prices: Line | null | undefined): unknown =>
  prices && PRICES.map((name) => Math.round(Number(prices[name] ?? -1) * 1e6));

/** What was charged: tokens, prices and cost. */
const chargeOf = (usage: Line, prices: Line | null, cost: string): unknown => [
  countsOf(usage, usage["cache_write_1h_tokens"] ?? 0),
  pricesOf(prices),
  pico(cost),
];

/** An attempt, with what it was charged if several were. */
const attemptOf = ({ model, outcome, duration_ms }: Line, charge: Line | undefined): unknown => [
  model,
  outcome === "completed" ? "ok" : outcome,
  duration_ms,
  charge && chargeOf(charge["usage"] ?? charge, charge["prices"], charge["cost"]),
];

/** What the receipt and the settle line have by the same name. */
const SAME = [
  "spend_id",
  "model_requested",
  "status",
  "error_code",
  "finish_reason",
  "usage_source",
  "currency",
];

const receiptOf = (receipt: Line): unknown => [
  ...SAME.map((name) => receipt[name]),
  receipt["request_id"],
  receipt["model"],
  receipt["started_at"],
  receipt["ended_at"],
  receipt["usage"].total_tokens,
  chargeOf(receipt["usage"], receipt["prices"], receipt["cost"]),
  receipt["attempts"].map((each: Line) => attemptOf(each, each["usage"] && each)),
];

const expectedOf = ({ open, settle }: Entry): unknown => [
  ...SAME.map((name) => settle[name]),
  settle["gateway_request_id"],
  settle["provider"] === null ? null : settle["model_served"],
  open["time"],
  settle["time"],
  settle["usage"].total_tokens,
  chargeOf(settle["usage"], settle["prices"], settle["cost"]),
  settle["attempts"].map((each: Line) => attemptOf(each, each["share"])),
];

/** The line of days.jsonl that proves a receipt: the gateway `asked` knows only its own. */
function sealOf({ estates }: House, { gateway, day }: Entry, asked: number): unknown {
  if (gateway !== asked) return null;
  const line = closedDays(estates[gateway]!.days).find((each) => each["day"] === day);
  return line ? { day, number: line["number"] } : null;
}

export function judgeReceipts(house: House, entries: readonly Entry[], findings: Findings): void {
  const byId = new Map<string, Entry[]>();
  for (const entry of entries) {
    const name = JSON.stringify([entry.open["account"], entry.open["gateway_request_id"]]);
    byId.set(name, [...(byId.get(name) ?? []), entry]);
  }
  for (const { account, id, gateway, isLate, status, body } of house.receipts) {
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
        findings.equal(seal, sealOf(house, entry, gateway), `${what}, the seal`);
    }
  }
}
