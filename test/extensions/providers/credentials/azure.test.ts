// Azure OpenAI as a provider that is strict: its paths, its header for a key, and tokens of Entra, of
// App Service and of the metadata service, each from a server that checks what it is asked.

import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { completion, startProvider, status } from "../../../support/provider.ts";
import {
  asksFor,
  startTokenService,
  withToken,
  type TokenService,
} from "../../../support/token-service.ts";

const TENANT = "11111111-aaaa";
const SECRET = "a~client.secret";

const azureAt = (base_url: string, more: object) =>
  configFor("http://lab.invalid", ["gpt"], {
    providers: { azure: { vendor: "azure", base_url, ...more } },
    models: { gpt: { provider: "azure", upstream_model: "my gpt/5", reasoning: false } },
  });

const application = (endpoint: string) => ({
  type: "azure",
  tenant_id: TENANT,
  client_id: "app",
  client_secret: SECRET,
  endpoint,
});

/** Whether a form is that of the application. */
const isApplication = (req: IncomingMessage, form: URLSearchParams): boolean =>
  req.method === "POST" &&
  req.url === `/${TENANT}/oauth2/v2.0/token` &&
  form.get("grant_type") === "client_credentials" &&
  form.get("client_id") === "app" &&
  form.get("client_secret") === SECRET &&
  form.get("scope") === "https://cognitiveservices.azure.com/.default";

/** A gateway before an Azure that takes the tokens of this service. */
async function gatewayWith(
  t: TestContext,
  service: TokenService,
  credentials: object,
  env: Record<string, string> = {},
) {
  const provider = await startProvider(t, withToken(service));
  const gateway = await startGateway(t, azureAt(provider.url, { credentials }), {}, env);
  const ask = () => gateway.chat({ model: "gpt", messages: user("hello") });
  /** The statuses of so many requests at once. */
  const statuses = async (count: number) =>
    (await Promise.all(Array.from({ length: count }, ask))).map(({ status }) => status);
  return { ask, statuses, provider, diagnostics: gateway.diagnostics };
}

describe("Azure OpenAI", () => {
  for (const [api_version, path] of [
    [undefined, "/openai/v1/chat/completions"],
    ["2024-10-21", "/openai/deployments/my%20gpt%2F5/chat/completions?api-version=2024-10-21"],
  ] as const) {
    it(`is called at ${path}, with its key as api-key`, async (t) => {
      const provider = await startProvider(t, status(200, completion({ content: "Hi." })));
      const settings = { api_key: "azure-key", api_version };
      const { chat } = await startGateway(t, azureAt(provider.url, settings));
      const answer = await chat({ model: "gpt", messages: user("hello"), max_tokens: 5 });
      assert.equal(answer.status, 200);
      const [{ headers, body, path: asked } = assert.fail("nothing was asked")] = provider.asked;
      assert.equal(asked, path);
      assert.deepEqual([headers["api-key"], headers.authorization], ["azure-key", undefined]);
      assert.deepEqual([body["model"], body["max_completion_tokens"]], ["my gpt/5", 5]);
    });
  }
});

