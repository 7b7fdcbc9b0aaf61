// Name resolution: canonical names, aliases and their policies, what a request needs, and what a
// key may use. And system_fingerprint, a keyed hash: stable for a data_dir, different for any
// other, and useless for guessing names.

import assert from "node:assert/strict";
import { it, type TestContext, describe } from "node:test";
import { configFor, json, KEY, user, startGateway } from "../../support/gateway.ts";
import { speak, startProvider, type Provider } from "../../support/provider.ts";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { folder } from "../../support/folder.ts";
import { fingerprintKey } from "../../../src/extensions/apis/fingerprint/index.ts";

/** Sends one request. Returns the serving model or the error. */
async function serving(t: TestContext, config: object, request: object): Promise<string> {
  const names = Object.keys((config as { models: object }).models);
  const provider = await startProvider(
    t,
    Object.fromEntries(names.map((name) => [name, speak(name)])),
  );
  const gateway = await startGateway(t, configFor(provider.url, names, config));
  const response = await gateway.chat({ messages: user("hi"), ...request });
  const body = await json(response);
  if (response.status !== 200) return `${response.status} ${body.error.code} ${body.error.param}`;
  assert.equal(
    body.choices[0].message.content,
    body.model,
    "the provider was asked for the model that the reply names",
  );
  return body.model;
}

it("an alias without a model is unavailable", async (t) => {
  const config = { models: { a: {} }, aliases: { value: { policy: "value" } } };
  assert.equal(await serving(t, config, { model: "value" }), "503 model_unavailable model");
});

// capabilities/capabilities.test.ts tests each requirement of a request.
it("an alias uses the first model with the required capabilities; a named model without them rejects", async (t) => {
  const config = {
    models: { plain: { supports: [] }, able: { supports: ["logprobs"] } },
    aliases: { x: { models: ["plain", "able"] }, y: { models: ["plain"] } },
  };
  for (const [model, served] of [
    ["x", "able"],
    ["able", "able"],
    ["plain", "400 unsupported_value logprobs"],
    ["y", "400 unsupported_value logprobs"],
  ] as const)
    assert.equal(await serving(t, config, { model, logprobs: true }), served);
});

const cases: [name: string, allowed: string[], model: string, served: string][] = [
  ["a model that it does not name", ["a"], "b", "403 model_not_allowed model"],
  ["an alias that it names: every model of the alias", ["x"], "x", "b"],
  ["an alias that it does not name", ["a", "b"], "x", "403 model_not_allowed model"],
  ["an alias and one of its models: only that model", ["x", "a"], "x", "a"],
  ["nothing at all", [], "a", "403 model_not_allowed model"],
  ["a name that does not exist", ["a"], "ghost", "404 model_not_found model"],
];
for (const [name, allowed, model, served] of cases) {
  it(`models of a key: ${name}`, async (t) => {
    const config = {
      models: { a: {}, b: {}, c: {} },
      aliases: { x: { models: ["b", "a"] } },
      keys: [{ account: "acme", key: KEY, models: allowed }],
    };
    assert.equal(await serving(t, config, { model }), served);
  });
}

/** The fingerprint in a reply of a gateway with this data_dir. */
async function fingerprintIn(t: TestContext, { url }: Provider, dir: string): Promise<string> {
  const gw = await startGateway(t, configFor(url, ["m"], { data_dir: dir }));
  const reply = await json(await gw.chat({ model: "m", messages: user("hi") }));
  await gw.gateway.close(0);
  return reply.system_fingerprint;
}

describe("system_fingerprint", () => {
  it("is the same after a restart, differs with another data_dir, and cannot be guessed", async (t) => {
    const provider = await startProvider(t, { m: speak("Hi.") });
    const [one, other] = [folder(), folder()];
    const first = await fingerprintIn(t, provider, one);
    assert.match(first, /^fp_[0-9a-f]{12}$/);
    assert.equal(await fingerprintIn(t, provider, one), first);
    assert.notEqual(await fingerprintIn(t, provider, other), first);
    for (let version = 0; version < 10; version += 1) {
      const guess = createHash("sha256").update(JSON.stringify(["lab", "m", version]));
      assert.notEqual(`fp_${guess.digest("hex").slice(0, 12)}`, first);
    }
    const secret = join(one, "fingerprint-secret");
    assert.match(readFileSync(secret, "utf8"), /^[0-9a-f]{64}$/);
    assert.equal(statSync(secret).mode & 0o777, 0o600, "only the owner can read it");
    const files = readdirSync(one).filter((name) => name.startsWith("fingerprint"));
    assert.deepEqual(files, ["fingerprint-secret"]);
  });

  it("changes at the next start if its secret cannot be stored, and the operator is told", () => {
    const told: unknown[] = [];
    fingerprintKey(join(folder(), "missing"), ({ event }) => told.push(event));
    assert.deepEqual(told, ["fingerprint_secret_unavailable"]);
  });
});
