// Collects what the gateway says of a phase: receipts and budgets while it runs, its files when it
// has ended, and what its commands print.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../../test/support/wait.ts";
import type { Gateways } from "./gateways.ts";
import { readFiles, type House, type Line, type ReceiptAnswer, type Statement } from "./house.ts";
import { ACCOUNTS, KEYS } from "./plan.ts";
import type { Random } from "./provider.ts";

/** How many receipts are asked for when their day is closed. */
const LATE_RECEIPTS = 40;

/** The key with which an account asks for its receipts. */
const keyOf = (account: string): string => KEYS.find((key) => key.account === account)!.key;

/** Asks again as long as the account has asked too often. */
async function receipt(
  url: string,
  account: string,
  id: string,
): Promise<Omit<ReceiptAnswer, "gateway" | "isLate">> {
  const response = await fetch(`${url}/v1/requests/${encodeURIComponent(id)}`, {
    headers: { authorization: `Bearer ${keyOf(account)}` },
  });
  if (response.status === 429) {
    await response.body?.cancel();
    await pause(1_000 * Number(response.headers.get("retry-after")));
    return await receipt(url, account, id);
  }
  return { account, id, status: response.status, body: (await response.json()) as Line };
}

/** Receipts of some ids, each also with the key of an account that has not sent it. */
async function collectReceipts(
  gateways: Gateways,
  house: House,
  { pick, random }: Random,
  { count, isLate }: { readonly count: number; readonly isLate: boolean },
): Promise<void> {
  const known = house.asked.filter(({ sentId, id }) => (sentId ?? id) !== undefined);
  const chosen = known.filter(() => random() < count / known.length);
  for (const { account, sentId, id = sentId! } of chosen) {
    const { address, number: gateway } = pick(gateways.list);
    const add = async (by: string): Promise<unknown> =>
      house.receipts.push({ ...(await receipt(address, by, id)), gateway, isLate });
    await add(account);
    if (!id.startsWith("again-")) await add(pick(ACCOUNTS.filter((other) => other !== account)));
  }
}

async function budgetsOf(admin: string): Promise<Line[]> {
  const response = await fetch(`${admin}/status`);
  return ((await response.json()) as { budgets: Line[] }).budgets;
}

/** Whether nothing is held, and all gateways that know of a budget say the same of it. */
function areSettled(all: readonly (readonly Line[])[]): boolean {
  const spent = new Map<string, unknown>();
  for (const { account, key_id, ...budget } of all.flat()) {
    const name = `${account} ${key_id}`;
    if (budget["held"] !== "0") return false;
    if (spent.has(name) && spent.get(name) !== budget["spent"]) return false;
    spent.set(name, budget["spent"]);
  }
  return true;
}

/** From the gateways while they run, when no request is on its way any more. */
export async function collectRunning(
  gateways: Gateways,
  house: House,
  random: Random,
  receipts: number,
): Promise<void> {
  if (house.isReference) return;
  const live = await until(
    async () => {
      const all = await Promise.all(
        gateways.list.map(({ running }) => budgetsOf(running!.admin())),
      );
      return areSettled(all) && all;
    },
    "nothing to be held any more, and each gateway to know what the others have spent",
    30_000,
  );
  // Each gateway knows the receipts of the others when they are copied.
  await gateways.sync();
  await collectReceipts(gateways, house, random, { count: receipts, isLate: false });
  for (const [number, budgets] of live.entries()) house.estates[number]!.live = budgets;
}

/** Heads of this moment, of all gateways. */
export async function takeHeads({ list }: Gateways, { estates }: House): Promise<void> {
  for (const { number, run } of list)
    estates[number]!.heads.push((await run("seal", "head")).trim());
}

/** What the commands say of books at rest on the day of the run. */
export async function collectAtRest(gateways: Gateways, house: House): Promise<void> {
  await gateways.sync();
  if (house.isReference) return;
  for (const { number, run, runJson } of gateways.list) {
    const estate = house.estates[number]!;
    estate.audit = await runJson("audit", "--json");
    estate.publicKey = await run("seal", "public-key");
  }
  await takeHeads(gateways, house);
  const named = house.estates[0]!.live.map(({ account }) => account).filter(Boolean);
  await collectBudgets(house, named, gateways.list[0]!.run);
}

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
  if (!house.isReference) await verifySeals(gateways, house, folder);
  for (const { number, dataDir } of gateways.list) readFiles(house.estates[number]!, dataDir);
  await collectSealed(gateways, house, folder);
}

const keyFileOf = (folder: string, number: number): string =>
  join(folder, `${number}-public-key.pem`);

async function verifySeals(gateways: Gateways, house: House, folder: string): Promise<void> {
  await takeHeads(gateways, house);
  for (const { number, runJson } of gateways.list) {
    const estate = house.estates[number]!;
    const keyFile = keyFileOf(folder, number);
    const headFile = join(folder, `${number}-heads.json`);
    writeFileSync(keyFile, estate.publicKey);
    writeFileSync(headFile, `${estate.heads.join("\n")}\n`);
    const kept = ["--public-key", keyFile, "--head", headFile];
    estate.verify = await runJson("seal", "verify", ...kept, "--json");
  }
}

/** Runs a command: what it printed. */
type Run = (...args: readonly string[]) => Promise<string>;

/** What `budget show` says of these accounts. */
export async function collectBudgets(
  house: House,
  accounts: readonly string[],
  run: Run,
): Promise<void> {
  for (const account of accounts)
    house.budgets.set(account, JSON.parse(await run("budget", "show", account, "--json")));
}

/** The statements of each account. `more`: what else belongs to one, by the command that prints it. */
export async function collectStatements(
  house: House,
  run: Run,
  more: (args: readonly string[]) => Promise<Partial<Statement>> = async () => ({}),
): Promise<void> {
  const times = house.asked.map(({ endedAt }) => new Date(endedAt).toISOString());
  for (const month of new Set(times.map((time) => time.slice(0, 7))))
    for (const account of ACCOUNTS) {
      const args = ["billing", "statement", "--account", account, "--month", month];
      const json = JSON.parse(await run(...args, "--format", "json"));
      const csv = await run(...args, "--format", "csv");
      house.statements.push({ account, month, json, csv, ...(await more(args)) });
    }
}

/** The statements, each also sealed by the first gateway, which vouches for its own requests. */
async function collectSealed(gateways: Gateways, house: House, folder: string): Promise<void> {
  const { dataDir, run, runJson, number } = gateways.list[0]!;
  if (house.isReference) return await collectStatements(house, run);
  const id = readFileSync(join(dataDir, "gateway-id"), "utf8");
  const prefix = `sp_${id.slice(0, 8)}`;
  const file = join(folder, "statement.json");
  const kept = ["--public-key", keyFileOf(folder, number)];
  await collectStatements(house, run, async (args) => {
    const text = await run(...args, "--sealed");
    writeFileSync(file, text);
    const verdict = await runJson("seal", "verify", file, ...kept, "--json");
    return { sealed: { text: JSON.parse(text), verdict, prefix } };
  });
}
