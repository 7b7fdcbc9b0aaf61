// Collects what the gateway says of a phase: receipts and budgets while it runs, its files when it
// has ended, and what its commands print.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../../test/support/wait.ts";
import type { Gateway, Gateways } from "./gateways.ts";
import {
  emptyEstate,
  readFiles,
  type Estate,
  type House,
  type Line,
  type ReceiptAnswer,
} from "./house.ts";
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
  if (house.isReference) {
    house.estates.push(...gateways.list.map(emptyEstate));
    return;
  }
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
  for (const gateway of gateways.list) await gateways.run(gateway, "usage", "sync", "--once");
  await collectReceipts(gateways, house, random, { count: receipts, isLate: false });
  for (const budgets of live) house.estates.push({ ...emptyEstate(), live: budgets });
}

/** What the commands say of books at rest on the day of the run. `middle`: heads kept before. */
export async function collectAtRest(
  gateways: Gateways,
  house: House,
  middle: readonly string[],
): Promise<void> {
  for (const gateway of gateways.list) {
    const estate = house.estates[gateway.number]!;
    estate.heads.push(...middle.slice(gateway.number, gateway.number + 1));
    await gateways.run(gateway, "usage", "sync", "--once");
    if (house.isReference) continue;
    estate.audit = await gateways.runJson(gateway, "audit", "--json");
    estate.publicKey = await gateways.run(gateway, "seal", "public-key");
    estate.heads.push((await gateways.run(gateway, "seal", "head")).trim());
  }
  for (const { account } of house.estates[0]!.live.filter(({ account }) => account !== null))
    house.budgets.set(
      account,
      await gateways.runJson(gateways.list[0]!, "budget", "show", account, "--json"),
    );
}

/** On the next day the day of the run is closed. */
export async function collectTomorrow(
  gateways: Gateways,
  house: House,
  folder: string,
  random: Random,
): Promise<void> {
  gateways.turnToTomorrow();
  for (const gateway of gateways.list) await gateways.run(gateway, "usage", "sync", "--once");
  await gateways.startAll();
  if (!house.isReference)
    await collectReceipts(gateways, house, random, { count: LATE_RECEIPTS, isLate: true });
  await gateways.stop();
  for (const gateway of gateways.list) {
    const { number, dataDir } = gateway;
    const estate = house.estates[number]!;
    await gateways.run(gateway, "usage", "sync", "--once");
    if (!house.isReference) await verifySeals(gateways, gateway, estate, join(folder, `${number}`));
    readFiles(estate, dataDir);
  }
  await collectStatements(gateways, house, folder);
}

/** `beginning`: of the names of the files that the command reads. */
async function verifySeals(
  gateways: Gateways,
  gateway: Gateway,
  estate: Estate,
  beginning: string,
): Promise<void> {
  estate.heads.push((await gateways.run(gateway, "seal", "head")).trim());
  const keyFile = `${beginning}-public-key.pem`;
  const headFile = `${beginning}-heads.json`;
  writeFileSync(keyFile, estate.publicKey);
  writeFileSync(headFile, `${estate.heads.join("\n")}\n`);
  const kept = ["--public-key", keyFile, "--head", headFile];
  estate.verify = await gateways.runJson(gateway, "seal", "verify", ...kept, "--json");
}

async function collectStatements(gateways: Gateways, house: House, folder: string): Promise<void> {
  const gateway = gateways.list[0]!;
  const id = readFileSync(join(gateway.dataDir, "gateway-id"), "utf8");
  const sealedPrefix = `sp_${id.slice(0, 8)}`;
  const months = [...new Set(house.asked.map(({ endedAt }) => monthOf(endedAt)))];
  for (const month of months)
    for (const account of ACCOUNTS) {
      const args = ["billing", "statement", "--account", account, "--month", month];
      const json = await gateways.runJson(gateway, ...args, "--format", "json");
      const csv = await gateways.run(gateway, ...args, "--format", "csv");
      if (house.isReference) {
        house.statements.push({ account, month, json, csv, sealedPrefix });
        continue;
      }
      const sealed = await gateways.run(gateway, ...args, "--sealed");
      const file = join(folder, "statement.json");
      writeFileSync(file, sealed);
      const key = join(folder, "0-public-key.pem");
      const verify = ["seal", "verify", file, "--public-key", key, "--json"];
      const verdict = await gateways.runJson(gateway, ...verify);
      const parts = { json, csv, verdict, sealed: JSON.parse(sealed), sealedPrefix };
      house.statements.push({ account, month, ...parts });
    }
}

const monthOf = (ms: number): string => new Date(ms).toISOString().slice(0, 7);
