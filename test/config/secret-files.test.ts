// Secrets in files ("$file:PATH"): where they are allowed, what is rejected and how it is reported,
// and their rotation while the gateway runs.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createSecretFiles } from "../../src/config/secrets.ts";
import { sha256 } from "../../src/core/hash.ts";
import { lines, run, type Running } from "../support/command.ts";
import { loadConfig } from "../support/config.ts";
import { folder, replace } from "../support/folder.ts";
import { configFor, demo, KEY, user } from "../support/gateway.ts";
import { runHere } from "../support/run-here.ts";
import { speak, startProvider } from "../support/provider.ts";
import { waitFor } from "../support/wait.ts";

/** Writes a configuration file and files of secrets to a new folder. */
function place(config: object, secrets: Readonly<Record<string, string | Buffer>> = {}) {
  const dir = folder();
  const file = join(dir, "gateway.json");
  const at = (name: string) => join(dir, name);
  writeFileSync(file, JSON.stringify({ data_dir: at("data"), ...config }));
  for (const [name, content] of Object.entries(secrets)) writeFileSync(at(name), content);
  return { dir, file, at };
}

const withKey = (api_key: string) =>
  configFor("http://127.0.0.1:1", ["m"], { providers: { lab: { api_key } } });

/** The provider's key in a configuration with this `api_key`. */
async function keyOf(api_key: string, secrets: Readonly<Record<string, string>>) {
  const { file } = place(withKey(api_key), secrets);
  const { config } = await loadConfig({ file, env: {} });
  return config.providers.get("lab")?.api_key;
}

describe("a secret in a file", () => {
  for (const end of ["", "\n", "\r\n"])
    it(`is the file's content without one trailing line end: ${JSON.stringify(end)}`, async () =>
      assert.equal(await keyOf("$file:key", { key: `sk-1${end}` }), "sk-1"));

  it("is found relative to the configuration file's folder, or by its absolute path", async () => {
    assert.equal(await keyOf("$file:./key", { key: "sk-here" }), "sk-here");
    const elsewhere = place({}, { key: "sk-there" }).at("key");
    assert.equal(await keyOf(`$file:${elsewhere}`, { key: "sk-here" }), "sk-there");
  });
  it("is allowed wherever a secret is", async () => {
    const { file } = place(
      demo({
        keys: [{ account: "a", key: "$file:client" }],
        admin: { password: "$file:password" },
        limits: { store: "$file:redis" },
        usage: { store: "$file:postgres" },
        providers: { demo: { api_key: "$file:provider" } },
      }),
      {
        client: "sk-client\n",
        password: "open\n",
        redis: "redis://127.0.0.1:1\n",
        postgres: "postgres://127.0.0.1:1/usage\n",
        provider: "sk-provider\n",
      },
    );
    const { config } = await loadConfig({ file, env: {} });
    const { admin, usage } = config as unknown as Record<string, Record<string, unknown>>;
    assert.deepEqual(
      [config.keys[0]?.digest, admin?.["password"], config.limits.store, usage?.["store"]],
      [sha256("sk-client"), "open", "redis://127.0.0.1:1", "postgres://127.0.0.1:1/usage"],
    );
    assert.equal(config.providers.get("demo")?.api_key, "sk-provider");
  });

  it("is the same for all settings that name the file, even if the file changes while it loads", () => {
    const { dir, at } = place({}, { key: "sk-1" });
    const files = createSecretFiles(dir);
    assert.equal(files.read("key", 10).text, "sk-1");
    writeFileSync(at("key"), "sk-2");
    assert.equal(files.read(at("key"), 10).text, "sk-1");
    assert.equal(files.all().length, 1);
  });

  it("that is too large has the same state as in the watcher, so it is no change", () => {
    const content = "k".repeat(65_537);
    const files = createSecretFiles(place({}, { key: content }).dir);
    assert.equal(files.read("key", 65_536).fault, "it has more than 65536 bytes");
    assert.deepEqual(
      files.all().map(({ state }) => state),
      [sha256(content)],
    );
  });
});

