// What statements, budgets, audits, receipts and the lines of days say, against the matched requests
// of a phase.

import { countsOf, type Entry, factsOf } from "./books.ts";
import type { House, Line, Statement } from "./house.ts";
import type { Findings } from "./judge.ts";
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

/** What a budget must state as spent. */
function spentOf({ account, key_id, period, ends }: Line, matches: readonly Match[]): bigint {
  const length = { day: 10, month: 7, total: 0 }[period as "day" | "month" | "total"];
  // The period in which the budget was asked for ends there.
  const last = ends === null ? "" : new Date(Date.parse(ends) - 1).toISOString().slice(0, length);
  const isOf = ({ asked }: Match): boolean =>
    account === null ? asked.keyId === key_id : asked.account === account;
  return costOf(matches.filter((match) => isOf(match) && match.entry.day.startsWith(last)));
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
  for (const { gateway, shown } of house.budgets) {
    const recorded = recordedBy(gateway, house, matches);
    judgeAll(shown["budgets"], `budget show ${shown["account"]}`, recorded);
  }
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

/**
 * The lines of days.jsonl: `seal verify` proves their hashes and signatures and the heads that were
 * taken; what they state of each day must be our own sum.
 */
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

/** The fields of a receipt that the books have under the same names. */
const STATED = [
  ...["spend_id", "request_id", "status", "error_code", "finish_reason", "currency", "cost"],
  ...["usage_source", "started_at", "ended_at", "first_token_ms", "model_requested", "notes"],
];

/** The prices that a receipt states, as the spend log has them. */
function settingOf(prices: Line | null): Line | null {
  const stated = Object.entries(prices ?? {}).filter(([, price]) => price !== null);
  return prices && Object.fromEntries(stated.map(([name, price]) => [name, Number(price)]));
}

/** What a receipt bills of one attempt, and the share of it that the spend log has. */
const billedOf = ({ model, usage, prices = null, cost }: Line) =>
  usage ? [model, countsOf(usage), settingOf(prices), cost] : [model];
const shareOf = ({ model, share }: Line) =>
  share ? [model, countsOf(share), share.prices ?? null, share.cost] : [model];

/** The seal that a receipt must state. The gateway that was asked knows only its own days. */
function sealOf({ estates }: House, { gateway, day }: Entry, asked: number): unknown {
  const line = estates[gateway]!.days.find((each) => each["day"] === day);
  return line && gateway === asked ? { day, number: line["number"] } : null;
}

/**
 * Receipts: each says what its request came to, with the tokens and prices that its cost is made of,
 * and no other account sees it.
 */
export function judgeReceipts(house: House, entries: readonly Entry[], findings: Findings): void {
  const byId = new Map(entries.map((entry) => [entry.open["gateway_request_id"], entry]));
  for (const { account, id, gateway, status, body } of house.receipts) {
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
    for (const name of STATED) findings.equal(receipt[name], facts[name], `${what}, ${name}`);
    const { settle } = entry;
    findings.equal(countsOf(receipt["usage"]), countsOf(settle["usage"]), `${what}, usage`);
    findings.equal(settingOf(receipt["prices"]), facts["prices"] ?? null, `${what}, prices`);
    const billed = receipt["attempts"].map(billedOf);
    findings.equal(billed, settle["attempts"].map(shareOf), `${what}, attempts`);
    findings.equal(receipt["seal"], sealOf(house, entry, gateway), `${what}, the seal`);
  }
}
