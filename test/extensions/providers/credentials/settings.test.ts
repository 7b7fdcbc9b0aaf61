// The settings of clouds and of their credentials: faults with their paths, and the resulting
// hosts.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { secretsIn } from "../../../../src/extensions/bounds/redaction/index.ts";
import { checkConfig, installed } from "../../../support/config.ts";
import { issueLines } from "../../../support/token-service.ts";
import { keyFile } from "./key-file.ts";

const azure = (credentials: object, more: object = {}) => ({
  vendor: "azure",
  base_url: "https://x.openai.azure.com",
  credentials: { type: "azure", ...credentials },
  ...more,
});
const application = (endpoint: string) => ({
  tenant_id: "11111111-aaaa",
  client_id: "app",
  client_secret: "s",
  endpoint,
});
const vertex = (more: object = {}) => ({
  vendor: "vertex",
  project: "p",
  location: "us-east5",
  credentials: { type: "google" },
  ...more,
});
const withFile = (key_file: string) => vertex({ credentials: { type: "google", key_file } });
const TOKEN_URI = "https://oauth2.example/token";
const NO_KEY_FILE = "credentials.key_file: expected the key file of a service account";
const bedrock = (credentials: object, more: object = HERE) => ({
  vendor: "bedrock",
  credentials: { type: "aws", ...credentials },
  ...more,
});
const NO_CREDENTIALS = { credentials: undefined };
const APPLICATION = application("https://login.example");
const KEYED = { ...NO_CREDENTIALS, api_key: "k" };
const KEYS = { access_key_id: "A", secret_access_key: "s" };
const HERE = { region: "us-east-1" };
const BARE = "base_url: must not end in /openai/v1: /openai/v1/chat/completions is appended to it";
const BESIDE = "credentials.tenant_id: is required with the others of an application";
const SECURE =
  "credentials.endpoint: expected https://, or http:// to a loopback or link-local address";
const TEXT = "expected a text without NUL";
const ASCII = "credentials.access_key_id: expected printable ASCII without spaces or line ends";
const OWN = "dialect: each model of this vendor has its own: set it there";
const URI = "credentials.key_file: the key file's token_uri must be https://";
const PAIR = "credentials: access_key_id and secret_access_key belong together";
const UNSET = /^credentials\.access_key_id: the environment variable NO_SUCH_VARIABLE is not set/;

