// Collects what the gateway says of a phase: receipts and budgets while it runs, its files when it
// has ended, and what its commands print.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../../test/support/wait.ts";
import type { Gateway, Gateways } from "./gateways.ts";
import { readFiles, type House, type Line, type Statement } from "./house.ts";
import { ACCOUNTS, KEYS } from "./plan.ts";
import type { Random } from "./provider.ts";

/** Asks for a receipt, and again as long as the account has asked too often. */
async function receipt(url: string, account: string, id: string) {
  const { key } = KEYS.find((each) => each.account === account)!;
  const response = await fetch(`${url}/v1/requests/${id}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  if (response.status === 429) {
    await response.body?.cancel();
    await pause(1_000 * Number(response.headers.get("retry-after")));
    return await receipt(url, account, id);
  }
  return { account, id, status: response.status, body: (await response.json()) as Line };
}

/** About `count` receipts, each also asked for by an account that has not sent the request. */
async function collectReceipts(
  gateways: Gateways,
  { asked, receipts }: House,
  { pick, random }: Random,
  { count, isLate }: { readonly count: number; readonly isLate: boolean },
): Promise<void> {
  for (const { account, id } of asked.filter(() => random() < count / asked.length)) {
    const { address, number: gateway } = pick(gateways.list);
    for (const by of [account, pick(ACCOUNTS.filter((other) => other !== account))])
      receipts.push({ ...(await receipt(address, by, id)), gateway, isLate });
  }
}

async function budgetsOf(admin: string): Promise<Line[]> {
  const response = await fetch(`${admin}/status`);
  return ((await response.json()) as { budgets: Line[] }).budgets;
}

/** Whether nothing is held, and all gateways that know of a budget say the same of it. */
function areSettled(budgets: readonly Line[]): boolean {
  const nameOf = ({ account, key_id }: Line) => `${account} ${key_id}`;
  const spent = new Map(budgets.map((budget) => [nameOf(budget), budget["spent"]]));
  return budgets.every(
    (budget) => budget["held"] === "0" && spent.get(nameOf(budget)) === budget["spent"],
  );
}

/** From the gateways while they run, when no request is on its way any more. */
export async function collectRunning(
  gateways: Gateways,
  house: House,
  random: Random,
  count: number,
): Promise<void> {
  if (house.isReference) return;
  const live = await until(
    async () => {
      const admins = gateways.list.map(({ running }) => running!.admin());
      const all = await Promise.all(admins.map(budgetsOf));
      return areSettled(all.flat()) && all;
    },
    "nothing to be held any more, and each gateway to know what the others have spent",
    30_000,
  );
  for (const [number, budgets] of live.entries()) house.estates[number]!.live = budgets;
  // Each gateway knows the receipts of the others when they are copied.
  await gateways.sync();
  await collectReceipts(gateways, house, random, { count, isLate: false });
}

/** Heads of this moment, of all gateways. */
export async function takeHeads({ list }: Gateways): Promise<void> {
  for (const { heads, run } of list) heads.push(await run("seal", "head"));
}

/** What the commands say of books at rest on the day of the run. */
export async function collectAtRest(gateways: Gateways, house: House): Promise<void> {
  await gateways.sync();
  if (house.isReference) return;
  for (const { number, run } of gateways.list)
    house.estates[number]!.audit = JSON.parse(await run("audit", "--json"));
  await takeHeads(gateways);
  const named = house.estates[0]!.live.map(({ account }) => account).filter(Boolean);
  await collectBudgets(house, named, gateways.list[0]!);
}

/** How many receipts are asked for when their day is closed. */
const LATE_RECEIPTS = 40;

/** On the next day the day of the run is closed. */
export async function collectTomorrow(
  gateways: Gateways,
  house: House,
  folder: string,
  random: Random,
): Promise<void> {
  gateways.turnToTomorrow();
  await gateways.sync();
  await gateways.startAll();
  if (!house.isReference)
    await collectReceipts(gateways, house, random, { count: LATE_RECEIPTS, isLate: true });
  await gateways.stop();
  await gateways.sync();
  for (const { number, dataDir } of gateways.list) readFiles(house, number, dataDir);
  const first = gateways.list[0]!;
  if (house.isReference) return await collectStatements(house, first, Date.now());
  const file = (name: string): string => join(folder, name);
  for (const { number, run, heads } of gateways.list) {
    writeFileSync(file(`${number}.pem`), await run("seal", "public-key"));
    writeFileSync(file(`${number}-heads`), heads.join(""));
    const kept = ["--public-key", file(`${number}.pem`), "--head", file(`${number}-heads`)];
    house.estates[number]!.verify = JSON.parse(await run("seal", "verify", ...kept, "--json"));
  }
  await collectStatements(house, first, Date.now(), async (args) => {
    const { run } = first;
    const text = await run(...args, "--sealed");
    writeFileSync(file("statement.json"), text);
    const kept = ["--public-key", file("0.pem"), "--json"];
    const verdict = JSON.parse(await run("seal", "verify", file("statement.json"), ...kept));
    return { sealed: { text: JSON.parse(text), verdict } };
  });
}

type Commands = Pick<Gateway, "number" | "run">;

/** What `budget show` says of these accounts. */
export async function collectBudgets(
  house: House,
  accounts: readonly string[],
  { number: gateway, run }: Commands,
): Promise<void> {
  for (const account of accounts) {
    const shown = JSON.parse(await run("budget", "show", account, "--json"));
    house.budgets.push({ gateway, shown });
  }
}

/**
 * The statements of each account up to the time `now`. `more`: what else belongs to one, by the
 * command that prints it.
 */
export async function collectStatements(
  house: House,
  { number: gateway, run }: Commands,
  now: number,
  more: (args: readonly string[]) => Promise<Partial<Statement>> = async () => ({}),
): Promise<void> {
  // What its client left just before a month ended may be settled in the next one.
  const times = [...house.asked.map(({ endedAt }) => endedAt), now];
  for (const month of new Set(times.map((time) => new Date(time).toISOString().slice(0, 7))))
    for (const account of ACCOUNTS) {
      const args = ["billing", "statement", "--account", account, "--month", month];
      const json = JSON.parse(await run(...args, "--format", "json"));
      const csv = await run(...args, "--format", "csv");
      house.statements.push({ gateway, account, month, json, csv, ...(await more(args)) });
    }
}
