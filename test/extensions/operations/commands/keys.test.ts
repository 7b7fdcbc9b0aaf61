// Keys made by `keys create`: by the real command line, in a running gateway that notices them
// within a second; what they may do, how they end, and how an unreadable file is handled.

import assert from "node:assert/strict";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { keyIdOf } from "../../../../src/core/accounts/keyring.ts";
import { sha256 } from "../../../../src/core/hash.ts";
import { keysFault } from "../../../../src/extensions/operations/keys/created-keys.ts";
import { configFile, only, type Line } from "../../../support/books.ts";
import { assertFails, assertOneLine, ended } from "../../../support/command.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, json, KEY, startGateway, startWith, user } from "../../../support/gateway.ts";
import { runHere } from "../../../support/run-here.ts";
import { speak } from "../../../support/provider.ts";
import { until, waitFor } from "../../../support/wait.ts";
import "../../../support/today.ts"; // for its clock

/** A running gateway with models m and n, and its command line. */
async function world(t: TestContext, over: object = {}, deps: object = {}) {
  const dir = folder();
  const behaviours = { m: speak("Hi."), n: speak("Hi.") };
  const aliases = { team: { models: ["n", "m"] } };
  const { config, ...gw } = await startWith(
    t,
    behaviours,
    { data_dir: dir, aliases, ...over },
    deps,
  );
  const file = configFile(config);
  const keys = (...args: string[]) => runHere(["keys", ...args, "--config", file]);
  return {
    ...{ dir, gw, config, keys },
    /** Creates a key. Returns the key and its details. */
    async create(...args: string[]): Promise<Line> {
      const { code, stdout, stderr } = await keys("create", ...args, "--json");
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    },
    ask: (key: string, model = "m") =>
      gw.chat({ model, messages: user("hi") }, { authorization: `Bearer ${key}` }),
    stored: () => JSON.parse(fs.readFileSync(join(dir, "keys.json"), "utf8")) as Line[],
    write: (keysOf: unknown) => fs.writeFileSync(join(dir, "keys.json"), JSON.stringify(keysOf)),
  };
}

