// Keys over the admin listener: made, listed, revoked, and each change in the log.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { folder } from "../../../support/folder.ts";
import { demo, startGateway, user } from "../../../support/gateway.ts";
import { until } from "../../../support/wait.ts";

async function setUp(t: TestContext) {
  const dataDir = folder();
  const gw = await startGateway(t, demo({ data_dir: dataDir }));
  const admin = gw.gateway.adminAddress()!;
  const ask = async (path: string, method = "GET", body?: unknown, origin = admin) => {
    const response = await fetch(`${admin}${path}`, {
      method,
      headers: { origin, "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as any };
  };
  const chat = (key: string) =>
    gw.chat({ model: "demo-chat", messages: user("hi") }, { authorization: `Bearer ${key}` });
  return { gw, ask, chat, dataDir };
}

describe("keys over the admin listener", () => {
  it("a key that is made works, is listed without its secret, and once revoked is refused", async (t) => {
    const { gw, ask, chat, dataDir } = await setUp(t);
    const terms = { account: "acme", name: "batch", rpm: 60, models: ["demo-chat"] };
    const made = await ask("/keys", "POST", { ...terms, expires: "2999-01-31" });
    assert.equal(made.status, 201);
    const { key, key_id, ...shown } = made.body;
    assert.match(key, /^sk-/);
    assert.deepEqual(
      [shown.account, shown.name, shown.rpm, shown.models, shown.expires, shown.revoked],
      ["acme", "batch", 60, ["demo-chat"], "2999-01-31T00:00:00.000Z", null],
    );
    assert.equal(shown.sha256, undefined);
    await until(async () => (await chat(key)).status === 200, "the key to work");
    const { keys } = (await ask("/keys")).body;
    assert.deepEqual(
      keys.map(({ account, configured }: any) => [account, configured]),
      [
        ["acme", false],
        ["demo", true],
      ],
    );
    const text = JSON.stringify([keys, gw.diagnostics]);
    assert.ok(!text.includes(key) && !text.includes("sha256"));
    assert.ok(!readFileSync(join(dataDir, "keys.json"), "utf8").includes(key));

    const revoked = await ask(`/keys/${key_id}`, "DELETE");
    assert.deepEqual([revoked.status, revoked.body.key_id], [200, key_id]);
    await until(async () => (await chat(key)).status === 401, "the key to be refused");
    const refused = await until(
      // Those that came before the new key was known are there too.
      async () =>
        (await ask("/requests?status=401")).body.requests.find(
          ({ code }: any) => code !== "invalid_api_key",
        ),
      "the refusal to be among the last requests",
    );
    assert.deepEqual(
      [refused.account, refused.key, refused.code],
      ["acme", key_id, "api_key_disabled"],
    );
    assert.deepEqual(
      gw.diagnostics
        .filter(({ event }) => String(event).startsWith("key_"))
        .map(({ event, key_id: id, account, by, address }) => [event, id, account, by, address]),
      [
        ["key_created", key_id, "acme", "console", "127.0.0.1"],
        ["key_revoked", key_id, "acme", "console", "127.0.0.1"],
      ],
    );
  });

  it("a key with a budget and a limit of tokens has both, and is refused by them", async (t) => {
    const { ask, chat } = await setUp(t);
    const terms = { tokens_per_minute: 10_000, budget: { amount: "0", period: "month" } };
    const { body } = await ask("/keys", "POST", { account: "acme", ...terms });
    assert.deepEqual([body.tokens_per_minute, body.budget], Object.values(terms));
    const [listed] = (await ask("/keys?find=ACM")).body.keys;
    assert.deepEqual([listed.tokens_per_minute, listed.budget], Object.values(terms));
    await until(async () => (await chat(body.key)).status === 402, "the budget to refuse");

    const none = { tokens_per_minute: null, budget: null };
    const free = await ask("/keys", "POST", { account: "acme", ...none });
    assert.equal(free.status, 201);
    assert.ok(!("budget" in free.body) && !("tokens_per_minute" in free.body));
  });

  it("are found by a part of the id, the account or the name, those of the configuration too", async (t) => {
    const { ask } = await setUp(t);
    await ask("/keys", "POST", { account: "acme", name: "Batch" });
    const found = async (find: string) => {
      const { keys, total } = (await ask(`/keys?find=${find}`)).body;
      return [keys.map(({ account }: { account: string }) => account), total];
    };
    assert.deepEqual(await found("batch"), [["acme"], 1]);
    assert.deepEqual(await found("dem"), [["demo"], 1]);
    assert.deepEqual(await found("nobody"), [[], 0]);
    assert.equal((await ask("/keys?search=x")).status, 400);
  });

  it("a change is logged with the user name that the browser sent; a change of the file with its ids", async (t) => {
    const { gw } = await setUp(t);
    const response = await fetch(`${gw.gateway.adminAddress()!}/keys`, {
      method: "POST",
      headers: {
        origin: gw.gateway.adminAddress()!,
        "content-type": "application/json",
        authorization: `Basic ${Buffer.from("alice:anything").toString("base64")}`,
      },
      body: JSON.stringify({ account: "acme" }),
    });
    const { key_id } = (await response.json()) as { key_id: string };
    const made = gw.diagnostics.find(({ event }) => event === "key_created");
    assert.deepEqual([made?.["user"], made?.["key_id"]], ["alice", key_id]);
    const changed = await until(
      async () => gw.diagnostics.find(({ event }) => event === "keys_changed"),
      "the line about the changed file",
    );
    assert.deepEqual([changed["created"], changed["revoked"]], [[key_id], []]);
  });

  it("a keys.json that cannot be read is no fault of the request", async (t) => {
    const { ask, dataDir } = await setUp(t);
    writeFileSync(join(dataDir, "keys.json"), "[{");
    for (const [path, method, body] of [
      ["/keys", "GET"],
      ["/keys", "POST", { account: "a" }],
      ["/keys/key_1", "DELETE"],
    ] as const) {
      const { status, body: answer } = await ask(path, method, body);
      assert.deepEqual([status, answer.error.code], [500, "internal_error"], method);
      assert.match(
        answer.error.message,
        /keys\.json is not JSON: the fault is at line 1, column 3/,
      );
    }
  });

  it("what cannot be is told, with the name of what is wrong", async (t) => {
    const { ask } = await setUp(t);
    const cases: [body: object, param: string, message: RegExp][] = [
      [{}, "account", /required/],
      [{ account: "" }, "account", /1 to 200 characters/],
      [{ account: "a", name: "red\u001b[31m" }, "name", /control character/],
      [{ account: "a", rpm: -1 }, "rpm", /0/],
      [{ account: "a", rpm: "many" }, "rpm", /integer|number/],
      [{ account: "a", tokens_per_minute: 1.5 }, "tokens_per_minute", /integer/],
      [{ account: "a", budget: { amount: "-1", period: "day" } }, "budget.amount", /5\.00/],
      [{ account: "a", budget: { amount: "1", period: "hour" } }, "budget.period", /day/],
      [{ account: "a", budget: { amount: "1" } }, "budget.period", /required/],
      [{ account: "a", models: ["none"] }, "models[0]", /no model or alias/],
      [{ account: "a", expires: "2020-01-01" }, "expires", /a date to come/],
      [{ account: "a", limit: 1 }, "limit", /not a known field/],
    ];
    for (const [body, param, message] of cases) {
      const answer = await ask("/keys", "POST", body);
      assert.deepEqual([answer.status, answer.body.error.param], [400, param]);
      assert.match(answer.body.error.message, message);
    }
    assert.equal((await ask("/keys")).body.keys.length, 1, "none was made");
  });

  it("a key of the configuration, and one that there is not, cannot be revoked", async (t) => {
    const { ask, dataDir } = await setUp(t);
    const [configured] = (await ask("/keys")).body.keys;
    const refused = await ask(`/keys/${configured.key_id}`, "DELETE");
    assert.equal(refused.status, 400);
    assert.match(refused.body.error.message, /stands in the configuration/);
    // Nor is one revoked that stands there too: it would go on.
    const file = join(dataDir, "keys.json");
    const made = await ask("/keys", "POST", { account: "acme" });
    const text = readFileSync(file, "utf8").replaceAll(made.body.key_id, configured.key_id);
    writeFileSync(file, text);
    assert.equal((await ask(`/keys/${configured.key_id}`, "DELETE")).status, 400);
    assert.match((await ask("/keys/key_none", "DELETE")).body.error.message, /no key of this id/);
  });

  it("another site's page can neither make nor revoke one", async (t) => {
    const { gw, ask } = await setUp(t);
    for (const [path, method] of [
      ["/keys", "POST"],
      ["/keys/key_none", "DELETE"],
    ] as const) {
      const answer = await ask(path, method, { account: "evil" }, "http://evil.example");
      assert.deepEqual([answer.status, answer.body.error.code], [403, "origin_not_allowed"]);
    }
    assert.equal((await ask("/keys")).body.keys.length, 1);
    assert.deepEqual(
      gw.diagnostics.filter(({ event }) => event === "key_created"),
      [],
    );
  });
});
