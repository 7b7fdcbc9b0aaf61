// The lines of days.jsonl: `seal verify` proves their hashes and signatures and the heads that were
// taken; what they state of each day must be our own sum.

import type { Entry } from "./books.ts";
import type { Findings } from "./findings.ts";
import type { House } from "./house.ts";
import { amountOf, pico, sum } from "./money.ts";

export function judgeSeals(house: House, entries: readonly Entry[], findings: Findings): void {
  for (const [gateway, { days, verify }] of house.estates.entries()) {
    const own = entries.filter((entry) => entry.gateway === gateway);
    for (const line of days) {
      const ofDay = own.filter(({ day }) => day === line["day"]);
      const cost = amountOf(sum(ofDay.map(({ settle }) => pico(settle["cost"]))));
      const expected = [ofDay.length, ofDay.length > 0 ? { USD: cost } : {}];
      findings.equal([line["records"], line["cost"]], expected, `the line of ${line["day"]}`);
    }
    // All days of the run are over and closed.
    const closed = days.map(({ day }) => day);
    const open = own.filter(({ day }) => !closed.includes(day)).map(({ log }) => log);
    findings.equal(open, [], `what no line of gateway ${gateway} has`);
    if (house.isReference) continue;
    const { ok, findings: found, key_stated } = verify;
    findings.equal([ok, found, key_stated], [true, [], true], `seal verify of gateway ${gateway}`);
  }
}
