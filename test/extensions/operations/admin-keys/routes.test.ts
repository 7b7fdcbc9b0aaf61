// Keys over the admin listener: created, listed, revoked, and each change logged.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { adminOf, ask as askAdmin, assertRefused, basic } from "../../../support/admin.ts";
import { folder } from "../../../support/folder.ts";
import { demo, startGateway, user } from "../../../support/gateway.ts";
import { until } from "../../../support/wait.ts";

async function setUp(t: TestContext) {
  const dataDir = folder();
  const gw = await startGateway(t, demo({ data_dir: dataDir }));
  const origin = adminOf(gw);
  const ask = (path: string, method = "GET", json?: unknown, headers: object = {}) => {
    const body = json === undefined ? "" : JSON.stringify(json);
    return askAdmin(origin, path, { origin, ...headers }, { method, body });
  };
  return {
    ...{ gw, ask, file: join(dataDir, "keys.json") },
    make: (terms: object) => ask("/keys", "POST", terms),
    /** Resolves once a request with this key gets this status. */
    async answers(key: string, status: number): Promise<void> {
      const headers = { authorization: `Bearer ${key}` };
      const chat = () => gw.chat({ model: "demo-chat", messages: user("hi") }, headers);
      await until(async () => (await chat()).status === status, `${status} for the key`);
    },
  };
}

