// `check`: what it prints of a configuration for people and for programs, its faults and warnings.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configFile } from "../../../support/books.ts";
import { certificate } from "../../../support/certificate.ts";
import { lines } from "../../../support/command.ts";
import { folder } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { runHere } from "../../../support/run-here.ts";

/** The demo's configuration in a file of its own, with these fields over it. */
const written = (over: object = {}): string => configFile(demo({ data_dir: folder(), ...over }));

describe("check", () => {
  const report = { models: 2, aliases: 2, keys: 1, warnings: [] };

  it("a good file: one line that counts, exit 0, also for programs", async () => {
    const file = written();
    const people = await runHere(["check", "--config", file]);
    const valid = `${file} is valid: 2 models, 2 aliases, 1 key\n`;
    assert.deepEqual([people.code, people.stdout, people.stderr], [0, valid, ""]);
    const programs = await runHere(["check", "--json", "--config", file]);
    assert.deepEqual([programs.code, programs.stderr], [0, ""]);
    assert.deepEqual(JSON.parse(programs.stdout), { ok: true, source: file, ...report });
    const ofDemo = await runHere(["check", "--json"]);
    assert.deepEqual(JSON.parse(ofDemo.stdout), { ok: true, source: null, ...report });
  });
});

describe("certificates", () => {
  it("that are not there, or no pair, are faults of both listeners, beside all others", async () => {
    const [own, other] = [certificate(), certificate()];
    const file = written({
      server: { tls: { cert_file: own.cert_file, key_file: other.key_file } },
      admin: { port: 0, tls: { cert_file: "nowhere.pem", key_file: own.key_file } },
      limits: { rpm: "many" },
    });
    const { code, stderr } = await runHere(["check", "--config", file]);
    const [shape, pair, missing, ...others] = lines(stderr);
    assert.equal(code, 1);
    assert.match(shape ?? "", /^chat-gateway: limits\.rpm: expected an integer/);
    assert.match(pair ?? "", /^chat-gateway: server\.tls: the key in .+ is not that of .+: /);
    assert.match(
      missing ?? "",
      /^chat-gateway: admin\.tls\.cert_file: nowhere.pem cannot be read: ENOENT$/,
    );
    assert.deepEqual(others, []);
  });
});

describe("warnings", () => {
  it("are lines on stderr and a list with --json; exit 0", async () => {
    const file = written({
      accounts: { quiet: { rpm: 1 }, demo: {} },
      timeouts: { first_token_ms: 8_000, idle_ms: 70_000, total_ms: 7_000 },
      providers: {
        demo: { dialect: "demo" },
        hasty: { dialect: "demo", timeouts: { total_ms: 75_000, first_token_ms: 80_000 } },
      },
      models: {
        "demo-chat": { timeouts: { first_token_ms: 80_000, idle_ms: 7_000 } },
        "demo-reasoner": { quality_score: 24 },
      },
      aliases: {
        thinkers: { policy: "reasoning" },
        empty: { policy: "value" },
        patient: { models: ["demo-chat"], timeouts: { idle_ms: 90_000 } },
      },
    });
    const expected = [
      [
        "aliases.empty",
        /^falls back as far as demo-reasoner, which scores less than half of demo-chat: max_price/,
      ],
      ["timeouts.first_token_ms", /^is 8000, longer than total_ms, which is 7000$/],
      ["timeouts.idle_ms", /^is 70000, longer than total_ms, which is 7000$/],
      ["providers.hasty.timeouts.first_token_ms", /^is 80000, longer than total_ms, .* 75000$/],
      ["models.demo-chat.timeouts.first_token_ms", /^is 80000, longer than total_ms, .* 7000$/],
      ["aliases.patient.timeouts.idle_ms", /^is 90000, longer than total_ms, which is 7000$/],
      ["accounts.quiet", /^has no key that is valid: keys create --account quiet makes one$/],
    ] as const;
    const { code, stdout, stderr } = await runHere(["check", "--json", "--config", file]);
    assert.equal(code, 0, stderr);
    const { ok, warnings } = JSON.parse(stdout) as {
      ok: boolean;
      warnings: { path: string; message: string }[];
    };
    assert.deepEqual(
      [ok, warnings.map(({ path }) => path)],
      [true, expected.map(([path]) => path)],
    );
    for (const [at, [, words]] of expected.entries()) assert.match(warnings[at]!.message, words);
    assert.deepEqual(
      lines(stderr),
      warnings.map(({ path, message }) => `chat-gateway: warning: ${path} ${message}`),
    );
    const forPeople = await runHere(["check", "--config", file]);
    assert.deepEqual([forPeople.code, forPeople.stderr], [0, stderr]);
  });

  it("of the admin listener's default port, where no section says another", async () => {
    const json = { server: { port: 8081 }, data_dir: folder(), providers: {}, models: {} };
    const file = configFile(json);
    const { code, stderr } = await runHere(["check", "--config", file]);
    assert.deepEqual([code, lines(stderr).length], [0, 1]);
    assert.match(stderr, /^chat-gateway: warning: server\.port is the port of the admin listener/);
  });

  it("models without a price, where an account or a key has a budget", async () => {
    const models = {
      free: { provider: "demo" },
      local: { provider: "demo", price: { input_cache_miss: 0, output: 0 } },
    };
    const warned = async (file: string) => {
      const { stdout } = await runHere(["check", "--json", "--config", file]);
      return JSON.parse(stdout).warnings.map(({ path }: { path: string }) => path);
    };
    const paths = (over: object) => warned(written({ models, aliases: {}, ...over }));
    const budget = { amount: "50", period: "month" };
    assert.deepEqual(await paths({}), []);
    assert.deepEqual(await paths({ accounts: { demo: { budget } } }), ["models.free.price"]);
    const keys = [{ account: "demo", key: "sk-of-a-key", budget }];
    assert.deepEqual(await paths({ keys }), ["models.free.price"]);
    const file = written({ models, aliases: {} });
    const create = ["keys", "create", "--account", "demo", "--config", file];
    await runHere([...create, "--rpm", "1"]);
    assert.deepEqual(await warned(file), []);
    await runHere([...create, "--budget", "50/month"]);
    assert.deepEqual(await warned(file), ["models.free.price"]);
  });

  it("an account whose only key was created is served; one whose keys are revoked is not", async () => {
    const file = written({ accounts: { acme: { rpm: 1 } } });
    const create = ["keys", "create", "--account", "acme", "--json", "--config", file];
    const warned = async () => (await runHere(["check", "--config", file])).stderr;
    assert.match(await warned(), /accounts\.acme has no key/);
    const { key_id } = JSON.parse((await runHere(create)).stdout);
    assert.equal(await warned(), "");
    await runHere(["keys", "revoke", key_id, "--config", file]);
    assert.match(await warned(), /accounts\.acme has no key/);
  });
});