describe("a file without a secret", () => {
  const CANARY = "sk-CANARY";
  const expected = "expected printable ASCII without spaces, and one line end at most after it";
  const put = (content: string | Buffer) => (path: string) => writeFileSync(path, content);
  const cases: readonly [what: string, make: (path: string) => void, fault: string][] = [
    ["that is missing", () => undefined, "ENOENT"],
    ["that is empty", put(""), "it is empty"],
    ["with nothing but a line end", put("\n"), "it is empty"],
    ["with two line ends", put(`${CANARY}\n\n`), expected],
    ["with two lines", put(`${CANARY}\n${CANARY}`), expected],
    ["with a space", put(` ${CANARY}`), expected],
    ["with a control character", put(`${CANARY}\u0000`), expected],
    ["with a byte order mark", put(`\ufeff${CANARY}`), expected],
    ["with bytes that are not text", put(Buffer.from([0x73, 0x6b, 0xff])), expected],
    ["that is a folder", (path) => mkdirSync(path), "EISDIR"],
    [
      "that is a FIFO",
      (path) => execFileSync("mkfifo", [path]),
      "it is a FIFO, not a regular file",
    ],
    [
      "that is too large",
      (path) => {
        writeFileSync(path, "");
        truncateSync(path, 65_537);
      },
      "it has more than 65536 bytes",
    ],
  ];
  for (const [what, make, fault] of cases) {
    it(`${what} is reported with the setting and the file, never the content`, async () => {
      const { file, at } = place(withKey("$file:key"));
      make(at("key"));
      const { code, stderr } = await runHere(["check", "--config", file]);
      assert.equal(code, 1);
      assert.equal(
        stderr,
        `chat-gateway: providers.lab.api_key: no secret in the file ${at("key")}: ${fault}\n`,
      );
    });
  }

  const isRoot = process.getuid?.() === 0;
  it("that is unreadable is reported", { skip: isRoot && "root may read everything" }, async () => {
    const { file, at } = place(withKey("$file:key"), { key: CANARY });
    chmodSync(at("key"), 0);
    const { stderr } = await runHere(["check", "--config", file]);
    assert.match(stderr, /: EACCES\n$/);
  });

  it("of exactly the largest size is read and used", async () => {
    const longest = "k".repeat(65_536);
    assert.equal(await keyOf("$file:key", { key: longest }), longest);
  });

  it("does not hide other faults: check reports all at once, with --json too", async () => {
    const over = {
      keys: [{ account: "a", key: "$file:client" }],
      admin: { password: "$file:password" },
      limits: { store: "$file:store", rpm: "many" },
    };
    const contents = { client: "two words", password: "", store: "mysql://u:CANARY@x" };
    const { file, at } = place(configFor("http://127.0.0.1:1", ["m"], over), contents);
    const { code, stdout, stderr } = await runHere(["check", "--json", "--config", file]);
    const none = (name: string, why: string) => `no secret in the file ${at(name)}: ${why}`;
    const store = 'expected "memory" or the address of a Redis or Valkey server (redis://...)';
    const { faults, ...rest } = JSON.parse(stdout);
    assert.deepEqual([code, stderr, rest], [1, "", { ok: false }]);
    const told = faults.map(({ path, message }: Record<string, string>) => `${path}: ${message}`);
    assert.deepEqual(told.sort(), [
      `admin.password: ${none("password", "it is empty")}`,
      `keys[0].key: ${none("client", expected)}`,
      "limits.rpm: expected an integer, got a string",
      `limits.store: ${store}`,
    ]);
  });
});

/** The events of the log on stderr. */
const eventsIn = (gw: Running): Record<string, unknown>[] =>
  lines(gw.stderr()).map((line) => JSON.parse(line) as Record<string, unknown>);
