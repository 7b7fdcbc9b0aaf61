// Budgets of real processes, also of several workers whose spending and holds the primary knows;
// how `budget show`, `audit` and the metrics state them; keys with a budget.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { amountOf } from "../../../../scripts/reconcile/money.ts";
import { configFile, priced } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, KEY } from "../../../support/gateway.ts";
import { speak } from "../../../support/provider.ts";
import { runHere } from "../../../support/run-here.ts";
import { until } from "../../../support/wait.ts";
import { ask, begin, budget, COST, HOLD, LONG_MS, start, untilStanding } from "./processes.ts";
import { outputOf } from "../../../support/command.ts";

const command = (file: string, ...args: readonly string[]) => runHere([...args, "--config", file]);

describe("budget show", () => {
  it("states what is spent, held and left, as status, metrics and audit do", async (t) => {
    const { url, file, running, standing } = await start(t, {
      ...budget(10n * HOLD, "day"),
      keys: [{ account: "acme", key: KEY, budget: { amount: "0.5", period: "total" } }],
    });
    assert.equal(await ask(url), 200);
    const open = await begin(url);
    const show = async (): Promise<Record<string, any>[]> => {
      const stdout = outputOf(await command(file, "budget", "show", "acme", "--json"));
      return JSON.parse(stdout).budgets;
    };
    const shown = await show();
    assert.deepEqual(
      shown.map((row) => [row["account"], row["period"], row["spent"], row["held"], row["left"]]),
      [
        ["acme", "day", amountOf(COST), amountOf(HOLD), amountOf(9n * HOLD - COST)],
        [null, "total", amountOf(COST), amountOf(HOLD), amountOf(500_000_000_000n - HOLD - COST)],
      ],
    );
    assert.deepEqual(await standing(), shown);
    assert.match((await command(file, "audit")).stdout, /in flight 1, with 0\.000127 held/);
    const metrics = await (await fetch(`${running.admin()}/metrics`)).text();
    assert.match(metrics, /^chat_gateway_budget_held\{account="acme",period="day"\} 0\.000127$/m);
    assert.match(metrics, /^chat_gateway_budget_spent\{account="acme",period="day"\} 0\.00009$/m);
    assert.match(metrics, /^chat_gateway_budget_limit\{account="acme",period="day"\} 0\.00127$/m);
    open.leave();
    await untilStanding(standing, { held: "0" });
    const afterwards = (await show()).map((row) => row["held"]);
    assert.deepEqual(afterwards, ["0", "0"]);
    const { stdout } = await command(file, "audit", "--json");
    assert.deepEqual([JSON.parse(stdout).in_flight, JSON.parse(stdout).held], [0, "0"]);
    const none = await command(file, "budget", "show", "beta");
    assert.equal(none.code, 1);
    assert.match(none.stderr, /beta has no budget/);
    const people = await command(file, "budget", "show", "acme");
    assert.match(people.stdout, /^in USD\n/);
    assert.match(people.stdout, /acme +day/);
    assert.match(people.stdout, /never/);
    await begin(url);
    running.child.kill("SIGKILL");
    await running.ended;
    const held = (await show()).map((row) => row["held"]);
    assert.deepEqual(held, ["0", "0"], "a dead process holds nothing");
  });

  it("omits the budgets of keys whose secrets it cannot read, and says so", async (t) => {
    const key = { account: "acme", key: "$NOT_SET_HERE", budget: { amount: "1", period: "day" } };
    const { config } = await priced(t, { m: speak("Fine.") }, budget(HOLD, "total"));
    const file = configFile({ ...config, keys: [key, { ...key, key: "$NOR_THIS" }] });
    const { stdout, stderr } = await command(file, "budget", "show", "acme");
    assert.doesNotMatch(stdout, /key_/);
    assert.match(stderr, /budgets of keys whose secrets cannot be read are not shown: 2\n$/);
    const beta = configFile({ ...config, keys: [{ ...key, account: "beta" }] });
    const alone = await command(beta, "budget", "show", "beta");
    assert.match(alone.stderr, /not shown: 1\nchat-gateway: no budget of beta can be shown\n$/);
  });
});

it("keys create makes a key with a budget and a token limit, which keys list shows", async () => {
  const own = { budget: { amount: "0.5", period: "total" }, tokens_per_minute: 700 };
  const keys = [{ account: "acme", key: KEY, ...own }];
  const file = configFile(configFor("http://127.0.0.1:1", ["m"], { data_dir: folder(), keys }));
  const terms = ["--budget", "0.0002/month", "--tokens-per-minute", "500"];
  const made = await command(file, "keys", "create", "--account", "acme", ...terms, "--json");
  assert.equal(made.code, 0, made.stderr);
  const termsOf = ({ budget, tokens_per_minute }: any) => ({ budget, tokens_per_minute });
  const created = { budget: { amount: "0.0002", period: "month" }, tokens_per_minute: 500 };
  assert.deepEqual(termsOf(JSON.parse(made.stdout)), created);
  const listed = JSON.parse((await command(file, "keys", "list", "--json")).stdout);
  assert.deepEqual(listed.map(termsOf), [own, created]);
  const table = await command(file, "keys", "list");
  assert.match(table.stdout, /^ +key_id .* models +tokens_per_minute +budget +created/m);
  assert.match(table.stdout, / 500 +0\.0002\/month /);
  const shown = await command(file, "budget", "show", "acme", "--json");
  const budgets: any[] = JSON.parse(shown.stdout).budgets;
  assert.equal(budgets.find(({ period }) => period === "month")?.amount, "0.0002");
});

it("budgets of several workers include earlier spending when a reload adds them, and requests that they reject do not count for rpm", async (t) => {
  const over = { server: { workers: 3 }, accounts: { acme: { rpm: 100 } } };
  const { url, write, running, standing, readStatus } = await start(t, over);
  for (let request = 0; request < 5; request += 1) assert.equal(await ask(url), 200);
  write(budget(5n * COST + HOLD));
  await until(
    async () => running.stderr().includes('"reloaded"'),
    "the configuration in force",
    LONG_MS,
  );
  await untilStanding(standing, { spent: amountOf(5n * COST), held: "0" });
  assert.equal(await ask(url), 200);
  for (let refused = 0; refused < 6; refused += 1) assert.equal(await ask(url), 402);
  assert.equal((await readStatus())["limits"].accounts[0].used, 6);
  write(budget(6n * COST + HOLD));
  await untilStanding(standing, { amount: amountOf(6n * COST + HOLD) });
  await until(async () => (await ask(url)) === 200, "room for another", LONG_MS);
  assert.equal(await ask(url), 402);
});
