// `check`: its output about a configuration for people and for programs, its faults and warnings;
// with `--live` one tiny call to each provider, each result, and no trace in the books.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { callProviders } from "../../../../src/extensions/operations/commands/live.ts";
import { configFile } from "../../../support/books.ts";
import { certificate } from "../../../support/certificate.ts";
import { lines, outputOf } from "../../../support/command.ts";
import { checkConfig, installed } from "../../../support/config.ts";
import { startAnthropic } from "../../../support/fake-anthropic.ts";
import { PROVIDER_KEY } from "../../../support/fake-provider.ts";
import { folder } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { freePort } from "../../../support/port.ts";
import { completion, startProvider, status, type Behaviours } from "../../../support/provider.ts";
import { runHere } from "../../../support/run-here.ts";
import type { Scope } from "../../../support/scope.ts";

const written = (over: object = {}): string => configFile(demo({ data_dir: folder(), ...over }));

const check = (file: string, ...more: string[]) => runHere(["check", ...more, "--config", file]);

it("check of a valid file prints one line with counts, for programs too, and exits with 0", async () => {
  const report = { models: 2, aliases: 2, keys: 1, warnings: [] };
  const file = written();
  const people = await check(file);
  const valid = `${file} is valid: 2 models, 2 aliases, 1 key\n`;
  assert.deepEqual([people.code, people.stdout, people.stderr], [0, valid, ""]);
  const programs = await check(file, "--json");
  assert.deepEqual([programs.code, programs.stderr], [0, ""]);
  assert.deepEqual(JSON.parse(programs.stdout), { ok: true, source: file, ...report });
  const ofDemo = await runHere(["check", "--json"]);
  assert.deepEqual(JSON.parse(ofDemo.stdout), { ok: true, source: null, ...report });
});

