// Five days of requests with everything that a line may contain, and filters of their records.

import assert from "node:assert/strict";
import type { UsageFilter, UsageRecord } from "../../../../src/extensions/money/records/index.ts";
import type { Line } from "../../../support/books.ts";
import { createRandom } from "../../../support/random.ts";
import { DAY_MS, request, type Scene } from "../../../support/written-books.ts";

/** The start of the clock of these books. */
export const START = "2026-01-29T00:00:00.000Z";
const ACCOUNTS = ["acme", 'say "hi"', "acme\\", "a".repeat(300), "ö"];
const PRICES = { input_cache_miss: 1e-7, zeta: 2, alpha: 1.5, input_cache_hit: 0.1 };
const SHARE = {
  ...{ total_tokens: 3, prompt_tokens: 2, cost: "0.0500", prices: PRICES },
  aaa: { z: 1, b: 1e21 },
};
const ATTEMPTS = [
  { model: "m", provider: "lab", outcome: "failed", duration_ms: 0.5 },
  { model: "n", provider: "lab", outcome: "completed", duration_ms: 1, share: SHARE },
];

/**
 * Writes the requests of two processes, and leaves the last day open. `linesOf`: the lines of a
 * request that ends at a given time.
 */
export async function writeDays(
  at: Scene,
  requests: number,
  linesOf = (n: number, time: string, over: Line): readonly Line[] => request(n, time, time, over),
): Promise<void> {
  const { between, pick } = createRandom(5);
  const midnight = (day: number): number => Date.parse(START) + day * DAY_MS;
  let n = 0;
  for (let day = 0; day < 5; day += 1) {
    for (let round = 0; round < 4; round += 1) {
      for (let count = 0; count < requests / 20; count += 1) {
        const ended = new Date(midnight(day) + between(0, DAY_MS - 1)).toISOString();
        n += 1;
        const lines = linesOf(n, ended, {
          account: pick(ACCOUNTS),
          key_id: `key ${between(1, 3)}`,
          model_served: pick(["m", "n", null]),
          provider: pick(["lab", "other", null]),
          currency: pick(["USD", "EUR"]),
          cost: pick(["0", "0.10", "0.1", "12345678901234567890", `0.${between(1, 999_999)}`]),
          gateway_request_id: `"quoted" ${between(1, requests / 2)} %_\\ é`,
          usage: { ...request(0, ended)[1]["usage"], cache_write_tokens: between(0, 5) },
          error_code: pick([null, "x"]),
          finish_reason: pick([null, "stop"]),
          prices: pick([null, PRICES]),
          ...(between(0, 1) === 1 && { notes: ["b", "a"] }),
          attempts: ATTEMPTS,
        });
        at.write(`2026-01-29.000${between(1, 2)}.jsonl`, ...lines);
      }
      await at.pass();
    }
    if (day < 4) await at.passUntil(new Date(midnight(day + 1) + 60_000).toISOString());
  }
  assert.equal(at.closed().length, 4);
}

/** Filters, and the records that they match. */
export const FILTERS: readonly (readonly [UsageFilter, (record: UsageRecord) => boolean])[] = [
  [{}, () => true],
  [{ month: "2026-01" }, ({ day }) => day < "2026-02"],
  [{ day: "2026-01-31" }, ({ day }) => day === "2026-01-31"],
  [{ from: "2026-01-30", to: "2026-01-31" }, ({ day }) => /-3[01]$/.test(day)],
  [{ from: "2026-02-02" }, ({ day }) => day >= "2026-02-02"],
  [{ month: "2027-01" }, () => false],
  ...ACCOUNTS.map(
    (name) => [{ account: name }, ({ account }: UsageRecord) => account === name] as const,
  ),
  [{ account: "acm" }, () => false],
  [{ account: "ö", model: "n" }, ({ account, model }) => account === "ö" && model === "n"],
  [{ key_id: "key 2" }, ({ key_id }) => key_id === "key 2"],
  [{ provider: "lab" }, ({ provider }) => provider === "lab"],
  [{ provider: "" }, ({ provider }) => provider === null],
];
