// What the first process makes of the money that a worker held when it died.

import assert from "node:assert/strict";
import type { Worker } from "node:cluster";
import { EventEmitter } from "node:events";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Host } from "../../../src/extensions/installation/index.ts";
import type { Accountant, Outcome, Ticket } from "../../../src/extensions/budgets/contracts.ts";
import { createWorkerTickets } from "../../../src/extensions/budgets/worker-tickets.ts";
import { settleLine, textOf } from "../../support/books.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { folder } from "../../support/folder.ts";
import { waitFor } from "../../support/wait.ts";

const DAY = "2026-01-02";
const SPENDER = { account: "acme", keyId: "key_1", limits: [] };

/** The settle line of the request that has this token: 27 tokens. */
const lineOf = (token: string, over: object = {}): string =>
  textOf([settleLine(1, { spend_id: `sp_01234567${token}`, cost: "0.00009", ...over })]);

/** Workers, and what is settled for them when they die. */
function bench(dataDir: string) {
  const settled: { id: number; outcome: Outcome }[] = [];
  const accountant = {
    settle: ({ id }: Ticket, outcome: Outcome) => settled.push({ id, outcome }),
  } as unknown as Accountant;
  const clock = createFakeClock();
  let rounds = 0;
  const host = { config: { data_dir: dataDir }, clock } as unknown as Host;
  const tickets = createWorkerTickets(
    host,
    () => accountant,
    () => {
      rounds += 1;
    },
  );

  function worker(id: number) {
    const process = new EventEmitter();
    const self = { id, process } as unknown as Worker;
    tickets.follow(self);
    /** Grants it a ticket; returns the token for the spend log. */
    const hold = (ticket: number): string => {
      const decision = {
        ticket: { id: ticket, spender: SPENDER, cost: 1n, tokens: 1 },
        refusal: undefined,
        tokens: undefined,
        figures: [],
      };
      return tickets.note(self, decision).ticket!.token!;
    };
    const take = (id: number) => tickets.take(self, { id } as Ticket);
    return { hold, take, die: () => process.emit("close", null, "SIGKILL") };
  }
  return { worker, settled, clock, tickets, rounds: () => rounds };
}

const NOTHING: Outcome = { cost: 0n, tokens: 0 };

describe("what a worker held that died", () => {
  it("costs what the spend log says of it, and nothing where that has no settle line", async () => {
    const dataDir = folder();
    const { worker, settled, rounds } = bench(dataDir);
    const dying = worker(1);
    const other = worker(2);
    const tokens = [dying.hold(1), dying.hold(2), dying.hold(3), other.hold(4), dying.hold(5)];
    assert.equal(new Set(tokens).size, 5);
    for (const token of tokens) assert.match(token, /^[0-9a-f]{24}$/);
    assert.equal(dying.take(5), true);
    assert.equal(dying.take(5), false);
    mkdirSync(join(dataDir, "spend"));
    const spend = join(dataDir, "spend", `${DAY}.0001.jsonl`);
    const interrupted = { status: "interrupted", cost: "0", model_served: null };
    const lines = [
      lineOf(tokens[0]!),
      lineOf(tokens[1]!, interrupted),
      lineOf(tokens[3]!),
      lineOf(tokens[4]!),
    ];
    writeFileSync(spend, lines.join(""));
    dying.die();
    await waitFor(() => rounds() === 1, "the end of the burial");
    assert.deepEqual(settled, [
      { id: 1, outcome: { cost: 90_000_000n, tokens: 27 } },
      { id: 2, outcome: NOTHING },
      { id: 3, outcome: NOTHING },
    ]);
    assert.equal(other.take(4), true);
  });

  it("goes on to be held until the spend log can be read", async () => {
    const dataDir = folder();
    const { worker, settled, clock, rounds } = bench(dataDir);
    const dying = worker(1);
    const token = dying.hold(1);
    dying.die();
    await waitFor(() => clock.pending() === 1, "the next attempt to be planned");
    assert.equal(settled.length, 0);
    mkdirSync(join(dataDir, "spend"));
    writeFileSync(join(dataDir, "spend", `${DAY}.0001.jsonl`), lineOf(token));
    clock.advance(1_000);
    await waitFor(() => rounds() === 1, "the end of the burial");
    assert.deepEqual(
      settled.map(({ outcome }) => outcome.cost),
      [90_000_000n],
    );
  });

  it("is not looked for in segments that nobody has written for a minute", async () => {
    const dataDir = folder();
    const { worker, settled, clock, rounds } = bench(dataDir);
    const dying = worker(1);
    const token = dying.hold(1);
    mkdirSync(join(dataDir, "spend"));
    const path = join(dataDir, "spend", `${DAY}.0001.jsonl`);
    writeFileSync(path, lineOf(token));
    const old = (clock.now() - 60_001) / 1_000;
    utimesSync(path, old, old);
    dying.die();
    await waitFor(() => rounds() === 1, "the end of the burial");
    assert.deepEqual(settled, [{ id: 1, outcome: NOTHING }]);
  });

  it("is settled at no cost where it was granted to a worker that had died", () => {
    const { worker, settled } = bench(folder());
    const dying = worker(1);
    dying.die();
    dying.hold(1);
    assert.deepEqual(settled, [{ id: 1, outcome: NOTHING }]);
  });
});