/** The response of /v1/models with this key, once its status differs from `not`. */
const heard = ({ url }: { readonly url: string }, key: string, not: number): Promise<Response> =>
  until(async () => {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${url}/v1/models`, { headers });
    if (response.status !== not) return response;
    await response.text();
    return undefined;
  }, `the gateway to hear of the key: still ${not}`);

async function assertDisabled(response: Response): Promise<void> {
  const { error } = await json(response);
  assert.deepEqual(
    [response.status, error.type, error.code, response.headers.get("www-authenticate")],
    [401, "authentication_error", "api_key_disabled", 'Bearer error="invalid_token"'],
  );
}

const everyFile = (dir: string): string =>
  fs
    .readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => fs.readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8"))
    .join("\n");

describe("a key's life", { concurrency: 3 }, () => {
  it("created, noticed, used within its limits, listed, revoked; shown once and stored nowhere", async (t) => {
    const { dir, gw, keys, ask, stored } = await world(t);
    const terms = ["--account", "beta", "--name", "Jo's key", "--rpm", "3", "--models", "m,team"];
    const { code, stdout, stderr } = await keys("create", ...terms);
    assert.equal(code, 0);
    assert.match(stdout, /^sk-[\w-]{32}\n$/);
    const key = stdout.trim();
    const [entry, ...others] = stored();
    assert.equal(others.length, 0);
    const { key_id, sha256, created, ...rest } = entry!;
    const models = ["m", "team"];
    const none = { expires: null, revoked: null };
    assert.deepEqual(rest, { account: "beta", name: "Jo's key", rpm: 3, models, ...none });
    assert.match(key_id, /^key_[0-9a-f]{16}$/);
    assert.ok(Math.abs(Date.parse(created) - Date.now()) < 60_000);
    assert.match(stderr, new RegExp(`^chat-gateway: ${key_id} of account beta: [^\\n]*\\n$`));
    assert.ok(!stderr.includes(key));
    assert.equal(fs.statSync(join(dir, "keys.json")).mode & 0o777, 0o600);

    const { data } = await json(await heard(gw, key, 401));
    assert.equal(data.map(({ id }: Line) => id).join(), models.join());
    assert.equal((await json(await ask(key, "n"))).error.code, "model_not_allowed");
    const response = await ask(key);
    assert.equal(response.headers.get("x-ratelimit-limit-requests"), "3");
    await response.text();
    const { settle } = only(dir);
    assert.deepEqual([settle["account"], settle["key_id"]], ["beta", key_id]);
    const { model } = await json(await ask(key, "team"));
    assert.equal(model, "m", "of the alias's models only the one that it may use by name");
    assert.equal((await ask(key)).status, 429);

    const [listed, table] = await Promise.all([keys("list", "--json"), keys("list")]);
    const [fixed, made, ...more] = JSON.parse(listed.stdout) as [Line, Line];
    assert.deepEqual([fixed["account"], fixed["created"], more.length], ["acme", null, 0]);
    assert.deepEqual(made, { key_id, ...rest, created });
    assert.match(table.stdout, new RegExp(`\\n *${key_id} +beta +Jo's key +3 +m,team +`));
    for (const { stdout: text } of [listed, table])
      assert.ok(!text.includes(key) && !text.includes(sha256));

    for (const end of await Promise.all([keys("revoke", key_id), keys("revoke", key_id)]))
      assert.deepEqual([end.code, end.stdout], [0, `${key_id} of account beta is revoked\n`]);
    await assertDisabled(await heard(gw, key, 200));
    await assertDisabled(await ask(key));
    assert.equal((await ask(KEY)).status, 200, "other keys still work");
    const texts = everyFile(dir);
    assert.ok(!texts.includes(key.slice(3)) && texts.includes(sha256));
  });

  it("expires exactly on time, also if the time is set in the file", async (t) => {
    const clock = { now: Date.now() };
    const { gw, create, ask, stored, write } = await world(t, {}, { now: () => clock.now });
    const { key, expires } = await create("--account", "beta", "--expires", "2031-02-03");
    assert.equal(expires, "2031-02-03T00:00:00.000Z");
    await heard(gw, key, 401);
    clock.now = Date.parse("2031-02-02T23:59:59.999Z");
    assert.equal((await ask(key)).status, 200);
    clock.now += 1;
    await assertDisabled(await ask(key));
    const set = (time: string | null) =>
      write(stored().map((entry) => ({ ...entry, expires: time })));
    set(null);
    assert.equal((await heard(gw, key, 401)).status, 200);
    set("2031-01-01T00:00:00Z");
    await assertDisabled(await heard(gw, key, 200));
  });

  it("keeps the fields of others in the file, whichever key is made or revoked", async (t) => {
    const { create, keys, stored, write } = await world(t);
    const { key_id } = await create("--account", "beta");
    write(stored().map((row) => ({ ...row, team: { cost_centre: 7 } })));
    await create("--account", "gamma");
    assert.equal((await keys("revoke", String(key_id))).code, 0);
    const [beta, gamma] = stored();
    assert.deepEqual([beta!["team"], gamma!["team"]], [{ cost_centre: 7 }, undefined]);
    assert.ok(beta!["revoked"]);
  });

  it("ten keys created at once are ten keys", async (t) => {
    const { create, stored } = await world(t);
    const accounts = Array.from({ length: 10 }, (_, at) => `account ${at}`);
    const made = await Promise.all(accounts.map((account) => create("--account", account)));
    assert.equal(new Set(made.map(({ key }) => key)).size, 10);
    const idsOf = (list: readonly Line[]) => list.map(({ key_id, account }) => [key_id, account]);
    assert.deepEqual(idsOf(stored()).sort(), idsOf(made).sort());
  });
});

/** A configuration for commands alone, and its data_dir. */
function place(over: object = {}): { dir: string; file: string } {
  const dir = folder();
  const config = configFor("http://127.0.0.1:1", ["m"], { data_dir: dir, ...over });
  return { dir, file: configFile(config) };
}

describe("a rejected keys command", () => {
  const withOption = (option: string, words: RegExp, values: readonly string[]) =>
    values.map((value) => [["create", "--account=a", `${option}=${value}`], words] as const);

  for (const [args, words, code = 2] of [
    [["create"], /keys create needs --account/],
    ...withOption("--models", /--models: there is no model or alias named 'ghost'/, ["m,ghost"]),
    ...withOption("--rpm", /--rpm must be a number/, ["many", " ", "", "0x10", "1.5", "1000001"]),
    ...withOption("--tokens-per-minute", /-minute must be a number/, ["", "1.5"]),
    ...withOption("--tokens-per-minute", /a number .* at most 1000000000$/m, ["1000000001"]),
    ...withOption("--budget", /--budget must be an amount and a period such as 5\.00\/day/, [
      ...["5", "5/week", "5/day/month", "5/", "/day", " 5/day", "1e3/day", "-5/day", "05/day"],
    ]),
    ...withOption("--budget", /, the amount below 1000000000/, ["1234567890/day"]),
    ...withOption("--expires", /--expires: expected a date/, ["2031-02-30x", "2031-02-30"]),
    ...withOption("--expires", /--expires: expected a date to come/, ["2020-02-02"]),
    [["revoke"], /keys revoke needs KEY_ID/],
    [["revoke", "key_00"], /there is no key key_00; 'keys list' shows them/, 1],
    [["revoke", keyIdOf(sha256(KEY))], /is in the configuration/, 1],
  ] as readonly (readonly [readonly string[], RegExp, number?])[])
    it(`keys ${args.join(" ")}: one line, exit ${code}, and no file`, async () => {
      const { dir, file } = place();
      const end = await runHere(["keys", ...args, "--config", file]);
      assertFails(end, code, words);
      assert.deepEqual(fs.readdirSync(dir), []);
    });

  it("a key of the configuration whose variable is not set here has no id", async () => {
    const keys = ["$UNSET", "sk-b", "$UNSET_TOO"].map((key, at) => ({ account: "abc"[at], key }));
    const end = await runHere(["keys", "list", "--json", "--config", place({ keys }).file]);
    const listed = JSON.parse(end.stdout).map(({ key_id, name }: Line) => [typeof key_id, name]);
    const hidden = ["object", "(in the configuration; its secret cannot be read here)"];
    assert.deepEqual(listed, [hidden, ["string", "(in the configuration)"], hidden]);
  });
});

