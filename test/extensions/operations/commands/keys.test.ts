// The keys that `keys create` makes: by the real command line, in a gateway that runs meanwhile and
// hears of them within a second; what they may do, how they end, and what becomes of a file that
// cannot be read.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { configFile, only, type Line } from "../../../support/books.ts";
import { assertOneLine, ended, lines } from "../../../support/command.ts";
import { folder } from "../../../support/folder.ts";
import {
  configFor,
  json,
  KEY,
  startGateway,
  user,
  type RunningGateway,
} from "../../../support/gateway.ts";
import { bundled, type Ended } from "../../../support/program.ts";
import { runHere } from "../../../support/run-here.ts";
import { speak, startProvider } from "../../../support/provider.ts";
import { until, waitFor } from "../../../support/wait.ts";
import { now } from "../../../support/today.ts";

const BUSY_MS = 5_000;

/** A running gateway with models m and n, and its command line. */
async function world(
  t: TestContext,
  over: object = {},
  deps: object = {},
  runCommand: (args: readonly string[]) => Promise<Ended> = runHere,
) {
  const dir = folder();
  const provider = await startProvider(t, { m: speak("Hi."), n: speak("Hi.") });
  const config = configFor(provider.url, ["m", "n"], {
    data_dir: dir,
    aliases: { team: { models: ["n", "m"] } },
    ...over,
  });
  const gw = await startGateway(t, config, deps);
  const file = configFile(config);
  const keys = (...args: string[]) => runCommand(["keys", ...args, "--config", file]);
  /** Makes a key; what it is and what is known of it. */
  const create = async (...args: string[]): Promise<Line> => {
    const { code, stdout, stderr } = await keys("create", ...args, "--json");
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const ask = (key: string, model = "m") =>
    gw.chat({ model, messages: user("hi") }, { authorization: `Bearer ${key}` });
  return {
    dir,
    gw,
    config,
    keys,
    create,
    ask,
    stored: () => JSON.parse(readFileSync(join(dir, "keys.json"), "utf8")) as Line[],
  };
}

/**
 * The answer of /v1/models with this key, as soon as its status is another than `not`. The gateway
 * hears of a change within a second where the machine is not busy.
 */
const heard = ({ url }: RunningGateway, key: string, not: number): Promise<Response> =>
  until(
    async () => {
      const response = await fetch(`${url}/v1/models`, {
        headers: { authorization: `Bearer ${key}` },
      });
      if (response.status !== not) return response;
      await response.text();
      return undefined;
    },
    `the gateway to hear of the key: still ${not}`,
    BUSY_MS,
  );

async function assertDisabled(response: Response): Promise<void> {
  const { error } = await json(response);
  assert.deepEqual(
    [response.status, error.type, error.code, response.headers.get("www-authenticate")],
    [401, "authentication_error", "api_key_disabled", 'Bearer error="invalid_token"'],
  );
}

/** The text of every file under a folder. */
const everyFile = (dir: string): string =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8"))
    .join("\n");

describe("a key's life", { concurrency: 3 }, () => {
  it("made, heard of, used within its limits, listed, revoked; shown once and stored nowhere", async (t) => {
    const { dir, gw, keys, ask, stored } = await world(t);
    const { code, stdout, stderr } = await keys(
      "create",
      "--account",
      "beta",
      "--name",
      "Jo's key",
      "--rpm",
      "3",
      "--models",
      "m,team",
    );
    assert.equal(code, 0);
    assert.match(stdout, /^sk-[\w-]{32}\n$/);
    const key = stdout.trim();
    const [entry, ...others] = stored();
    assert.equal(others.length, 0);
    const { key_id, sha256, created, ...rest } = entry!;
    assert.deepEqual(
      Object.keys(entry!).filter((name) => name !== "expires"),
      ["key_id", "account", "name", "sha256", "rpm", "models", "created", "revoked"],
    );
    assert.deepEqual(rest, {
      account: "beta",
      name: "Jo's key",
      rpm: 3,
      models: ["m", "team"],
      expires: null,
      revoked: null,
    });
    assert.match(key_id, /^key_[0-9a-f]{16}$/);
    assert.ok(Math.abs(Date.parse(created) - Date.now()) < 60_000);
    assert.ok(
      stderr.startsWith(`chat-gateway: ${key_id} of account beta: `) &&
        lines(stderr).length === 1 &&
        !stderr.includes(key),
      stderr,
    );
    assert.equal(statSync(join(dir, "keys.json")).mode & 0o777, 0o600);

    const names = await json(await heard(gw, key, 401));
    assert.deepEqual(
      names.data.map(({ id }: Line) => id),
      ["m", "team"],
    );
    assert.equal((await json(await ask(key, "n"))).error.code, "model_not_allowed");
    const response = await ask(key);
    assert.deepEqual(
      [response.status, response.headers.get("x-ratelimit-limit-requests")],
      [200, "3"],
    );
    await response.text();
    assert.equal(
      (await json(await ask(key, "team"))).model,
      "m",
      "of the models behind the alias only the one that it may use by name",
    );
    assert.equal((await ask(key)).status, 429);
    await waitFor(() => gw.access.some((line) => line["status"] === 429), "the access log");
    assert.ok(
      gw.access
        .filter(({ path }) => path === "/v1/chat/completions")
        .every((line) => line["account"] === "beta" && line["key_id"] === key_id),
    );

    const [listed, table] = await Promise.all([keys("list", "--json"), keys("list")]);
    const [fixed, made, ...more] = JSON.parse(listed.stdout) as [Line, Line];
    assert.deepEqual([fixed["account"], fixed["created"], more.length], ["acme", null, 0]);
    assert.deepEqual(made, { key_id, ...rest, created });
    assert.match(table.stdout, new RegExp(`\\n *${key_id} +beta +Jo's key +3 +m,team +`));
    for (const { stdout } of [listed, table])
      assert.ok(!stdout.includes(key) && !stdout.includes(sha256));

    const both = await Promise.all([keys("revoke", key_id), keys("revoke", key_id)]);
    assert.deepEqual(
      both.map(({ code, stdout }) => [code, stdout]),
      Array(2).fill([0, `${key_id} of account beta is revoked\n`]),
      "once revoked it stays so",
    );
    await assertDisabled(await heard(gw, key, 200));
    await assertDisabled(await ask(key));
    assert.equal((await ask(KEY)).status, 200, "other keys go on");
    assert.ok(!everyFile(dir).includes(key.slice(3)) && everyFile(dir).includes(sha256));
  });

  it("its account's limit is shared with the account's other keys, and its spend is the account's", async (t) => {
    const { dir, gw, create, ask } = await world(t, {
      accounts: { acme: { rpm: 3 } },
      limits: { rpm: 1 },
    });
    const { key, key_id } = await create("--account", "acme");
    await heard(gw, key, 401);
    const statuses = [];
    for (const each of [key, KEY, key, KEY, key]) {
      const response = await ask(each, statuses.length === 0 ? "m" : "ghost");
      statuses.push(response.status);
      await response.text();
    }
    assert.deepEqual(statuses, [200, 404, 404, 429, 429]);
    const { settle } = only(dir);
    assert.deepEqual([settle["account"], settle["key_id"]], ["acme", key_id]);
  });

  it("expires: at its time, not before; so does one whose time is set in the file", async (t) => {
    const clock = { now: now() };
    const { dir, gw, create, ask, stored } = await world(t, {}, { now: () => clock.now });
    const { key, expires } = await create("--account", "beta", "--expires", "2031-02-03");
    assert.equal(expires, "2031-02-03T00:00:00.000Z");
    await heard(gw, key, 401);
    clock.now = Date.parse("2031-02-02T23:59:59.999Z");
    assert.equal((await ask(key)).status, 200);
    clock.now += 1;
    await assertDisabled(await ask(key));
    const set = (time: string | null) =>
      writeFileSync(
        join(dir, "keys.json"),
        JSON.stringify(stored().map((entry) => ({ ...entry, expires: time }))),
      );
    set(null);
    assert.equal((await heard(gw, key, 401)).status, 200);
    set("2031-01-01T00:00:00Z");
    await assertDisabled(await heard(gw, key, 200));
  });

  it("ten made at once are ten keys", async (t) => {
    // Processes, which wait for each other's lock; of one file, which each need not compile.
    const program = bundled(folder());
    const runProcess = (args: readonly string[]) => ended(t, args, { program });
    const { create, stored, gw } = await world(t, {}, {}, runProcess);
    const made = await Promise.all(
      Array.from({ length: 10 }, (_, at) => create("--account", `account ${at}`)),
    );
    assert.equal(new Set(made.map(({ key }) => key)).size, 10);
    assert.deepEqual(
      stored()
        .map(({ key_id, account }) => [key_id, account])
        .sort(),
      made.map(({ key_id, account }) => [key_id, account]).sort(),
    );
    await Promise.all(
      made.map(async ({ key }) => assert.equal((await heard(gw, key, 401)).status, 200)),
    );
  });
});

describe("what cannot be", { concurrency: 3 }, () => {
  for (const [args, code, words] of [
    [["create"], 2, /keys create needs --account/],
    [
      ["create", "--account", "a", "--models", "m,ghost"],
      2,
      /--models: there is no model or alias named 'ghost'/,
    ],
    ...["many", " ", "", "0x10", "1e3", "1.5", "1000001", "12345678"].map(
      (rpm) => [["create", "--account", "a", "--rpm", rpm], 2, /--rpm must be a number/] as const,
    ),
    ...["many", " ", "", "0x10", "1e3", "1.5", "1234567890"].map(
      (tokens) =>
        [
          ["create", "--account", "a", "--tokens-per-minute", tokens],
          2,
          /--tokens-per-minute must be a number/,
        ] as const,
    ),
    ...["5", "5/week", "5/day/month", "5/", "/day", " 5/day", "1e3/day", "0x10/day", "-5/day"].map(
      (budget) =>
        [
          ["create", "--account", "a", `--budget=${budget}`],
          2,
          /--budget must be an amount and a period such as 5\.00\/day/,
        ] as const,
    ),
    [["create", "--account", "a", "--expires", "2031-02-30x"], 2, /--expires: expected a date/],
    [["create", "--account", "a", "--expires", "2031-02-30"], 2, /--expires: expected a date/],
    [
      ["create", "--account", "a", "--expires", "2020-02-02"],
      2,
      /--expires: expected a date to come/,
    ],
    [["revoke"], 2, /keys revoke needs KEY_ID/],
    [
      ["revoke", "key_0000000000000000"],
      1,
      /there is no key key_0000000000000000; 'keys list' shows them/,
    ],
  ] as const) {
    it(`keys ${args.join(" ")}: one line, exit ${code}, and no file`, async () => {
      const dir = folder();
      const end = await runHere([
        "keys",
        ...args,
        "--config",
        configFile(configFor("http://127.0.0.1:1", ["m"], { data_dir: dir })),
      ]);
      assertOneLine(end, words);
      assert.equal(end.code, code);
      assert.ok(!existsSync(join(dir, "keys.json")));
    });
  }

  it("a key of the configuration whose variable is not set here has no id", async () => {
    const keys = [
      { account: "a", key: "$NOT_SET_HERE" },
      { account: "b", key: "sk-b" },
    ];
    const file = configFile(configFor("http://127.0.0.1:1", ["m"], { keys }));
    const end = await runHere(["keys", "list", "--json", "--config", file]);
    assert.deepEqual(
      (JSON.parse(end.stdout) as { key_id: unknown; account: string; name: string }[]).map(
        ({ key_id, account, name }) => [typeof key_id, account, name],
      ),
      [
        ["object", "a", "(in the configuration; its secret cannot be read here)"],
        ["string", "b", "(in the configuration)"],
      ],
    );
  });

  it("revoking a key of the configuration: exit 1, and where it stands", async (t) => {
    const { keys, ask, gw } = await world(t);
    await (await ask(KEY)).text();
    const end = await keys(
      "revoke",
      String((await waitFor(() => gw.access[0], "the access log"))["key_id"]),
    );
    assertOneLine(end, /stands in the configuration/);
    assert.equal(end.code, 1);
  });
});

describe("a keys.json that cannot be read", { concurrency: 6 }, () => {
  const digest = "0123456789abcdef".repeat(4);
  const entry = {
    key_id: "key_1",
    account: "beta",
    name: null,
    sha256: digest,
    rpm: null,
    models: null,
    created: "2026-01-01T00:00:00.000Z",
    expires: null,
    revoked: null,
  };
  const BROKEN: [name: string, text: string][] = [
    ["no JSON", "[{"],
    ["no list", "{}"],
    ["a key without a digest", JSON.stringify([{ ...entry, sha256: undefined }])],
    ["a digest that is none", JSON.stringify([{ ...entry, sha256: `${digest}CANARY` }])],
    ["a time of expiry that is none", JSON.stringify([{ ...entry, expires: "soon" }])],
  ];
  for (const [name, text] of BROKEN) {
    it(`${name}: the gateway keeps the keys that it has and says so; one that starts does not`, async (t) => {
      const { dir, gw, config, ask } = await world(t);
      const key = "sk-made-by-hand";
      const good = { ...entry, sha256: createHash("sha256").update(key).digest("hex") };
      const file = join(dir, "keys.json");
      writeFileSync(file, JSON.stringify([good]));
      await heard(gw, key, 401);
      writeFileSync(file, text);
      const told = await waitFor(
        () => gw.diagnostics.find(({ event }) => event === "keys_unreadable"),
        "the fault to be told",
      );
      assert.equal(told["level"], "error");
      assert.doesNotMatch(JSON.stringify(told), /CANARY/);
      assert.deepEqual([(await ask(key)).status, (await ask(KEY)).status], [200, 200]);
      await assert.rejects(startGateway(t, config), /keys\.json|\[0\]|sha256|expires|array|list/);
      writeFileSync(file, JSON.stringify([{ ...good, revoked: "2026-01-01T00:00:00.000Z" }]));
      await assertDisabled(await heard(gw, key, 200));
    });
  }

  it("is not written over, and no gateway starts on it: one line, exit 1", async (t) => {
    const dir = folder();
    writeFileSync(join(dir, "keys.json"), "[{");
    const file = configFile(configFor("http://127.0.0.1:1", ["m"], { data_dir: dir }));
    for (const args of [["keys", "create", "--account", "a"], ["keys", "list"], ["serve"]]) {
      const whole = [...args, "--config", file];
      const end = await (args[0] === "serve" ? ended(t, whole) : runHere(whole));
      assertOneLine(end, /keys\.json is not JSON/);
      assert.equal(end.code, 1);
    }
    assert.equal(readFileSync(join(dir, "keys.json"), "utf8"), "[{");
  });
});

describe("made for a gateway that is another user's", () => {
  it("by root: what is written belongs to the owner of data_dir", {
    skip: process.getuid?.() !== 0 && "this takes root",
  }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "chat-gateway-")); // other users can get there
    t.after(() => rmSync(dir, { recursive: true }));
    const file = configFile(configFor("http://127.0.0.1:9", ["m"], { data_dir: dir }));
    chownSync(dir, 65_534, 65_534);
    assert.equal(
      (await ended(t, ["keys", "create", "--account", "acme", "--config", file])).code,
      0,
    );
    assert.equal((await ended(t, ["audit", "--config", file])).code, 0);
    const owners = readdirSync(dir, { recursive: true, encoding: "utf8" }).map((name) => [
      name,
      statSync(join(dir, name)).uid,
    ]);
    assert.ok(owners.length >= 2, String(owners));
    assert.deepEqual(
      owners.filter(([, uid]) => uid !== 65_534),
      [],
    );
  });

  it("a file that can no longer be read is told, and the keys before it stay", {
    skip: process.getuid?.() === 0 && "root reads everything",
  }, async (t) => {
    const { gw, dir, create, ask } = await world(t);
    const { key } = await create("--account", "acme");
    await heard(gw, key, 401);
    chmodSync(join(dir, "keys.json"), 0);
    await waitFor(
      () => gw.diagnostics.find(({ event }) => event === "keys_unreadable"),
      "the fault to be told",
    );
    assert.equal((await ask(key)).status, 200);
  });
});