it("missing or mismatched certificates are reported for both listeners, together with all other faults", async () => {
  const [own, other] = [certificate(), certificate()];
  const file = written({
    server: { tls: { cert_file: own.cert_file, key_file: other.key_file } },
    admin: { port: 0, tls: { cert_file: "nowhere.pem", key_file: own.key_file } },
    limits: { rpm: "many" },
  });
  const { code, stderr } = await check(file);
  const [shape, pair, ...others] = lines(stderr);
  assert.equal(code, 1);
  assert.match(shape ?? "", /^chat-gateway: limits\.rpm: expected an integer/);
  assert.match(pair ?? "", /^chat-gateway: server\.tls: the key in .+ is not that of .+: /);
  const missing = "chat-gateway: admin.tls.cert_file: nowhere.pem cannot be read: ENOENT";
  assert.deepEqual(others, [missing]);
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
    const { code, stdout, stderr } = await check(file, "--json");
    const { ok, warnings } = JSON.parse(stdout);
    assert.deepEqual([code, ok, warnings.length], [0, true, expected.length], stderr);
    for (const [at, [path, words]] of expected.entries()) {
      assert.equal(warnings[at].path, path);
      assert.match(warnings[at].message, words);
    }
    const told = warnings.map(({ path, message }: any) => `${path} ${message}`);
    const printed = lines(stderr);
    assert.deepEqual(
      printed,
      told.map((text: string) => `chat-gateway: warning: ${text}`),
    );
    const forPeople = await check(file);
    assert.deepEqual([forPeople.code, forPeople.stderr], [0, stderr]);
  });

  it("of the admin listener's default port, if no section sets another", async () => {
    const json = { server: { port: 8081 }, data_dir: folder(), providers: {}, models: {} };
    const { code, stderr } = await check(configFile(json));
    assert.deepEqual([code, lines(stderr).length], [0, 1]);
    assert.match(stderr, /^chat-gateway: warning: server\.port is the port of the admin listener/);
  });

  it("of models without a price, if an account or a key has a budget", async () => {
    const models = {
      free: { provider: "demo" },
      local: { provider: "demo", price: { input_cache_miss: 0, output: 0 } },
    };
    const warned = async (file: string) => {
      const { stdout } = await check(file, "--json");
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

  it("an account whose only key was created is served; one whose keys are all revoked is reported", async () => {
    const file = written({ accounts: { acme: { rpm: 1 } } });
    const create = ["keys", "create", "--account", "acme", "--json", "--config", file];
    const warned = async () => (await check(file)).stderr;
    assert.match(await warned(), /accounts\.acme has no key/);
    const { key_id } = JSON.parse((await runHere(create)).stdout);
    assert.equal(await warned(), "");
    await runHere(["keys", "revoke", key_id, "--config", file]);
    assert.match(await warned(), /accounts\.acme has no key/);
  });
});

const SECRET = "sk-provider-secret-of-the-test";
const ANSWERS = { m: status(200, completion({ content: "OK" })) };

/** A provider with this behaviour, as a row of a configuration. */
async function provider(t: Scope, behaviours: Behaviours) {
  const started = await startProvider(t, behaviours);
  return { ...started, row: { dialect: "openai", base_url: started.url, api_key: SECRET } };
}

/**
 * A configuration whose providers each have one model, named after the provider; and its data_dir.
 */
function calling(rows: Readonly<Record<string, object>>, more: object = {}) {
  const data = join(folder(), "data");
  const models = Object.fromEntries(
    Object.keys(rows).map((name) => [`${name}-model`, { provider: name, upstream_model: "m" }]),
  );
  const config = { data_dir: data, admin: { port: 0 }, providers: rows, models, ...more };
  return { file: configFile(config), data };
}

describe("check --live", () => {
  it("calls each provider once, with few tokens and the provider's key, and states the duration", async (t) => {
    const [one, two] = [await provider(t, ANSWERS), await provider(t, ANSWERS)];
    const { file, data } = calling({ one: one.row, two: two.row });
    const stdout = outputOf(await check(file, "--live"));
    const [valid, first, second, books] = lines(stdout);
    assert.match(valid!, /is valid: 2 models/);
    assert.match(first!, /^ {2}ok {7}one \(one-model\): \d+ ms$/);
    assert.match(second!, /^ {2}ok {7}two \(two-model\): \d+ ms$/);
    assert.match(books!, /^Nothing of this is in the books\./);
    for (const { asked } of [one, two]) {
      assert.equal(asked.length, 1);
      const { headers, body } = asked[0]!;
      assert.deepEqual([headers.authorization, body["model"]], [`Bearer ${SECRET}`, "m"]);
      assert.ok(body["max_tokens"] <= 16);
    }
    assert.ok(!existsSync(join(data, "spend")), "nothing was recorded");
  });

  it("reports a rejection by error code, status and the provider's message without secrets: exit 1", async (t) => {
    const message = `Incorrect API key provided: ${SECRET}. Look into your account.`;
    const refused = await provider(t, status(401, { error: { message } }));
    const fine = await provider(t, ANSWERS);
    const { file } = calling({ refused: refused.row, fine: fine.row });
    const { code, stdout } = await check(file, "--live");
    assert.equal(code, 1);
    const words =
      /^ {2}failed {3}refused \(refused-model\): model_unavailable, status 401 after \d+ ms: Incorrect API key/;
    assert.match(lines(stdout)[1]!, words);
    assert.match(lines(stdout)[2]!, /^ {2}ok /);
    assert.doesNotMatch(stdout, new RegExp(SECRET));
    assert.equal(refused.asked.length, 1, "no second call");
  });

  it("fails at once if the server closes each connection", async (t) => {
    const server = createServer((socket) => socket.destroy());
    const base_url = await listening(t, server);
    const config = checkConfig({
      providers: { closing: { dialect: "openai", base_url } },
      models: { m: { provider: "closing" } },
    });
    const [answer] = await callProviders(config, installed);
    assert.deepEqual([answer?.result, answer?.code], ["failed", "upstream_error"]);
  });

  it("for programs: one line of JSON", async (t) => {
    const fine = await provider(t, ANSWERS);
    const gone = { dialect: "openai", base_url: `http://127.0.0.1:${await freePort()}` };
    const providers = { fine: fine.row, gone, spare: gone };
    const models = { m: { provider: "fine" }, far: { provider: "gone" } };
    const { file } = calling(providers, { models });
    const { code, stdout } = await check(file, "--live", "--json");
    assert.equal(code, 1);
    const result = JSON.parse(stdout);
    assert.deepEqual([result.ok, result.source, result.models], [false, file, 2]);
    const [ok, failed, skipped] = result.providers;
    const none = { key: null, code: null, status: null, detail: null };
    const fast = { provider: "fine", model: "m", ms: 0, result: "ok", ...none };
    assert.deepEqual({ ...ok, ms: 0 }, fast);
    const { result: outcome, code: why, status: seen } = failed;
    assert.deepEqual([outcome, why, seen], ["failed", "model_unavailable", null]);
    assert.match(failed.detail, /ECONNREFUSED/);
    assert.deepEqual([skipped.provider, skipped.result, skipped.model], ["spare", "skipped", null]);
  });

  it("calls the first model with each key, the others with the first working key, and names failing keys", async (t) => {
    const lab = await startProvider(t, (asked) => {
      const isGood = asked.headers.authorization === "Bearer sk-good";
      const isKnown = isGood && asked.body["model"] !== "n";
      (isKnown ? ANSWERS.m : status(403, { error: { message: "no" } }))(asked);
    });
    const row = { dialect: "openai", base_url: lab.url };
    const api_keys = [{ key: "sk-evil" }, { key: "sk-good" }];
    const models = Object.fromEntries(["m", "n", "o"].map((name) => [name, { provider: "lab" }]));
    const { file } = calling({ lab: { ...row, api_keys } }, { models });
    const { code, stdout } = await check(file, "--live");
    assert.equal(code, 1);
    const calls = lines(stdout.replace(/(after|:) \d+ ms.*/g, "")).slice(1, 5);
    assert.deepEqual(calls, [
      "  failed   lab (m, key ...evil): model_unavailable, status 403 ",
      "  ok       lab (m, key ...good)",
      "  failed   lab (n, key ...good): model_unavailable, status 403 ",
      "  ok       lab (o, key ...good)",
    ]);
  });

  it("speaks the provider's own format", async (t) => {
    const anthropic = await startAnthropic(t, { m: () => ({ text: "OK" }) });
    const row = { vendor: "anthropic", base_url: anthropic.url, api_key: PROVIDER_KEY };
    const models = { claude: { provider: "own", upstream_model: "m" } };
    const { file } = calling({ own: row }, { models });
    const { code, stdout } = await check(file, "--live");
    assert.deepEqual([code, anthropic.broken], [0, []], stdout);
    assert.equal(anthropic.asked[0]!.headers["x-api-key"], PROVIDER_KEY);
    assert.match(stdout, /^ {2}ok {7}own \(claude\)/m);
  });

  it("gives up on a provider that does not respond, and calls it only once", async (t) => {
    const silent = await provider(t, () => undefined);
    const models = { m: { provider: "silent" }, n: { provider: "silent" } };
    const config = checkConfig({ providers: { silent: silent.row }, models });
    const [given, other] = await callProviders(config, installed, 50);
    const outcome = [given?.result, given?.code, given?.detail];
    assert.deepEqual(outcome, [
      "failed",
      "upstream_timeout",
      "no complete answer within 0.05 seconds",
    ]);
    assert.deepEqual([other?.model, other?.result], ["n", "skipped"]);
    assert.ok(silent.asked.length <= 1, "none, if the machine is busy");
  });

  it("is skipped for an invalid configuration", async (t) => {
    const one = await provider(t, ANSWERS);
    const { file } = calling({ one: one.row }, { limits: { rpm: -1 } });
    const { code, stdout } = await check(file, "--live");
    assert.deepEqual([code, stdout, one.asked.length], [1, "", 0]);
  });
});
