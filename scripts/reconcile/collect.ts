// Collects the evidence about a phase: budgets while the gateways run, their files after their end,
// the output of their commands, and receipts on the next day.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../../test/support/wait.ts";
import type { Gateway, Gateways } from "./gateways.ts";
import { readFiles, type Evidence, type JsonObject } from "./evidence.ts";
import { ACCOUNTS, KEYS } from "./plan.ts";
import type { Random } from "./provider.ts";

/** Requests a receipt, and repeats that while the account's rate limit is exceeded. */
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
  return { account, id, status: response.status, body: (await response.json()) as JsonObject };
}

/** Requests about `count` receipts, each also with the key of another account. */
async function collectReceipts(
  { list }: Gateways,
  { requests, receipts }: Evidence,
  { pick, random }: Random,
  count: number,
): Promise<void> {
  for (const { account, id } of requests.filter(() => random() < count / requests.length)) {
    const { address, number: gateway } = pick(list);
    for (const by of [account, pick(ACCOUNTS.filter((other) => other !== account))])
      receipts.push({ ...(await receipt(address, by, id)), gateway });
  }
}

/** Waits until no budget holds anything and all gateways agree on each budget. */
async function collectLive({ list }: Gateways, { gateways }: Evidence): Promise<void> {
  const nameOf = ({ account, key_id }: JsonObject) => `${account} ${key_id}`;
  await until(
    async () => {
      for (const { number, running } of list) {
        const response = await fetch(`${running!.admin()}/status`);
        gateways[number]!.live = ((await response.json()) as JsonObject)["budgets"];
      }
      const all = gateways.flatMap(({ live }) => live);
      const spent = new Map(all.map((budget) => [nameOf(budget), budget["spent"]]));
      return all.every((each) => each["held"] === "0" && spent.get(nameOf(each)) === each["spent"]);
    },
    "nothing to be held any more, and each gateway to know what all have spent",
    30_000,
  );
}

/** Collects everything from gateways without load, and stops them. `receipts`: about how many. */
export async function collect(
  gateways: Gateways,
  evidence: Evidence,
  random: Random,
  receipts: number,
): Promise<void> {
  const { list } = gateways;
  const [first] = list as [Gateway];
  if (!evidence.isReference) await collectLive(gateways, evidence);
  await gateways.stop();
  await gateways.sync();
  if (!evidence.isReference) {
    await collectAudits(evidence, list);
    for (const gateway of list) await gateway.takeHead();
    const named = evidence.gateways[0]!.live.map(({ account }) => account).filter(Boolean);
    await collectBudgets(evidence, named, first);
  }
  // On the next day the day of the run is closed.
  gateways.turnToTomorrow();
  await gateways.sync();
  await gateways.startAll();
  if (!evidence.isReference) await collectReceipts(gateways, evidence, random, receipts);
  await gateways.stop();
  await gateways.sync();
  for (const { number, dataDir } of list) readFiles(evidence, number, dataDir);
  await collectStatements(evidence, first, Date.now());
  if (!evidence.isReference) await collectSeals(gateways, evidence);
}

/** Sealed statements, and `seal verify` of them and of the files of all gateways. */
async function collectSeals({ list, folder }: Gateways, evidence: Evidence): Promise<void> {
  const file = (name: string): string => join(folder, name);
  for (const { number, run, heads } of list) {
    writeFileSync(file(`${number}.pem`), await run("seal", "public-key"));
    writeFileSync(file(`${number}-heads`), heads.join(""));
    const kept = ["--public-key", file(`${number}.pem`), "--head", file(`${number}-heads`)];
    evidence.gateways[number]!.verify = JSON.parse(await run("seal", "verify", ...kept, "--json"));
  }
  const { run } = list[0]!;
  for (const statement of evidence.statements) {
    const text = await run(...statement.args, "--sealed");
    writeFileSync(file("statement.json"), text);
    const kept = ["--public-key", file("0.pem"), "--json"];
    const verification = JSON.parse(await run("seal", "verify", file("statement.json"), ...kept));
    statement.sealed = { text: JSON.parse(text), verification };
  }
}

/** Runs the commands of a gateway. */
type Commands = Pick<Gateway, "number" | "run">;

/** `audit` of each gateway. */
export async function collectAudits(evidence: Evidence, gateways: readonly Commands[]) {
  for (const { number, run } of gateways)
    evidence.gateways[number]!.audit = JSON.parse(await run("audit", "--json"));
}

/** `budget show` of these accounts. */
export async function collectBudgets(
  evidence: Evidence,
  accounts: readonly string[],
  by: Commands,
) {
  for (const account of accounts) {
    const shown = JSON.parse(await by.run("budget", "show", account, "--json"));
    evidence.budgets.push({ gateway: by.number, shown });
  }
}

/** The statements of each account for all months up to the time `now`. */
export async function collectStatements(evidence: Evidence, by: Commands, now: number) {
  const { number: gateway, run } = by;
  // A request that its client left just before the end of a month may be settled in the next one.
  const times = [...evidence.requests.map(({ endedAt }) => endedAt), now];
  for (const month of new Set(times.map((time) => new Date(time).toISOString().slice(0, 7))))
    for (const account of ACCOUNTS) {
      const args = ["billing", "statement", "--account", account, "--month", month];
      const json = JSON.parse(await run(...args, "--format", "json"));
      const csv = await run(...args, "--format", "csv");
      evidence.statements.push({ gateway, account, month, args, json, csv });
    }
}
