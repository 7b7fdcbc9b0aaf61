// Azure OpenAI as a strict provider: its paths, its key header, and tokens of Entra, App Service
// and the metadata service, each from a server that checks its requests.

import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { completion, startProvider, status, type Behaviour } from "../../../support/provider.ts";
import { asksFor, startTokenService, withToken } from "../../../support/token-service.ts";

const TENANT = "11111111-aaaa";
const SECRET = "a~client.secret";
const FINE = status(200, completion({ content: "Hi." }));

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

/** A gateway before an Azure with this behaviour. */
async function start(
  t: TestContext,
  behaviour: Behaviour,
  settings: object,
  { env = {}, ...over }: { env?: Record<string, string>; upstream?: object } = {},
) {
  const provider = await startProvider(t, behaviour);
  const config = configFor("http://lab.invalid", ["gpt"], {
    providers: { azure: { vendor: "azure", base_url: provider.url, ...settings } },
    models: { gpt: { provider: "azure", upstream_model: "my gpt/5", reasoning: false } },
    ...over,
  });
  const gateway = await startGateway(t, config, {}, env);
  const ask = (id = "an-id", signal?: AbortSignal) =>
    gateway.chat(
      { model: "gpt", messages: user("hello"), max_tokens: 5 },
      { "x-request-id": id },
      signal,
    );
  /** The statuses of `count` requests at once. */
  const statuses = async (count: number) =>
    (await Promise.all(Array.from({ length: count }, () => ask()))).map(({ status }) => status);
  return { ...gateway, ask, statuses, provider };
}

/** The same with tokens of Entra for the application. `behaviour` absent: Azure accepts them. */
async function startWithEntra(t: TestContext, behaviour?: Behaviour, over: object = {}) {
  const entra = await startTokenService(t, isApplication);
  const credentials = application(entra.url);
  return { entra, ...(await start(t, behaviour ?? withToken(entra), { credentials, ...over })) };
}

const breaksOff: Behaviour = ({ res }) => {
  res.writeHead(401, { "content-length": 100 });
  res.write("{");
};

for (const [api_version, path] of [
  [undefined, "/openai/v1/chat/completions"],
  ["2024-10-21", "/openai/deployments/my%20gpt%2F5/chat/completions?api-version=2024-10-21"],
] as const)
  it(`Azure OpenAI is called at ${path}, with its key as api-key`, async (t) => {
    const { ask, provider } = await start(t, FINE, { api_key: "azure-key", api_version });
    assert.equal((await ask()).status, 200);
    const { headers, body, path: asked } = provider.asked[0]!;
    assert.equal(asked, path);
    assert.deepEqual([headers["api-key"], headers.authorization], ["azure-key", undefined]);
    assert.deepEqual([body["model"], body["max_completion_tokens"]], ["my gpt/5", 5]);
  });

