// "Did you mean ...?": one suggestion for a misspelt name where one is convincing, and none
// otherwise.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nearest } from "../../src/config/nearest.ts";
import { pathText, ValidationError } from "../../src/core/schema/checker.ts";
import { checkConfig } from "../support/config.ts";

const FIELDS = ["host", "port", "max_body_bytes", "drain_ms", "tls", "api_key"];

describe("the nearest name", () => {
  for (const [typed, name] of [
    ["prot", "port"],
    ["hosts", "host"],
    ["drian_ms", "drain_ms"],
    ["max_bodybytes", "max_body_bytes"],
    ["max_body_byts", "max_body_bytes"],
    ["apiKey", "api_key"],
    ["api-key", "api_key"],
    ["TLS", "tls"],
    ["tsl", "tls"],
  ] as const) {
    it(`of ${typed} is ${name}`, () => assert.equal(nearest(typed, FIELDS), name));
  }

  for (const typed of ["workers", "t", "", "ps", "port_number", "x".repeat(64), "h".repeat(10_000)])
    it(`is none for ${JSON.stringify(typed.slice(0, 70))}, which is none of them`, () =>
      assert.equal(nearest(typed, FIELDS), undefined));

  it("is none if two are equally near, and one if the same name is given twice", () => {
    assert.equal(nearest("mode", ["model", "moder"]), undefined);
    assert.equal(nearest("mode", ["model", "model"]), "model");
    assert.equal(nearest("model", ["models", "model"]), "model");
  });
});

/** The faults of a configuration, `path: message`. */
function faults(over: object): string[] {
  try {
    checkConfig({ providers: {}, models: {}, ...over });
    return [];
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    return error.issues.map(({ path, message }) => `${pathText(path)}: ${message}`);
  }
}

describe("a configuration's faults", () => {
  it("suggest the field that was meant, at any depth, and still name those that are known", () => {
    const [found, ...others] = faults({ server: { prot: 1 } });
    assert.deepEqual(others, []);
    assert.match(
      found ?? "",
      /^server\.prot: is not a known field; did you mean "port"\? Known here: host, port, /,
    );
    for (const [over, words] of [
      [{ modles: {} }, /^modles: .*"models"\?/],
      [{ providers: { p: { dialect: "openai", base_url: "http://h", apikey: "k" } } }, /"api_key"/],
      [{ keys: [{ acount: "a", account: "a", key: "k" }] }, /^keys\[0\]\.acount: .*"account"/],
      [{ admin: { hots: "::1" } }, /^admin\.hots: .*"host"/],
      [{ spend: { keepDays: 3 } }, /^spend\.keepDays: .*"keep_days"/],
    ] as const)
      assert.match(faults(over)[0] ?? "", words);
  });

  it("suggest nothing for a field that is like no other", () => {
    const [found] = faults({ server: { surprise: 1 } });
    assert.match(found ?? "", /^server\.surprise: is not a known field; known here: host, /);
  });

  it("suggest the word that was meant where only some are valid", () => {
    const provider = { vendor: "opnai", api_key: "k" };
    assert.match(
      faults({ providers: { p: provider } })[0] ?? "",
      /got "opnai"; did you .*"openai"/,
    );
    const alias = { policy: "resoning" };
    assert.match(faults({ aliases: { a: alias } })[0] ?? "", /; did you mean "reasoning"\?$/);
    const supports = { p: { dialect: "openai", base_url: "http://h", supports: ["tool"] } };
    assert.match(faults({ providers: supports })[0] ?? "", /supports\[0\]: .*"tools"\?$/);
  });

  it("suggest the provider, the model and the alias that were meant", () => {
    const config = {
      providers: { deepseek: { vendor: "deepseek", api_key: "k" } },
      models: { "deepseek-chat": { provider: "deepsek" } },
      aliases: { "auto/chat": { models: ["deepseek-chta"] } },
      keys: [{ account: "a", key: "k", models: ["auto/cht"] }],
    };
    assert.deepEqual(faults(config), [
      'models.deepseek-chat.provider: there is no provider named "deepsek"; did you mean "deepseek"?',
      'aliases.auto/chat.models[0]: there is no model named "deepseek-chta"; did you mean "deepseek-chat"?',
      'keys[0].models[0]: there is no model or alias named "auto/cht"; did you mean "auto/chat"?',
    ]);
  });

  it("repeat no value that may be a secret", () => {
    const provider = { dialect: "openai", base_url: "http://h", api_key: 5, openai: "CANARY" };
    assert.doesNotMatch(faults({ providers: { p: provider } }).join("\n"), /CANARY/);
  });
});