describe("a keys.json that cannot be read", () => {
  const digest = "0123456789abcdef".repeat(4);
  const entry = {
    ...{ key_id: "key_1", account: "beta", name: null, sha256: digest, rpm: null, models: null },
    ...{ created: "2026-01-01T00:00:00.000Z", expires: null, revoked: null },
  };
  const spoilt = [{ ...entry, sha256: `${digest}CANARY` }];

  for (const [what, text, words] of [
    ["no JSON", "[{", /keys\.json is not JSON/],
    ["no list", "{}", /expected an array/],
    ["a key without a digest", [{ ...entry, sha256: undefined }], /\[0\]\.sha256/],
    ["an invalid digest", spoilt, /\[0\]\.sha256: expected 64 lower-case hexadecimal digits/],
    ["an invalid expiry time", [{ ...entry, expires: "soon" }], /\[0\]\.expires/],
  ] as const)
    it(`${what}: no command reads or overwrites it: one line, exit 1`, async () => {
      const { dir, file } = place();
      const path = join(dir, "keys.json");
      const written = typeof text === "string" ? text : JSON.stringify(text);
      fs.writeFileSync(path, written);
      for (const args of [["create", "--account", "a"], ["list"]]) {
        const end = await runHere(["keys", ...args, "--config", file]);
        assertOneLine(end, words);
        assert.doesNotMatch(end.stderr, /CANARY/);
        assert.equal(end.code, 1);
      }
      assert.equal(fs.readFileSync(path, "utf8"), written);
    });

  it("a running gateway keeps its keys and reports that; a gateway that starts fails", async (t) => {
    const { dir, gw, config, ask, write } = await world(t);
    fs.writeFileSync(join(dir, "keys.json"), "[{");
    await waitFor(() => keysFault(dir) !== null, "the fault of a file that never had a key");
    fs.rmSync(join(dir, "keys.json"));
    await waitFor(() => keysFault(dir) === null, "the end of this fault with its file");
    const key = "sk-made-by-hand";
    const good = { ...entry, sha256: sha256(key) };
    write([good]);
    await heard(gw, key, 401);
    const faults = [
      [{}, /^error: .*keys\.json: expected an array/],
      [spoilt, /^error: .*keys\.json: \[0\]\.sha256/],
    ] as const;
    for (const [at, [keys, words]] of faults.entries()) {
      write(keys);
      const find = () => gw.diagnostics.filter(({ event }) => event === "keys_unreadable")[at + 1];
      const { level, detail } = await waitFor(find, "the fault to be told");
      assert.match(`${level}: ${detail}`, words);
      assert.doesNotMatch(String(detail), /CANARY/);
    }
    assert.deepEqual([(await ask(key)).status, (await ask(KEY)).status], [200, 200]);
    await assert.rejects(startGateway(t, config), /\[0\]\.sha256/);
    write([{ ...good, revoked: "2026-01-01T00:00:00.000Z" }]);
    await assertDisabled(await heard(gw, key, 200));
  });
});

it("keys created by root for another user's gateway belong to the owner of data_dir", {
  skip: process.getuid?.() !== 0 && "this takes root",
}, async (t) => {
  const dir = fs.mkdtempSync(join(tmpdir(), "chat-gateway-")); // accessible to other users
  t.after(() => fs.rmSync(dir, { recursive: true }));
  const { file } = place({ data_dir: dir });
  fs.chownSync(dir, 65_534, 65_534);
  const create = ["keys", "create", "--account", "acme"];
  for (const args of [create, ["audit"]])
    assert.equal((await ended(t, [...args, "--config", file])).code, 0);
  const names = fs.readdirSync(dir, { recursive: true, encoding: "utf8" });
  assert.ok(names.length >= 2, String(names));
  for (const name of names) assert.equal(fs.statSync(join(dir, name)).uid, 65_534, name);
});