describe("tokens of Entra", () => {
  it("are fetched once for all requests, and once rejected renewed once for all waiting requests", async (t) => {
    const { statuses, entra } = await startWithEntra(t);
    assert.deepEqual(await statuses(3), [200, 200, 200]);
    assert.deepEqual(await statuses(1), [200]);
    assert.equal(entra.asked.length, 1);
    entra.valid.clear();
    assert.deepEqual(await statuses(3), [200, 200, 200]);
    assert.equal(entra.asked.length, 2);
  });

  it("are renewed even if the provider breaks off its error response", async (t) => {
    let requests = 0;
    const { ask, entra } = await startWithEntra(t, (asked) => {
      requests += 1;
      if (requests > 1) return FINE(asked);
      asked.res.writeHead(401, { "content-length": 100 });
      asked.res.write("{", () => asked.res.destroy());
    });
    assert.equal((await ask()).status, 200);
    assert.equal(entra.asked.length, 2);
  });

  it("cost a client nothing that leaves while a rejected token is renewed", async (t) => {
    const answers = [JSON.stringify({ access_token: "token", expires_in: 3600 })];
    const leaving = new AbortController();
    const entra = createServer((_req, res) => {
      const answer = answers.pop();
      if (answer === undefined) leaving.abort();
      else res.end(answer);
    });
    const credentials = application(await listening(t, entra));
    const { ask, accessOf } = await start(t, status(401, {}), { credentials });
    await assert.rejects(ask("left", leaving.signal), { name: "AbortError" });
    const { status: left, cost } = await accessOf("left");
    assert.deepEqual([left, cost], [499, undefined]);
  });

  it("cost a client nothing that leaves during an error response, after another has renewed them", async (t) => {
    const entra = await startTokenService(t, isApplication);
    const leaving = new AbortController();
    let requests = 0;
    const behaviour: Behaviour = (asked) => {
      requests += 1;
      if (requests > 1) return withToken(entra)(asked);
      entra.valid.delete(asked.headers.authorization!.replace("Bearer ", ""));
      return breaksOff(asked);
    };
    const credentials = application(entra.url);
    const upstream = { client: "fetch" };
    const { ask, accessOf, provider } = await start(t, behaviour, { credentials }, { upstream });
    const left = ask("left", leaving.signal);
    await provider.nth(0);
    assert.equal((await ask("stays")).status, 200);
    leaving.abort();
    await assert.rejects(left, { name: "AbortError" });
    assert.equal((await accessOf("left"))["cost"], undefined);
  });

  it("are awaited no longer than a reply if the error response does not end", async (t) => {
    const { ask } = await startWithEntra(t, breaksOff, { timeouts: { first_token_ms: 300 } });
    assert.equal((await json(await ask())).error.code, "upstream_timeout");
  });

  it("that are invalid in a header count as missing", async (t) => {
    const entra = await startTokenService(t, isApplication, { token: "two\nlines" });
    const credentials = application(entra.url);
    const { ask, diagnostics } = await start(t, withToken(entra), { credentials });
    assert.equal((await json(await ask())).error.code, "model_unavailable");
    assert.match(JSON.stringify(diagnostics), /credentials_failed.*Entra answered without a token/);
  });

  it("that are unavailable appear as a rejected key to the operator only", async (t) => {
    const entra = await startTokenService(t, () => false);
    const credentials = application(entra.url);
    const { ask, provider, diagnostics } = await start(t, withToken(entra), { credentials });
    const answer = await ask();
    const { error } = await json(answer);
    assert.deepEqual([answer.status, error.code], [503, "model_unavailable"]);
    const lines = JSON.stringify(diagnostics);
    const told = /"event":"credentials_failed".*Entra answered with status 401 \(invalid_client\)/;
    assert.match(lines, told);
    assert.ok(!(lines + JSON.stringify(error)).includes(SECRET));
    assert.equal(provider.asked.length, 0);
    assert.equal((await ask()).status, 503);
    assert.equal(entra.asked.length, 1, "the breaker is open, as after a refused key");
  });
});

for (const client of [{}, { client_id: "an app" }])
  it(`tokens of the machine's identity come from the metadata service: ${JSON.stringify(client)}`, async (t) => {
    const resource = "https://cognitiveservices.azure.com";
    const query = { "api-version": "2018-02-01", resource, ...client };
    const path = "/metadata/identity/oauth2/token";
    const service = await startTokenService(
      t,
      (req) => asksFor(req, path, query) && req.headers["metadata"] === "true",
    );
    const credentials = { type: "azure", endpoint: service.url, ...client };
    const { statuses } = await start(t, withToken(service), { credentials });
    assert.deepEqual(await statuses(1), [200]);
  });

it("tokens of the machine's identity come from App Service if the environment has its address", async (t) => {
  const query = { "api-version": "2019-08-01", resource: "https://ai.azure.com" };
  const service = await startTokenService(
    t,
    (req) => asksFor(req, "/msi", query) && req.headers["x-identity-header"] === "header-secret",
  );
  const env = { IDENTITY_ENDPOINT: `${service.url}/msi`, IDENTITY_HEADER: "header-secret" };
  const credentials = { type: "azure", scope: "https://ai.azure.com/.default" };
  const { statuses } = await start(t, withToken(service), { credentials }, { env });
  assert.deepEqual(await statuses(1), [200]);
});
