// Judges what the gateway and its commands print (statements, budgets, audits, receipts, and the
// lines of days.jsonl) against the entries of the spend log, which were judged before.

import { countsOf, type Entry, factsOf } from "./books.ts";
import type { Evidence, JsonObject, Statement } from "./evidence.ts";
import type { Findings, JudgedPhase } from "./judge.ts";
import type { Match } from "./judge-request.ts";
import { addUp, amountOf, pico, sum } from "./money.ts";
import { CAPPED } from "./plan.ts";

const costOf = (matches: readonly Match[]): bigint => sum(matches.map(({ cost }) => cost));

/** The expected line of a statement about these requests. */
function lineOf(matches: readonly Match[]): JsonObject {
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

/** The usage_id and cost in each row of a statement as CSV. */
const rowsOf = (csv: string): string[] =>
  csv
    .split("\r\n")
    .slice(1, -1)
    .map((row) => row.replace(/^(\w+),.*,([\d.]+),USD,.*$/, "$1 $2"))
    .sort();

/** A bill must have a line for each model, and a total. `own`: the requests that it must bill. */
function judgeBill(bill: JsonObject, own: readonly Match[], what: string, findings: Findings) {
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

/** The requests whose usage records a gateway has. */
const recordedBy = (gateway: number, { isShared }: Evidence, matches: readonly Match[]) =>
  matches.filter(({ entry }) => isShared || entry.gateway === gateway);

/** `matches`: the requests whose records the gateway has. */
function judgeStatement(statement: Statement, matches: readonly Match[], findings: Findings): void {
  const { account, month, json, csv, sealed } = statement;
  const what = `statement of ${account}, ${month}`;
  const own = matches.filter(
    ({ request, entry }) => request.account === account && entry.day.startsWith(month),
  );
  judgeBill(json, own, what, findings);
  const rows = own.map(({ entry: { settle } }) => `${settle["spend_id"]} ${settle["cost"]}`);
  findings.equal(rowsOf(csv), rows.sort(), `${what}, as CSV`);
  if (!sealed) return;
  // A sealed statement bills and proves what the gateway that sealed it served.
  const served = own.filter(({ entry }) => entry.gateway === 0);
  judgeBill(sealed.text["bill"], served, `${what}, the bill in the sealed one`, findings);
  const { ok, findings: found, key_stated, records } = sealed.verification;
  const proof = [ok, found, key_stated, records];
  findings.equal(proof, [true, [], true, served.length], `seal verify of the ${what}`);
}

/** There must be a correct statement for each account and month. */
export function judgeStatements({ evidence, matches, findings }: JudgedPhase): void {
  for (const statement of evidence.statements)
    judgeStatement(statement, recordedBy(statement.gateway, evidence, matches), findings);
  const stated = new Set(evidence.statements.map(({ account, month }) => `${account} ${month}`));
  for (const { request, entry } of matches) {
    const name = `${request.account} ${entry.day.slice(0, 7)}`;
    findings.check(stated.has(name), () => `there is no statement of ${name}`);
  }
}

/** The amount that a budget must state as spent. */
function spentOf({ account, key_id, period, ends }: JsonObject, matches: readonly Match[]): bigint {
  const length = { day: 10, month: 7, total: 0 }[period as "day" | "month" | "total"];
  // The current period of the budget ends there. A total has no end, and counts everything.
  const current =
    ends === null ? "" : new Date(Date.parse(ends) - 1).toISOString().slice(0, length);
  const isOf = ({ request }: Match): boolean =>
    account === null ? request.keyId === key_id : request.account === account;
  return costOf(matches.filter((match) => isOf(match) && match.entry.day.startsWith(current)));
}

/** Judges budgets as `budget show` computes them from the books, and as running gateways do. */
export function judgeBudgets({ evidence, matches, findings }: JudgedPhase): void {
  function judgeAll(budgets: readonly JsonObject[], from: string, counted = matches): void {
    for (const budget of budgets) {
      const what = `${from}, budget of ${budget["account"] ?? budget["key_id"]}`;
      const spent = spentOf(budget, counted);
      findings.equal(pico(budget["spent"]), spent, `${what}: spent`);
      findings.equal(budget["held"], "0", `${what}: held`);
      findings.equal(pico(budget["left"]), pico(budget["amount"]) - spent, `${what}: left`);
    }
  }
  for (const { gateway, shown } of evidence.budgets) {
    const recorded = recordedBy(gateway, evidence, matches);
    judgeAll(shown["budgets"], `budget show ${shown["account"]}`, recorded);
  }
  for (const [gateway, { live }] of evidence.gateways.entries())
    judgeAll(live, `/status of gateway ${gateway}`);
  const { cappedBudget } = evidence;
  const capped = matches.filter(({ request }) => request.account === CAPPED);
  for (const day of new Set(capped.map(({ entry }) => entry.day))) {
    const spent = costOf(capped.filter(({ entry }) => entry.day === day));
    findings.check(
      cappedBudget === undefined || spent <= pico(cappedBudget),
      () => `the account ${CAPPED} has spent ${spent} pico-units of ${cappedBudget} on ${day}`,
    );
  }
  for (const { entry, request, cost } of matches) {
    const { hold, spend_id } = entry.open;
    findings.check(
      hold === undefined || request.maxTokens === undefined || cost <= pico(hold),
      () => `${spend_id} costs ${cost} pico-units, and only ${hold} was held`,
    );
  }
}

/** `audit` of each gateway must find no difference and nothing held, and our count and sum. */
export function judgeAudits({ evidence, matches, findings }: JudgedPhase): void {
  for (const [gateway, { audit }] of evidence.gateways.entries()) {
    const own = matches.filter(({ entry }) => entry.gateway === gateway);
    const cost = { USD: amountOf(costOf(own)) };
    const expected: JsonObject = {
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
 * Each line of days.jsonl must state our own count and sum of its day. `seal verify` checks the
 * hashes, the signatures and the heads that were taken earlier.
 */
export function judgeSeals({ evidence, entries, findings }: JudgedPhase): void {
  for (const [gateway, { days, verify }] of evidence.gateways.entries()) {
    const own = entries.filter((entry) => entry.gateway === gateway);
    for (const line of days) {
      const ofDay = own.filter(({ day }) => day === line["day"]);
      const cost = amountOf(sum(ofDay.map(({ settle }) => pico(settle["cost"]))));
      const expected = [ofDay.length, ofDay.length > 0 ? { USD: cost } : {}];
      findings.equal([line["records"], line["cost"]], expected, `the line of ${line["day"]}`);
    }
    // The evidence was collected after all days of the run had been closed.
    const closed = days.map(({ day }) => day);
    const open = own.filter(({ day }) => !closed.includes(day)).map(({ log }) => log);
    findings.equal(open, [], `what no line of gateway ${gateway} has`);
    if (evidence.isReference) continue;
    const { ok, findings: found, key_stated } = verify;
    findings.equal([ok, found, key_stated], [true, [], true], `seal verify of gateway ${gateway}`);
  }
}

/** The fields of a receipt that the books have by the same names. */
const RECEIPT_FIELDS = [
  ...["spend_id", "request_id", "status", "error_code", "finish_reason", "currency", "cost"],
  ...["usage_source", "started_at", "ended_at", "first_token_ms", "model_requested", "notes"],
];

/** The prices in a receipt, in the form of the spend log. */
function pricesOf(prices: JsonObject | null): JsonObject | null {
  const stated = Object.entries(prices ?? {}).filter(([, price]) => price !== null);
  return prices && Object.fromEntries(stated.map(([name, price]) => [name, Number(price)]));
}

/** What a receipt bills for an attempt. */
const billedOf = ({ model, usage, prices = null, cost }: JsonObject) =>
  usage ? [model, countsOf(usage), pricesOf(prices), cost] : [model];
/** What the spend log bills for an attempt. */
const shareOf = ({ model, share }: JsonObject) =>
  share ? [model, countsOf(share), share.prices ?? null, share.cost] : [model];

/** The seal that a receipt must state. The answering gateway only knows its own days. */
function sealOf({ gateways }: Evidence, { gateway, day }: Entry, answering: number): unknown {
  const line = gateways[gateway]!.days.find((each) => each["day"] === day);
  return line && gateway === answering ? { day, number: line["number"] } : null;
}

/** Each receipt must explain what its request cost. Other accounts must not see it. */
export function judgeReceipts({ evidence, entries, findings }: JudgedPhase): void {
  const byId = new Map(entries.map((entry) => [entry.open["gateway_request_id"], entry]));
  for (const { account, id, gateway, status, body } of evidence.receipts) {
    const what = `receipt of ${account} for ${id}`;
    const entry = byId.get(id);
    if (entry?.open["account"] !== account) {
      findings.equal([status, body["error"]?.code], [404, "unknown_url"], what);
      continue;
    }
    const [receipt, ...more]: JsonObject[] = body["data"] ?? [];
    findings.equal([status, more], [200, []], what);
    if (!receipt) continue;
    const facts = factsOf(entry);
    for (const name of RECEIPT_FIELDS)
      findings.equal(receipt[name], facts[name], `${what}, ${name}`);
    const { settle } = entry;
    findings.equal(countsOf(receipt["usage"]), countsOf(settle["usage"]), `${what}, usage`);
    findings.equal(pricesOf(receipt["prices"]), facts["prices"] ?? null, `${what}, prices`);
    const billed = receipt["attempts"].map(billedOf);
    findings.equal(billed, settle["attempts"].map(shareOf), `${what}, attempts`);
    findings.equal(receipt["seal"], sealOf(evidence, entry, gateway), `${what}, the seal`);
  }
}