describe("tokens of Entra", () => {
  it("are fetched once for all requests, and renewed once when they are refused, for all who wait", async (t) => {
    const entra = await startTokenService(t, isApplication);
    const { statuses } = await gatewayWith(t, entra, application(entra.url));
    assert.deepEqual(await statuses(3), [200, 200, 200]);
    assert.deepEqual(await statuses(1), [200]);
    assert.equal(entra.asked.length, 1);
    entra.valid.clear();
    assert.deepEqual(await statuses(3), [200, 200, 200]);
    assert.equal(entra.asked.length, 2);
  });

  it("are renewed also where the provider breaks its refusal off", async (t) => {
    const entra = await startTokenService(t, isApplication);
    const provider = await startProvider(t, (asked) => {
      if (entra.valid.size > 1) return status(200, completion({ content: "Hi." }))(asked);
      asked.res.writeHead(401, { "content-length": 100 });
      asked.res.write("{", () => asked.res.destroy());
    });
    const credentials = application(entra.url);
    const { chat } = await startGateway(t, azureAt(provider.url, { credentials }));
    assert.equal((await chat({ model: "gpt", messages: user("hello") })).status, 200);
  });

  it("cost a client nothing that leaves while a refused one is renewed", async (t) => {
    const answers = [JSON.stringify({ access_token: "token", expires_in: 3600 })];
    const leaving = new AbortController();
    const entra = createServer((_req, res) => {
      const answer = answers.pop();
      if (answer === undefined) leaving.abort();
      else res.end(answer);
    });
    const credentials = application(await listening(t, entra));
    const provider = await startProvider(t, status(401, {}));
    const gateway = await startGateway(t, azureAt(provider.url, { credentials }));
    const asked = gateway.chat(
      { model: "gpt", messages: user("hello") },
      { "x-request-id": "left" },
      leaving.signal,
    );
    await assert.rejects(asked, { name: "AbortError" });
    const { status: left, cost } = await gateway.accessOf("left");
    assert.deepEqual([left, cost], [499, undefined]);
  });

  it("cost a client nothing that leaves within a refusal, after another has renewed them", async (t) => {
    const entra = await startTokenService(t, isApplication);
    const leaving = new AbortController();
    const provider = await startProvider(t, (asked) => {
      const { res, headers } = asked;
      if (provider.asked.length > 1) {
        withToken(entra)(asked);
        return;
      }
      entra.valid.delete(headers.authorization!.replace("Bearer ", ""));
      res.writeHead(401, { "content-length": 100 });
      res.write("{");
    });
    const upstream = { client: "fetch" };
    const config = { ...azureAt(provider.url, { credentials: application(entra.url) }), upstream };
    const { chat, accessOf } = await startGateway(t, config);
    const ask = (id: string, signal?: AbortSignal) =>
      chat({ model: "gpt", messages: user("hello") }, { "x-request-id": id }, signal);
    const left = ask("left", leaving.signal);
    await provider.nth(0);
    assert.equal((await ask("stays")).status, 200);
    leaving.abort();
    await assert.rejects(left, { name: "AbortError" });
    assert.equal((await accessOf("left"))["cost"], undefined);
  });

  it("are waited for no longer than for a reply where the refusal does not end", async (t) => {
    const entra = await startTokenService(t, isApplication);
    const provider = await startProvider(t, ({ res }) => {
      res.writeHead(401, { "content-length": 100 });
      res.write("{");
    });
    const [credentials, timeouts] = [application(entra.url), { first_token_ms: 300 }];
    const config = azureAt(provider.url, { credentials, timeouts });
    const { chat } = await startGateway(t, config);
    const answer = await chat({ model: "gpt", messages: user("hello") });
    assert.equal((await json(answer)).error.code, "upstream_timeout");
  });

  it("that fit into no header are none", async (t) => {
    const entra = await startTokenService(t, isApplication, { token: "two\nlines" });
    const { ask, diagnostics } = await gatewayWith(t, entra, application(entra.url));
    assert.equal((await json(await ask())).error.code, "model_unavailable");
    assert.match(JSON.stringify(diagnostics), /credentials_failed.*Entra answered without a token/);
  });

  it("that cannot be had are a refused key to the operator, and nothing to the client", async (t) => {
    const entra = await startTokenService(t, () => false);
    const { ask, provider, diagnostics } = await gatewayWith(t, entra, application(entra.url));
    const answer = await ask();
    const { error } = await json(answer);
    assert.deepEqual([answer.status, error.code], [503, "model_unavailable"]);
    const lines = JSON.stringify(diagnostics);
    assert.match(
      lines,
      /"event":"credentials_failed".*Entra answered with status 401 \(invalid_client\)/,
    );
    assert.ok(!(lines + JSON.stringify(error)).includes(SECRET));
    assert.equal(provider.asked.length, 0);
    assert.equal((await ask()).status, 503);
    assert.equal(entra.asked.length, 1, "the breaker is open, as after a refused key");
  });
});

describe("tokens of the machine's identity", () => {
  for (const [which, client] of [
    ["its only one", {}],
    ["one of several", { client_id: "an app" }],
  ] as const)
    it(`come from the metadata service: ${which}`, async (t) => {
      const resource = "https://cognitiveservices.azure.com";
      const query = { "api-version": "2018-02-01", resource, ...client };
      const path = "/metadata/identity/oauth2/token";
      const service = await startTokenService(
        t,
        (req) => asksFor(req, path, query) && req.headers["metadata"] === "true",
      );
      const credentials = { type: "azure", endpoint: service.url, ...client };
      const { ask } = await gatewayWith(t, service, credentials);
      assert.equal((await ask()).status, 200);
    });

  it("come from App Service where it states its address", async (t) => {
    const query = { "api-version": "2019-08-01", resource: "https://ai.azure.com" };
    const service = await startTokenService(
      t,
      (req) => asksFor(req, "/msi", query) && req.headers["x-identity-header"] === "header-secret",
    );
    const env = { IDENTITY_ENDPOINT: `${service.url}/msi`, IDENTITY_HEADER: "header-secret" };
    const credentials = { type: "azure", scope: "https://ai.azure.com/.default" };
    const { ask } = await gatewayWith(t, service, credentials, env);
    assert.equal((await ask()).status, 200);
  });
});
