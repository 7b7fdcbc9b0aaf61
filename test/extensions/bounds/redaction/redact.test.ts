// What is taken out of a provider's words before an operator reads them, and what stays.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { installed, checkConfig } from "../../../support/config.ts";
import { secretsIn } from "../../../../src/extensions/bounds/redaction/index.ts";
import { createRedact } from "../../../../src/extensions/bounds/redaction/redact.ts";
import { configFor } from "../../../support/gateway.ts";
import { startEffort } from "../../../support/effort.ts";

const redact = createRedact([], new Set());

describe("what looks like a key", () => {
  const HIDDEN: [name: string, text: string, shown: string][] = [
    [
      "an OpenAI key",
      "Incorrect API key provided: sk-CANARY-1.",
      "Incorrect API key provided: [redacted]",
    ],
    ["a masked one", "bad sk-CANAR****e2c9 here", "bad [redacted] here"],
    ["one in quotes", '{"key":"sk-CANARY","code":1}', '{"key":"[redacted]","code":1}'],
    ["a project key", "sk-proj-CANARY_x-1", "[redacted]"],
    ["a Groq key", "gsk_CANARYCANARY was revoked", "[redacted] was revoked"],
    ["an xAI key", "xai-CANARYCANARY", "[redacted]"],
    ["a Google key", "key AIzaSyCANARY_CANARY-1 is not valid", "key [redacted] is not valid"],
    ["a bearer token", "Authorization was Bearer CANARY-1", "Authorization was Bearer [redacted]"],
    ["an authorization header", "Authorization: Basic CANARY", "Authorization: [redacted]"],
    ["a header of its own", "x-api-key: CANARY", "x-api-key: [redacted]"],
    ["a parameter of a URL", "GET /v1?key=CANARY&x=1", "GET /v1?key=[redacted]&x=1"],
    ["a parameter of a longer name", "api_key=CANARY", "api_key=[redacted]"],
    ["a member of JSON", '{"access_token": "CANARY"}', '{"access_token": "[redacted]"}'],
    ["a password", "password: CANARY", "password: [redacted]"],
    ["a password by its short name", "pass=CANARY", "pass=[redacted]"],
    ["a Slack token", "xoxb-12-CANARY", "[redacted]"],
    ["a JSON web token with a short end", "eyJhbGciOi.eyJDQU5B.CA-NA_RY", "[redacted]"],
    ["user and password of a URL", "redis://me:CAN/ARY@host:1/0", "redis://[redacted]@host:1/0"],
    ["32 hex digits", `id ${"0a1b2c3d".repeat(4)} there`, "id [redacted] there"],
    ["base64", "dGhpcyBpcyBhIENBTkFSWQ==", "[redacted]"],
    ["letters alone, 20 of them", "abcdefghijklmnopqrst", "[redacted]"],
    ["an AWS key", "AKIACANARY0EXAMPLE00", "[redacted]"],
    [
      "a JSON web token",
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
      "[redacted]",
    ],
    ["a UUID", "0b5d8b4e-1f3c-4a56-9d2e-3c5a7f9b1d2e", "[redacted]"],
    ["a key that a control character divides", "sk-CAN\u0000ARY", "[redacted]"],
    ["a key that an invisible character divides", "sk-\u200bCANARY", "[redacted]"],
  ];
  it("is hidden", () => {
    for (const [name, text, shown] of HIDDEN) assert.equal(redact(text), shown, name);
  });

  const KEPT = [
    "The model `claude-sonnet-4-5-20250929` does not exist",
    "Qwen/Qwen3-235B-A22B-Instruct-2507 is overloaded",
    "This model's maximum context length is 8192 tokens: you asked for 9000",
    "max_tokens: 100000 is above the limit",
    "generate_content_free_tier_requests, limit: 50",
    "Missing bearer token",
    "InvalidParameterException: GenerateContentRequestsPerMinute was exceeded",
    "模型不存在,请检查模型代码。",
    "A task-based risk-free plan 🙂",
    "",
  ];
  it("is not there, and nothing is lost", () => {
    for (const text of KEPT) assert.equal(redact(text), text);
  });
});

