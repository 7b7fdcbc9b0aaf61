// Receipts against the spend log: each says what its request came to, every request with the id is
// there, and no other account sees them.

import { type Entry, recordOf } from "./books.ts";
import { closedDays } from "./days.ts";
import { type Findings, inOrder } from "./findings.ts";
import type { House, Line } from "./house.ts";
import { amountOf, pico } from "./money.ts";

/** Prices per million tokens as exact decimal numbers. */
const pricesOf = (prices: Line | null | undefined): unknown => {
  const exact = (price: number | undefined): string | undefined =>
    price === undefined ? undefined : amountOf(pico(price.toFixed(6)));
  return (
    prices && {
      input_cache_hit: exact(prices["input_cache_hit"]) ?? null,
      input_cache_miss: exact(prices["input_cache_miss"]),
      input_cache_write: exact(prices["input_cache_write"]) ?? null,
      input_cache_write_1h: exact(prices["input_cache_write_1h"]),
      output: exact(prices["output"]),
    }
  );
};

function attemptOf({ model, outcome, duration_ms, share }: Line): unknown {
  const attempt = { model, outcome: outcome === "completed" ? "ok" : outcome, duration_ms };
  if (!share) return attempt;
  const { cost, prices, ...usage } = share;
  return { ...attempt, usage, prices: pricesOf(prices), cost };
}

/** The receipt of a request, without the line that proves it. */
function receiptOf(entry: Entry): Line {
  const { settle } = entry;
  const record = recordOf(entry);
  return {
    request_id: record["gateway_request_id"],
    spend_id: record["usage_id"],
    model_requested: settle["model_requested"],
    model: record["provider"] === null ? null : record["model"],
    status: record["status"],
    error_code: settle["error_code"] ?? null,
    finish_reason: settle["finish_reason"] ?? null,
    started_at: record["started_at"],
    first_token_ms: settle["first_token_ms"] ?? null,
    ended_at: record["ended_at"],
    attempts: settle["attempts"].map(attemptOf),
    usage: { cache_write_tokens: 0, ...settle["usage"] },
    usage_source: settle["usage_source"],
    prices: pricesOf(settle["prices"]),
    cost: record["cost"],
    currency: record["currency"],
    notes: settle["notes"],
  };
}

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
    const inOneOrder = (list: readonly Line[]) =>
      list.map(inOrder).sort((a: any, b: any) => (a.spend_id < b.spend_id ? -1 : 1));
    const receipts: Line[] = body["data"] ?? [];
    const unsealed = receipts.map(({ seal, ...receipt }) => receipt);
    findings.equal(status, 200, what);
    findings.equal(inOneOrder(unsealed), inOneOrder(own.map(receiptOf)), what);
    for (const { spend_id, seal } of receipts) {
      const entry = own.find(({ open }) => open["spend_id"] === spend_id);
      // When the first receipts were asked for, the last day was open.
      if (entry && (isLate || seal !== null))
        findings.equal(seal, sealOf(house, entry, gateway), `${what}, the seal`);
    }
  }
}