const count = (gw: Running, name: string): number =>
  eventsIn(gw).filter((line) => line["event"] === name).length;

describe("the rotation of a secret", { concurrency: 2 }, () => {
  const OLD = "sk-CANARY-old-1f0a";
  const NEW = "sk-CANARY-new-93bd";

  /** Starts a gateway process whose provider's key is in a file. */
  async function started(t: TestContext) {
    const provider = await startProvider(t, speak("Fine."));
    const base = { providers: { lab: { api_key: "$file:secrets/key" } } };
    const { dir, file } = place({ ...configFor(provider.url, ["m"], base), data_dir: "data" });
    mkdirSync(join(dir, "secrets"));
    const key = join(dir, "secrets", "key");
    writeFileSync(key, `${OLD}\n`);
    const gw = run(t, ["--config", relative(dir, file)], { cwd: dir });
    const address = await gw.address();
    const chat = () =>
      fetch(`${address}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
        body: JSON.stringify({ model: "m", messages: user("hi") }),
      });
    const sent = () => provider.asked.map(({ headers }) => headers.authorization);
    return { dir, file, key, gw, chat, sent };
  }

  it("works by SIGHUP alone, and as Kubernetes does it, with a new target of the link ..data", async (t) => {
    const { dir, gw, chat, sent, key } = await started(t);
    const secrets = join(dir, "secrets");
    const version = (name: string, text: string) => {
      mkdirSync(join(secrets, name));
      writeFileSync(join(secrets, name, "key"), text);
      symlinkSync(name, join(secrets, "..data_tmp"));
      renameSync(join(secrets, "..data_tmp"), join(secrets, "..data"));
    };
    version("..2026_01", OLD);
    rmSync(key);
    symlinkSync(join("..data", "key"), key);
    gw.child.kill("SIGHUP");
    await waitFor(() => count(gw, "reloaded") === 1, "the reload by SIGHUP");
    version("..2026_02", NEW);
    await waitFor(() => count(gw, "reloaded") === 2, "the reload after the swap");
    rmSync(join(secrets, "..2026_01"), { recursive: true });
    assert.equal((await chat()).status, 200);
    assert.deepEqual(sent(), [`Bearer ${NEW}`]);
  });

  it("reports a file that becomes invalid, keeps the old key, and loads the file once it is valid", async (t) => {
    const { key, gw, chat, sent } = await started(t);
    replace(key, "two words\n");
    const line = await waitFor(
      () => eventsIn(gw).find((each) => each["event"] === "reload_failed"),
      "the failure",
    );
    assert.match(JSON.stringify(line["faults"]), /providers.lab.api_key.*no secret in the file/);
    assert.equal((await chat()).status, 200);
    replace(key, NEW);
    await waitFor(() => count(gw, "reloaded") === 1, "the right secret");
    await chat();
    assert.deepEqual(sent(), [`Bearer ${OLD}`, `Bearer ${NEW}`]);
    assert.equal(count(gw, "reload_failed"), 1);
    assert.doesNotMatch(gw.stdout() + gw.stderr(), /CANARY/);
  });

  it("watches a file that a rejected configuration names, but not one that is no longer named", async (t) => {
    const { dir, file, key, gw, chat, sent } = await started(t);
    const second = join(dir, "second");
    replace(file, readFileSync(file, "utf8").replace("secrets/key", "second"));
    await waitFor(() => count(gw, "reload_failed") === 1, "the file that is missing");
    writeFileSync(second, NEW);
    await waitFor(() => count(gw, "reloaded") === 1, "the configuration with the new file");
    replace(key, "sk-nobody-asks");
    replace(second, `${NEW}-2`);
    await waitFor(() => count(gw, "reloaded") === 2, "the second rotation");
    await chat();
    assert.deepEqual(sent(), [`Bearer ${NEW}-2`]);
    assert.deepEqual([count(gw, "reloaded"), count(gw, "reload_failed")], [2, 1]);
  });
});