describe("secrets of the configuration", () => {
  const config = checkConfig(
    configFor("http://127.0.0.1:1", ["m"], {
      providers: {
        lab: { api_key: "horse" },
        other: { dialect: "openai", base_url: "http://127.0.0.1:1", api_key: 'a"b/c+d' },
        longer: { dialect: "openai", base_url: "http://127.0.0.1:1", api_key: "horse-battery" },
        local: { dialect: "openai", base_url: "http://127.0.0.1:1", api_key: "x" },
      },
      keys: [{ account: "acme", key: "client-key" }],
      usage: { store: "postgres://me:p%40ss@127.0.0.1/books" },
    }),
    {},
  );
  const digests = new Set(config.keys.map(({ digest }) => digest));
  const own = createRedact(secretsIn(config, installed), digests);
  const CASES: [name: string, text: string, shown: string][] = [
    ["a provider's key", "no horse here", "no [redacted] here"],
    ["inside a word", "seahorses", "sea[redacted]s"],
    ["the longer of two", "horse-battery", "[redacted]"],
    ["in a URL", `?k=${encodeURIComponent('a"b/c+d')}`, "?k=[redacted]"],
    ["in JSON", JSON.stringify({ k: 'a"b/c+d' }), '{"k":"[redacted]"}'],
    ["in base64", Buffer.from("horse-battery").toString("base64"), "[redacted]=="],
    ["a client's key", 'You said "client-key", client-key.', 'You said "[redacted]", [redacted]'],
    [
      "a client's key within a word",
      '\\"client-key\\" x:client-key',
      '\\"[redacted]\\" x:[redacted]',
    ],
    [
      "a client's key in an address",
      "https://h/?k=client-key&b=1|z",
      "https://h/?k=[redacted]&b=1|z",
    ],
    ["a database's password, as written and as meant", "p%40ss p@ss", "[redacted] [redacted]"],
    ["no placeholder", "x marks the text", "x marks the text"],
  ];
  it("are hidden", () => {
    for (const [name, text, shown] of CASES) assert.equal(own(text), shown, name);
  });
});

describe("the form of what is shown", () => {
  it("is one line without control characters", () => {
    const forged = 'a\r\n{"event":"x"}\u001b[31mred\u202e\u0000\u0085b\u2028c\ud800';
    assert.equal(redact(forged), 'a  {"event":"x"}[31mred b c');
  });

  it("ends after 300 characters, in no half of a character", () => {
    assert.equal(redact("a b ".repeat(200)).length, 300);
    assert.equal(redact(`${"a ".repeat(149)}x🙂`), `${"a ".repeat(149)}x`);
  });

  it("does not show the half of a secret at which the text was cut before it was looked at", () => {
    const secret = "CANARY-secret";
    const own = createRedact([secret], new Set());
    // A run that is replaced by a short mark brings the end of what is read into what is shown.
    for (let before = 4_060; before < 4_100; before += 1)
      for (const sign of [" ", "."])
        assert.doesNotMatch(own(`${"a".repeat(before)}${sign}${secret}${secret}`), /CANA/);
  });

  it("takes time in proportion to what is read, whatever is in it", () => {
    const digests = new Set(["0".repeat(64)]);
    const busy = createRedact(["secret-of-ours"], digests);
    const words = "a,.,://,://a@,key=,token :,Bearer,sk-,a-,!,\u0000,a1".split(",");
    const hostile = [" ", ...words, ...words.map((word) => `${word} `)];
    const effort = startEffort();
    for (const piece of hostile) busy(piece.repeat(1_000_000));
    const took = effort();
    assert.ok(took < 1_600, `${hostile.length} texts of a million pieces took ${took} units`);
  });
});
