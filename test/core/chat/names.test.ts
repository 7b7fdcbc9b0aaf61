// Names that every JavaScript object inherits: a provider, model, alias or account may have one
// like any other name.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { folder } from "../../support/folder.ts";
import { json, readStream, startGateway, user } from "../../support/gateway.ts";
import { speak, startProvider } from "../../support/provider.ts";
import { until } from "../../support/wait.ts";
import { runHere } from "../../support/run-here.ts";
import { thisMonth } from "../../support/today.ts";

const NAMES = ["__proto__", "constructor", "toString"] as const;

/** Builds JSON text. An object built by assignment would lose `__proto__`. */
const members = (of: (name: string) => unknown, names: readonly string[] = NAMES): string =>
  `{${names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(of(name))}`).join()}}`;

describe("names such as __proto__, constructor and toString", () => {
  it("work for providers, models, aliases and accounts: in requests, figures, status and bills", async (t) => {
    const place = folder();
    const provider = await startProvider(t, { upstream: speak("Hi.") });
    const price = { input_cache_miss: 1, output: 1 };
    const text = `{
      "server": {"port": 0}, "admin": {"port": 0}, "data_dir": ${JSON.stringify(join(place, "data"))},
      "providers": ${members(() => ({ dialect: "openai", base_url: provider.url, api_keys: [{ key: "sk-own" }] }))},
      "models": ${members((name) => ({ provider: name, upstream_model: "upstream", price, quality_score: 1 }))},
      "aliases": {"hasOwnProperty": {"models": ["__proto__", "constructor"]}, "valueOf": {"policy": "value"}, "isFast": {"policy": "fastest"}},
      "accounts": ${members(() => ({ rpm: 50 }))},
      "keys": ${JSON.stringify(NAMES.map((account) => ({ account, key: `sk-${account}` })))}
    }`;
    const file = join(place, "gateway.json");
    writeFileSync(file, text);
    const gateway = await startGateway(t, JSON.parse(text));
    const ask = (model: string, account: string, stream = false) =>
      gateway.chat(
        { model, messages: user("hi"), stream },
        { authorization: `Bearer sk-${account}` },
      );
    for (const name of NAMES) {
      const whole = await ask(name, name);
      assert.equal(whole.status, 200);
      assert.equal((await json(whole)).model, name);
      const { done, chunks } = await readStream(await ask(name, name, true));
      assert.deepEqual([done, chunks[0]?.model], [true, name]);
    }
    assert.equal((await json(await ask("hasOwnProperty", "constructor"))).model, "__proto__");
    assert.equal((await ask("valueOf", "toString")).status, 200);
    assert.ok((await readStream(await ask("isFast", "toString", true))).done);
    assert.equal((await ask("isPrototypeOf", "toString")).status, 404);

    const look = async (path: string) =>
      (await fetch(`${gateway.gateway.adminAddress()}${path}`)).text();
    const counted = (text: string, name: string) =>
      text.includes(`_attempts_total{provider="${name}",model="${name}",outcome="completed"} `);
    const metrics = await until(async () => {
      const found = await look("/metrics");
      return NAMES.every((name) => counted(found, name)) && found;
    }, "the attempts of all three models to be counted");
    for (const name of NAMES)
      assert.ok(metrics.includes(`chat_gateway_breaker_state{model="${name}"} 0`));
    const { models, limits, first_token_ms } = JSON.parse(await look("/status"));
    assert.deepEqual(Object.keys(first_token_ms), ["__proto__"]);
    const served = models.map(({ model }: { model: string }) => model);
    const limited = limits.accounts.map(({ account, rpm }: any) => [account, rpm]);
    assert.deepEqual([served, limited], [NAMES, NAMES.map((name) => [name, 50])]);

    const month = thisMonth();
    for (const account of NAMES) {
      const args = ["--account", account, "--month", month, "--json", "--config", file];
      const { code, stdout, stderr } = await runHere(["billing", "statement", ...args]);
      assert.equal(code, 0, stderr);
      const { lines } = JSON.parse(stdout);
      const line = lines.find(({ model }: { model: string }) => model === account);
      assert.equal(line?.requests >= 2, true, stdout);
    }
    assert.deepEqual(
      [Object.keys(Object.prototype), Object.keys(Object)],
      [[], []],
      "no prototype was polluted",
    );
  });
});
