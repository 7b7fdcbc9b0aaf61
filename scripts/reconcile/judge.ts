// Judges one phase: everything that was collected against the provider's ledger.

import { judgeRecords, readEntries } from "./books.ts";
import { createFindings, type Findings } from "./findings.ts";
import type { House } from "./house.ts";
import { matchAll } from "./match.ts";
import { judgeReceipts } from "./receipts.ts";
import type { Match } from "./rule.ts";
import { judgeSeals } from "./seals.ts";
import { judgeAudits, judgeBudgets, judgeStatements } from "./sums.ts";

export interface Judgement {
  readonly matches: readonly Match[];
  readonly comparisons: number;
  readonly violations: readonly string[];
}

/** The log, the records and the bills against what the clients and the provider saw. */
export function judgeBills(house: House, findings: Findings) {
  for (const complaint of house.complaints) findings.check(false, () => complaint);
  const entries = readEntries(house, findings);
  const matches = matchAll(house, entries, findings);
  judgeRecords(house, entries, findings);
  judgeStatements(house, matches, findings);
  return { entries, matches };
}

export function judge(house: House): Judgement {
  const findings = createFindings(house.phase);
  const { entries, matches } = judgeBills(house, findings);
  judgeSeals(house, entries, findings);
  if (!house.isReference) {
    judgeReceipts(house, entries, findings);
    judgeAudits(house, matches, findings);
    judgeBudgets(house, matches, findings);
  }
  return { matches, comparisons: findings.comparisons(), violations: findings.violations };
}
