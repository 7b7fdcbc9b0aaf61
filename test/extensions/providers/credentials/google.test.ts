// Vertex AI as a strict provider: the paths of each API, and tokens of a service account and of the
// metadata service, from servers that check their requests. Then tokens printed by a command: real
// processes, a real provider.

import assert from "node:assert/strict";
import { verify } from "node:crypto";
import { it, type TestContext } from "node:test";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { completion, startProvider, status } from "../../../support/provider.ts";
import "../../../support/today.ts"; // for its clock
import { startTokenService, type TokenService } from "../../../support/token-service.ts";
import { message, textBlock } from "../anthropic/events.ts";
import { EMAIL, keyFile, publicKey } from "./key-file.ts";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder } from "../../../support/folder.ts";
import { LONG } from "../../../support/long.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/** Whether a form has an assertion that the account has just signed for this audience. */
function isAssertion(form: URLSearchParams, audience: string): boolean {
  const [head = "", claims = "", signature = ""] = (form.get("assertion") ?? "").split(".");
  const decoded = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  const { alg, kid } = decoded(head);
  const { iss, scope, aud, iat, exp } = decoded(claims);
  const seconds = Date.now() / 1000;
  const signed = Buffer.from(`${head}.${claims}`);
  return (
    form.get("grant_type") === "urn:ietf:params:oauth:grant-type:jwt-bearer" &&
    verify("sha256", signed, publicKey, Buffer.from(signature, "base64url")) &&
    [alg, kid, iss, scope, aud].join() === ["RS256", "k1", EMAIL, SCOPE, audience].join() &&
    Math.abs(iat - seconds) < 60 &&
    exp > seconds &&
    exp <= iat + 3600
  );
}

const ANTHROPIC = message([textBlock("Hi.")]);
const OPENAI = completion({ content: "Hi." });
const GEMINI = { candidates: [{ content: { parts: [{ text: "Hi." }] }, finishReason: "STOP" }] };

/** A Vertex with a model of each API that accepts this service's tokens, and a gateway. */
async function gatewayWith(
  t: TestContext,
  { valid }: TokenService,
  credentials: object,
  env: Record<string, string> = {},
) {
  const provider = await startProvider(t, (asked) => {
    const isLet = valid.has(String(asked.headers.authorization).replace("Bearer ", ""));
    const maker = /publishers\/(\w+)/.exec(asked.path)?.[1] ?? "";
    const reply = { google: GEMINI, anthropic: ANTHROPIC }[maker] ?? OPENAI;
    status(isLet ? 200 : 401, isLet ? reply : {})(asked);
  });
  const row = { vendor: "vertex", project: "p-1", location: "global", credentials };
  const config = configFor("http://lab.invalid", [], {
    providers: { vertex: { ...row, base_url: provider.url } },
    models: {
      "gemini-3": { provider: "vertex" },
      sonnet: { provider: "vertex", upstream_model: "claude-sonnet@20260101" },
      llama: { provider: "vertex", upstream_model: "meta/llama-4" },
      named: { provider: "vertex", upstream_model: "my-gemini", dialect: "gemini" },
    },
  });
  const { chat } = await startGateway(t, config, {}, env);
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

it("Vertex AI is called at the path of each model's API, with tokens of a service account", async (t) => {
  const tokens = await startTokenService(
    t,
    (req, form) => req.url === "/token" && isAssertion(form, `${tokens.url}/token`),
  );
  const key_file = keyFile(`${tokens.url}/token`);
  const { ask, provider } = await gatewayWith(t, tokens, { type: "google", key_file });
  for (const [model, path] of Object.entries(PATHS)) {
    assert.equal((await json(await ask(model))).choices[0].message.content, "Hi.", model);
    const { headers, path: asked } = provider.asked.at(-1)!;
    assert.equal(asked, path);
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

it("Vertex AI takes tokens of the metadata service", async (t) => {
  const path = "/computeMetadata/v1/instance/service-accounts/default/token";
  const tokens = await startTokenService(
    t,
    ({ url, headers }) => url === path && headers["metadata-flavor"] === "Google",
  );
  const host = tokens.url.replace("http://", "");
  for (const [credentials, env] of [
    [{ type: "google", endpoint: tokens.url }, {}],
    [{ type: "google" }, { GCE_METADATA_HOST: host }],
  ] as const) {
    const { ask } = await gatewayWith(t, tokens, credentials, env);
    assert.equal((await ask("gemini-3")).status, 200);
  }
});

/** A gateway with a provider that requires this program's token, and one that requires nothing. */
async function startWith(t: TestContext, program: string) {
  const file = join(folder(), "token.mjs");
  writeFileSync(file, program);
  const provider = await startProvider(t, status(200, completion({ content: "Hi." })));
  const credentials = { type: "command", run: [process.execPath, file, "a b"], ttl_s: 3000 };
  const config = configFor(provider.url, ["spare"], {
    providers: { tokens: { dialect: "openai", base_url: provider.url, credentials } },
    models: { m: { provider: "tokens", reasoning: false } },
    aliases: { any: { models: ["m", "spare"] } },
  });
  return { ...(await startGateway(t, config)), provider };
}

const PRINTS = `console.log("token-of-" + process.argv[2].replace(" ", "-"));`;

it("a token command is run without a shell, once for many requests", async (t) => {
  const { chat, provider } = await startWith(t, PRINTS);
  const ask = () => chat({ model: "m", messages: user("hello") });
  for (const { status } of [...(await Promise.all([ask(), ask()])), await ask()])
    assert.equal(status, 200);
  const keys = new Set(provider.asked.map(({ headers }) => headers.authorization));
  assert.deepEqual([...keys], ["Bearer token-of-a-b"]);
});

const hangs = `process.on("SIGTERM", () => {}); setInterval(() => {}, 1e6);`;
for (const [name, program, detail] of [
  ...(LONG ? [["hangs", hangs, /was stopped, after 30 seconds/] as const] : []),
  ["fails", `console.error("secret"); process.exit(3);`, /failed: exit code 3/],
  ["prints nothing", "", /printed no token/],
  ["prints a sentence", `console.log("please log in");`, /printed no token/],
] as const) {
  it(`a token command that ${name} counts as a rejected key, and another candidate serves`, async (t) => {
    const { chat, diagnostics } = await startWith(t, program);
    assert.equal((await chat({ model: "any", messages: user("hello") })).status, 200);
    const failed = diagnostics.find(({ event }) => event === "credentials_failed");
    assert.match(String(failed?.["detail"]), detail);
    assert.doesNotMatch(JSON.stringify(diagnostics), /secret|log in/);
  });
}
