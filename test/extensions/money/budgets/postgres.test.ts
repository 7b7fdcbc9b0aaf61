// Budgets whose records are in PostgreSQL. Skipped where PostgreSQL or the package `pg` (npm ci in
// test/clients) is not installed; REQUIRE_POSTGRES=1 forbids that.

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { configFile } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { noPostgres, PG_FOLDER, startPostgres, type Postgres } from "../../../support/postgres.ts";
import { launch, quickest, runToEnd } from "../../../support/program.ts";
import { within } from "../../../support/wait.ts";

const program = quickest(folder(), PG_FOLDER);
let db: Postgres;

/** A gateway that answers one request, and ends in good order. */
async function serveOnce(t: TestContext, config: string): Promise<void> {
  const running = launch(program, ["serve", "--config", config]);
  t.after(async () => {
    running.child.kill("SIGKILL");
    await running.ended;
  });
  const address = await within(running.address, "the gateway to listen");
  const answer = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer sk-demo", "content-type": "application/json" },
    body: JSON.stringify({
      model: "demo-chat",
      max_tokens: 1,
      messages: [{ role: "user", content: "hi" }],
    }),
  });
  assert.equal(answer.status, 200, await answer.text());
  running.child.kill("SIGTERM");
  assert.equal((await within(running.ended, "the end")).code, 0);
}

describe("budgets over records in PostgreSQL", { skip: noPostgres() }, () => {
  before(async () => {
    db = await startPostgres();
  });
  after(() => db?.close());

  it("that are never renewed: a gateway starts again, and knows what was spent", async (t) => {
    const config = configFile(
      demo({
        data_dir: folder(),
        usage: { store: await db.database("budgets"), sync_ms: 50 },
        accounts: { demo: { budget: { amount: "10", period: "total" } } },
      }),
    );
    const command = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await runToEnd(program, [...args, "--config", config]);
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };
    await serveOnce(t, config);
    await serveOnce(t, config);
    const { budgets } = await command("budget", "show", "demo", "--json");
    const month = new Date().toISOString().slice(0, 7);
    const statement = ["billing", "statement", "--account", "demo", "--month", month, "--json"];
    const { total } = await command(...statement);
    assert.equal(total.requests, 2);
    assert.notEqual(total.cost, "0");
    assert.deepEqual([budgets[0].spent, budgets[0].held], [total.cost, "0"]);
  });
});
