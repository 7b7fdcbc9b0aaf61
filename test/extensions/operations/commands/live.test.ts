// `check --live`: one tiny call to each provider, what each said, and no trace in the books.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { callProviders } from "../../../../src/extensions/operations/commands/live.ts";
import { configFile } from "../../../support/books.ts";
import { installed, checkConfig } from "../../../support/config.ts";
import { lines } from "../../../support/command.ts";
import { folder } from "../../../support/folder.ts";
import { startAnthropic } from "../../../support/fake-anthropic.ts";
import { PROVIDER_KEY } from "../../../support/fake-provider.ts";
import { listening } from "../../../support/listening.ts";
import { freePort } from "../../../support/port.ts";
import { completion, startProvider, status, type Behaviours } from "../../../support/provider.ts";
import { runHere } from "../../../support/run-here.ts";
import type { Scope } from "../../../support/scope.ts";

const SECRET = "sk-provider-secret-of-the-test";
const ANSWERS = { m: status(200, completion({ content: "OK" })) };

/** A provider that behaves like this, as a row of a configuration. */
async function provider(t: Scope, behaviours: Behaviours) {
  const started = await startProvider(t, behaviours);
  return { ...started, row: { dialect: "openai", base_url: started.url, api_key: SECRET } };
}

/** A configuration whose providers have one model each, of their own names; and its data_dir. */
function written(rows: Readonly<Record<string, object>>, more: object = {}) {
  const data = join(folder(), "data");
  const models = Object.fromEntries(
    Object.keys(rows).map((name) => [`${name}-model`, { provider: name, upstream_model: "m" }]),
  );
  const config = { data_dir: data, admin: { port: 0 }, providers: rows, models, ...more };
  return { file: configFile(config), data };
}

describe("check --live", () => {
  it("asks each provider once, with few tokens and the provider's key, and says how long it took", async (t) => {
    const [one, two] = [await provider(t, ANSWERS), await provider(t, ANSWERS)];
    const { file, data } = written({ one: one.row, two: two.row });
    const { code, stdout, stderr } = await runHere(["check", "--live", "--config", file]);
    assert.deepEqual([code, stderr], [0, ""]);
    const [valid, first, second, books] = lines(stdout);
    assert.match(valid!, /is valid: 2 models/);
    assert.match(first!, /^ {2}ok {7}one \(one-model\): \d+ ms$/);
    assert.match(second!, /^ {2}ok {7}two \(two-model\): \d+ ms$/);
    assert.match(books!, /^Nothing of this is in the books\./);
    for (const { asked } of [one, two]) {
      assert.equal(asked.length, 1);
      assert.equal(asked[0]!.headers.authorization, `Bearer ${SECRET}`);
      assert.ok(asked[0]!.body["max_tokens"] <= 16);
      assert.equal(asked[0]!.body["model"], "m");
    }
    assert.ok(!existsSync(join(data, "spend")), "nothing was booked");
  });

  it("tells a refusal by our code, its status and the provider's words without secrets: exit 1", async (t) => {
    const message = `Incorrect API key provided: ${SECRET}. Look into your account.`;
    const refused = await provider(t, status(401, { error: { message } }));
    const fine = await provider(t, ANSWERS);
    const { file } = written({ refused: refused.row, fine: fine.row });
    const { code, stdout } = await runHere(["check", "--live", "--config", file]);
    assert.equal(code, 1);
    const words =
      /^ {2}failed {3}refused \(refused-model\): model_unavailable, status 401 after \d+ ms: Incorrect API key/;
    assert.match(lines(stdout)[1]!, words);
    assert.match(lines(stdout)[2]!, /^ {2}ok /);
    assert.doesNotMatch(stdout, new RegExp(SECRET));
    assert.equal(refused.asked.length, 1, "it is not asked again");
  });

  it("fails at once where the server closes each connection", async (t) => {
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
    const { file } = written(providers, { models });
    const args = ["check", "--live", "--json", "--config", file];
    const { code, stdout } = await runHere(args);
    assert.equal(code, 1);
    const result = JSON.parse(stdout);
    assert.deepEqual([result.ok, result.source, result.models], [false, file, 2]);
    const [ok, failed, skipped] = result.providers;
    const none = { key: null, code: null, status: null, detail: null };
    assert.deepEqual(
      { ...ok, ms: 0 },
      { provider: "fine", model: "m", ms: 0, result: "ok", ...none },
    );
    const { result: outcome, code: why, status: seen } = failed;
    assert.deepEqual([outcome, why, seen], ["failed", "model_unavailable", null]);
    assert.match(failed.detail, /ECONNREFUSED/);
    assert.deepEqual([skipped.provider, skipped.result, skipped.model], ["spare", "skipped", null]);
  });

  it("calls the first model with each key, the others with the first that works; names those that fail", async (t) => {
    const lab = await startProvider(t, (asked) => {
      const isKnown =
        asked.headers.authorization === "Bearer sk-good" && asked.body["model"] !== "n";
      const message = isKnown ? undefined : { error: { message: "no" } };
      status(isKnown ? 200 : 403, message ?? completion({ content: "OK" }))(asked);
    });
    const row = { dialect: "openai", base_url: lab.url };
    const api_keys = [{ key: "sk-evil" }, { key: "sk-good" }];
    const models = Object.fromEntries(["m", "n", "o"].map((name) => [name, { provider: "lab" }]));
    const { file } = written({ lab: { ...row, api_keys } }, { models });
    const { code, stdout } = await runHere(["check", "--live", "--config", file]);
    assert.equal(code, 1);
    assert.deepEqual(
      lines(stdout)
        .slice(1, 5)
        .map((line) => line.replace(/(after|:) \d+ ms.*/, "")),
      [
        "  failed   lab (m, key ...evil): model_unavailable, status 403 ",
        "  ok       lab (m, key ...good)",
        "  failed   lab (n, key ...good): model_unavailable, status 403 ",
        "  ok       lab (o, key ...good)",
      ],
    );
  });

  it("speaks the provider's own format", async (t) => {
    const anthropic = await startAnthropic(t, { m: () => ({ text: "OK" }) });
    const row = { vendor: "anthropic", base_url: anthropic.url, api_key: PROVIDER_KEY };
    const models = { claude: { provider: "own", upstream_model: "m" } };
    const { file } = written({ own: row }, { models });
    const { code, stdout } = await runHere(["check", "--live", "--config", file]);
    assert.deepEqual([code, anthropic.broken], [0, []], stdout);
    assert.equal(anthropic.asked[0]!.headers["x-api-key"], PROVIDER_KEY);
    assert.match(stdout, /^ {2}ok {7}own \(claude\)/m);
  });

  it("gives up on a provider that does not answer, and asks it only once", async (t) => {
    const silent = await provider(t, () => undefined);
    const models = { m: { provider: "silent" }, n: { provider: "silent" } };
    const config = checkConfig({ providers: { silent: silent.row }, models });
    const [given, other] = await callProviders(config, installed, 50);
    assert.deepEqual(
      [given?.result, given?.code, given?.detail],
      ["failed", "upstream_timeout", "no whole answer within 0.05 seconds"],
    );
    assert.deepEqual([other?.model, other?.result], ["n", "skipped"]);
    assert.ok(silent.asked.length <= 1, "a busy machine may ask too late");
  });

  it("is not done for a configuration that is not valid", async (t) => {
    const one = await provider(t, ANSWERS);
    const { file } = written({ one: one.row }, { limits: { rpm: -1 } });
    const { code, stdout } = await runHere(["check", "--live", "--config", file]);
    assert.deepEqual([code, stdout, one.asked.length], [1, "", 0]);
  });
});
