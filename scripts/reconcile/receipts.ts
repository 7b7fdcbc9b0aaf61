// Receipts against the spend log: each says what its request came to, with the tokens and prices that
// its cost is made of, and no other account sees it.

import { countsOf, type Entry, factsOf } from "./books.ts";
import type { Findings } from "./findings.ts";
import type { House, Line } from "./house.ts";
import { priceSetting } from "./money.ts";

/** What a receipt says by the names of the books. */
const STATED = ["spend_id", "request_id", "status", "error_code", "finish_reason", "currency"];
const AMOUNTS = ["cost", "usage_source", "started_at", "ended_at", "first_token_ms"];
const REST = ["model_requested", "notes"];

/** The prices that a receipt states, as the spend log has them. */
const settingOf = (prices: Line | null): object | null =>
  prices &&
  priceSetting({
    hit: prices["input_cache_hit"] ?? undefined,
    miss: prices["input_cache_miss"],
    write: prices["input_cache_write"] ?? undefined,
    write1h: prices["input_cache_write_1h"],
    output: prices["output"],
  });

/** What a receipt bills of one attempt, and the share of it that the spend log has. */
const billedOf = ({ model, usage, prices = null, cost }: Line) =>
  usage ? [model, countsOf(usage), settingOf(prices), cost] : [model];
const shareOf = ({ model, share }: Line) =>
  share ? [model, countsOf(share), share.prices ?? null, share.cost] : [model];

/** The line of days.jsonl that proves it: the gateway that was asked knows only its own. */
function sealOf({ estates }: House, { gateway, day }: Entry, asked: number): unknown {
  const line = estates[gateway]!.days.find((each) => each["day"] === day);
  return line && gateway === asked ? { day, number: line["number"] } : null;
}

export function judgeReceipts(house: House, entries: readonly Entry[], findings: Findings): void {
  const byId = new Map(entries.map((entry) => [entry.open["gateway_request_id"], entry]));
  for (const { account, id, gateway, isLate, status, body } of house.receipts) {
    const what = `receipt of ${account} for ${id}`;
    const entry = byId.get(id);
    if (entry?.open["account"] !== account) {
      findings.equal([status, body["error"]?.code], [404, "unknown_url"], what);
      continue;
    }
    const [receipt, ...more]: Line[] = body["data"] ?? [];
    findings.equal([status, more], [200, []], what);
    if (!receipt) continue;
    const facts = factsOf(entry);
    for (const name of [...STATED, ...AMOUNTS, ...REST])
      findings.equal(receipt[name], facts[name], `${what}, ${name}`);
    findings.equal(countsOf(receipt["usage"]), countsOf(entry.settle["usage"]), `${what}, usage`);
    findings.equal(settingOf(receipt["prices"]), facts["prices"] ?? null, `${what}, prices`);
    const [billed, shares] = [
      receipt["attempts"].map(billedOf),
      entry.settle["attempts"].map(shareOf),
    ];
    findings.equal(billed, shares, `${what}, attempts`);
    // When the first receipts were asked for, the last day was open.
    if (isLate || receipt["seal"] !== null)
      findings.equal(receipt["seal"], sealOf(house, entry, gateway), `${what}, the seal`);
  }
}
