// Vertex AI as a provider that is strict: the paths of each API, and tokens of a service account and of
// the metadata service, from servers that check what they are asked.

import assert from "node:assert/strict";
import { generateKeyPairSync, verify } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { startProvider, status } from "../../../support/provider.ts";
import { now } from "../../../support/today.ts";
import {
  issueLines,
  startTokenService,
  type TokenService,
} from "../../../support/token-service.ts";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const EMAIL = "gateway@p.iam.gserviceaccount.com";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/** Writes the key file of a service account. */
function keyFile(token_uri: string, more: object = {}): string {
  const file = join(folder(), "sa.json");
  const private_key = privateKey.export({ type: "pkcs8", format: "pem" });
  const account = {
    type: "service_account",
    client_email: EMAIL,
    private_key_id: "k1",
    private_key,
  };
  writeFileSync(file, JSON.stringify({ ...account, token_uri, ...more }, null, 2));
  return file;
}

/** Whether a form has an assertion that the account has signed for this audience, just now. */
function isAssertion(form: URLSearchParams, audience: string): boolean {
  const [head = "", claims = "", signature = ""] = (form.get("assertion") ?? "").split(".");
  const decoded = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  const { alg, kid } = decoded(head);
  const { iss, scope, aud, iat, exp } = decoded(claims);
  const seconds = now() / 1000;
  return (
    form.get("grant_type") === "urn:ietf:params:oauth:grant-type:jwt-bearer" &&
    verify(
      "sha256",
      Buffer.from(`${head}.${claims}`),
      publicKey,
      Buffer.from(signature, "base64url"),
    ) &&
    [alg, kid, iss, scope, aud].join() === ["RS256", "k1", EMAIL, SCOPE, audience].join() &&
    Math.abs(iat - seconds) < 60 &&
    exp > seconds &&
    exp <= iat + 3600
  );
}

const REPLIES = {
  gemini: { candidates: [{ content: { parts: [{ text: "Hi." }] }, finishReason: "STOP" }] },
  claude: {
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "Hi." }],
    stop_reason: "end_turn",
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  openai: { choices: [{ message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }] },
};

const vertexAt = (base_url: string, credentials: object) =>
  configFor("http://lab.invalid", [], {
    providers: {
      vertex: { vendor: "vertex", base_url, project: "p-1", location: "global", credentials },
    },
    models: {
      "gemini-3": { provider: "vertex" },
      sonnet: { provider: "vertex", upstream_model: "claude-sonnet@20260101" },
      llama: { provider: "vertex", upstream_model: "meta/llama-4" },
      named: { provider: "vertex", upstream_model: "my-gemini", dialect: "gemini" },
    },
  });

/** A Vertex with a model of each API, which takes the tokens of this service, and a gateway before it. */
async function gatewayWith(
  t: TestContext,
  { valid }: TokenService,
  credentials: object,
  env: Record<string, string> = {},
) {
  const provider = await startProvider(t, (asked) => {
    const isLet = valid.has(String(asked.headers.authorization).replace("Bearer ", ""));
    const maker = /publishers\/(\w+)/.exec(asked.path)?.[1] ?? "";
    const { gemini, claude, openai } = REPLIES;
    const reply = { google: gemini, anthropic: claude }[maker] ?? openai;
    status(isLet ? 200 : 401, isLet ? reply : {})(asked);
  });
  const { chat } = await startGateway(t, vertexAt(provider.url, credentials), {}, env);
  const ask = (model: string, stream = false) => chat({ model, messages: user("hello"), stream });
  return { ask, provider };
}

const AT = "/v1/projects/p-1/locations/global";
const PATHS = {
  "gemini-3": `${AT}/publishers/google/models/gemini-3:generateContent`,
  sonnet: `${AT}/publishers/anthropic/models/claude-sonnet@20260101:rawPredict`,
  llama: `${AT}/endpoints/openapi/chat/completions`,
  named: `${AT}/publishers/google/models/my-gemini:generateContent`,
};

const STREAM_PATHS = {
  "gemini-3": `${AT}/publishers/google/models/gemini-3:streamGenerateContent?alt=sse`,
  sonnet: `${AT}/publishers/anthropic/models/claude-sonnet@20260101:streamRawPredict`,
};

