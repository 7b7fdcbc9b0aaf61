// What statements, budgets and audits say, against the sums of the matched requests of a phase.

import type { Findings } from "./findings.ts";
import type { House, Line, Statement } from "./house.ts";
import { addUp, amountOf, pico, sum } from "./money.ts";
import type { Match } from "./rule.ts";

const costOf = (matches: readonly Match[]): bigint => sum(matches.map(({ cost }) => cost));

/** What a line of a statement must say. */
function lineOf(matches: readonly Match[]): Line {
  const { prompt, hit, write, completion, reasoning } = addUp(matches.map((one) => one.counts));
  return {
    requests: matches.length,
    prompt_cache_hit_tokens: hit,
    prompt_cache_miss_tokens: prompt - hit,
    cache_write_tokens: write,
    completion_tokens: completion,
    reasoning_tokens: reasoning,
    currency: "USD",
    cost: amountOf(costOf(matches)),
  };
}

/** The requests of a statement as CSV: usage_id and cost of each. */
const rowsOf = (csv: string): string[] =>
  csv
    .split("\r\n")
    .slice(1, -1)
    .map((row) => row.replace(/^(\w+),.*,([\d.]+),USD,.*$/, "$1 $2"))
    .sort();

/** A bill is what these requests come to. */
function judgeBill(bill: Line, own: readonly Match[], what: string, findings: Findings): void {
  const modelOf = ({ entry: { settle } }: Match): string =>
    settle["model_served"] ?? settle["model_requested"];
  const models = [...new Set(own.map(modelOf))].sort();
  const lines = models.map((model) => ({
    model,
    ...lineOf(own.filter((match) => modelOf(match) === model)),
  }));
  findings.equal(bill["lines"], lines, what);
  findings.equal(bill["total"], lineOf(own), `${what}, the total`);
}

/** The requests whose records a gateway has. */
const recordedBy = (gateway: number, { isShared }: House, matches: readonly Match[]) =>
  matches.filter(({ entry }) => isShared || entry.gateway === gateway);

/** `matches`: of all requests whose records the gateway has. */
function judgeStatement(statement: Statement, matches: readonly Match[], findings: Findings): void {
  const { account, month, json, csv, sealed } = statement;
  const what = `statement of ${account}, ${month}`;
  const own = matches.filter(
    ({ asked, entry }) => asked.account === account && entry.day.startsWith(month),
  );
  judgeBill(json, own, what, findings);
  const rows = own.map(({ entry: { settle } }) => `${settle["spend_id"]} ${settle["cost"]}`);
  findings.equal(rowsOf(csv), rows.sort(), `${what}, as CSV`);
  if (!sealed) return;
  // It bills and proves what the gateway that has sealed it has served.
  const served = own.filter(({ entry }) => entry.gateway === 0);
  judgeBill(sealed.text["bill"], served, `${what}, the bill in the sealed one`, findings);
  const { ok, findings: found, key_stated, records } = sealed.verdict;
  const proof = [ok, found, key_stated, records];
  findings.equal(proof, [true, [], true, served.length], `seal verify of the ${what}`);
}

export function judgeStatements(house: House, matches: readonly Match[], findings: Findings): void {
  for (const statement of house.statements)
    judgeStatement(statement, recordedBy(statement.gateway, house, matches), findings);
  const stated = new Set(house.statements.map(({ account, month }) => `${account} ${month}`));
  for (const { asked, entry } of matches) {
    const name = `${asked.account} ${entry.day.slice(0, 7)}`;
    findings.check(stated.has(name), () => `there is no statement of ${name}`);
  }
}

/** What must be spent of a budget. */
function spentOf({ account, key_id, period, ends }: Line, matches: readonly Match[]): bigint {
  const length = { day: 10, month: 7, total: 0 }[period as "day" | "month" | "total"];
  // The period in which the budget was asked for ends there.
  const last = ends === null ? "" : new Date(Date.parse(ends) - 1).toISOString().slice(0, length);
  return costOf(
    matches.filter(
      ({ asked, entry }) =>
        (account === null ? asked.keyId === key_id : asked.account === account) &&
        entry.day.startsWith(last),
    ),
  );
}

/** Budgets by the books, and by the running gateways at rest. */
export function judgeBudgets(house: House, matches: readonly Match[], findings: Findings): void {
  function judgeAll(budgets: readonly Line[], from: string, counted = matches): void {
    for (const budget of budgets) {
      const what = `${from}, budget of ${budget["account"] ?? budget["key_id"]}`;
      const spent = spentOf(budget, counted);
      findings.equal(pico(budget["spent"]), spent, `${what}: spent`);
      findings.equal(budget["held"], "0", `${what}: held`);
      findings.equal(pico(budget["left"]), pico(budget["amount"]) - spent, `${what}: left`);
    }
  }
  for (const { gateway, shown } of house.budgets)
    judgeAll(
      shown["budgets"],
      `budget show of gateway ${gateway}`,
      recordedBy(gateway, house, matches),
    );
  for (const [gateway, { live }] of house.estates.entries())
    judgeAll(live, `/status of gateway ${gateway}`);
  const ofPurse = matches.filter(({ asked }) => asked.account === "purse");
  for (const day of new Set(ofPurse.map(({ entry }) => entry.day))) {
    const spent = costOf(ofPurse.filter(({ entry }) => entry.day === day));
    findings.check(
      house.purse === undefined || spent <= pico(house.purse),
      () => `the account purse has spent ${spent} pico-units of ${house.purse} on ${day}`,
    );
  }
  for (const { entry, asked, cost } of matches) {
    const { hold, spend_id } = entry.open;
    findings.check(
      hold === undefined || asked.maxTokens === undefined || cost <= pico(hold),
      () => `${spend_id} costs ${cost} pico-units, and only ${hold} was held`,
    );
  }
}

/** `audit` of each gateway: no difference, nothing held, and our own count and sum. */
export function judgeAudits(house: House, matches: readonly Match[], findings: Findings): void {
  for (const [gateway, { audit }] of house.estates.entries()) {
    const own = matches.filter(({ entry }) => entry.gateway === gateway);
    const cost = { USD: amountOf(costOf(own)) };
    const expected: Line = {
      ok: true,
      differences: [],
      in_flight: 0,
      held: "0",
      settled: own.length,
      recorded: own.length,
      cost_settled: cost,
      cost_recorded: cost,
    };
    const actual = Object.fromEntries(Object.keys(expected).map((name) => [name, audit[name]]));
    findings.equal(actual, expected, `audit of gateway ${gateway}`);
    findings.equal(audit["proved"].requests, own.length, `audit of gateway ${gateway}: proved`);
  }
}
