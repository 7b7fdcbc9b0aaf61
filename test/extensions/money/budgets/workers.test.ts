// Budgets of real processes: one that is killed, and several workers, for which the first process
// knows what is spent and held.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { folder } from "../../../support/folder.ts";
import { json } from "../../../support/gateway.ts";
import { quickest } from "../../../support/program.ts";
import { until } from "../../../support/wait.ts";
import {
  ask,
  begin,
  bench,
  budget,
  COST,
  HOLD,
  LONG_MS,
  money,
  text,
  untilStanding,
} from "./processes.ts";

const program = quickest(folder());
const WORKERS = { server: { workers: 3 } };

/** The processes that one has started. */
const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map(Number);

describe("several workers", () => {
  it("count none of the requests that a budget refuses among those of a minute", async (t) => {
    const acme = { budget: { amount: money(COST + HOLD), period: "total" }, rpm: 5 };
    const { start } = await bench(t, program, { ...WORKERS, accounts: { acme } });
    const { url, running, standing } = await start();
    for (let served = 0; served < 2; served += 1) assert.equal(await ask(url), 200);
    for (let refused = 0; refused < 12; refused += 1) assert.equal(await ask(url), 402);
    await untilStanding(standing, { spent: text(2n * COST), held: "0" });
    const { limits } = await json(await fetch(`${running.admin()}/status`));
    assert.equal(limits.accounts[0].used, 2);
  });

  it("give back what one of them held that dies", async (t) => {
    const { start } = await bench(t, program, { ...WORKERS, ...budget(HOLD) });
    const { url, running, standing } = await start();
    const open = await begin(url);
    assert.equal(await ask(url), 402);
    const children = () => childrenOf(running.child.pid!);
    // One of them has the stream.
    for (const pid of children()) {
      process.kill(pid, "SIGKILL");
      await until(async () => children().length === 3 && !children().includes(pid), "another");
      if (open.destroyed) break;
    }
    await untilStanding(standing, { spent: "0", held: "0" });
    assert.equal(await ask(url), 200);
  });

  it("count from the books what was spent before a reload brought the first budget", async (t) => {
    const { start } = await bench(t, program, WORKERS);
    const { url, write, running, standing } = await start();
    for (let request = 0; request < 5; request += 1) assert.equal(await ask(url), 200);
    write(budget(5n * COST + HOLD));
    await until(
      async () => running.stderr().includes('"reloaded"'),
      "the configuration in force",
      LONG_MS,
    );
    await untilStanding(standing, { spent: text(5n * COST), held: "0" });
    assert.equal(await ask(url), 200);
    assert.equal(await ask(url), 402);
    write(budget(6n * COST + HOLD));
    await untilStanding(standing, { amount: text(6n * COST + HOLD) });
    await until(async () => (await ask(url)) === 200, "room for another", LONG_MS);
    assert.equal(await ask(url), 402);
  });
});