describe("the settings of a cloud", () => {
  // Each row with its faults, without the provider's name. None: the row is valid.
  const CASES: [row: object, ...faults: (string | RegExp)[]][] = [
    [azure(APPLICATION)],
    [azure({}, KEYED)],
    [azure({}, { ...KEYED, base_url: "https://x.azure.com/openai/v1/" }), BARE],
    [azure({ client_id: "app", client_secret: "s" }), BESIDE],
    [azure(application("http://login.example")), SECURE],
    [
      azure({ ...APPLICATION, tenant_id: "a\ud800" }),
      new RegExp(`^credentials\\.tenant_id: ${TEXT} and without half of a character`),
    ],
    [azure({}, { api_key: "k" }), "credentials: cannot be used with api_key"],
    [azure({ type: "kerberos" }), /^credentials/],
    [
      azure({ type: "command", run: ["echo", "a\0b"], ttl_s: 60 }),
      new RegExp(`^credentials\\.run\\[1\\]: ${TEXT}`),
    ],
    [vertex()],
    [
      vertex({ project: undefined, location: undefined }),
      "project: is required by this vendor",
      "location: is required by this vendor",
    ],
    [vertex(NO_CREDENTIALS), /^api_key: is required: /],
    [vertex({ dialect: "gemini" }), OWN],
    [withFile(keyFile(TOKEN_URI))],
    [withFile("/nowhere/sa.json"), /cannot read the file \/nowhere\/sa.json: ENOENT/],
    [withFile(keyFile(TOKEN_URI, { type: "authorized_user" })), NO_KEY_FILE],
    [withFile(keyFile(TOKEN_URI, { private_key: "x" })), NO_KEY_FILE],
    [withFile(keyFile(TOKEN_URI, { token_uri: undefined })), NO_KEY_FILE],
    [withFile(keyFile("http://oauth2.example/token")), URI],
    [bedrock(KEYS)],
    [bedrock({ ...KEYS, access_key_id: "A\nB" }), ASCII],
    [bedrock({ ...KEYS, access_key_id: "$NO_SUCH_VARIABLE" }), UNSET],
    [bedrock({}, {}), "region: is required by this vendor"],
    [bedrock({}, { region: "us-east-1:a" }), /^region: expected letters, digits and -/],
    [vertex({ location: "a:b" }), /^location: expected letters, digits and -/],
    [bedrock({}, { base_url: "http://127.0.0.1:1" }), "region: is required for AWS credentials"],
    [bedrock({ access_key_id: "A" }), PAIR],
    [bedrock({}, { ...HERE, ...NO_CREDENTIALS }), /^api_key: is required: /],
  ];
  for (const [row, ...faults] of CASES)
    it(`${JSON.stringify(row)}: ${faults.length === 0 ? "valid" : faults.join(" and ")}`, () => {
      const found = issueLines(() => checkConfig({ providers: { c: row }, models: {} }));
      assert.equal(found.length, faults.length, found.join("\n"));
      for (const [at, fault] of faults.entries()) {
        const issue = found[at]!.replace("providers.c.", "");
        if (typeof fault === "string") assert.equal(issue, fault);
        else assert.match(issue, fault);
      }
    });

  it("may set a format for a model that Vertex supports", () => {
    const models = { m: { provider: "v", dialect: "demo" } };
    assert.deepEqual(
      issueLines(() => checkConfig({ providers: { v: vertex() }, models })),
      ["models.m.dialect: its provider's vendor has no API of the format demo"],
    );
  });

  for (const [row, host] of [
    [vertex({ location: "global" }), "aiplatform.googleapis.com"],
    [vertex({ location: "eu" }), "aiplatform.eu.rep.googleapis.com"],
    [vertex(), "us-east5-aiplatform.googleapis.com"],
    [bedrock({}, { region: "eu-west-1" }), "bedrock-runtime.eu-west-1.amazonaws.com"],
  ] as const)
    it(`result in the host ${host}`, () => {
      const { providers } = checkConfig({ providers: { c: row }, models: {} });
      assert.equal(providers.get("c")!.base_url, `https://${host}`);
    });

  for (const [model, dialect, base_url] of [
    ["amazon.nova-pro-v1:0", "converse", undefined],
    ["anthropic.claude-x", "anthropic", "https://bedrock-mantle.us-east-1.api.aws"],
    ["openai.gpt-oss-20b", "openai", "https://bedrock-mantle.us-east-1.api.aws"],
    ["us.anthropic.claude-x", "converse", undefined],
    // An address of Mantle knows no inference profile.
    ["global.openai.gpt-5.6-sol", "converse", undefined],
    ["us.xai.grok-4.6", "converse", undefined],
  ] as const)
    it(`result in Bedrock's model ${model} being called by ${dialect}`, () => {
      const models = { [model]: { provider: "c" } };
      const config = checkConfig({ providers: { c: bedrock({}) }, models });
      const found = config.models.get(model)!;
      assert.deepEqual([found.dialect, found.base_url], [dialect, base_url]);
    });

  it("call Bedrock's models at the path that knows them", () => {
    const names = [
      "openai.gpt-oss-20b",
      "openai.gpt-6-astra",
      "xai.grok-4.6",
      "google.gemma-4-31b",
    ];
    const others = ["google.gemma-3-27b-it", "deepseek.v3.2", "qwen.qwen3-32b-v1:0"];
    const own = { "openai.gpt-5.6-sol": { provider: "c", path: "/own" } };
    const stated = { "xai.grok-4.7": { provider: "c", dialect: "converse" } };
    const plain = [...names, ...others].map((name) => [name, { provider: "c" }]);
    const models = { ...Object.fromEntries(plain), ...own, ...stated };
    const config = checkConfig({ providers: { c: bedrock({}) }, models });
    assert.deepEqual(
      [...config.models.values()].map(({ traits }) => traits.path?.replace("chat/completions", "")),
      [
        "/v1/",
        "/openai/v1/",
        "/openai/v1/",
        "/openai/v1/",
        "/v1/",
        "/v1/",
        "/v1/",
        "/own",
        undefined,
      ],
    );
    const { rename, omit } = config.models.get("openai.gpt-6-astra")!.traits;
    assert.equal(rename.max_tokens, "max_completion_tokens");
    assert.ok(omit.includes("temperature"));
  });

  const SECRETS: [row: object, env: Record<string, string>, ...secrets: (string | RegExp)[]][] = [
    [azure(APPLICATION), {}, "s"],
    [azure({}), { IDENTITY_ENDPOINT: "http://127.0.0.1", IDENTITY_HEADER: "header" }, "header"],
    [withFile(keyFile(TOKEN_URI)), {}, /^-----BEGIN PRIVATE KEY-----/],
    [bedrock({ ...KEYS, session_token: "t" }), {}, "s", "t"],
    [bedrock({}), { AWS_ACCESS_KEY_ID: "A", AWS_SECRET_ACCESS_KEY: "e" }, "e"],
    [bedrock({}), { AWS_CONTAINER_AUTHORIZATION_TOKEN: "t" }, "t"],
  ];
  for (const [row, env, ...secrets] of SECRETS)
    it(`have secrets that no log shows: ${JSON.stringify([row, env])}`, () => {
      const found = secretsIn(checkConfig({ providers: { c: row }, models: {} }, env), installed);
      for (const secret of secrets) {
        const isFound = found.some(
          (text) => text === secret || (secret instanceof RegExp && secret.test(text)),
        );
        assert.ok(isFound, `${String(secret)} is missing in ${JSON.stringify(found)}`);
      }
    });

  const COMMAND = { type: "command", run: ["echo", "token"], ttl_s: 60 };
  for (const [row, env] of [...SECRETS, [azure(COMMAND), {}] as const])
    it(`reach the workers: ${JSON.stringify([row, env])}`, () => {
      const config = checkConfig({ providers: { c: row }, models: {} }, env);
      assert.deepEqual(structuredClone(config), config);
    });
});
