// Sums over the matched requests of a phase, by the provider's ledger, and what statements, budgets
// and audits say against them.

import { type Findings, inOrder } from "./findings.ts";
import type { House, Line, Statement } from "./house.ts";
import type { Match } from "./match.ts";
import { amountOf, type Counts, pico, sum } from "./money.ts";

const costOf = (matches: readonly Match[]): bigint =>
  sum(matches.map(({ verdict }) => verdict.cost));

/** What a line of a statement must say. */
function lineOf(matches: readonly Match[]): Line {
  const add = (pick: (counts: Counts) => number) =>
    matches.reduce((total, { verdict }) => total + pick(verdict.counts), 0);
  return {
    requests: matches.length,
    prompt_cache_hit_tokens: add(({ hit }) => hit),
    prompt_cache_miss_tokens: add(({ prompt, hit }) => prompt - hit),
    cache_write_tokens: add(({ write }) => write),
    completion_tokens: add(({ completion }) => completion),
    reasoning_tokens: add(({ reasoning }) => reasoning),
    currency: "USD",
    cost: amountOf(costOf(matches)),
  };
}

/** The fields of a line of CSV. */
const fieldsOf = (line: string): string[] =>
  [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)]
    .map(([, field = ""]) => field)
    .map((field) => (field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field));

/** The requests of a statement as CSV: usage_id and cost of each. */
function rowsOf(csv: string): string[] {
  const [head = "", ...rows] = csv.trimEnd().split("\r\n");
  const names = fieldsOf(head);
  const [id, cost, account] = ["usage_id", "cost", "account"].map((name) => names.indexOf(name));
  return rows
    .map(fieldsOf)
    .map((fields) => `${fields[id!]} ${fields[account!]} ${pico(fields[cost!] ?? "")}`)
    .sort();
}

/** A bill is what these requests come to. */
function judgeLines(bill: Line, own: readonly Match[], what: string, findings: Findings): void {
  const byModel = new Map<string, Match[]>();
  for (const match of own) {
    const { model_served, model_requested } = match.entry.settle;
    const model = model_served ?? model_requested;
    byModel.set(model, [...(byModel.get(model) ?? []), match]);
  }
  const models = [...byModel.keys()].sort();
  const lines = models.map((model) => ({ model, ...lineOf(byModel.get(model)!) }));
  findings.equal(inOrder(bill["lines"]), inOrder(lines), what);
  findings.equal(inOrder(bill["total"]), inOrder(lineOf(own)), `${what}, the total`);
}

/** A sealed statement bills and proves what its gateway has served. */
function judgeSealed(
  { sealed }: Statement,
  all: readonly Match[],
  what: string,
  findings: Findings,
): void {
  if (!sealed) return;
  const { text, verdict, prefix } = sealed;
  const own = all.filter(({ entry }) => entry.open["spend_id"].startsWith(prefix));
  judgeLines(text["bill"], own, `${what}, the bill in the sealed one`, findings);
  const proof = [verdict["ok"], verdict["findings"], verdict["key_stated"], verdict["records"]];
  findings.equal(proof, [true, [], true, own.length], `seal verify of the ${what}`);
}

function judgeStatement(statement: Statement, matches: readonly Match[], findings: Findings): void {
  const { account, month, json, csv } = statement;
  const what = `statement of ${account}, ${month}`;
  const own = matches.filter(
    (match) => match.asked.account === account && match.entry.day.startsWith(month),
  );
  judgeLines(json, own, what, findings);
  const rows = own.map(
    ({ entry, verdict: { cost } }) => `${entry.open["spend_id"]} ${account} ${cost}`,
  );
  findings.equal(rowsOf(csv), rows.sort(), `${what}, as CSV`);
  judgeSealed(statement, own, what, findings);
}

export function judgeStatements(house: House, matches: readonly Match[], findings: Findings): void {
  for (const statement of house.statements) judgeStatement(statement, matches, findings);
  const stated = new Set(house.statements.map(({ account, month }) => `${account} ${month}`));
  for (const match of matches) {
    const name = `${match.asked.account} ${match.entry.day.slice(0, 7)}`;
    findings.check(stated.has(name), () => `there is no statement of ${name}`);
  }
}

/** What must be spent of a budget, by the matched requests. */
function spentOf(budget: Line, matches: readonly Match[]): bigint {
  const { account, key_id, period, ends } = budget;
  const start = { day: 10, month: 7, total: 0 }[period as "day" | "month" | "total"];
  // The period in which the budget was asked for ends there.
  const last = ends === null ? "" : new Date(Date.parse(ends) - 1).toISOString().slice(0, start);
  return costOf(
    matches.filter(
      (match) =>
        (account === null ? match.asked.keyId === key_id : match.asked.account === account) &&
        match.entry.day.startsWith(last),
    ),
  );
}

function judgeBudget(
  budget: Line,
  matches: readonly Match[],
  findings: Findings,
  what: string,
): void {
  const spent = pico(budget["spent"]);
  findings.equal(spent, spentOf(budget, matches), `${what}: spent`);
  findings.equal(budget["held"], "0", `${what}: held`);
  findings.equal(pico(budget["left"]), pico(budget["amount"]) - spent, `${what}: left`);
}

/** Budgets by the books, and by the running gateways at rest. */
export function judgeBudgets(house: House, matches: readonly Match[], findings: Findings): void {
  for (const [account, { budgets }] of house.budgets)
    for (const budget of budgets)
      judgeBudget(budget, matches, findings, `budget show ${account}, ${budget.key_id ?? "all"}`);
  house.estates.forEach(({ live }, gateway) => {
    for (const budget of live) {
      const name = budget["account"] ?? budget["key_id"];
      judgeBudget(budget, matches, findings, `/status of gateway ${gateway}, budget of ${name}`);
    }
  });
  const ofPurse = matches.filter(({ asked }) => asked.account === "purse");
  for (const day of new Set(ofPurse.map(({ entry }) => entry.day))) {
    const spent = costOf(ofPurse.filter(({ entry }) => entry.day === day));
    findings.check(
      spent <= pico(house.purse),
      () => `the account purse has spent ${spent} pico-units of ${house.purse} on ${day}`,
    );
  }
  for (const { entry, asked, verdict } of matches) {
    const { hold, spend_id } = entry.open;
    if (hold === undefined || asked.maxTokens === undefined) continue;
    findings.check(
      verdict.cost <= pico(hold),
      () => `${spend_id} costs ${verdict.cost} pico-units, and only ${hold} was held`,
    );
  }
}

/** `audit` of each gateway: no difference, nothing held, and our own count and sum. */
export function judgeAudits(house: House, matches: readonly Match[], findings: Findings): void {
  house.estates.forEach(({ audit }, gateway) => {
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
  });
}