describe("Vertex AI", () => {
  it("is called at the path of each model's API, with tokens of a service account", async (t) => {
    const tokens = await startTokenService(
      t,
      (req, form) => req.url === "/token" && isAssertion(form, `${tokens.url}/token`),
    );
    const key_file = keyFile(`${tokens.url}/token`);
    const { ask, provider } = await gatewayWith(t, tokens, { type: "google", key_file });
    for (const [model, path] of Object.entries(PATHS)) {
      const answer = await ask(model);
      assert.equal(answer.status, 200, model);
      assert.equal((await json(answer)).choices[0].message.content, "Hi.");
      assert.equal(provider.asked.at(-1)!.path, path);
      const { headers } = provider.asked.at(-1)!;
      assert.deepEqual([headers["x-api-key"], headers["x-goog-api-key"]], [undefined, undefined]);
    }
    assert.equal(tokens.asked.length, 1, "one token for all models of the provider");
    const claude = provider.asked[1]!;
    assert.equal("model" in claude.body, false);
    assert.equal(claude.body["anthropic_version"], "vertex-2023-10-16");
    assert.equal(claude.headers["anthropic-version"], undefined);
    assert.equal(provider.asked[2]!.body["model"], "meta/llama-4");
    for (const [model, path] of Object.entries(STREAM_PATHS)) {
      await (await ask(model, true)).text();
      assert.equal(provider.asked.at(-1)!.path, path);
    }
  });

  it("takes tokens of the metadata service", async (t) => {
    const isMetadata = (req: IncomingMessage): boolean =>
      req.url === "/computeMetadata/v1/instance/service-accounts/default/token" &&
      req.headers["metadata-flavor"] === "Google";
    const tokens = await startTokenService(t, isMetadata);
    const host = tokens.url.replace("http://", "");
    for (const [credentials, env] of [
      [{ type: "google", endpoint: tokens.url }, {}],
      [{ type: "google" }, { GCE_METADATA_HOST: host }],
    ] as const) {
      const { ask } = await gatewayWith(t, tokens, credentials, env);
      assert.equal((await ask("gemini-3")).status, 200);
    }
  });
});

describe("the settings of Vertex", () => {
  const issues = (provider: object, models: object = {}) =>
    issueLines(() => checkConfig({ providers: { v: { vendor: "vertex", ...provider } }, models }));
  const place = { project: "p", location: "us-east5" };

  it("need a project and a location, and a key or credentials", () => {
    assert.deepEqual(issues({ credentials: { type: "google" } }), [
      "providers.v.project: is required by this vendor",
      "providers.v.location: is required by this vendor",
    ]);
    assert.match(issues(place).join(), /^providers\.v\.api_key: is required: /);
    assert.deepEqual(issues({ ...place, credentials: { type: "google" } }), []);
  });

  it("decide the host", () => {
    for (const [location, host] of [
      ["global", "aiplatform.googleapis.com"],
      ["eu", "aiplatform.eu.rep.googleapis.com"],
      ["us-east5", "us-east5-aiplatform.googleapis.com"],
    ] as const) {
      const credentials = { type: "google" };
      const provider = { vendor: "vertex", project: "p", location, credentials };
      const { providers } = checkConfig({ providers: { v: provider }, models: {} });
      assert.equal(providers.get("v")?.base_url, `https://${host}`);
    }
  });

  it("name a format that Vertex has", () => {
    const v = { ...place, credentials: { type: "google" } };
    assert.deepEqual(issues(v, { m: { provider: "v", dialect: "demo" } }), [
      "models.m.dialect: its provider's vendor has no API of the format demo",
    ]);
    assert.deepEqual(issues({ ...v, dialect: "gemini" }), [
      "providers.v.dialect: each model of this vendor has its own: state it there",
    ]);
  });

  it("have a key file of a service account", () => {
    const withFile = (key_file: string) =>
      issues({ ...place, credentials: { type: "google", key_file } });
    assert.deepEqual(withFile(keyFile("https://oauth2.example/token")), []);
    assert.match(
      withFile("/nowhere/sa.json").join(),
      /cannot read the file \/nowhere\/sa.json: ENOENT/,
    );
    for (const more of [
      { type: "authorized_user" },
      { private_key: "x" },
      { token_uri: undefined },
    ])
      assert.deepEqual(withFile(keyFile("https://oauth2.example/token", more)), [
        "providers.v.credentials.key_file: expected the key file of a service account",
      ]);
    assert.deepEqual(withFile(keyFile("http://oauth2.example/token")), [
      "providers.v.credentials.key_file: the key file's token_uri must be https://",
    ]);
  });
});