describe("keys over the admin listener", () => {
  it("a created key works, is listed without its secret, and is rejected once revoked", async (t) => {
    const { gw, ask, make, answers, file } = await setUp(t);
    const terms = { account: "acme", name: "batch", rpm: 60, models: ["demo-chat"] };
    const made = await make({ ...terms, expires: "2999-01-31" });
    assert.equal(made.status, 201);
    const { key, key_id, created, ...shown } = made.body;
    assert.match(key, /^sk-/);
    const limits = { expires: "2999-01-31T00:00:00.000Z", revoked: null };
    assert.deepEqual(shown, { ...terms, ...limits });
    await answers(key, 200);
    const { keys } = (await ask("/keys")).body;
    const listed = keys.map(({ account, configured }: any) => `${account} ${configured}`);
    assert.deepEqual(listed, ["acme false", "demo true"]);
    const text = JSON.stringify([keys, gw.diagnostics]);
    assert.ok(!text.includes(key) && !text.includes("sha256"));
    assert.ok(!readFileSync(file, "utf8").includes(key));

    const revoked = await ask(`/keys/${key_id}`, "DELETE");
    assert.deepEqual([revoked.status, revoked.body.key_id], [200, key_id]);
    await answers(key, 401);
    const refusals = `/requests?status=401&account=acme&key=${key_id}&code=api_key_disabled`;
    const isListed = async () => (await ask(refusals)).body.count > 0;
    await until(isListed, "the refusal to be among the last requests");
    const changes = gw.diagnostics.filter(({ event }) => String(event).startsWith("key_"));
    const members = ["event", "key_id", "account", "by", "address"];
    assert.deepEqual(
      changes.map((change) => members.map((name) => change[name])),
      ["key_created", "key_revoked"].map((event) => [
        ...[event, key_id, "acme", "console", "127.0.0.1"],
      ]),
    );
  });

  it("a key with a budget and a token limit has both, and is rejected by them", async (t) => {
    const { ask, make, answers } = await setUp(t);
    const terms = { tokens_per_minute: 10_000, budget: { amount: "0", period: "month" } };
    const { body } = await make({ account: "acme", ...terms });
    const [listed] = (await ask("/keys?find=ACM")).body.keys;
    for (const { tokens_per_minute, budget } of [body, listed])
      assert.deepEqual({ tokens_per_minute, budget }, terms);
    await answers(body.key, 402);
    const free = await make({ account: "acme", tokens_per_minute: null, budget: null });
    assert.equal(free.status, 201);
    assert.ok(!("budget" in free.body) && !("tokens_per_minute" in free.body));
  });

  it("are found by a part of the id, the account or the name, including those of the configuration", async (t) => {
    const { ask, make } = await setUp(t);
    const { key_id } = (await make({ account: "acme", name: "Batch" })).body;
    for (const [part, expected] of [
      ["batch", ["acme"]],
      [key_id.slice(4), ["acme"]],
      ["dem", ["demo"]],
      ["nobody", []],
    ] as const) {
      const { keys, total } = (await ask(`/keys?find=${part}`)).body;
      const accounts = keys.map(({ account }: { account: string }) => account);
      assert.deepEqual([accounts, total], [expected, expected.length]);
    }
    assert.equal((await ask("/keys?search=x")).status, 400);
  });

  it("a change is logged with the browser's user name; a change of the file with its ids", async (t) => {
    const { gw, ask } = await setUp(t);
    const { body } = await ask("/keys", "POST", { account: "acme" }, basic("anything"));
    const find = (name: string) => gw.diagnostics.find(({ event }) => event === name);
    const { user: by, key_id } = find("key_created")!;
    assert.deepEqual([by, key_id], ["operator", body.key_id]);
    const changed = await until(async () => find("keys_changed"), "the line about the file");
    assert.deepEqual([changed["created"], changed["revoked"]], [[body.key_id], []]);
  });

  it("an unreadable keys.json is not an error of the request", async (t) => {
    const { ask, file } = await setUp(t);
    writeFileSync(file, "[{");
    const message = /keys\.json is not JSON: the fault is at line 1, column 3/;
    const made = await ask("/keys", "POST", { account: "a" });
    for (const answer of [made, await ask("/keys"), await ask("/keys/key_1", "DELETE")]) {
      assertRefused(answer, 500, "internal_error");
      assert.match(answer.body.error.message, message);
    }
  });

  it("an invalid request is rejected with the name of the invalid field", async (t) => {
    const { ask, make } = await setUp(t);
    for (const [terms, param, message] of [
      [{ account: undefined }, "account", /required/],
      [{ account: "" }, "account", /1 to 200 characters/],
      [{ name: "red\u001b[31m" }, "name", /control character/],
      [{ name: "a\u202eb" }, "name", /without control characters, direction marks and/],
      [{ rpm: -1 }, "rpm", /0/],
      [{ rpm: "many" }, "rpm", /integer|number/],
      [{ tokens_per_minute: 1.5 }, "tokens_per_minute", /integer/],
      [{ budget: { amount: "-1", period: "day" } }, "budget.amount", /5\.00/],
      [{ budget: { amount: "05", period: "day" } }, "budget.amount", /5\.00/],
      [{ budget: { amount: "1", period: "hour" } }, "budget.period", /day/],
      [{ budget: { amount: "1" } }, "budget.period", /required/],
      [{ models: ["none"] }, "models[0]", /no model or alias/],
      [{ expires: "2020-01-01" }, "expires", /a date to come/],
      [{ limit: 1 }, "limit", /not a known field/],
    ] as const) {
      const answer = await make({ account: "a", ...terms });
      assert.deepEqual([answer.status, answer.body.error.param], [400, param]);
      assert.match(answer.body.error.message, message);
    }
    assert.equal((await ask("/keys")).body.keys.length, 1, "no key was created");
  });

  it("a key of the configuration or an unknown key cannot be revoked", async (t) => {
    const { ask, make, file } = await setUp(t);
    const [{ key_id: configured }] = (await ask("/keys")).body.keys;
    const revoke = async (id: string) => (await ask(`/keys/${id}`, "DELETE")).body.error.message;
    assert.match(await revoke(configured), /is in the configuration/);
    // Nor can a key of keys.json that is also in the configuration, because it would stay valid.
    const { key_id } = (await make({ account: "acme" })).body;
    writeFileSync(file, readFileSync(file, "utf8").replaceAll(key_id, configured));
    assert.match(await revoke(configured), /is in the configuration/);
    assert.match(await revoke("key_none"), /no key of this id/);
  });
});
