// `budget show`, `audit` and the metrics: how budgets stand, while requests run and at rest.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { folder } from "../../../support/folder.ts";
import { KEY } from "../../../support/gateway.ts";
import { quickest } from "../../../support/program.ts";
import { ask, begin, bench, budget, COST, HOLD, text, untilStanding } from "./processes.ts";

const program = quickest(folder());

describe("budget show", () => {
  it("states what is spent, held and left, as status, metrics and audit do", async (t) => {
    const { start, command } = await bench(t, program, {
      ...budget(10n * HOLD, "day"),
      keys: [{ account: "acme", key: KEY, budget: { amount: "0.5", period: "total" } }],
    });
    const { url, file, running, standing } = await start();
    assert.equal(await ask(url), 200);
    const open = await begin(url);
    const show = async (): Promise<Record<string, any>[]> => {
      const { code, stdout, stderr } = await command(file, "budget", "show", "acme", "--json");
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout).budgets;
    };
    const shown = await show();
    assert.deepEqual(
      shown.map((row) => [row["account"], row["period"], row["spent"], row["held"], row["left"]]),
      [
        ["acme", "day", text(COST), text(HOLD), text(9n * HOLD - COST)],
        [null, "total", text(COST), text(HOLD), text(500_000_000_000n - HOLD - COST)],
      ],
    );
    assert.deepEqual(await standing(), shown);
    assert.match((await command(file, "audit")).stdout, /in flight 1, with 0\.000127 held/);
    const metrics = await (await fetch(`${running.admin()}/metrics`)).text();
    assert.match(metrics, /^chat_gateway_budget_held\{account="acme",period="day"\} 0\.000127$/m);
    assert.match(metrics, /^chat_gateway_budget_spent\{account="acme",period="day"\} 0\.00009$/m);
    assert.match(metrics, /^chat_gateway_budget_limit\{account="acme",period="day"\} 0\.00127$/m);
    open.destroy();
    await untilStanding(standing, { held: "0" });
    assert.deepEqual(
      (await show()).map((row) => row["held"]),
      ["0", "0"],
    );
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
    assert.deepEqual(held, ["0", "0"], "nothing runs whose process is dead");
  });
});

describe("keys create", () => {
  it("makes a key with a budget and a limit of tokens, which hold", async (t) => {
    const own = { budget: { amount: "0.5", period: "total" }, tokens_per_minute: 700 };
    const keys = [{ account: "acme", key: KEY, ...own }];
    const { start, command } = await bench(t, program, { keys });
    const { url, file, running } = await start();
    assert.equal(await ask(url), 200);
    const terms = ["--budget", `${text(HOLD)}/day`, "--tokens-per-minute", "500"];
    const made = await command(file, "keys", "create", "--account", "acme", ...terms, "--json");
    assert.equal(made.code, 0, made.stderr);
    const { key, budget: kept, tokens_per_minute: tokens } = JSON.parse(made.stdout);
    assert.deepEqual([kept, tokens], [{ amount: text(HOLD), period: "day" }, 500]);
    for (let status = 401; status === 401; ) status = await ask(url, {}, key);
    assert.equal(await ask(url, {}, key), 402);
    assert.equal(await ask(url), 200);
    const shown = await command(file, "budget", "show", "acme", "--json");
    const [row] = JSON.parse(shown.stdout).budgets;
    assert.deepEqual([row.account, row.spent], [null, text(COST)]);
    assert.doesNotMatch(running.stderr(), /internal_error/);
    const listed = await command(file, "keys", "list", "--json");
    const limits = JSON.parse(listed.stdout).map((each: any) => [
      each.budget,
      each.tokens_per_minute,
    ]);
    const configured = [{ amount: "0.5", period: "total" }, 700];
    assert.deepEqual(limits, [configured, [{ amount: text(HOLD), period: "day" }, 500]]);
    const table = await command(file, "keys", "list");
    assert.match(table.stdout, /^ +key_id .* models +tokens_per_minute +budget +created/m);
    assert.match(table.stdout, / 700 +0\.5\/total /);
    for (const bad of ["5", "5/week", "-1/day", "1e3/day", "/day"]) {
      const { code } = await command(file, "keys", "create", "--account", "a", "--budget", bad);
      assert.equal(code, 2, bad);
    }
  });
});
