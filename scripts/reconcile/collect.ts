// Collects what the gateway says of a phase: budgets while it runs, its files when it has ended,
// what its commands print, and receipts on the next day.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../../test/support/wait.ts";
import type { Gateway, Gateways } from "./gateways.ts";
import { readFiles, type House, type Line } from "./house.ts";
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
  { list }: Gateways,
  { asked, receipts }: House,
  { pick, random }: Random,
  count: number,
): Promise<void> {
  for (const { account, id } of asked.filter(() => random() < count / asked.length)) {
    const { address, number: gateway } = pick(list);
    for (const by of [account, pick(ACCOUNTS.filter((other) => other !== account))])
      receipts.push({ ...(await receipt(address, by, id)), gateway });
  }
}

/** Budgets, once nothing is held and all gateways that know of one say the same of it. */
async function collectLive({ list }: Gateways, { estates }: House): Promise<void> {
  const nameOf = ({ account, key_id }: Line) => `${account} ${key_id}`;
  await until(
    async () => {
      for (const { number, running } of list) {
        const response = await fetch(`${running!.admin()}/status`);
        estates[number]!.live = ((await response.json()) as Line)["budgets"];
      }
      const all = estates.flatMap(({ live }) => live);
      const spent = new Map(all.map((budget) => [nameOf(budget), budget["spent"]]));
      return all.every((each) => each["held"] === "0" && spent.get(nameOf(each)) === each["spent"]);
    },
    "nothing to be held any more, and each gateway to know what all have spent",
    30_000,
  );
}

/** Stops gateways without requests. `receipts`: about how many are asked for. */
export async function collect(
  gateways: Gateways,
  house: House,
  random: Random,
  receipts: number,
): Promise<void> {
  const { list } = gateways;
  const [first] = list as [Gateway];
  if (!house.isReference) await collectLive(gateways, house);
  await gateways.stop();
  await gateways.sync();
  if (!house.isReference) {
    await collectAudits(house, list);
    for (const gateway of list) await gateway.takeHead();
    const named = house.estates[0]!.live.map(({ account }) => account).filter(Boolean);
    await collectBudgets(house, named, first);
  }
  // On the next day the day of the run is closed.
  gateways.turnToTomorrow();
  await gateways.sync();
  await gateways.startAll();
  if (!house.isReference) await collectReceipts(gateways, house, random, receipts);
  await gateways.stop();
  await gateways.sync();
  for (const { number, dataDir } of list) readFiles(house, number, dataDir);
  await collectStatements(house, first, Date.now());
  if (!house.isReference) await collectSeals(gateways, house);
}

/** Sealed statements, and what `seal verify` says of them and of the files of all gateways. */
async function collectSeals({ list, folder }: Gateways, house: House): Promise<void> {
  const file = (name: string): string => join(folder, name);
  for (const { number, run, heads } of list) {
    writeFileSync(file(`${number}.pem`), await run("seal", "public-key"));
    writeFileSync(file(`${number}-heads`), heads.join(""));
    const kept = ["--public-key", file(`${number}.pem`), "--head", file(`${number}-heads`)];
    house.estates[number]!.verify = JSON.parse(await run("seal", "verify", ...kept, "--json"));
  }
  const { run } = list[0]!;
  for (const statement of house.statements) {
    const text = await run(...statement.args, "--sealed");
    writeFileSync(file("statement.json"), text);
    const kept = ["--public-key", file("0.pem"), "--json"];
    const verdict = JSON.parse(await run("seal", "verify", file("statement.json"), ...kept));
    statement.sealed = { text: JSON.parse(text), verdict };
  }
}

type Commands = Pick<Gateway, "number" | "run">;

export async function collectAudits(house: House, gateways: readonly Commands[]): Promise<void> {
  for (const { number, run } of gateways)
    house.estates[number]!.audit = JSON.parse(await run("audit", "--json"));
}

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

/** The statements of each account up to the time `now`. */
export async function collectStatements(
  house: House,
  { number: gateway, run }: Commands,
  now: number,
): Promise<void> {
  // What its client left just before a month ended may be settled in the next one.
  const times = [...house.asked.map(({ endedAt }) => endedAt), now];
  for (const month of new Set(times.map((time) => new Date(time).toISOString().slice(0, 7))))
    for (const account of ACCOUNTS) {
      const args = ["billing", "statement", "--account", account, "--month", month];
      const json = JSON.parse(await run(...args, "--format", "json"));
      const csv = await run(...args, "--format", "csv");
      house.statements.push({ gateway, account, month, args, json, csv });
    }
}
